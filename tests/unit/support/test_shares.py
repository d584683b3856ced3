"""Of a property enough examples take part, those of the day come after the fixed ones, and a failure says their seed."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.daily import SEED, TURN_DAYS, daily, left_out, of_today
from tests.support.levels import ROOT
from tests.support.shares import met, shares


def test_too_few_are_told_with_their_number() -> None:
    @shares(even=0.1, large=0.9)
    @settings(max_examples=50, database=None)
    @given(st.integers(0, 9999))
    def a_property(number: int) -> None:
        met(even=number % 2 == 0, large=number > 9998)

    with pytest.raises(AssertionError, match=r"large: \d+ of \d+ examples, less than 90%"):
        a_property()


def test_one_run_that_misses_a_share_is_no_failure() -> None:
    before = 0

    @shares(late=0.3)
    @settings(max_examples=50, database=None, derandomize=False)
    @given(st.integers(0, 9999))
    def a_property(_: int) -> None:
        nonlocal before
        before += 1
        met(late=before > 50)

    a_property()
    assert before == 100


def test_a_run_that_is_always_the_same_is_asked_again_with_other_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.shares.settings", lambda: settings(derandomize=True))
    runs: list[set[int]] = [set()]

    @shares(late=0.3)
    @settings(max_examples=50, database=None, derandomize=True)
    @given(st.integers(0, 2**60))
    def a_property(number: int) -> None:
        if len(runs[-1]) == 50:
            runs.append(set())
        runs[-1].add(number)
        met(late=len(runs) == 2)

    a_property()
    assert len(runs) == 2
    assert len(runs[0] & runs[1]) < 25


def test_who_says_it_and_is_not_asked_is_told() -> None:
    with pytest.raises(AssertionError, match="no @shares"):
        met(even=True)


FIXED = settings(max_examples=20, database=None, derandomize=True)


@pytest.fixture
def in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.daily.settings", lambda: FIXED)


def drawn_on(day: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """All that a property is asked in a run of that day."""
    drawn: list[int] = []

    @daily
    @shares(any=0.5)
    @FIXED
    @given(st.integers(0, 2**60))
    def a_property(number: int) -> None:
        drawn.append(number)
        met(any=True)

    monkeypatch.setenv(SEED, day)
    a_property()
    return drawn


def test_each_day_has_examples_of_its_own_after_the_fixed_ones(in_ci: None, monkeypatch: pytest.MonkeyPatch) -> None:
    one, again, other = [drawn_on(day, monkeypatch) for day in ("20260101", "20260101", "20260102")]
    assert (len(one), one) == (40, again)
    assert one[:20] == other[:20]
    assert one[20:] != one[:20]
    assert one[20:] != other[20:]


def test_a_failure_says_the_seed_that_repeats_it(in_ci: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    @daily
    @FIXED
    @given(st.integers(0, 2**60))
    def a_property(_: int) -> None:
        nonlocal asked
        asked += 1
        assert asked <= 20

    monkeypatch.setenv(SEED, "20260101")
    with pytest.raises(AssertionError) as caught:
        a_property()
    assert "CI=true EVENTLOG_DAY=20260101" in "".join(caught.value.__notes__)


class _Asked:
    """As much of an item as is asked for."""

    def __init__(self, name: str, *, dear: bool = False, path: Path = Path("test_mysql.py")) -> None:
        self.path, self.name, self._dear = path, name, dear
        self.callspec = SimpleNamespace(params=dict(enumerate(name.partition("[")[2].rstrip("]").split("-"))))

    def get_closest_marker(self, _: str) -> object:
        return self._dear or None


def asked_on(items: list[Any], day: dt.date, **wanted: bool) -> set[str]:
    left = left_out(items, day, **{"wants_mysql": False, **wanted})
    return {item.name for item in items if item not in left}


def test_what_takes_turns_is_asked_once_in_so_many_days_also_where_a_month_ends() -> None:
    """Of MySQL it is what MariaDB is asked too, of a store what a folder is; what only they are asked is asked each day."""
    dear = {"test_dear", *(f"test_dear_each[{value}]" for value in "abcd")}
    turns = (
        dear
        | {f"test_any[mysql-{value}]" for value in "12"}
        | {"test_sink[files in S3-1]@s3", "test_sink[files in a store-2]"}
    )
    always = {"test_cheap", "test_any[mariadb-1]", "test_any[mariadb-2]", "test_any[mysql-3]", "test_alone[mysql]"}
    always |= {"test_sink[files-1]", "test_sink[files-2]", "test_sink[files in S3-3]@s3"}
    items: list[Any] = [_Asked(name, dear=name in dear) for name in sorted(turns | always)]
    for first in (dt.date(2026, 11, 26), dt.date(2026, 11, 29), dt.date(2026, 12, 30)):
        days = [asked_on(items, first + dt.timedelta(days=place)) for place in range(TURN_DAYS)]
        assert sorted(name for day in days for name in day) == sorted([*turns, *list(always) * TURN_DAYS])
        assert all(len(day & turns) <= 4 for day in days)
    every = asked_on(items, dt.date(2026, 11, 26), wants_mysql=True)
    assert {name for name in every if "mysql" in name} == {name for name in turns | always if "mysql" in name}


def test_in_five_days_of_a_fifth_each_test_was_asked_once() -> None:
    names = sorted(f"test_{name}[{database}]" for name in "abcdef" for database in ("mariadb", "mysql", "sqlite"))
    items: list[Any] = [_Asked(name, dear=name < "test_c") for name in names]
    first = dt.date(2026, 12, 30)
    days = [asked_on(items, first + dt.timedelta(days=place), a_fifth=True) for place in range(TURN_DAYS)]
    assert sorted(name for day in days for name in day) == names
    assert all(len(day) < len(names) / 2 for day in days)


@pytest.mark.parametrize(
    "file, values, least",
    [
        ("conformance/test_sink.py", ["sqlite", "postgresql", "mariadb"], 1),
        ("conformance/test_sink.py", list("abcdefg"), 1),
        ("conformance/test_dialect_track.py", ["sqlite", "postgresql", "mariadb"], 3),
        ("hardening/test_security_rights.py", list("abcdefg"), 7),
        ("acceptance/test_reports.py", list("abcdefg"), 7),
    ],
)
def test_a_test_of_the_levels_with_servers_is_asked_every_day_and_each_of_its_values_in_five(
    file: str, values: list[str], least: int
) -> None:
    """Each database is asked every day where its own SQL answers, and so is each attack."""
    names = {f"test_a[{value}]" for value in values}
    items: list[Any] = [_Asked(name, path=ROOT / "tests" / file) for name in sorted(names)]
    first = dt.date(2026, 12, 30)
    days = [asked_on(items, first + dt.timedelta(days=place)) for place in range(TURN_DAYS)]
    assert all(least <= len(day) <= max(2, least) for day in days)
    assert set.union(*days) == names


def test_in_five_days_each_history_was_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    days: list[list[int]] = []
    for day in ("20261230", "20261231", "20270101", "20270102", "20270103"):
        monkeypatch.setenv(SEED, day)
        days.append(of_today(range(20)))
    assert sorted(seed for day in days for seed in day) == list(range(20))
    assert all(len(day) == 4 for day in days)
    monkeypatch.delenv(SEED)
    assert of_today(range(20)) == list(range(20))
