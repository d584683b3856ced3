"""Pairs of tables that tests compare: random rows with what databases write differently, and differences put in."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.compare.engine import Comparison, Difference
from eventlog.compare.sides import Compared
from eventlog.compare.tables import Selection, TableSide
from eventlog.core.schema import Table
from eventlog.sinks.database.types import as_stored, target_type
from eventlog.sql.dialect import dialect_of
from tests.support.reflected import reflect_table

Row = dict[str, Any]

KEYS: Final[dict[str, list[tuple[str, Any]]]] = {
    "number": [("id", sa.BigInteger())],
    "text": [("id", sa.String(40))],
    "both": [("part", sa.Integer()), ("id", sa.String(40))],
    "time": [("id", sa.Date())],
}
VALUES: Final[list[tuple[str, Any]]] = [
    ("name", sa.String(60)),
    ("note", sa.Text()),
    ("pay", sa.Numeric(12, 3)),
    ("ratio", sa.Double()),
    ("active", sa.Boolean()),
    ("photo", sa.LargeBinary()),
    ("born", sa.Date()),
    ("seen", sa.DateTime()),
    ("size", sa.Integer()),
]
TEXTS: Final = [
    "",
    " ",
    "a",
    "A",
    "a ",
    "ä",
    "a\u0308",
    "ß",
    "x|~",
    "1:a",
    "~",
    "NULL",
    "日本",
    "😀",
    "it's",
    "100%",
    "\\",
]


def source_table(name: str, key: str, metadata: sa.MetaData) -> sa.Table:
    """Define a table with such a key."""
    columns = [sa.Column(called, kind, primary_key=True, autoincrement=False) for called, kind in KEYS[key]]
    return sa.Table(name, metadata, *columns, *[sa.Column(called, kind) for called, kind in VALUES])


def made_source(engine: Engine, key: str, name: str = "usr") -> sa.Table:
    """Create a source table whose text keys compare bytewise, whatever the database's collation."""
    metadata = sa.MetaData()
    table = source_table(name, key, metadata)
    types = dialect_of(engine).types
    for column in table.primary_key.columns:
        column.type = types.keyed(column.type)
    table.c.seen.type = types.timestamp(False)
    metadata.create_all(engine)
    return table


def made_target(engine: Engine, source: Table, name: str, *, keyed: bool = True) -> sa.Table:
    """Create a table with the columns a mirror of the source has."""
    types = dialect_of(engine).types
    columns = []
    for column in source.columns:
        kind = target_type(column.type, types)
        own = types.keyed(kind) if column.key else kind
        columns.append(sa.Column(column.name, own, primary_key=bool(column.key) and keyed, autoincrement=False))
    table = sa.Table(name, sa.MetaData(), *columns)
    table.create(engine)
    return table


def random_row(dice: random.Random, key: str, number: int) -> Row:
    """Make a row with a key made from its number."""
    keys: dict[str, Row] = {
        "number": {"id": number * dice.choice([1, 1, 1, 7]) * 8 + number % 8},
        "text": {"id": f"{TEXTS[number % len(TEXTS)]}-{number}"},
        "both": {"part": number % 3, "id": f"{TEXTS[number % len(TEXTS)]}-{number}"},
        "time": {"id": dt.date(1900, 1, 1) + dt.timedelta(days=number)},
    }
    values: Row = {
        "name": dice.choice(TEXTS),
        "note": dice.choice([*TEXTS, "long " * dice.randint(150, 300)]),
        "pay": Decimal(dice.randint(-(10**6), 10**6)).scaleb(-dice.randint(0, 3)),
        "ratio": dice.choice([0.1, 0.1 + 0.2, 1e20, 1e-7, -2.5, 100.0, 0.0, dice.random(), 123456789.125]),
        "active": dice.choice([True, False]),
        "photo": dice.randbytes(dice.randint(0, 20)),
        "born": dt.date(dice.randint(1900, 2100), 2, 28),
        "seen": dt.datetime(2024, 2, 29, 23, 59, 59) + dt.timedelta(microseconds=dice.choice([0, 1, 500_000, 123_456])),
        "size": dice.choice([0, -1, 2**31 - 1, -(2**31) + 1, dice.randint(-1000, 1000)]),
    }
    return keys[key] | {name: None if dice.random() < 0.15 else value for name, value in values.items()}


def stored(engine: Engine, source: Table, row: Row) -> Row:
    """Convert a row's values as the database's sink binds them."""
    types = {column.name: column.type for column in source.columns}
    there = dialect_of(engine).types
    ways = {name: as_stored(types[name], target_type(types[name], there)) for name in row}
    return {name: way(row[name]) if (way := ways[name]) and row[name] is not None else row[name] for name in row}


def another(dice: random.Random, column: str, value: Any) -> Any:
    """Return a different value."""
    if value is None:
        return {
            "photo": b"",
            "born": dt.date(1, 1, 1),
            "seen": dt.datetime(1000, 1, 1),
            "active": False,
        }.get(column, "" if column in ("name", "note") else 0)
    if dice.random() < 0.2:
        return None
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return dice.choice(
            [
                value + " ",
                value + "x",
                value.swapcase() if value.swapcase() != value else value + "y",
            ]
        )
    if isinstance(value, bytes):
        return value + b"\0"
    if isinstance(value, dt.datetime):
        return value + dt.timedelta(microseconds=1)
    if isinstance(value, dt.date):
        return value + dt.timedelta(days=1)
    if isinstance(value, float):
        return value * 1.5 + 1
    return value + Decimal("0.001") if isinstance(value, Decimal) else value - 1


def sides(source: Engine, target: Engine, name: str) -> tuple[TableSide, TableSide, Compared, Table]:
    """Open the table usr of one database, and a table of another with its columns."""
    table = reflect_table(source, "usr")
    there = reflect_table(target, name)
    by_name = {column.name: column for column in there.columns}
    values = [column for column in table.columns if column.name not in table.key]
    columns = (*table.key_columns, *values)
    compared = Compared(key=table.key, names=tuple([c.name for c in values]), types=tuple([c.type for c in columns]))
    mine = TableSide(source, Selection(table=table, columns=columns), compared)
    other = TableSide(target, Selection(table=there, columns=tuple([by_name[c.name] for c in columns])), compared)
    return mine, other, compared, table


def compared(source: Any, target: Any, columns: Compared) -> list[Difference]:
    """Compare two tables."""
    return list(Comparison(source, target, columns).differences())


def as_told(found: list[Difference]) -> set[tuple[Any, ...]]:
    """Convert differences to a form comparable with those made."""
    return {(one.key, str(one.kind), *sorted(value.column for value in one.values)) for one in found}


__all__ = [
    "Row",
    "another",
    "as_told",
    "compared",
    "made_source",
    "made_target",
    "random_row",
    "sides",
    "stored",
]
