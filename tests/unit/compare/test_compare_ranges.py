"""Ranges and buckets: every row is in exactly one, and only what differs is asked for."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.compare.pace import Pace, Window, read_window
from eventlog.compare.ranges import BUCKET_ROWS, SLICE_BUCKETS, differing, digests, slices, split_buckets
from eventlog.core.errors import UsageError


@given(st.integers(0, 10 * SLICE_BUCKETS * BUCKET_ROWS))
def test_every_bucket_is_in_one_slice(rows: int) -> None:
    found = list(slices(rows))
    [buckets] = {one.buckets for one in found}
    ends = [buckets - 1 if one.last is None else one.last for one in found]
    assert [one.first for one in found] == [0, *[end + 1 for end in ends[:-1]]]
    assert ends[-1] == buckets - 1


def test_halves_of_sums_are_put_together() -> None:
    assert digests([(3, 2, 1, 5), (4, 1, 0, 7)]) == {3: (2, (1 << 30) + 5), 4: (1, 7)}


@given(
    st.dictionaries(st.integers(0, 30), st.tuples(st.integers(1, 3), st.integers(0, 3))),
    st.dictionaries(st.integers(0, 30), st.tuples(st.integers(1, 3), st.integers(0, 3))),
)
def test_buckets_that_differ_are_asked_for_once(
    left: dict[int, tuple[int, int]], right: dict[int, tuple[int, int]]
) -> None:
    found = differing(left, right)
    assert set(found) == {one for one in range(31) if left.get(one) != right.get(one)}
    pieces = list(split_buckets(found, 31, len(left.keys() | right.keys())))
    whole = pieces == [None]
    assert ([one for piece in pieces for one in (piece or found)]) == found
    assert whole <= (len(found) * 2 > len(left.keys() | right.keys()))


@pytest.mark.parametrize(
    "window, minute, waits",
    [
        ("22:00-05:00", 23 * 60, 0),
        ("22:00-05:00", 4 * 60, 0),
        ("22:00-05:00", 21 * 60, 60),
        ("01:00-02:00", 180, 22 * 60),
    ],
)
def test_a_window_may_go_over_midnight(window: str, minute: int, waits: int) -> None:
    assert read_window(window).wait(minute) == waits


@pytest.mark.parametrize("text", ["", "22:00", "5-6", "25:00-01:00", "01:00-01:00"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="time window"):
        read_window(text)


def test_a_pace_keeps_to_its_rate_and_to_its_window() -> None:
    slept: list[float] = []
    clock = [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    pace = Pace(100, sleep=sleep, clock=lambda: clock[0])
    pace.enter()
    pace.read(250)
    pace.enter()
    assert slept == [2.5]
    times = iter([dt.datetime(2026, 1, 1, 0, 0), dt.datetime(2026, 1, 1, 1, 0)])
    Pace(window=Window(60, 120), sleep=sleep, now=lambda: next(times)).enter()
    assert slept == [2.5, 60]
