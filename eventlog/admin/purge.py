"""Takes old rows out of a log, a stretch at a time, after an archive of them is durable.

Law: a row is deleted only after it stands in an archive that a power cut does not undo, if there is to be one. Each
stretch is deleted in a transaction of its own, so that nobody waits long for its locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.admin.archive import Archive, ArchiveFile
from eventlog.admin.rows import Choice
from eventlog.core.model import Status
from eventlog.sql.log import Log, id_list

STRETCH_ROWS: Final = 2000
"""Rows of a stretch, more or less: the size of a transaction."""

FILE_ROWS: Final = 200_000
"""Rows after which an archive gets another file."""

ENDED: Final = f"{Status.SUCCESS}{Status.WARNING}{Status.ERROR}"
"""What is purged unless other letters are asked for: never what waits, nor what stopped the publisher."""


class Purge(Struct, frozen=True, kw_only=True):
    """What is to go: rows that are older than so many seconds, by letter and table."""

    age: float
    letters: str = ENDED
    table: str | None = None


class Purged(Struct, frozen=True, kw_only=True):
    """How far a purge is: rows deleted, rows archived, the archive's files."""

    rows: int = 0
    archived: int = 0
    files: tuple[str, ...] = ()


class PurgeStretch(Struct, frozen=True, kw_only=True):
    """A part of the log, in the database's own terms, and the old rows in it."""

    after: Any
    until: Any
    numbers: list[int]


class Group(Struct, frozen=True, kw_only=True):
    """Stretches that are deleted after the same archive file."""

    stretches: tuple[PurgeStretch, ...]
    archived: int = 0
    files: tuple[str, ...] = ()


def purge(log: Log, wanted: Purge, archive: Archive | None = None) -> Iterator[Purged]:
    """Purges and says after each stretch how far it is; a repeat goes on where it was broken off."""
    parameters = _parameters(log, wanted)
    done = Purged()
    for group in _groups(log, parameters, archive):
        done = replace(done, archived=done.archived + group.archived, files=(*done.files, *group.files))
        for stretch in group.stretches:
            done = replace(done, rows=done.rows + _take_away(log, stretch, parameters))
            yield done
    if wanted.table is None:
        with log.transaction() as connection:
            connection.execute(log.query("forget_orphans"), parameters)
    yield done


def count_old(log: Log, wanted: Purge) -> int:
    """How many rows `purge` would delete now."""
    return sum(len(stretch.numbers) for stretch, _ in _stretches(log, _parameters(log, wanted), "old_numbers"))


def _parameters(log: Log, wanted: Purge) -> dict[str, Any]:
    choice = Choice(letters=wanted.letters, table=wanted.table).parameters()
    with log.transaction() as connection:
        cutoff, settled = connection.execute(log.query("cutoff"), {"age": wanted.age}).one()
    return choice | {"cutoff": str(cutoff), "settled": str(settled)}


def _groups(log: Log, parameters: dict[str, Any], archive: Archive | None) -> Iterator[Group]:
    """Stretches that may be deleted: with an archive once they fill a file of it and that is durable."""
    if archive is None:
        for stretch, _ in _stretches(log, parameters, "old_numbers"):
            yield Group(stretches=(stretch,))
        return
    file, kept = archive.file(), list[PurgeStretch]()
    try:
        for stretch, rows in _stretches(log, parameters, "old_rows"):
            file.write(rows)
            kept.append(stretch)
            if file.rows >= FILE_ROWS:
                yield _finished(file, kept)
                file, kept = archive.file(), []
        yield _finished(file, kept)
    finally:
        file.discard()


def _finished(file: ArchiveFile, stretches: list[PurgeStretch]) -> Group:
    path = file.finish()
    return Group(stretches=tuple(stretches), archived=file.rows, files=() if path is None else (str(path),))


def _stretches(
    log: Log, parameters: dict[str, Any], query: str
) -> Iterator[tuple[PurgeStretch, list[tuple[Any, ...]]]]:
    """The stretches of the log that have old rows, each with what the query tells of them, their numbers first."""
    place = {"log": log.dialect.qualified(log.names.schema, log.names.table), "many": STRETCH_ROWS}
    written = "transaction_told" if log.names.transaction is not None else ""
    old = log.query(query, stretch="in_stretch", past="in_past", transaction=written)
    with log.transaction() as connection:
        after = connection.execute(log.query("stretch_begin")).scalar_one()
    while True:
        with log.transaction() as connection:
            until = connection.execute(log.query("stretch_end"), place | {"after": after}).scalar()
            if until is None:
                return
            rows = log.rows(connection, old, parameters | {"after": after, "until": until})
        if rows:
            yield PurgeStretch(after=after, until=until, numbers=[int(row[0]) for row in rows]), rows
        after = until


def _take_away(log: Log, stretch: PurgeStretch, parameters: dict[str, Any]) -> int:
    """Deletes the rows and what was recorded about them; those that wait again meanwhile stay."""
    bounds = {"after": stretch.after, "until": stretch.until, "ids": id_list(stretch.numbers)}
    with log.transaction() as connection:
        count = connection.execute(log.query("take_away", stretch="in_stretch"), parameters | bounds).rowcount
        connection.execute(log.query("forget_rows"), parameters | bounds)
    return int(count)
