"""Which rows of a log are old, stretch by stretch, and how they go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.care.rows import Choice, leave_before_deletion
from eventlog.core.model import Status
from eventlog.purge.archive import Archive
from eventlog.sql.log import Log, id_list

STRETCH_ROWS: Final = 2000
"""Rows of a stretch, more or less: the size of a transaction."""

FILE_ROWS: Final = 200_000
"""Rows after which an archive gets another file."""

ENDED: Final = f"{Status.SUCCESS}{Status.WARNING}{Status.ERROR}"
"""What is purged unless other letters are asked for: never what waits, nor what stopped the
publisher.
"""


class Purge(Struct, frozen=True, kw_only=True):
    """What is to go: rows that are older than so many seconds, by letter and table."""

    age: float
    letters: str = ENDED
    table: str = ""


class Purged(Struct, frozen=True, kw_only=True):
    """How far a purge is: rows deleted, rows archived, the archive's files."""

    rows: int = 0
    archived: int = 0
    files: tuple[str, ...] = ()


class PurgeStretch(Struct, frozen=True, kw_only=True):
    """A part of the log, in the database's own terms, and old rows in it that have these
    letters.
    """

    after: Any
    until: Any
    numbers: list[int]
    letters: str


def purge(log: Log, wanted: Purge, archive: Archive | None = None) -> Iterator[Purged]:
    """Purges, and yields after each stretch how far it is.

    A repeat goes on where it was broken off.
    """
    parameters = _parameters(log, wanted)
    done = Purged()
    for stretches, archived_rows, path in _durable_stretches(log, parameters, wanted, archive):
        if path is not None:
            done = replace(done, archived=done.archived + archived_rows, files=(*done.files, path))
        for stretch in stretches:
            bounds = {"after": stretch.after, "until": stretch.until, "ids": id_list(stretch.numbers)}
            bounds |= Choice(letters=stretch.letters).parameters()
            with log.transaction() as connection:
                if Status.NEW in wanted.letters:
                    # In the same transaction, so that no output gets them and none waits for them.
                    leave_before_deletion(connection, log, stretch.numbers)
                # By letter as well as by number: those stay that wait again meanwhile, or ended
                # otherwise than the archive has it.
                delete = log.query("take_away", stretch="in_stretch")
                rows = int(connection.execute(delete, parameters | bounds).rowcount)
                connection.execute(log.query("forget_rows"), parameters | bounds)
            done = replace(done, rows=done.rows + rows)
            yield done
    if not wanted.table:
        with log.transaction() as connection:
            connection.execute(log.query("forget_orphans"), parameters)
    yield done


def count_old(log: Log, wanted: Purge) -> int:
    stretches = _stretches(log, _parameters(log, wanted), "old_numbers")
    return sum(len(rows) for _, _, rows in stretches)


def _parameters(log: Log, wanted: Purge) -> dict[str, Any]:
    choice = Choice(letters=wanted.letters, table=wanted.table).parameters()
    with log.transaction() as connection:
        cutoff, settled = connection.execute(log.query("cutoff"), {"age": wanted.age}).one()
    return choice | {"cutoff": str(cutoff), "settled": str(settled)}


def _durable_stretches(
    log: Log, parameters: dict[str, Any], wanted: Purge, archive: Archive | None
) -> Iterator[tuple[list[PurgeStretch], int, str | None]]:
    """Yield ranges ready for deletion, with their rows and durable archive file."""
    if archive is None:
        for after, until, rows in _stretches(log, parameters, "old_numbers"):
            numbers = [int(number) for (number,) in rows]
            letters = wanted.letters
            stretch = PurgeStretch(after=after, until=until, numbers=numbers, letters=letters)
            yield [stretch], 0, None
        return
    file, written = archive.file(), list[PurgeStretch]()
    try:
        for after, until, rows in _stretches(log, parameters, "old_rows"):
            file.write(rows)
            by_letter: dict[str, list[int]] = {}
            for row in rows:
                by_letter.setdefault(row[1].strip(), []).append(int(row[0]))
            for letters, numbers in by_letter.items():
                stretch = PurgeStretch(after=after, until=until, numbers=numbers, letters=letters)
                written.append(stretch)
            if file.rows >= FILE_ROWS:
                yield written, file.rows, file.finish()
                file, written = archive.file(), []
        yield written, file.rows, file.finish()
    finally:
        file.discard()


def _stretches(
    log: Log,
    parameters: dict[str, Any],
    query: str,
) -> Iterator[tuple[Any, Any, list[tuple[Any, ...]]]]:
    """Yield the stretches of the log with old rows: each by its begin and its end, with the query's answer
    about them, their numbers first.
    """
    stretch_parameters = {"log": log.dialect.qualify(log.names.schema, log.names.table), "many": STRETCH_ROWS}
    written = "untold" if log.names.transaction is None else "transaction_told"
    said = "untold" if log.names.context is None else "context_told"
    old = log.query(query, stretch="in_stretch", past="in_past", transaction=written, context=said)
    with log.transaction() as connection:
        after = connection.execute(log.query("stretch_begin")).scalar_one()
    while True:
        with log.transaction() as connection:
            until = connection.execute(log.query("stretch_end"), stretch_parameters | {"after": after}).scalar()
            if until is None:
                return
            rows = log.rows(connection, old, parameters | {"after": after, "until": until})
        if rows:
            yield after, until, rows
        after = until
