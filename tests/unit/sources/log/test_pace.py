"""How fast rows are settled: counts over a window that moves on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventlog.sources.log.backlog import STEP_SECONDS, WINDOW_SECONDS, Pace, quickened, rate
from eventlog.sources.marks import as_text, value_of

SETTLED = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 10_000)), max_size=40).map(sorted)


def paced(settled: list[tuple[int, int]]) -> Pace:
    pace: Pace = ()
    for now, rows in settled:
        pace = quickened(pace, rows, float(now))
    return pace


@given(SETTLED)
def test_what_the_window_holds_is_counted_whole_and_what_is_older_is_not(settled: list[tuple[int, int]]) -> None:
    now = settled[-1][0] if settled else 0
    pace = paced(settled)
    certain = sum(rows for at, rows in settled if at > now - WINDOW_SECONDS + STEP_SECONDS)
    possible = sum(rows for at, rows in settled if at > now - WINDOW_SECONDS)
    assert certain <= rate(pace, now).rows <= possible
    assert len(pace) <= WINDOW_SECONDS // STEP_SECONDS + 1
    assert (value_of(as_text(pace), Pace) or ()) == pace


def test_the_rate_is_told_with_its_window() -> None:
    pace = paced([(1000, 300), (1030, 300)])
    found = rate(pace, 1031.0)
    assert (found.rows, found.seconds, found.per_second) == (600, WINDOW_SECONDS, 10.0)
    assert rate(pace, 1075.0).rows == 300
    assert rate(pace, 2000.0).per_second == 0.0


def test_a_clock_that_was_set_back_forgets_what_lies_ahead_of_it() -> None:
    assert rate(quickened(paced([(5000, 300)]), 12, 1000.0), 1001.0).rows == 12
