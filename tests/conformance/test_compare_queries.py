"""Queries that are compared like tables: what their rows become, and which queries are refused."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.core.errors import ConfigError, DataError
from eventlog.sources.compare.catalog import read_compared_catalog
from eventlog.sources.compare.reader import compare_reader
from eventlog.sources.compare.settings import CompareSettings, QuerySettings
from tests.conformance.test_compare_source import Consumer
from tests.support.captured import Capturing

TOTALS = QuerySettings(
    sql="""SELECT buyer AS who, part, sum(pay) AS total, count(*) AS times
FROM orders WHERE part <> ':none' AND part LIKE '%' GROUP BY buyer, part  -- each buyer's""",
    key=("who", "part"),
    types={"who": "bigint", "total": "numeric(12,2)", "times": "bigint"},
)


class Shop:
    """Orders, and a source that compares their sums."""

    def __init__(self, engine: Engine, folder: Path, query: QuerySettings = TOTALS, **settings: Any) -> None:
        self.engine = engine
        self.orders = sa.Table(
            "orders",
            sa.MetaData(),
            sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
            sa.Column("buyer", sa.Integer),
            sa.Column("part", sa.String(20)),
            sa.Column("pay", sa.Numeric(10, 2)),
        )
        self.orders.create(engine)
        self._folder = folder
        self.settings = CompareSettings(
            state=str(folder / "state.db"), marks=str(folder / "marks.json"), queries={"totals": query}, **settings
        )
        self.consumer = Consumer(("who", "part"))
        self.source: Capturing | None = None

    def opened(self, **changed: Any) -> Capturing:
        if self.source is not None:
            self.source.close()
        settings = replace(self.settings, **changed)
        with self.engine.connect() as connection:
            catalog = read_compared_catalog(connection, (), None, settings)
        self.source = Capturing(compare_reader(self.engine, catalog, settings), self._folder / "log.db")
        return self.source

    def write(self, dice: random.Random, many: int) -> None:
        with self.engine.begin() as connection:
            for _ in range(many):
                number = dice.randrange(60)
                connection.execute(self.orders.delete().where(self.orders.c.id == number))
                if dice.random() < 0.7:
                    row = {"id": number, "buyer": dice.randrange(8), "part": dice.choice(["a", "B", "b ", "ä"])}
                    connection.execute(self.orders.insert(), [row | {"pay": dice.randrange(1000) / 100}])

    def drain(self) -> int:
        assert self.source is not None
        images = self.source.take()
        self.consumer.take(images)
        return len(images)

    def sums(self) -> dict[tuple[int, str], tuple[float, int]]:
        with self.engine.connect() as connection:
            rows = connection.execute(sa.select(self.orders.c.buyer, self.orders.c.part, self.orders.c.pay)).all()
        found: dict[tuple[int, str], tuple[float, int]] = {}
        for buyer, part, pay in rows:
            total, times = found.get((buyer, part), (0.0, 0))
            found[buyer, part] = (round(total + float(pay), 2), times + 1)
        return found


@pytest.fixture
def shop(engine: Engine, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(engine, tmp_path)
    yield made
    if made.source is not None:
        made.source.close()


def test_after_each_cycle_who_takes_the_images_has_the_rows_of_the_query(shop: Shop) -> None:
    dice = random.Random(7)
    shop.opened()
    for _ in range(6):
        shop.write(dice, 30)
        shop.drain()
        rows = shop.consumer.rows
        assert {key: (round(float(row["total"]), 2), row["times"]) for key, row in rows.items()} == shop.sums()
        assert shop.drain() == 0


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"key": ("whom",)}, "totals.key names whom, which is no column"),
        ({"types": {"sum": "bigint"}}, "totals.types names sum"),
        ({"key": ("who",)}, "totals gives several rows with who=1"),
        ({"key": ("part", "missing"), "sql": "SELECT part, NULL AS missing FROM orders;"}, "missing is NULL"),
    ],
    ids=str,
)
def test_queries_whose_rows_nobody_can_tell_apart_are_refused(
    sqlite: Engine, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    query = replace(TOTALS, **({"types": {}} | changed))
    shop = Shop(sqlite, tmp_path, query)
    with sqlite.begin() as connection:
        rows = [{"id": number, "buyer": 1, "part": f"p{number}", "pay": 1} for number in range(2)]
        connection.execute(shop.orders.insert(), rows)
    with pytest.raises(DataError) as refused:
        shop.opened().take()
    assert said in str(refused.value)
    if shop.source is not None:
        shop.source.close()


def test_a_query_that_is_called_as_a_table_and_one_that_grows_are_refused(sqlite: Engine, tmp_path: Path) -> None:
    shop = Shop(sqlite, tmp_path)
    settings = replace(shop.settings, queries={"orders": TOTALS})
    with sqlite.connect() as connection, pytest.raises(DataError, match=r"orders is a table of source\.tables"):
        read_compared_catalog(connection, ("orders",), None, settings)
    with pytest.raises(ConfigError, match="has no key"):
        replace(TOTALS, key=())
    with pytest.raises(DataError, match="growing names totals"):
        shop.opened(growing={"totals": "total"})
