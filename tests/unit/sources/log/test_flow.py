"""The word for how a log goes on, the sentences that say it, and how fast rows are settled."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.care.flow import rate_of, state_sentence, waiting_reasons
from eventlog.config.settings import PublisherConfig
from eventlog.sources.log.flow import (
    STATES,
    STEP_SECONDS,
    WINDOW_SECONDS,
    Flow,
    FlowState,
    OutputLag,
    Pace,
    WaitingParts,
    count_finished,
    count_recently_finished,
    patience,
)
from eventlog.sources.marks import as_text, value_of


@pytest.mark.parametrize(
    "parts, changes, state",
    [
        (WaitingParts(retrying=1), {"publishing": False, "lag": 900.0, "oldest": 1}, "stuck"),
        (WaitingParts(retrying=1), {"publishing": False, "lag": 9.0, "oldest": 1}, "retrying"),
        (WaitingParts(ready=1, held=1), {"ready_lag": None, "oldest": 1}, "stuck"),
        (WaitingParts(suspended=1, retrying=1, held=1), {}, "suspended"),
        (WaitingParts(held=1), {"publishing": False}, "held"),
        (WaitingParts(not_due=1), {"publishing": False}, "unpublished"),
        (WaitingParts(lagging=1, retrying=1, held=1, ready=1), {}, "lagging"),
        (WaitingParts(lagging=1, suspended=1), {}, "suspended"),
        (WaitingParts(ready=1), {"tracked": False}, "flowing"),
        (WaitingParts(), {"tracked": False, "finished": 1}, "flowing"),
    ],
)
def test_of_several_words_the_one_that_asks_for_somebody_is_said(
    parts: WaitingParts, changes: dict[str, Any], state: FlowState
) -> None:
    assert replace(Flow(parts=parts, publishing=True), **changes).state == state


LATE = {"oldest": 7, "lag": 900.0, "ready_lag": 900.0}


@pytest.mark.parametrize(
    "state, changes, said",
    [
        ("flowing", {}, "Nothing is stuck."),
        ("flowing", {"parts": WaitingParts(ready=1)}, "Nothing is stuck."),
        ("flowing", {"parts": WaitingParts(ready=1), "failing": True}, "An output fails, and is tried again."),
        ("waiting", {"parts": WaitingParts(not_due=1)}, "Rows wait for their time."),
        (
            "waiting",
            {"parts": WaitingParts(ready=1), "publishing": False},
            "Rows wait. No publisher works on this log.",
        ),
        ("held", {"first_held": 7, "parts": WaitingParts(held=1)}, "Somebody holds rows; all others are published."),
        (
            "held",
            {"first_held": 7, "parts": WaitingParts(held=1, ready=1)},
            "Somebody holds rows; others are being published.",
        ),
        (
            "held",
            {"first_held": 7, "parts": WaitingParts(held=1, ready=1), "failing": True},
            "an output fails, and is tried again.",
        ),
        (
            "held",
            {"first_held": 7, "parts": WaitingParts(held=1), "publishing": False},
            "Somebody holds rows. No publisher works",
        ),
        ("retrying", {"parts": WaitingParts(retrying=1)}, "A receiver did not take rows; they are offered again."),
        ("retrying", {"parts": WaitingParts(ready=1), "failing": True, **LATE}, "A receiver did not take rows"),
        ("lagging", {"parts": WaitingParts(lagging=9)}, "An output lags behind the others, which continue."),
        ("suspended", {"parts": WaitingParts(suspended=1)}, "Rows wait until their table can be read."),
        ("stuck", {"parts": WaitingParts(ready=1), **LATE}, "The oldest row, 7, has waited for 15 min."),
        (
            "stuck",
            {"parts": WaitingParts(ready=1), **LATE, "lag": None},
            "has waited for an unknown time.",
        ),
        ("unpublished", {"publishing": False}, "Nothing is ready to be published, and no publisher works"),
        ("untracked", {"tracked": False}, "No trigger of eventlog writes this log"),
    ],
)
def test_each_state_has_its_sentence(state: FlowState, changes: dict[str, Any], said: str) -> None:
    flow = replace(Flow(publishing=True), **changes)
    assert flow.state == state
    assert state in STATES
    assert said in state_sentence(flow)


def test_rows_of_a_restored_log_are_not_said_to_be_held_by_somebody() -> None:
    """Nobody holds them: `row None is the first` stood there."""
    flow = Flow(parts=WaitingParts(held=2), publishing=True)
    assert "since the log was restored" in state_sentence(flow)
    [said] = waiting_reasons(flow)
    assert said.startswith("2 rows are kept since the log was restored")
    assert "`eventlog outputs resume NAME`" in said


def test_what_rows_wait_for_is_said_and_their_turn_is_not() -> None:
    parts = WaitingParts(ready=9, held=1, retrying=2000, suspended=3, not_due=4)
    assert list(waiting_reasons(Flow(parts=parts, first_held=7))) == [
        "1 row is held or behind held ones; row 7 is the first.",
        "2,000 rows are offered again, because a receiver did not take a row.",
        "3 rows are kept until the publisher can read their table.",
        "4 rows are kept until their time comes.",
    ]
    assert list(waiting_reasons(Flow(parts=WaitingParts(ready=9)))) == []
    assert (parts.total, parts.nobody_wants) == (2017, 2012)


@pytest.mark.parametrize(
    "settings, seconds",
    [({}, 300.0), ({"polling_interval": 60}, 600.0), ({"time_of_day": ("02:00", "14:00")}, 86_700.0)],
)
def test_what_is_late_follows_from_how_often_rows_are_published(settings: dict[str, Any], seconds: float) -> None:
    assert patience(PublisherConfig(**settings)) == seconds


def test_each_output_that_lags_is_told_with_its_rows() -> None:
    lags = {"far": OutputLag(rows=1, first=3, seconds=2.0), "farther": OutputLag(rows=2000, paused=True)}
    assert [*waiting_reasons(Flow(lags=lags))] == [
        "1 row is kept for far.",
        "2,000 rows are kept for farther, which somebody has paused.",
    ]


SETTLED = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 10_000)), max_size=40).map(sorted)


def paced(finished: list[tuple[int, int]]) -> Pace:
    pace: Pace = ()
    for now, rows in finished:
        pace = count_finished(pace, rows, float(now))
    return pace


@given(SETTLED)
def test_what_the_window_holds_is_counted_whole_and_what_is_older_is_not(finished: list[tuple[int, int]]) -> None:
    now = finished[-1][0] if finished else 0
    pace = paced(finished)
    certain = sum(rows for at, rows in finished if at > now - WINDOW_SECONDS + STEP_SECONDS)
    possible = sum(rows for at, rows in finished if at > now - WINDOW_SECONDS)
    assert certain <= count_recently_finished(pace, now) <= possible
    assert len(pace) <= WINDOW_SECONDS // STEP_SECONDS + 1
    assert (value_of(as_text(pace), Pace) or ()) == pace


def test_the_rate_is_told_with_its_window() -> None:
    pace = paced([(1000, 300), (1030, 300)])
    found = rate_of(Flow(finished=count_recently_finished(pace, 1031.0)))
    assert (found.rows, found.seconds, found.per_second) == (600, WINDOW_SECONDS, 10.0)
    assert count_recently_finished(pace, 1075.0) == 300
    assert rate_of(Flow(finished=count_recently_finished(pace, 2000.0))).per_second == 0.0


def test_a_clock_that_was_set_back_forgets_what_lies_ahead_of_it() -> None:
    assert count_recently_finished(count_finished(paced([(5000, 300)]), 12, 1000.0), 1001.0) == 12
