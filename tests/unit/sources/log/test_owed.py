"""What lagging outputs are owed, and what was said of it before they said anything."""

from __future__ import annotations

from eventlog.core.model import Outcome, Outcomes, Position, Reason, Status
from eventlog.sources.log.owed import LagState, Saying, read_lag, settled_numbers, waiting_only
from eventlog.sources.marks import (
    Stretches,
    any_owed,
    as_text,
    kept_outputs,
    lagging_outputs,
    paused_outputs,
    read_owed,
)

ALL = Stretches([(1, 9)])


def outcome(number: int, status: Status = Status.SUCCESS, reason: Reason = Reason.PUBLISHED) -> Outcome:
    return Outcome(position=(number,), status=status, reason=reason, note=f"{status}{number}")


def of(*others: Outcome) -> Outcomes:
    positions: list[Position] = [(number,) for number in range(1, 10)]
    return Outcomes(positions, {one.position: one for one in others})


def letters(outcomes: Outcomes) -> str:
    return "".join(one.status for one in outcomes)


def test_marks_say_who_lags_and_who_is_paused() -> None:
    marks = {"owed: b": "1..3", "owed: a": "", "paused: c": "by me", "in hand": "7"}
    assert lagging_outputs(marks) == ["a", "b"]
    assert paused_outputs(marks) == {"c"}
    assert kept_outputs(marks) == {"a", "b", "c"}
    assert read_owed(marks) == {"a": Stretches(), "b": Stretches([(1, 3)])}
    assert any_owed(read_owed(marks).values()) == Stretches([(1, 3)])


def test_how_far_an_output_is_reads_back() -> None:
    state = LagState(in_hand="1..3", notes={"a": "{}"}, attempts={2: 4}, waited=True)
    assert read_lag({"lagging: a": as_text(state)}, "a") == state
    assert read_lag({}, "a") == LagState()


def test_what_is_settled_and_what_waits() -> None:
    outcomes = of(outcome(2, Status.NEW, Reason.RETRY), outcome(3, Status.ERROR, Reason.REFUSED))
    assert settled_numbers(outcomes) == Stretches([(1, 1), (3, 9)])
    assert [one.position for one in waiting_only(outcomes)] == [(2,)]


def test_the_worst_counts_whoever_said_it() -> None:
    saying = Saying(None)
    saying.begin(of(outcome(1, Status.ERROR, Reason.REFUSED), outcome(2, Status.WARNING, Reason.ALTERED)), ALL)
    saying.add([outcome(9, Status.ERROR, Reason.REFUSED)], Stretches([(1, 8)]))
    saying = Saying(saying.text())
    mine = of(outcome(2, Status.ERROR, Reason.INVALID), outcome(3, Status.WARNING, Reason.ALTERED))
    merged = saying.merged(mine, Stretches([(1, 4)]))
    assert letters(merged) == "EEWS"
    assert [one.note for one in merged.others.values()] == ["E2", "W3", "E1"]


def test_what_was_said_is_forgotten_with_its_rows() -> None:
    saying = Saying(None)
    saying.begin([outcome(1, Status.ERROR, Reason.REFUSED), outcome(2, Status.ERROR, Reason.REFUSED)], ALL)
    saying.forget(Stretches([(1, 1)]))
    assert letters(saying.merged(of(), ALL)) == "SESSSSSSS"
    saying.forget(ALL)
    assert saying.text() is None


def test_what_a_policy_left_out_is_left_out_only_where_all_did_so() -> None:
    filtered = [Outcome(position=(number,), reason=Reason.FILTERED, note="by policy") for number in (1, 2)]
    saying = Saying(None)
    saying.begin([filtered[0]], ALL)
    merged = saying.merged(of(*filtered), ALL)
    assert [one.reason for one in merged][:3] == [Reason.FILTERED, Reason.PUBLISHED, Reason.PUBLISHED]
    assert saying.merged(of(), ALL)[0].reason is Reason.PUBLISHED


def test_what_one_that_lagged_was_told_is_not_left_out_everywhere() -> None:
    filtered = [Outcome(position=(number,), reason=Reason.FILTERED, note="by policy") for number in (1, 2)]
    saying = Saying(None)
    saying.begin(filtered, ALL)
    saying.add([filtered[0], outcome(2)], Stretches([(1, 2)]))
    assert [one.reason for one in saying.merged(of(*filtered), ALL)][:2] == [Reason.FILTERED, Reason.PUBLISHED]
    saying.add([outcome(1)], Stretches([(1, 1)]))
    assert saying.text() is None
