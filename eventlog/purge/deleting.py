"""Which rows of a log are old, range by range, and how they go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.care.rows import Choice, leave_before_deletion
from eventlog.core.model import Status
from eventlog.purge.archive import Archive
from eventlog.sql.log import Log, id_list

RANGE_ROWS: Final = 2000
"""Rows of a range, more or less: the size of a transaction."""

FILE_ROWS: Final = 200_000
"""Rows after which an archive gets another file."""

ENDED: Final = f"{Status.SUCCESS}{Status.WARNING}{Status.ERROR}"
"""What is purged unless other statuses are asked for: never what waits, nor what stopped the
publisher.
"""


class Purge(Struct, frozen=True, kw_only=True):
    """What is to go: rows that are older than so many seconds, by status and table."""

    age: float
    statuses: str = ENDED
    table: str = ""


class Purged(Struct, frozen=True, kw_only=True):
    """How far a purge is: rows deleted, rows archived, the archive's files."""

    rows: int = 0
    archived: int = 0
    files: tuple[str, ...] = ()


class PurgeRange(Struct, frozen=True, kw_only=True):
    """A part of the log, in the database's own terms, and old rows in it that have these
    statuses.
    """

    after: Any
    until: Any
    numbers: list[int]
    statuses: str


def purge(log: Log, wanted: Purge, archive: Archive | None = None) -> Iterator[Purged]:
    """Purges, and yields after each range how far it is.

    A repeat goes on where it was broken off.
    """
    parameters = _parameters(log, wanted)
    done = Purged()
    for row_ranges, archived_rows, path in _archive_ranges(log, parameters, wanted, archive):
        if path is not None:
            done = replace(done, archived=done.archived + archived_rows, files=(*done.files, path))
        for row_range in row_ranges:
            bounds = {"after": row_range.after, "until": row_range.until, "ids": id_list(row_range.numbers)}
            bounds |= Choice(statuses=row_range.statuses).parameters()
            with log.transaction() as connection:
                if Status.NEW in wanted.statuses:
                    # In the same transaction, so that no output gets them and none waits for them.
                    leave_before_deletion(connection, log, row_range.numbers)
                # By status as well as by number: those stay that wait again meanwhile, or ended
                # otherwise than the archive has it.
                delete = log.query("take_away", row_range="in_range")
                rows = int(connection.execute(delete, parameters | bounds).rowcount)
                connection.execute(log.query("forget_rows"), parameters | bounds)
            done = replace(done, rows=done.rows + rows)
            yield done
    if not wanted.table:
        with log.transaction() as connection:
            connection.execute(log.query("forget_orphans"), parameters)
    yield done


def count_old(log: Log, wanted: Purge) -> int:
    row_ranges = _find_ranges(log, _parameters(log, wanted), "old_numbers")
    return sum(len(rows) for _, _, rows in row_ranges)


def _parameters(log: Log, wanted: Purge) -> dict[str, Any]:
    choice = Choice(statuses=wanted.statuses, table=wanted.table).parameters()
    with log.transaction() as connection:
        cutoff, settled = connection.execute(log.query("cutoff"), {"age": wanted.age}).one()
    return choice | {"cutoff": str(cutoff), "settled": str(settled)}


def _archive_ranges(
    log: Log, parameters: dict[str, Any], wanted: Purge, archive: Archive | None
) -> Iterator[tuple[list[PurgeRange], int, str | None]]:
    """Yield ranges ready for deletion, with their rows and durable archive file."""
    if archive is None:
        for after, until, rows in _find_ranges(log, parameters, "old_numbers"):
            numbers = [int(number) for (number,) in rows]
            statuses = wanted.statuses
            row_range = PurgeRange(after=after, until=until, numbers=numbers, statuses=statuses)
            yield [row_range], 0, None
        return
    file, written = archive.file(), list[PurgeRange]()
    try:
        for after, until, rows in _find_ranges(log, parameters, "old_rows"):
            file.write(rows)
            by_status_of: dict[str, list[int]] = {}
            for row in rows:
                by_status_of.setdefault(row[1].strip(), []).append(int(row[0]))
            for statuses, numbers in by_status_of.items():
                row_range = PurgeRange(after=after, until=until, numbers=numbers, statuses=statuses)
                written.append(row_range)
            if file.rows >= FILE_ROWS:
                yield written, file.rows, file.finish()
                file, written = archive.file(), []
        yield written, file.rows, file.finish()
    finally:
        file.discard()


def _find_ranges(
    log: Log,
    parameters: dict[str, Any],
    query: str,
) -> Iterator[tuple[Any, Any, list[tuple[Any, ...]]]]:
    """Yield the ranges of the log with old rows: each by its begin and its end, with the query's answer
    about them, their numbers first.
    """
    range_parameters = {"log": log.dialect.qualify(log.names.schema, log.names.table), "many": RANGE_ROWS}
    written = "untold" if log.names.transaction is None else "transaction_told"
    said = "untold" if log.names.context is None else "context_told"
    old = log.query(query, row_range="in_range", past="in_past", transaction=written, context=said)
    with log.transaction() as connection:
        after = connection.execute(log.query("range_begin")).scalar_one()
    while True:
        with log.transaction() as connection:
            until = connection.execute(log.query("range_end"), range_parameters | {"after": after}).scalar()
            if until is None:
                return
            rows = log.rows(connection, old, parameters | {"after": after, "until": until})
        if rows:
            yield after, until, rows
        after = until
