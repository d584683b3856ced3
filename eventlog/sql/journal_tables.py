"""The tables of the journal as SQLAlchemy makes them: what a migration, and a test, creates beside a log."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from eventlog.sql.column_types import ColumnType
from eventlog.sql.dialect import Dialect
from eventlog.sql.names import LogNames

NAME_CHARACTERS = 200
"""Characters of an output's name, and of an object's."""


def journal_tables(names: LogNames, dialect: Dialect) -> sa.MetaData:
    """The six tables. Nothing in them is ever an empty text, because Oracle would read it back as NULL."""
    types, metadata = dialect.types, sa.MetaData(schema=names.schema)
    number, name, value = types.log_number, sa.String(NAME_CHARACTERS), types.log_value

    def table(hole: str, *columns: sa.Column[Any]) -> sa.Table:
        return sa.Table(names.journal[hole], metadata, *columns, **types.table_options)

    def key(column: str, kind: ColumnType) -> sa.Column[Any]:
        return sa.Column(column, kind, primary_key=True, autoincrement=False)

    table(
        "batches",
        key("id", number),
        sa.Column("records", value, nullable=False),
        sa.Column("weight", number, nullable=False),
    )
    table(
        "outputs",
        key("name", name),
        sa.Column("position", number, nullable=False),
        sa.Column("plans", number, nullable=False),
        sa.Column("plan", sa.String(100)),
        sa.Column("has", sa.String(100)),
        sa.Column("paused", value),
        sa.Column("told", value),
        sa.Column("warning", value),
    )
    table(
        "planned",
        key("output", name),
        key("plan", sa.String(100)),
        key("place", sa.Integer()),
        sa.Column("documents", sa.Integer(), nullable=False),
        sa.Column("records", value, nullable=False),
        sa.Column("details", value, nullable=False),
        sa.Column("objects", value),
        sa.Column("covers", value),
        sa.Column("body", value),
        sa.Column("route", value),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due", number, nullable=False),
    )
    parked = table(
        "parked",
        key("output", name),
        key("record_id", number),
        sa.Column("object", name, nullable=False),
        sa.Column("reason", sa.String(40), nullable=False),
        sa.Column("note", value),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due", number),
    )
    for ending, columns in (
        ("object", ("output", "object", "record_id")),
        ("due", ("output", "due", "record_id")),
        ("row", ("record_id",)),
    ):
        index = dialect.shortened(f"{parked.name}_{ending}")
        sa.Index(index, *(parked.c[column] for column in columns))
    table("holds", key("record_id", number), sa.Column("note", value))
    table(
        "said",
        key("record_id", number),
        key("output", name),
        sa.Column("status", sa.CHAR(1), nullable=False),
        sa.Column("reason", sa.String(40), nullable=False),
        sa.Column("note", value),
    )
    return metadata
