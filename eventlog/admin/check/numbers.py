"""The point about the log's numbers: they are the order of an object's changes, unless sessions keep some in hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eventlog.admin.check.findings import findings
from eventlog.admin.check.point import Point, failure, ok, points, warning
from eventlog.config.settings import Config
from eventlog.core.errors import InstallError
from eventlog.sql.access import fetched, transaction, verbatim
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.sql.queries import log_holes, statement

if TYPE_CHECKING:
    from sqlalchemy import Engine


def number_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """Whether each row has a number of its own, and whether a later change of an object may get a lower one.

    Where times order the log, nobody asks the second.
    """
    yield from points("numbers", lambda: _odd(engine, names))
    if config.publisher.handle_future_events:
        yield ok("numbers", "changes are ordered by their times")
        return
    known = {
        "log": dialect_of(engine).qualified(names.schema, names.table),
        "log_schema": names.schema,
        "log_table": names.table,
        "record_id": names.column("record_id"),
        "log_sequence": config.source.sequence,
    }
    nothing = "no cache of numbers is known that would give a later change of an object a lower one"
    yield from findings(engine, "numbers", "numbers", nothing, known)


def _odd(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Rows that a mark cannot mean alone. Of a log that eventlog made only the waiting rows are looked at."""
    dialect = dialect_of(engine)
    holes = log_holes(dialect, names)
    with transaction(engine, "The event log") as connection:
        adopted = fetched(connection, verbatim(statement(dialect, "adopted", **holes)))
        among = "1 = 1" if adopted else statement(dialect, "only_waiting", **holes)
        (row,) = fetched(connection, verbatim(statement(dialect, "odd_numbers", **holes, among=among)))
    missing, low, doubled = (int(number) for number in row)
    if missing:
        said = f"{missing} row(s) have no record_id: the publisher cannot mark them, and stops."
        yield failure("numbers", InstallError(said, hint="Give them numbers, or take them away."))
    if doubled:
        said = f"{doubled} row(s) have a record_id that another row has: rows of one number end with one letter."
        yield warning("numbers", said, "Number them anew, and make a unique index on the column.")
    if low:
        said = f"{low} row(s) have a record_id that is not positive; they come before all others."
        yield warning("numbers", said, "Number them anew; the format asks for positive numbers.")
