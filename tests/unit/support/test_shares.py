"""A property of which too few examples take part is no property."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
