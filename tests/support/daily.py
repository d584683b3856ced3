"""What is another one each day in CI: the examples of a property, and which fifth of the dearest tests is asked; the latter
also with `--today`, as `./dev test` asks for all.

`@daily` above all other decorators of a property asks it again after its fixed examples, by the seed of the day. All tests of
a day have the same seed, which the head of the run says, and EVENTLOG_DAY repeats: a failure is there on the next run too.

A test that is marked `in_turn` is asked every fifth day; of one with parameters it is every fifth one of them.
So is what MySQL is asked with the same values as MariaDB, and a store with the same as a folder, which are asked every day.
In the levels with servers the other tests with parameters are asked every day with some of their values, and within five days
with each (`ROTATING`).
With `--fifth` a fifth of all tests is asked.
Of the random histories of the publisher a day asks a fifth (`of_today`), of the steps at which somebody dies in a lake a
third (`steps_of_today`).
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar
from zlib import crc32

import pytest
from hypothesis import seed, settings

from tests.support.levels import DATABASES, MYSQL_ASKS, level_of, words_of

Test = TypeVar("Test", bound=Callable[..., Any])

SEED: Final = "EVENTLOG_DAY"
IN_A_STORE: Final = re.compile(r" in (S3|a store)|@s3$")
"""What a kind of target in an object store is called beside the same kind in a folder."""
TURN_DAYS: Final = 5
"""After so many days each of the dearest tests was asked, and with `--fifth` every test."""

ROTATING: Final = ("conformance", "hardening", "integration", "publisher", "spark")
"""The levels whose tests are asked with some of their values a day: together they are most of a run. The code that answers a
test is nearly the same for all its values. Where it is SQL of a database's own (`MYSQL_ASKS`), each database is asked each day.
"""
EVERY_DAY: Final = ("security", "security_ddl", "security_owners", "security_rights")
"""Files of these levels with an attack for each value: another one is no repetition."""


def pytest_configure(config: pytest.Config) -> None:
    """Set one seed for the run and all its processes, even past midnight."""
    config.addinivalue_line("markers", "in_turn: one of the dearest, which CI asks every fifth day")
    if settings().derandomize or config.getoption("--today"):
        os.environ.setdefault(SEED, f"{dt.datetime.now(dt.UTC):%Y%m%d}")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the dearest tests of other days out, where somebody waits for CI."""
    if config.getoption("--long") or SEED not in os.environ:
        return
    left = left_out(
        items,
        dt.date.fromisoformat(os.environ[SEED]),
        wants_mysql="mysql" in config.getoption("keyword"),
        a_fifth=config.getoption("--fifth"),
    )
    config.hook.pytest_deselected(items=list(left))
    items[:] = [item for item in items if item not in left]


def left_out(items: list[pytest.Item], day: dt.date, *, wants_mysql: bool, a_fifth: bool = False) -> set[pytest.Item]:
    """Return the tests whose turn comes on another day."""
    asked = {(item.path, item.name) for item in items}
    alike: dict[tuple[str, bool], list[pytest.Item]] = {}
    others: dict[tuple[str, str], list[pytest.Item]] = {}
    for item in items:
        test = f"{item.path.name}::{item.name.partition('[')[0]}"
        repeats = (not wants_mysql and "mysql" in words_of(item) and _on_mariadb(item) in asked) or (
            IN_A_STORE.search(item.name) is not None and (item.path, IN_A_STORE.sub("", item.name)) in asked
        )
        if a_fifth or repeats or item.get_closest_marker("in_turn"):
            alike.setdefault((test, repeats), []).append(item)
        elif _rotates(item):
            others.setdefault((test, _own_database(item)), []).append(item)
    turns = [(name, TURN_DAYS, each) for (name, _), each in alike.items()]
    # Of fewer values than a turn has days each day has one.
    turns += [(name, min(TURN_DAYS, len(each)), each) for (name, _), each in others.items()]
    return {
        item
        for name, days, each in turns
        for place, item in enumerate(each)
        if (day.toordinal() + crc32(name.encode()) + place) % days
    }


def _rotates(item: pytest.Item) -> bool:
    """Return True for a test with a value, of the levels where values take turns."""
    is_daily = item.path.stem.removeprefix("test_") in EVERY_DAY
    return level_of(item.path) in ROTATING and not is_daily and getattr(item, "callspec", None) is not None


def _own_database(item: pytest.Item) -> str:
    """Return the database whose own SQL answers a test; none where the same code answers for all of them."""
    if item.path.stem.removeprefix("test_") not in MYSQL_ASKS:
        return ""
    return " ".join(name for name in DATABASES if name in words_of(item))


def of_today(seeds: Sequence[int]) -> list[int]:
    """Return the day's fifth of the seeds where tests take turns, else all of them."""
    if SEED not in os.environ:
        return list(seeds)
    day = dt.date.fromisoformat(os.environ[SEED]).toordinal()
    return [seed for seed in seeds if (day + seed) % TURN_DAYS == 0]


def steps_of_today() -> Iterator[int]:
    """Count steps from 1; where tests take turns, a third of them, by the day."""
    if SEED not in os.environ:
        return count(1)
    return count(1 + dt.date.fromisoformat(os.environ[SEED]).toordinal() % 3, 3)


def _on_mariadb(item: pytest.Item) -> tuple[Path, str]:
    """Return the same test with the same values on MariaDB."""
    name, bracket, values = item.name.partition("[")
    return item.path, f"{name}{bracket}{values.replace('mysql', 'mariadb')}"


def pytest_report_header() -> str | None:
    """Print how to repeat the day's tests and examples."""
    if SEED not in os.environ:
        return None
    examples, ci = (" and examples", "CI=true ") if settings().derandomize else ("", "")
    return f"tests{examples} of the day: {ci}{SEED}={os.environ[SEED]}"


def daily(test: Test) -> Test:
    """Asks the property again with the examples of the day, where those of each run are the same."""
    drawn = _drawn(test)

    @wraps(test)
    def asked(*args: Any, **kwargs: Any) -> None:
        test(*args, **kwargs)
        if not settings().derandomize:
            return
        seed(int(os.environ[SEED]))(drawn)
        try:
            test(*args, **kwargs)
        except BaseException as error:
            error.add_note(f"An example of the day: CI=true {SEED}={os.environ[SEED]} asks for it again.")
            raise
        finally:
            seed(None)(drawn)  # as it was: the fixed examples are drawn without one

    return asked  # type: ignore[return-value]  # it is called as the test is


def _drawn(test: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function made by `@given`, below other decorators."""
    below = getattr(test, "__wrapped__", None)
    return test if below is None or not hasattr(below, "hypothesis") else _drawn(below)
