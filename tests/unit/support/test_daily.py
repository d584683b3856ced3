"""Where the examples of a property are always the same, those of the day come after them, and a failure says their seed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.daily import SEED, daily
from tests.support.shares import met, shares

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


def test_the_fixed_examples_stay_as_they_are_however_often_a_property_is_asked(
    in_ci: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []

    @daily
    @FIXED
    @given(st.integers(0, 2**60))
    def a_property(number: int) -> None:
        drawn.append(number)

    monkeypatch.setenv(SEED, "20260101")
    a_property()
    a_property()
    assert drawn[:40] == drawn[40:]


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


def test_where_examples_are_new_each_time_none_are_asked_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.support.daily.settings", lambda: settings(FIXED, derandomize=False))
    assert len(drawn_on("20260101", monkeypatch)) == 20
