"""Makes the log table with its companions; of a log that somebody else made, only these."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import context, op

from eventlog.capture.install import ADOPTED, MADE, SEQUENCE, TABLESPACE, noted
from eventlog.sql.column_types import ColumnTypes
from eventlog.sql.dialect import Dialect, dialect_of
from eventlog.sql.names import STANDARD, LogNames

revision = "0001"
down_revision = None

DOMAINS = {"status": "letter", "event_type": "kind"}
"""Columns whose values have a type of their own where the database has domains, and what it is
called.
"""

_integer = sa.Integer()
_letter = sa.CHAR(1)


def upgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    there = _there(names)
    if names.marks not in there:
        types = dialect_of(op.get_bind()).types
        op.create_table(
            names.marks,
            sa.Column("name", sa.String(200), primary_key=True),
            sa.Column("value", types.log_value),
            schema=names.schema,
            **types.table_options,
        )
    marks = noted(names)
    # Where each statement is a transaction of its own, our log may be there from an install that
    # broke off; it is ours if a mark said so before it was made, and else somebody's own.
    adopted = names.table in there and MADE not in marks
    _note(names, marks, adopted=adopted)
    if not adopted:
        _make_log(names, context.config.attributes["order"], there)
    if names.outcomes not in there:
        _make_outcomes(names)


def downgrade() -> None:
    names: LogNames = context.config.attributes["names"]
    marks, there = noted(names), _there(names)
    offline = context.is_offline_mode()
    if offline or names.outcomes in there:
        op.drop_table(names.outcomes, schema=names.schema)
    if ADOPTED not in marks:
        if offline or names.table in there:
            op.drop_table(names.table, schema=names.schema)
        dialect = dialect_of(op.get_bind())
        # After the table, whose columns have their types.
        for column in DOMAINS if dialect.types.domain else ():
            domain = dialect.qualified(names.schema, _domain(names, dialect, column))
            op.execute(f"DROP DOMAIN IF EXISTS {domain}")
    if SEQUENCE in marks:
        op.execute(sa.schema.DropSequence(sa.Sequence(marks[SEQUENCE], schema=names.schema)))
    # Last, for they say whose the log is.
    if offline or names.marks in there:
        op.drop_table(names.marks, schema=names.schema)


def _there(names: LogNames) -> set[str]:
    # A script is printed without a database that could be asked.
    if context.is_offline_mode():
        return set()
    inspector = sa.inspect(op.get_bind())
    asked = (names.table, names.outcomes, names.marks)
    return {table for table in asked if inspector.has_table(table, schema=names.schema)}


def _note(names: LogNames, marks: dict[str, str], *, adopted: bool) -> None:
    """Marks of whom the log is and how it was asked for, without those that are there."""
    wanted: dict[str, str | None] = {}
    if adopted:
        wanted[ADOPTED] = names.table
    else:
        wanted[SEQUENCE] = names.sequence
        # A script makes a log that was not there, and can be run again by itself.
        wanted[MADE] = None if context.is_offline_mode() else names.table
    wanted[TABLESPACE] = context.config.attributes["storage"].tablespace
    missing = [{"name": name, "value": value} for name, value in wanted.items() if value and name not in marks]
    table = sa.table(
        names.marks,
        sa.column("name", sa.String),
        sa.column("value", dialect_of(op.get_bind()).types.log_value),
        schema=names.schema,
    )
    if missing:
        op.bulk_insert(table, missing)


def _make_outcomes(names: LogNames) -> None:
    types = dialect_of(op.get_bind()).types
    op.create_table(
        names.outcomes,
        sa.Column("record_id", types.log_number, primary_key=True, autoincrement=False),
        sa.Column("status", _letter),
        sa.Column("reason", sa.String(40)),
        sa.Column("note", types.log_value),
        sa.Column("attempts", _integer, nullable=False, server_default=sa.text("0")),
        sa.Column("next_attempt", types.log_moment),
        sa.Column("document", sa.String(200)),
        sa.Column("held", _integer, nullable=False, server_default=sa.text("0")),
        sa.Column("settled_at", types.log_moment),
        schema=names.schema,
        **types.table_options,
    )


def _make_log(names: LogNames, order: tuple[str, ...], there: set[str]) -> None:
    dialect = dialect_of(op.get_bind())
    if names.table in there:
        indexes = sa.inspect(op.get_bind()).get_indexes(names.table, schema=names.schema)
        if dialect.shortened(f"{names.table}_new") not in {index["name"] for index in indexes}:
            _index_new_rows(names, dialect)
        return
    columns = _columns(names, dialect)
    if dialect.types.domain:
        _make_domains(names, dialect)
    checks = []
    if not dialect.types.domain:
        meanings = _meanings({name: dialect.quoted(names.column(name)) for name in STANDARD})
        checks = [
            sa.CheckConstraint(text, name=dialect.shortened(f"{names.table}_{what}_ck"))
            for what, text in meanings.items()
            if what != "id" or dialect.checks_identity
        ]
    ordered = [columns[name] for name in order]
    types = dialect.types
    if names.sequence:
        sequence = sa.Sequence(names.sequence, schema=names.schema, **types.number_options)
        op.execute(sa.schema.CreateSequence(sequence))
    options = {**types.log_options, **types.table_options}
    op.create_table(names.table, *ordered, *checks, schema=names.schema, **options)
    _index_new_rows(names, dialect)


def _domain(names: LogNames, dialect: Dialect, column: str) -> str:
    return dialect.shortened(f"{names.table}_{DOMAINS[column]}")


def _make_domains(names: LogNames, dialect: Dialect) -> None:
    """PostgreSQL reads a table's CHECKs anew for every statement, and a domain's once a session."""
    meanings = _meanings(dict.fromkeys(STANDARD, "VALUE"))
    for column, base, meaning in (("status", "CHAR(1)", "status"), ("event_type", "INTEGER", "type")):
        name = _domain(names, dialect, column)
        check = dialect.quoted(dialect.shortened(f"{name}_ck"))
        target = dialect.qualified(names.schema, name)
        constraint = f"CONSTRAINT {check} CHECK ({meanings[meaning]})"
        op.execute(f"CREATE DOMAIN {target} AS {base} {constraint}")


def _types(types: ColumnTypes) -> dict[str, tuple[sa.types.TypeEngine[Any], bool]]:
    """The type of each column but the number, and whether it may be NULL."""
    return {
        "status": (_letter, False),
        "event_type": (_integer, False),
        "event_time": (types.log_time, False),
        "perpetrator": (types.log_name, True),
        "table_name": (types.log_name, False),
        "table_key": (types.log_key, False),
        "column_name": (types.log_name, True),
        "old_value": (types.log_value, True),
        "new_value": (types.log_value, True),
    }


def _columns(names: LogNames, dialect: Dialect) -> dict[str, sa.Column[Any]]:
    """The ten columns by their standard names.

    A writer may leave out record_id, status and event_time.
    """
    numbered = [] if names.sequence else [sa.Identity(always=False, **dialect.types.number_options)]
    number = sa.Column(
        names.column("record_id"),
        dialect.types.log_number,
        *numbered,
        primary_key=dialect.log_has_key,
        nullable=False,
        autoincrement=not names.sequence,
    )
    columns: dict[str, sa.Column[Any]] = {"record_id": number}
    defaults = {"status": sa.text("'N'"), "event_time": sa.text(f"({dialect.now})")}
    for name, (usual, nullable) in _types(dialect.types).items():
        type_ = usual
        if dialect.types.domain is not None and name in DOMAINS:
            type_ = dialect.types.domain(_domain(names, dialect, name), usual, names.schema)
        default = defaults.get(name)
        columns[name] = sa.Column(names.column(name), type_, nullable=nullable, server_default=default)
    return columns


def _meanings(name: dict[str, str]) -> dict[str, str]:
    """What no writer that knows the format writes.

    A parked row's letter is its owner's choice, so any capital passes.

    What a bulk statement pays for is the text functions, so the letter that every trigger writes is
    let through before them. Where domains take the place of CHECKs, "id" and "column" are left to
    the publisher, which refuses such rows.
    """
    status, kind = name["status"], name["event_type"]
    letter = f"LENGTH({status}) = 1 AND {status} <> ' ' AND {status} = UPPER({status})"
    return {
        "id": f"{name['record_id']} > 0",
        "status": f"{status} = 'N' OR ({letter})",
        "type": f"{kind} BETWEEN 1 AND 8",
        "column": f"{name['column_name']} IS NOT NULL OR {kind} BETWEEN 4 AND 6",
    }


def _index_new_rows(names: LogNames, dialect: Dialect) -> None:
    """What polling reads. A log without a key has this index alone: inserting and marking pay for
    each one.
    """
    status, record_id = names.column("status"), names.column("record_id")
    columns = [status, record_id]
    partial: dict[str, Any] = {}
    if dialect.partial_indexes:
        columns = [record_id]
        partial[f"{dialect.name}_where"] = sa.text(f"{dialect.quoted(status)} = 'N'")
    op.create_index(
        dialect.shortened(f"{names.table}_new"),
        names.table,
        columns,
        unique=not dialect.log_has_key,
        schema=names.schema,
        **partial,
    )
