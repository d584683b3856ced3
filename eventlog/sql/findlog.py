"""Finds the ten columns of a log table: by name, then by position, or as configuration names them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace
from sqlalchemy import Connection, Engine, column, inspect, select, table
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from eventlog.core.errors import ConfigError, InstallError
from eventlog.core.schema import Column
from eventlog.core.sql_types import Category
from eventlog.sql.access import is_denied
from eventlog.sql.clocks import UTC, clock_of
from eventlog.sql.dialect import dialect_of
from eventlog.sql.homes import find_schema
from eventlog.sql.lookup import is_moment
from eventlog.sql.names import (
    CONTEXT,
    NEW_ORDER,
    OLD_ORDER,
    ORIGIN,
    STANDARD,
    TRANSACTION,
    LogNames,
    check_ten,
    no_log,
    refuse_others,
)
from eventlog.sql.shapes import Schema

_numbers = (Category.INT, Category.NUMBER)
_times = (Category.TIMESTAMP, Category.DATE)  # Oracle's DATE holds a time of day


def _by_bytes(columns: Sequence[Column]) -> list[Column]:
    """Sort columns by their names in hexadecimal, as the commercial driver takes them by itself."""
    return sorted(columns, key=lambda column: column.name.encode())


def _by_letters(columns: Sequence[Column]) -> list[Column]:
    return sorted(columns, key=lambda column: (column.name.casefold(), column.name))


BY_PLACE: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Sequence[Column]], Sequence[Column]]]]] = {
    "new": (NEW_ORDER, lambda columns: columns),
    "old": (OLD_ORDER, lambda columns: columns),
    "new by bytes": (NEW_ORDER, _by_bytes),
    "old by bytes": (OLD_ORDER, _by_bytes),
    "new by letters": (NEW_ORDER, _by_letters),
    "old by letters": (OLD_ORDER, _by_letters),
}
"""The orders of columns that configuration names: as in the table, or sorted by their names."""


def log_columns(where: Engine | Connection, names: LogNames, wanted: str | Sequence[str] = "auto") -> LogNames:
    """Find the columns of the log table; `wanted` is auto, one of BY_PLACE, or ten names in STANDARD's
    order.
    """
    if isinstance(where, Engine):
        with where.connect() as connection:
            return log_columns(connection, names, wanted)
    names = place_log(where, names)
    schema = _schema(where, names)
    table = schema.find(names.table)
    if table is None:
        raise no_log(names)
    if schema.find(names.version) is not None:
        refuse_others(names, _migration(where, names))
    columns = schema.columns(table)
    by_purpose = choose_columns(columns, wanted, table)
    time_column = by_purpose[STANDARD.index("event_time")]
    times = next(column for column in columns if column.name == time_column)
    zone = UTC if is_moment(dialect_of(where), times) else clock_of(where, names.clock)
    own = {column.name.casefold(): column.name for column in columns}
    beside = {"transaction": own.get(TRANSACTION), "context": own.get(CONTEXT), "origin": own.get(ORIGIN)}
    return replace(names, columns=by_purpose, clock=zone, **beside)


def _migration(connection: Connection, names: LogNames) -> str | None:
    """Read the log's migration; None without the right to read the companion, and so without need of it."""
    version = table(names.version, column("version_num"), schema=names.schema)
    try:
        # In a savepoint: PostgreSQL ends the transaction with a statement that it refuses.
        with connection.begin_nested():
            migration = connection.execute(select(version.c.version_num)).scalar()
    except SQLAlchemyError:
        return None
    return None if migration is None else str(migration)


def has_log(connection: Connection, names: LogNames) -> bool:
    return _schema(connection, names).find(names.table) is not None


def present_companions(connection: Connection, names: LogNames) -> list[str]:
    """Find the tables beside the log that are there, as far as this login may know."""
    inspector, dialect, schema = inspect(connection), dialect_of(connection), names.schema
    if schema is not None:
        # SQLite knows MAIN as main.
        known = inspector.get_schema_names()
        schema = next((name for name in known if schema not in known and name.casefold() == schema.casefold()), schema)

    def is_there(table: str) -> bool:
        try:
            return inspector.has_table(table, schema=schema)
        except DBAPIError as error:
            # MariaDB describes only what somebody may read, and refuses the rest whether it is there or not.
            if is_denied(dialect, error.orig):
                return True
            raise

    return [table for table in names.own[1:] if is_there(table)]


def refuse_lost(connection: Connection, names: LogNames) -> None:
    """Refuse a log that lost a table after it was made; an empty one in its place would forget what was published."""
    gone = sorted({*names.beside} - {*present_companions(connection, names)})
    if gone:
        message = f"The log {names.table} was installed, and lacks {', '.join(gone)} now."
        raise InstallError(
            message,
            hint="Restore it from a backup; or drop the rest of the log and its triggers, and install it again.",
        )


