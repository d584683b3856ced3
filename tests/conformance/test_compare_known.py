"""Cycles that recognise ranges: an idle one asks for two numbers of each, and none misses a change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.compare import engine as comparing
from eventlog.compare import known
from eventlog.compare.scratch import ScratchSnapshot
from eventlog.compare.tables import TableSnapshot
from tests.conformance.test_compare_source import Site
from tests.support.compared import random_row


@pytest.fixture(autouse=True)
def short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (comparing, known):
        monkeypatch.setattr(module, "RANGE_ROWS", 8)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collect the ranges whose buckets are summed, on either side."""
    found: list[Any] = []
    for side in (TableSnapshot, ScratchSnapshot):
        usual = side.digests

        def digests(self: Any, part: Any, usual: Any = usual) -> Any:
            found.append((part.after, part.upto))
            return usual(self, part)

        monkeypatch.setattr(side, "digests", digests)
    return found


@pytest.fixture
def site(engine: Engine, tmp_path: Path) -> Iterator[Site]:
    made = Site(engine, tmp_path, "number")
    yield made
    made.source.close()


def filled(site: Site, many: int = 100) -> None:
    rows = [random_row(random.Random(n), "number", n) | {"id": n, "size": n} for n in range(many)]
    with site.engine.begin() as connection:
        connection.execute(site.table.insert(), rows)
    site.drain()


def renamed(site: Site, number: int, name: str) -> None:
    with site.engine.begin() as connection:
        connection.execute(site.table.update().where(site.table.c.id == number).values(name=name))


def test_an_idle_cycle_asks_for_two_numbers_of_each_range(site: Site, asked: list[Any]) -> None:
    filled(site)
    assert site.drain() == 0
    asked.clear()
    site.reopen()
    assert site.drain() == 0
    assert asked == []
    renamed(site, 50, "other")
    assert site.drain() == 1
    assert site.drain() == 0
    assert {(after < 50 <= upto) for after, upto in asked} == {True}


def test_a_row_that_is_again_what_it_was_is_told_twice(site: Site) -> None:
    """The state has what it was in between, although the range's sum is the one that was known."""
    filled(site)
    renamed(site, 50, "first")
    for _ in range(3):
        site.drain()
        site.drain()
        for name in ("second", "first"):
            renamed(site, 50, name)
            site.source.capture()  # one cycle: the next one could know the range anew
            images = site.source.taken()
            assert len(images) == 1
            site.consumer.take(images)
    assert {row["name"] for row in site.consumer.rows.values() if row["id"] == 50} == {"first"}


def test_what_a_column_that_grows_has_told_is_not_known_any_more(engine: Engine, tmp_path: Path) -> None:
    site = Site(engine, tmp_path, "number", every=3600, growing={"usr": "size"})
    filled(site)
    site.reopen()
    assert site.drain() == 0
    with engine.begin() as connection:
        connection.execute(site.table.update().where(site.table.c.id == 50).values(size=1000))
    assert site.drain() == 1
    with engine.begin() as connection:
        connection.execute(site.table.update().where(site.table.c.id == 50).values(size=50))
    assert site.drain() == 0
    site.reopen()
    assert site.drain() == 1
    site.source.close()


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(4))
def test_random_writers_while_ranges_grow_and_shrink(engine: Engine, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    site = Site(engine, tmp_path, dice.choice(["number", "number", "both"]))
    for _ in range(12):
        site.write(dice, dice.choice([0, 1, 3, 30]), numbers=dice.choice([40, 400]))
        if dice.random() < 0.3:
            site.reopen()
        site.drain()
        if dice.random() < 0.5:
            assert site.equal()
    assert site.equal()
    site.source.close()


def test_keys_beyond_the_numbers_that_the_state_has(mariadb: Engine, tmp_path: Path) -> None:
    site = Site(mariadb, tmp_path, "number")
    with mariadb.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE usr MODIFY id BIGINT UNSIGNED")
        keys = ", ".join(f"({2**64 - 1 - number})" for number in range(30))
        connection.exec_driver_sql(f"INSERT INTO usr (id) VALUES (1), {keys}")
    site.reopen()
    assert site.drain() == 31
    for change in ("UPDATE usr SET size = 5", "UPDATE usr SET size = 6", "UPDATE usr SET size = 5", "DELETE FROM usr"):
        assert site.drain() == 0
        with mariadb.begin() as connection:
            connection.exec_driver_sql(change)
        assert site.drain() == 31
    site.source.close()
