"""One statement enters what is plain alone: whatever else a plan or its end says needs the journal's transaction."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core.associations import Association
from eventlog.core.model import Outcome, Reason, Status
from eventlog.publisher.at_once import finish_plainly, plan_plainly
from eventlog.publisher.memory import Memory, Sealed, Stamp
from eventlog.publisher.plans import Done, TakePlan
from eventlog.publisher.selection import Take
from eventlog.publisher.tables import Detail, JournalRow, OnTheWay
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges

ROWS = RowRanges.of([7])
SENT = OnTheWay(plan="p", place=0, details=[Detail(document="d", records=(7,))])
TAKE = Take(stamp=Stamp("s"), sealed=Sealed(ROWS, 1), records=ROWS)
PLAN = TakePlan(taken=TAKE, history=3, plan="p", is_asked=True, planned=[SENT])
DONE = Done(planned=[SENT], asked=True, doubts=0)
MORE: dict[str, Any] = {
    "outcomes": {7: Outcome(position=(7,), status=Status.WARNING, reason=Reason.PUBLISHED, note="late")},
    "gone": ROWS,
    "told": {},
    "has": "an earlier plan",
    "associations": {"usr/idu=1": Association},
}
"""Values of fields for which a number in a list is none."""


def memory() -> Memory:
    return Memory(
        stamp=Stamp("s"),
        tracked=None,
        batches={},
        outputs={"one": JournalRow(name="one", position=0)},
        planned={},
        seen=RowRanges(),
        last_parked=0,
        last_noted=0,
        any_parked=False,
        any_answers=False,
        any_held=False,
    )


def waiting() -> Memory:
    """What is known once the plan is entered."""
    known = memory()
    known.planned["one"] = ROWS
    return known


def finish(done: Done) -> Any:
    return finish_plainly(waiting(), "one", done, LogSettings())


def test_the_example_is_plain() -> None:
    assert plan_plainly(memory(), "one", PLAN) is not None
    assert finish(DONE) is not None


NOT_ENTERED = {"encoded", "decider", "unread", "trace", "is_prepared"}
"""What the journal does not have of a plan."""


@pytest.mark.parametrize(
    "field",
    sorted({*TakePlan.__struct_fields__} - {"taken", "history", "plan", "is_asked", "planned", *NOT_ENTERED}),
)
def test_a_plan_that_says_more_needs_a_transaction(field: str) -> None:
    assert plan_plainly(memory(), "one", replace(PLAN, **{field: MORE.get(field, [7])})) is None


@pytest.mark.parametrize("field", ["batches", "unparked", "parked", "gone"])
def test_a_take_of_more_than_new_rows_needs_a_transaction(field: str) -> None:
    taken = replace(TAKE, **{field: MORE.get(field, [7])})
    assert plan_plainly(memory(), "one", replace(PLAN, taken=taken)) is None


@pytest.mark.parametrize("field", sorted({*Done.__struct_fields__} - {"planned", "asked", "doubts"}))
def test_an_end_that_says_more_needs_a_transaction(field: str) -> None:
    assert finish(replace(DONE, **{field: MORE.get(field, [7])})) is None
