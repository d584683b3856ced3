"""The tables of a log: what they are, how long making them waits for a lock, in which order the log's
columns stand, and where all of them lie.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from eventlog.capture.table_locks import raise_if_in_use
from eventlog.core.errors import ConfigError, UsageError
from eventlog.sql.column_types import ColumnType, ColumnTypes
from eventlog.sql.dialect import DDL_LOCK_SECONDS, Dialect, dialect_of, offers, waiting_number
from eventlog.sql.findlog import BY_PLACE
from eventlog.sql.names import CONTEXT, NAME_CHARACTERS, NEW_ORDER, STANDARD, TRANSACTION, LogNames


@contextmanager
def ddl_transaction(engine: Engine) -> Iterator[Connection]:
    """Open a connection whose changes, DDL too, become visible together, as far as can be.

    It waits for a table for DDL_LOCK_SECONDS, as writers to the table then wait behind it:
    TableInUseError afterwards.
    """
    dialect = dialect_of(engine)
    limit, unlimit = dialect.ddl.ddl_limits
    with engine.begin() as connection:
        raw: Any = connection.connection.driver_connection
        if dialect.ddl.begin_ddl and not getattr(raw, "in_transaction", False):
            connection.exec_driver_sql(dialect.ddl.begin_ddl)
        if limit:
            connection.exec_driver_sql(limit.format(seconds=DDL_LOCK_SECONDS))
        try:
            yield connection
        except DBAPIError as error:
            raise_if_in_use(dialect, error, DDL_LOCK_SECONDS)
            raise
        finally:
            if unlimit and not connection.invalidated:
                connection.exec_driver_sql(unlimit)


def order_wanted(wanted: str | Sequence[str], option: str | None = None) -> tuple[str, ...]:
    """Choose the order of a new log's columns; `option` is the command line's, which may not contradict."""
    known = wanted if isinstance(wanted, str) and wanted in BY_PLACE else None
    if option and known and not known.startswith(option):
        problem = f"--columns {option} contradicts source.columns = {known!r}"
        message = f"{problem}: the log would be read as what it is not."
        raise ConfigError(message, hint="Leave out --columns, or change the configuration.")
    return BY_PLACE[option or known or "new"][0]


def refuse_sorted(wanted: str | Sequence[str]) -> None:
    """Refuse to create a log whose columns would be found by sorted names: ours do not sort so."""
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


def refuse_storage(dialect: Dialect, storage: Storage) -> None:
    """Refuse storage that the database's statements do not name."""
    if storage != UNSAID and not dialect.ddl.names_storage:
        raise ConfigError(
            f"eventlog does not say to {dialect.name} where to put tables.",
            hint="Leave out --tablespace and --partition-rows.",
        )


def companion_tables(names: LogNames, dialect: Dialect) -> sa.MetaData:
    """Define the tables beside the log with their indexes, in order of creation.

    In the journal's nothing is ever an empty text, because Oracle would read it back as NULL.
    """
    types, metadata = dialect.types, sa.MetaData(schema=names.schema)
    columns = {**_of_registry(dialect), **_of_log(types), **_of_journal(types)}
    for hole, table in names.companions.items():
        sa.Table(table, metadata, *columns[hole], **types.table_options)
    if "{sessions}" in dialect.context:
        number = sa.Column("id", sa.Integer(), primary_key=True)
        sa.Table(names.sessions, metadata, number, sa.Column("value", types.log_value), **types.table_options)
    # Of what is parked an index leads to an object's rows, to what is due, and to a row whatever
    # output it is for.
    # An object is found by what its receiver calls it, too. A table is tracked once; what depends on an
    # altered one is found by its number.
    for hole, ending, indexed in (
        ("parked", "object", ("output", "object", "record_id")),
        ("parked", "due", ("output", "due", "record_id")),
        ("parked", "row", ("record_id",)),
        ("associations", "id", ("output", "association")),
        ("tracked", "name", ("schema_name", "table_name")),
        ("relations", "number", ("relation",)),
    ):
        made = sa.Table(names.companions[hole], metadata)
        name = dialect.shorten_name(f"{made.name}_{ending}")
        sa.Index(name, *(made.c[column] for column in indexed), unique=hole == "tracked")
    return metadata


def log_table(names: LogNames, dialect: Dialect, order: Sequence[str] = NEW_ORDER) -> sa.Table:
    """Define the log with its CHECKs and indexes; its columns stand in this order."""
    columns = _columns_of_log(names, dialect)
    ordered = [columns[name] for name in order]
    # The number of the transaction is a default where there may be one; elsewhere triggers write it.
    if dialect.transaction is not None or offers(dialect, "transaction_declared"):
        default = None if dialect.transaction is None else sa.text(dialect.transaction)
        ordered.append(sa.Column(TRANSACTION, dialect.types.log_number, server_default=default))
    ordered.append(sa.Column(CONTEXT, dialect.types.log_context))
    checks = []
    if not dialect.types.domain:
        meanings = _meanings({name: dialect.quote(names.column(name)) for name in STANDARD})
        checks = [
            sa.CheckConstraint(text, name=dialect.shorten_name(f"{names.table}_{what}_ck"))
            for what, text in meanings.items()
            if what != "id" or dialect.ddl.checks_identity
        ]
    types, metadata = dialect.types, sa.MetaData(schema=names.schema)
    options = {**types.log_options, **types.table_options}
    return sa.Table(names.table, metadata, *ordered, *checks, *_indexes_of_log(names, dialect), **options)


