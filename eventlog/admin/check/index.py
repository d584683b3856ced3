"""The point about the index that polling reads: a log that somebody else made has none of ours, and may have none at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from eventlog.admin.check.point import Point, ok, warning
from eventlog.sql.access import verbatim
from eventlog.sql.dialect import Dialect, dialect_of
from eventlog.sql.names import LogNames
from eventlog.sql.queries import log_holes, statement
from eventlog.sql.triggers.track import with_schema

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

SORTED: Final = frozenset({"btree", "hash"})
"""Kinds of indexes that lead to the rows of one letter, and not to the pages where some may be."""


def index_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """Whether an index leads to the rows that wait, and else the statement that makes one."""
    from sqlalchemy import inspect

    with engine.connect() as connection:
        log = with_schema(connection, names)
        inspector = inspect(connection)
        found = [*inspector.get_indexes(log.table, schema=log.schema)]
        key = inspector.get_pk_constraint(log.table, schema=log.schema)["constrained_columns"]
        serving = next((index for index in found if serves(connection, index, log)), None)
    if serving is not None or _is(key[:1], log):
        yield ok("index", f"polling reads {serving['name'] if serving else 'the primary key'} and not the whole log")
        return
    said = f"No index leads to the waiting rows of {log.table}: every poll reads the processed ones too."
    yield warning("index", said, f"Let a DBA run: {making(dialect_of(engine), log)};")


def serves(connection: Connection, index: Mapping[str, Any], log: LogNames) -> bool:
    """Whether an index leads to all rows that wait: by their status first, or because it holds those of a few letters only."""
    options = index.get("dialect_options", {})
    if _option(options, "invalid") or _option(options, "using", "btree") not in SORTED:
        return False
    condition = _option(options, "where")
    if condition:
        return _holds_waiting(connection, condition, log)
    return _is(index["column_names"][:1], log)


def _option(options: Mapping[str, Any], what: str, usual: str = "") -> str:
    """What SQLAlchemy tells of an index under a name that begins with the database's."""
    told = [value for name, value in options.items() if name.endswith(f"_{what}")]
    return usual if not told or told[0] is None or told[0] is False else str(told[0])


def _holds_waiting(connection: Connection, condition: str, log: LogNames) -> bool:
    """Whether the condition of an index is true of every waiting row; one that asks for more than the letter is not."""
    from sqlalchemy.exc import SQLAlchemyError

    status = dialect_of(connection).quoted(log.column("status"))
    try:
        with connection.begin_nested():
            asked = verbatim(f"SELECT 1 FROM (SELECT 'N' AS {status}) AS waiting WHERE {condition}")
            return connection.execute(asked).first() is not None
    except SQLAlchemyError:
        return False


def making(dialect: Dialect, log: LogNames) -> str:
    """The statement that makes the index as `install` would have made it."""
    index = dialect.quoted(dialect.beside(dialect.shortened(f"{log.table}_new"), log.table))
    return " ".join(statement(dialect, "make_index", **log_holes(dialect, log), index=index).split())


def _is(columns: Sequence[str | None], log: LogNames) -> bool:
    return [name.casefold() for name in columns if name] == [log.column("status").casefold()]
