"""The tables of a log as they are made: how long that waits for a lock, in which order the log's columns
stand, where all of them lie, and what the journal's are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, Engine, event
from sqlalchemy.exc import DBAPIError

from eventlog.core.errors import ConfigError, SourceError, UsageError
from eventlog.sql.column_types import ColumnType, ColumnTypes
from eventlog.sql.dialect import DDL_LOCK_SECONDS, Dialect, dialect_of
from eventlog.sql.findlog import BY_PLACE
from eventlog.sql.names import NAME_CHARACTERS, LogNames


@contextmanager
def ddl_transaction(engine: Engine) -> Iterator[Connection]:
    """A connection whose changes, DDL too, become visible together, as far as can be.

    It waits for a table for DDL_LOCK_SECONDS: writers to the table queue behind it meanwhile.
    """
    dialect = dialect_of(engine)
    limit, unlimit = dialect.ddl_limits
    with engine.begin() as connection:
        raw: Any = connection.connection.driver_connection
        if dialect.begin_ddl and not getattr(raw, "in_transaction", False):
            connection.exec_driver_sql(dialect.begin_ddl)
        if limit:
            connection.exec_driver_sql(limit.format(seconds=DDL_LOCK_SECONDS))
        try:
            yield connection
        except DBAPIError as error:
            cause = error.orig
            first = cause.args[0] if cause is not None and cause.args else None
            if {getattr(cause, "sqlstate", None), first}.isdisjoint(dialect.lock_codes):
                raise
            message = f"Somebody works with the table, and the lock on it did not come within {DDL_LOCK_SECONDS} s."
            hint = "Try again when long transactions have ended."
            if dialect.transactional_ddl:
                hint += " Nothing was changed."
            raise SourceError(message, hint=hint) from error
        finally:
            if unlimit and not connection.invalidated:
                connection.exec_driver_sql(unlimit)


def order_wanted(wanted: str | Sequence[str], option: str | None = None) -> tuple[str, ...]:
    """The order in which a new log gets its columns; `option` is what the command line says, which
    may not contradict.
    """
    known = wanted if isinstance(wanted, str) and wanted in BY_PLACE else None
    if option and known and not known.startswith(option):
        problem = f"--columns {option} contradicts source.columns = {known!r}"
        message = f"{problem}: the log would be read as what it is not."
        raise ConfigError(message, hint="Leave out --columns, or change the configuration.")
    return BY_PLACE[option or known or "new"][0]


def refuse_sorted(wanted: str | Sequence[str]) -> None:
    """Refuses to make a log whose columns would be found by sorting their names: ours do not sort
    so.
    """
    if isinstance(wanted, str) and wanted in BY_PLACE and wanted not in ("new", "old"):
        problem = f"source.columns = {wanted!r} finds the columns of a log that is there already"
        message = f"{problem}; there is none."
        raise ConfigError(message, hint='Say "new" or "old" to make one.')


# Before 12.2 a name had at most 30 characters in Oracle.
_tablespace = re.compile(r"[A-Za-z][A-Za-z0-9_$#]{0,29}")


class Storage(Struct, frozen=True, kw_only=True):
    """What is asked for; `partition_rows` is how many numbers of the log one partition has."""

    tablespace: str | None = None
    partition_rows: int | None = None

    def __post_init__(self) -> None:
        # It stands in statements as it is, so that the database folds it as it does when a DBA
        # writes it.
        if self.tablespace is not None and not _tablespace.fullmatch(self.tablespace):
            raise UsageError(
                f"{self.tablespace!r} is no name of a tablespace.",
                hint="It is written without quotes: letters, digits, _, $ and #, up to 30 of them.",
            )


UNSAID: Final = Storage()
"""What leaves all to the database."""


def writing(dialect: Dialect, storage: Storage) -> Callable[[str], str]:
    """What is done to each statement; ConfigError where the database has no such storage and
    somebody asks for it.
    """
    if storage == UNSAID:
        return lambda statement: statement
    write = dialect.stored
    if write is None:
        raise ConfigError(
            f"eventlog does not say to {dialect.name} where to put tables.",
            hint="Leave out --tablespace and --partition-rows.",
        )
    return lambda statement: write(statement, storage.tablespace, storage.partition_rows)


@contextmanager
def storing(connection: Connection, write: Callable[[str], str]) -> Iterator[None]:
    """Statements of this connection reach the database as `write` has them."""

    def stored(
        _connection: Any,
        _cursor: Any,
        statement: str,
        parameters: Any,
        _context: Any,
        _many: bool,
    ) -> tuple[str, Any]:
        return write(statement), parameters

    event.listen(connection, "before_cursor_execute", stored, retval=True)
    try:
        yield
    finally:
        event.remove(connection, "before_cursor_execute", stored)


def journal_tables(names: LogNames, dialect: Dialect) -> sa.MetaData:
    """The six tables. Nothing in them is ever an empty text, because Oracle would read it back as
    NULL.
    """
    types, metadata = dialect.types, sa.MetaData(schema=names.schema)
    columns = {**_of_outputs(types), **_of_rows(types)}
    for hole, table in names.journal.items():
        sa.Table(table, metadata, *columns[hole], **types.table_options)
    # Of what is parked an index leads to an object's rows, to what is due, and to a row whatever
    # output it is for.
    parked = sa.Table(names.journal["parked"], metadata)
    for ending, indexed in (
        ("object", ("output", "object", "record_id")),
        ("due", ("output", "due", "record_id")),
        ("row", ("record_id",)),
    ):
        index = dialect.shortened(f"{parked.name}_{ending}")
        sa.Index(index, *(parked.c[column] for column in indexed))
    return metadata


def _key(column: str, kind: ColumnType) -> sa.Column[Any]:
    return sa.Column(column, kind, primary_key=True, autoincrement=False)


def _of_outputs(types: ColumnTypes) -> dict[str, list[sa.Column[Any]]]:
    """Columns of the tables that say how far outputs are."""
    number, name, value = types.log_number, sa.String(NAME_CHARACTERS), types.log_value
    return {
        "batches": [
            _key("id", number),
            sa.Column("records", value, nullable=False),
            sa.Column("weight", number, nullable=False),
        ],
        "outputs": [
            _key("name", name),
            sa.Column("position", number, nullable=False),
            sa.Column("plans", number, nullable=False),
            sa.Column("plan", sa.String(100)),
            sa.Column("has", sa.String(100)),
            sa.Column("paused", value),
            sa.Column("told", value),
            sa.Column("warning", value),
        ],
        "planned": [
            _key("output", name),
            _key("plan", sa.String(100)),
            _key("place", sa.Integer()),
            sa.Column("documents", sa.Integer(), nullable=False),
            sa.Column("records", value, nullable=False),
            sa.Column("details", value, nullable=False),
            sa.Column("objects", value),
            sa.Column("covers", value),
            sa.Column("body", value),
            sa.Column("route", value),
            sa.Column("attempts", sa.Integer(), nullable=False),
            sa.Column("due", number, nullable=False),
        ],
    }


def _of_rows(types: ColumnTypes) -> dict[str, list[sa.Column[Any]]]:
    """Columns of the tables that speak of single rows."""
    number, name, value = types.log_number, sa.String(NAME_CHARACTERS), types.log_value
    return {
        "parked": [
            _key("output", name),
            _key("record_id", number),
            sa.Column("object", name, nullable=False),
            sa.Column("reason", sa.String(40), nullable=False),
            sa.Column("note", value),
            sa.Column("attempts", sa.Integer(), nullable=False),
            sa.Column("due", number),
        ],
        "holds": [_key("record_id", number), sa.Column("note", value)],
        "said": [
            _key("record_id", number),
            _key("output", name),
            sa.Column("status", sa.CHAR(1), nullable=False),
            sa.Column("reason", sa.String(40), nullable=False),
            sa.Column("note", value),
        ],
    }