_DOMAINS: Final[Mapping[str, tuple[str, ColumnType, str]]] = {
    "status": ("letter", sa.CHAR(1), "status"),
    "event_type": ("kind", sa.Integer(), "type"),
}
"""Columns whose values have a type of their own where the database has domains: what it is called,
made of, and which of the log's meanings it keeps.
"""


def log_domains(names: LogNames, dialect: Dialect) -> dict[str, Any]:
    """Define the types of the log's own, by their columns.

    PostgreSQL reads a table's CHECKs anew for every statement, and a domain's once a session.
    """
    domains: dict[str, Any] = {}
    if dialect.types.domain is None:
        return domains
    meanings = _meanings(dict.fromkeys(STANDARD, "VALUE"))
    for column, (ending, base, meaning) in _DOMAINS.items():
        name = dialect.shorten_name(f"{names.table}_{ending}")
        check = {"check": meanings[meaning], "constraint_name": dialect.shorten_name(f"{name}_ck")}
        domains[column] = dialect.types.domain(name, base, schema=names.schema, **check)
    return domains


def log_sequence(name: str, names: LogNames, dialect: Dialect) -> sa.Sequence:
    """Define the sequence that numbers a log without an identity column."""
    return sa.Sequence(name, schema=names.schema, **dialect.types.number_options)


def _columns_of_log(names: LogNames, dialect: Dialect) -> dict[str, sa.Column[Any]]:
    """Define the ten columns by their standard names.

    A writer may leave out record_id, status and event_time.
    """
    types = dialect.types
    numbered = [] if names.sequence else [sa.Identity(always=False, **types.number_options)]
    number = sa.Column(
        names.column("record_id"),
        types.log_number,
        *numbered,
        primary_key=dialect.ddl.log_has_key,
        nullable=False,
        autoincrement=not names.sequence,
    )
    kinds: dict[str, ColumnType] = {"status": sa.CHAR(1), "event_type": sa.Integer(), "event_time": types.log_time}
    kinds |= dict.fromkeys(("perpetrator", "table_name", "column_name"), types.log_name)
    kinds |= {"table_key": types.log_key, "old_value": types.log_value, "new_value": types.log_value}
    defaults = {"status": sa.text("'N'"), "event_time": sa.text(f"({dialect.now})")}
    columns: dict[str, sa.Column[Any]] = {"record_id": number}
    kinds |= log_domains(names, dialect)
    for name, kind in kinds.items():
        is_optional = name in ("perpetrator", "column_name", "old_value", "new_value")
        columns[name] = sa.Column(names.column(name), kind, nullable=is_optional, server_default=defaults.get(name))
    return columns


def _meanings(name: Mapping[str, str]) -> dict[str, str]:
    """Write CHECKs refusing values no writer of the format writes.

    A parked row's status is its owner's choice, so any capital passes. Text functions are the cost
    of a bulk statement, so the status written by triggers is tested before them. With domains
    instead of CHECKs, "id" and "column" are left to the publisher, which refuses such rows.
    """
    status, kind = name["status"], name["event_type"]
    letter = f"LENGTH({status}) = 1 AND {status} <> ' ' AND {status} = UPPER({status})"
    return {
        "id": f"{name['record_id']} > 0",
        "status": f"{status} = 'N' OR ({letter})",
        "type": f"{kind} BETWEEN 1 AND 8",
        "column": f"{name['column_name']} IS NOT NULL OR {kind} BETWEEN 4 AND 6",
    }


def _indexes_of_log(names: LogNames, dialect: Dialect) -> Iterator[sa.Index]:
    """Define the indexes for polling, partial ones if the database has them: each index costs
    writers.
    """
    status, record_id = names.column("status"), names.column("record_id")
    new = dialect.shorten_name(f"{names.table}_new")
    if dialect.ddl.partial_indexes:
        waiting: dict[str, Any] = {f"{dialect.name}_where": sa.text(f"{dialect.quote(status)} = 'N'")}
        yield sa.Index(new, record_id, unique=not dialect.ddl.log_has_key, **waiting)
    elif dialect.ddl.waiting_number is not None:
        yield sa.Index(new, sa.text(waiting_number(dialect, names)))
    else:
        yield sa.Index(new, status, record_id)
    if dialect.ddl.partial_indexes and not dialect.ddl.log_has_key:
        # What lists read to have the newest rows first. Who writes to the log does not pay for it:
        # only the publisher adds to it, where it marks rows. Not `<> 'N'`, which leaves rows
        # without a letter out.
        processed: dict[str, Any] = {f"{dialect.name}_where": sa.text(f"{dialect.quote(status)} IS DISTINCT FROM 'N'")}
        yield sa.Index(dialect.shorten_name(f"{names.table}_done"), record_id, **processed)