def _schema(connection: Connection, names: LogNames) -> Schema:
    """Open the schema of the log; raise InstallError when the database has no such schema."""
    if names.schema is not None:
        known = {name.casefold() for name in inspect(connection).get_schema_names()}
        if names.schema.casefold() not in known:
            hint = "Make it first, or say another one with --log."
            raise InstallError(f"There is no schema {names.schema} in the database.", hint=hint)
    return Schema(connection, names.schema)


def choose_columns(columns: Sequence[Column], wanted: str | Sequence[str], table: str) -> tuple[str, ...]:
    """Choose the ten columns in the order of STANDARD; raise InstallError naming a missing one."""
    if not isinstance(wanted, str):
        return _list_columns(columns, tuple(wanted), table)
    if wanted in BY_PLACE:
        order, sorting = BY_PLACE[wanted]
        return _place_columns(sorting(columns), order, table)
    if wanted != "auto":
        problem = f"columns = {wanted!r} is not auto, new, old or a list of ten names"
        raise ConfigError(f"{problem}; write one of these.")
    known = {column.name.casefold(): column.name for column in columns}
    missing = [name for name in STANDARD if name not in known]
    if not missing:
        return tuple(known[name] for name in STANDARD)
    # Types tell the orders apart; where names are nearly all there, a missing one is the likelier
    # explanation.
    fits = [order for order in (NEW_ORDER, OLD_ORDER) if _fits(columns, order)]
    if len(fits) == 1 and len(missing) > len(STANDARD) // 2:
        return _place_columns(columns, fits[0], table)
    if len(missing) <= len(STANDARD) // 2 or len(columns) < len(STANDARD):
        message = f"The log table {table} has no column {missing[0]}."
        raise InstallError(message, hint="Add it, or list its ten columns.")
    message = f"The types of the log table {table} do not show which of its columns is which."
    raise InstallError(message, hint='Say `columns = "new"`, "old", or list the ten names.')


def _fits(columns: Sequence[Column], order: Sequence[str]) -> bool:
    if len(columns) < len(order):
        return False
    # Not strict: a log may have more columns than the ten.
    typed = dict(zip(order, columns, strict=False))
    return (
        typed["record_id"].category in _numbers
        and typed["status"].category is Category.STRING
        and typed["event_type"].category in _numbers
        and typed["event_time"].category in _times
    )


_LIST: Final = "source.columns lists its ten columns, in the order record_id to new_value."


def _place_columns(columns: Sequence[Column], order: Sequence[str], table: str) -> tuple[str, ...]:
    if len(columns) < len(order):
        number, missing = len(columns) + 1, order[len(columns)]
        message = f"The log table {table} has no column {number}, which should be {missing}."
        raise InstallError(message, hint=_LIST)
    placed = {standard: column.name for standard, column in zip(order, columns, strict=False)}
    return tuple(placed[name] for name in STANDARD)


def _list_columns(columns: Sequence[Column], wanted: tuple[str, ...], table: str) -> tuple[str, ...]:
    check_ten(wanted)
    known = {column.name.casefold(): column.name for column in columns}
    exact = {column.name for column in columns}
    for name, standard in zip(wanted, STANDARD, strict=True):
        if name.casefold() not in known:
            message = f"The log table {table} has no column {name}, which should be its {standard}."
            raise InstallError(message, hint=_LIST)
    listed_names = tuple(name if name in exact else known[name.casefold()] for name in wanted)
    types = {column.name: column for column in columns}
    if len(set(listed_names)) < len(listed_names):
        return listed_names  # a name stands there twice, which nobody could put in order
    # A list may have table_key second, as tables of the new order do; event_type is a number and
    # nothing else near is.
    listed = [types[name] for name in listed_names]
    in_new_order = listed[NEW_ORDER.index("event_type")].category in _numbers
    in_standard = listed[STANDARD.index("event_type")].category in _numbers
    order = STANDARD
    if in_new_order and not in_standard:
        order = NEW_ORDER
    return _place_columns(listed, order, "")


def locate_log(connection: Connection, names: LogNames | None) -> LogNames:
    """Find the log's schema and columns in this database; raise InstallError when it is not there."""
    log = with_schema(connection, names or LogNames())
    columns = log.columns
    if columns == STANDARD:
        return log_columns(connection, log, "auto")
    return log_columns(connection, log, columns)


def place_log(connection: Connection, names: LogNames) -> LogNames:
    """Find the schema of a log that is named without one, where a session looks for it in several; people go on
    naming it so.
    """
    if names.schema is not None or (home := find_schema(connection, names.table)) is None:
        return names
    return replace(names, schema=home, bare=True)


def with_schema(connection: Connection, names: LogNames) -> LogNames:
    """Resolve the schema of the log's bare name, because a trigger runs in another search path."""
    placed = place_log(connection, names)
    schema = Schema(connection, placed.schema).name
    return replace(placed, schema=schema, bare=False, near=schema == inspect(connection).default_schema_name)
