"""Points about the log's numbers, and the indexes that polls and lists read.

Numbers are the order of an object's changes, unless sessions keep some in hand. A log that somebody else made has none
of our indexes, or none at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Engine

from eventlog.admin.check.point import Point, failure, findings, ok, points, warning
from eventlog.config.settings import Config
from eventlog.core.errors import InstallError
from eventlog.core.plural import counted
from eventlog.sql.access import fetched, transaction, verbatim
from eventlog.sql.dialect import Dialect, dialect_of
from eventlog.sql.log_indexes import begins_with_status, has_number_index, serves
from eventlog.sql.names import LogNames
from eventlog.sql.queries import log_holes, offers, statement
from eventlog.sql.triggers.track import with_schema


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
    nothing = "nothing is known that would give a later change of an object a lower number"
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
        said = f"{counted(missing, 'row')} without a record_id: the publisher cannot mark them, and stops."
        yield failure("numbers", InstallError(said, hint="Give them numbers, or take them away."))
    if doubled:
        said = (
            f"{counted(doubled, 'row')} with a record_id that another row has: rows of one number end with one letter."
        )
        yield warning("numbers", said, "Number them again, and make a unique index on the column.")
    if low:
        said = f"{counted(low, 'row')} with a record_id that is not positive; such rows come before all others."
        yield warning("numbers", said, "Number them again; the format asks for positive numbers.")


def index_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Whether an index leads to the rows that wait, and else the statement that makes one."""
    from sqlalchemy import inspect

    with engine.connect() as connection:
        log = with_schema(connection, names)
        inspector = inspect(connection)
        found = [*inspector.get_indexes(log.table, schema=log.schema)]
        key = inspector.get_pk_constraint(log.table, schema=log.schema)["constrained_columns"]
        serving = next((index for index in found if serves(connection, index, log)), None)
    if serving is not None or begins_with_status(key, log):
        yield ok("index", f"polling reads {serving['name'] if serving else 'the primary key'} and not the whole log")
        return
    said = f"No index leads to the waiting rows of {log.table}: every poll reads the processed ones too."
    yield warning("index", said, f"Let a DBA run: {making(dialect_of(engine), log)};")


def newest_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """The statement that makes an index of the processed rows, where lists would not have the newest rows first without it."""
    dialect = dialect_of(engine)
    if not offers(dialect, "make_number_index"):
        return
    with engine.connect() as connection:
        log = with_schema(connection, names)
    if not has_number_index(engine, log):
        said = (
            f"No index leads to the processed rows of {log.table} by their numbers:"
            " the page shows them as they lie on the disk."
        )
        yield warning("newest rows", said, f"Let a DBA run: {making(dialect, log, 'make_number_index', '_done')};")


def making(dialect: Dialect, log: LogNames, query: str = "make_index", ending: str = "_new") -> str:
    """The statement that makes an index as `install` would have made it."""
    index = dialect.quoted(dialect.beside(dialect.shortened(f"{log.table}{ending}"), log.table))
    return " ".join(statement(dialect, query, **log_holes(dialect, log), index=index).split())
