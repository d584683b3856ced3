"""The unique index that stands in for a primary key: all of its columns are NOT NULL, and it holds every row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from eventlog.core.schema import Column
from eventlog.sql.dialect import dialect_of
from eventlog.sql.queries import offers, statement

if TYPE_CHECKING:
    from sqlalchemy import Connection


def unique_columns(connection: Connection, schema: str | None, table: str) -> list[frozenset[str]]:
    """Sets of columns of which no two rows of a table have the same at any time, not even while a transaction is open."""
    from sqlalchemy import inspect, text

    dialect = dialect_of(connection)
    if offers(dialect, "always_unique"):
        query = text(statement(dialect, "always_unique"))
        rows = connection.execute(query, {"schema": schema, "table": table}).all()
        return [frozenset(str(column) for index, column in rows if index == name) for name in {row[0] for row in rows}]
    found = _stated(connection, table) if offers(dialect, "unique_indexes") else _reflected(connection, schema, table)
    key = inspect(connection).get_pk_constraint(dialect.normalised(table), schema=schema)["constrained_columns"]
    return [frozenset(names) for names in (tuple(dialect.reported(str(one)) for one in key), *found.values()) if names]


def unique_key(
    connection: Connection, asked: str | None, schema: str | None, table: str, columns: Sequence[Column]
) -> tuple[str, ...]:
    """The columns of the unique index that tells the rows of a table apart; none where there is no such index.

    Of several it is the one that somebody has named as the REPLICA IDENTITY, else the one with the fewest columns.
    `asked` is how the schema was asked for, `schema` its name.
    """
    filled = {column.name for column in columns if not column.nullable}
    found = _stated(connection, table) if offers(dialect_of(connection), "unique_indexes") else None
    known = _reflected(connection, asked, table) if found is None else found
    fitting = sorted(
        (len(names), names, called) for called, names in known.items() if names and filled.issuperset(names)
    )
    if not fitting:
        return ()
    hint = _replica_identity(connection, schema, table) if len(fitting) > 1 else None
    return next((names for _, names, called in fitting if called == hint), fitting[0][1])


def _stated(connection: Connection, table: str) -> dict[str, tuple[str, ...]]:
    """What a query of ours tells, where SQLAlchemy knows less."""
    from sqlalchemy import text

    rows = connection.execute(text(statement(dialect_of(connection), "unique_indexes")), {"table": table}).all()
    names = dict.fromkeys(str(index) for index, _ in rows)
    return {name: tuple(str(column) for index, column in rows if index == name) for name in names}


def _reflected(connection: Connection, schema: str | None, table: str) -> dict[str, tuple[str, ...]]:
    from sqlalchemy import inspect

    dialect = dialect_of(connection)
    found = {}
    for index in inspect(connection).get_indexes(dialect.normalised(table), schema=schema):
        partial = any(name.endswith("_where") for name in index.get("dialect_options", {}))
        if index["unique"] and not partial and None not in index["column_names"]:
            found[str(index["name"])] = tuple(dialect.reported(str(name)) for name in index["column_names"])
    return found


def _replica_identity(connection: Connection, schema: str | None, table: str) -> str | None:
    from sqlalchemy import text

    dialect = dialect_of(connection)
    if not offers(dialect, "replica_identity"):
        return None
    found = connection.execute(text(statement(dialect, "replica_identity")), {"schema": schema, "table": table})
    name = found.scalar()
    return None if name is None else str(name)