def _key(kind: ColumnType, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, primary_key=True, autoincrement=False) for name in names]


def _filled(kind: ColumnType, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


def _any(kind: ColumnType, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind) for name in names]


def _of_log(types: ColumnTypes) -> dict[str, list[sa.Column[Any]]]:
    """Define the columns of the tables for the log's rows and captured tables."""
    number, value = types.log_number, types.log_value
    return {
        "marks": [*_key(sa.String(200), "name"), *_any(value, "value")],
        "outcomes": [
            *_key(number, "record_id"),
            *_any(sa.CHAR(1), "status"),
            *_any(sa.String(40), "reason"),
            *_any(value, "note", "answers"),
            *_any(types.log_moment, "finished_at"),
        ],
        # Former definitions of captured tables.
        **{
            versions: [
                *_key(sa.String(200), "table_name"),
                *_key(sa.Integer(), "table_version"),
                *_filled(sa.String(40), "seen_at"),
                *_any(value, "changed", "definition"),
                *_any(number, "first_record"),
                *_any(value, "described"),
            ]
            for versions in ("history", "seen")
        },
    }


def _of_registry(dialect: Dialect) -> dict[str, list[sa.Column[Any]]]:
    """Define the columns of tables written only by the log's owner: installation, tracked tables,
    triggers.

    A table on which triggers depend is known by its number where tables have numbers, because its
    name changes, and else by its name.
    """
    types, numbered = dialect.types, offers(dialect, "relation_now")
    number, name, value = types.log_number, sa.String(200), types.log_value
    return {
        "setup": [*_key(name, "name"), *_any(value, "value")],
        "tracked": [
            *_key(number, "id"),
            *_filled(name, "schema_name", "table_name"),
            *_any(number, "relation"),
            *_filled(value, "options"),
            *_any(value, "watched"),
            *_filled(sa.String(20), "style"),
            *_filled(number, "all_columns", "primary_key", "deferred"),
        ],
        "triggers": [
            *_key(number, "tracked"),
            *_key(name, "name"),
            *_filled(name, "table_name"),
            *_any(name, "function_name", "definer"),
            *_filled(sa.String(16), "digest"),
            *_filled(sa.String(10), "part"),
            *_any(types.fingerprint, "fingerprint"),
        ],
        "relations": [
            *_key(number, "tracked"),
            *(_filled if numbered else _key)(name, "schema_name", "table_name"),
            *(_key if numbered else _any)(number, "relation"),
            *_filled(sa.String(10), "role"),
        ],
        "columns": [
            *_key(number, "tracked", "relation", "number"),
            *_filled(name, "name"),
            *_any(name, "entered"),
            *_filled(number, "type", "modifier"),
            *_any(number, "key_place"),
            *_filled(number, "watched"),
        ],
    }


def _of_journal(types: ColumnTypes) -> dict[str, list[sa.Column[Any]]]:
    """Define the columns of the tables with the places of outputs, and about single rows."""
    number, name, value = types.log_number, sa.String(NAME_CHARACTERS), types.log_value
    return {
        "batches": [*_key(number, "id"), *_filled(value, "records"), *_filled(number, "weight")],
        "outputs": [
            *_key(name, "name"),
            *_filled(number, "position", "plans"),
            *_any(sa.String(100), "plan", "target_plan"),
            *_any(value, "paused", "transactions", "warning", "recent"),
            *_any(number, "restored"),
        ],
        "planned": [
            *_key(name, "output"),
            *_key(sa.String(100), "plan"),
            *_key(sa.Integer(), "place"),
            *_filled(sa.Integer(), "documents"),
            *_filled(value, "records", "details"),
            *_any(value, "objects", "covers", "body", "route"),
            *_filled(sa.Integer(), "attempts"),
            *_filled(number, "due"),
        ],
        "parked": [
            *_key(name, "output"),
            *_key(number, "record_id"),
            *_filled(name, "object"),
            *_filled(sa.String(40), "reason"),
            *_any(value, "note"),
            *_filled(sa.Integer(), "attempts"),
            *_any(number, "due"),
        ],
        "holds": [*_key(number, "record_id"), *_any(value, "note")],
        "answers": [
            *_key(number, "record_id"),
            *_key(name, "output"),
            *_filled(sa.CHAR(1), "status"),
            *_filled(sa.String(40), "reason"),
            *_any(value, "note"),
        ],
        "associations": [
            *_key(name, "output", "object"),
            *_any(value, "whole_name"),
            *_any(name, "association"),
            *_any(value, "awaiting"),
            *_filled(sa.Integer(), "is_over"),
        ],
    }
