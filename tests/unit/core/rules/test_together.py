"""Decisions about several groups of events, as one; and the worst that is said of an event."""

from __future__ import annotations

from eventlog.core.model import Change, Edit, Op, Outcome, Outcomes, Reason, RowId, Status
from eventlog.core.rules import Decision
from eventlog.core.rules.meaning import together
from eventlog.delivery.answers import keep_worse


def added(number: int) -> Change:
    return Change(
        row=RowId(None, "usr", f"idu={number}"),
        op=Op.ADD,
        edits=(Edit(column="fname", new="a"),),
        positions=((number,),),
    )


def refused(number: int, status: Status = Status.ERROR) -> Outcome:
    return Outcome(position=(number,), status=status, reason=Reason.REFUSED)


def test_what_groups_amount_to_comes_one_after_the_other() -> None:
    first = Decision([added(1)], Outcomes([(1,), (2,)], {(2,): refused(2)}))
    second = Decision([added(3)], Outcomes([(3,)], {}))
    both = together([first, second])
    assert [change.positions for change in both.changes] == [((1,),), ((3,),)]
    assert both.outcomes.positions == [(1,), (2,), (3,)]
    assert both.outcomes.others == {(2,): refused(2)}
    assert together([first]) is first


def test_the_worst_that_was_said_of_an_event_counts() -> None:
    answers: dict[tuple[int, ...], Outcome] = {}
    for status in (Status.WARNING, Status.FATAL, Status.ERROR):
        keep_worse(answers, (1,), refused(1, status))
    assert answers == {(1,): refused(1, Status.FATAL)}
