"""The tables of the journal as SQLAlchemy makes them: what a migration, and a test, creates beside
a log.
"""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from eventlog.sql.column_types import ColumnType, ColumnTypes
from eventlog.sql.dialect import Dialect
from eventlog.sql.names import LogNames

NAME_CHARACTERS = 200
"""Characters of an output's name, and of an object's."""

MOVED_PLAN: Final = "moved"
"""The plan of rows that an output was owed by a version without journal, and that no target has
under this name.

As the last plan of an output it says that nobody knows what its target was given last.
"""


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
