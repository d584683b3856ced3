"""What event types mean and how reasons end: tables for the rules, and for `eventlog rules`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from eventlog.core.model import (
    Change,
    Kind,
    Op,
    Outcome,
    Outcomes,
    Position,
    Reason,
    Refusal,
    Status,
    exceptional,
)


class Meaning(Struct, frozen=True, kw_only=True):
    """`row`: of a whole row. `back`: values are read back. `reset`: all former values go first."""

    op: Op
    row: bool = False
    back: bool = False
    reset: bool = False


MEANING: Final[Mapping[int | None, Meaning]] = {
    Kind.INSERT_FIELD: Meaning(op=Op.ADD),
    Kind.UPDATE_FIELD: Meaning(op=Op.MODIFY),
    Kind.REPLACE_FIELD: Meaning(op=Op.MODIFY, reset=True),
    Kind.DELETE_ROW: Meaning(op=Op.DELETE, row=True),
    # Modifies too, also for an insert: what stands there now is published, and nobody knows what
    # did before.
    Kind.INSERT_ROW_BACK: Meaning(op=Op.MODIFY, row=True, back=True, reset=True),
    Kind.UPDATE_ROW_BACK: Meaning(op=Op.MODIFY, row=True, back=True, reset=True),
    Kind.INSERT_FIELD_BACK: Meaning(op=Op.MODIFY, back=True, reset=True),
    Kind.UPDATE_FIELD_BACK: Meaning(op=Op.MODIFY, back=True, reset=True),
}

STATUS: Final = {
    Reason.PUBLISHED: Status.SUCCESS,
    Reason.SUPERSEDED: Status.SUCCESS,
    Reason.NOTHING: Status.SUCCESS,
    Reason.FILTERED: Status.SUCCESS,
    Reason.LOOPBACK: Status.SUCCESS,
    Reason.VANISHED: Status.WARNING,
    Reason.INVALID: Status.ERROR,
    Reason.REFUSED: Status.ERROR,
    Reason.ALTERED: Status.WARNING,
    Reason.SKIPPED: Status.WARNING,
    Reason.FORGOTTEN: Status.WARNING,
    # From here on a row waits: it keeps its status, and is read again.
    Reason.NOT_DUE: Status.NEW,
    Reason.HELD: Status.NEW,
    Reason.RESTORED: Status.NEW,
    Reason.BEHIND: Status.NEW,
    Reason.NO_ROOM: Status.NEW,
    Reason.GOES_ON: Status.NEW,
    Reason.NO_RIGHT: Status.NEW,
    Reason.LOCKED: Status.NEW,
    Reason.UNCONFIRMED: Status.NEW,
    Reason.DAMAGED: Status.NEW,
    Reason.RETRY: Status.NEW,
}
"""The status a row gets for a reason, unless a receiver said something else."""

EXPLANATION: Final = {
    Reason.PUBLISHED: "it is part of a published change",
    Reason.SUPERSEDED: "a query-back of the same row or column covers it; it ends together with that row",
    Reason.NOTHING: "there is nothing to publish",
    Reason.FILTERED: "the policies of every output leave it out: see its note",
    Reason.LOOPBACK: "the publisher's own user made the change and allow_loopback is off, or loopback_contexts names its session",
    Reason.VANISHED: "its values would be read back, but the object no longer exists",
    Reason.INVALID: "the row cannot be read: see its note",
    Reason.REFUSED: "the format or the receiver did not take it: see its note",
    Reason.ALTERED: "it is published, but a value was left out or replaced, as on_value says: see its note",
    Reason.SKIPPED: "somebody gave it up for an output that lagged: see its note",
    Reason.FORGOTTEN: "somebody gave up the output that would have got it, and no other one got it: see its note",
    Reason.NOT_DUE: "its event_time is in the future, and handle_future_events is on",
    Reason.HELD: "somebody holds it",
    Reason.RESTORED: "the log was restored, and the target may have it, or another row of its number:"
    " it waits until somebody resumes the output, or skips it",
    Reason.BEHIND: "an earlier row of its object waits: it goes after that one",
    Reason.NO_ROOM: "what is read back with it has filled the batch: it comes with the next one",
    Reason.GOES_ON: "its transaction continues after the batch: it comes with the next one,"
    " so that the last event is known",
    Reason.NO_RIGHT: "the publisher may not read the row's table: it is tried again until the right is granted",
    Reason.UNCONFIRMED: "its table is not known to be the one that was tracked: it is tried again",
    Reason.LOCKED: "its table is locked, or does not answer in time: it is tried again",
    Reason.DAMAGED: "the database cannot read its table: it is tried again",
    Reason.RETRY: "the receiver asked for another time",
}

PRECEDENCE: Final = (
    ("delete ends a life", "rows after a type 4 row belong to the next object with that key"),
    ("vanished rows drop out", "a query-back (5-8) before a delete, or whose row is gone, supersedes no row"),
    ("row beats field", "the last 5 or 6 of a life makes one full modify; its other rows are superseded"),
    ("query-back beats data", "7 or 8 on a column supersedes every 1, 2, 3 on that column"),
    ("neighbours merge", "rows of one object and one operation make one change until a column repeats"),
)
"""The rules of one lifetime, in the order in which they are applied."""


NOT_POSITIVE: Final = "record_id is {}; it must be positive."
"""Why a row of a log with a lower number is not published."""


class Options(Struct, frozen=True, kw_only=True):
    """What can be chosen about the rules. `now` is the database's clock, needed with `future`."""

    user: str | None = None
    allow_loopback: bool = False
    contexts: tuple[str, ...] = ()
    """Patterns of what sessions say whose changes are not published."""
    coalesce: bool = False
    future: bool = False
    now: dt.datetime | None = None
    hiding: bool = False
    """A policy hides values, so notes say nothing of what a key holds."""


class Decision(NamedTuple):
    """Changes in the order in which they are published, and one outcome for every event."""

    changes: list[Change]
    outcomes: Outcomes


def together(decisions: Sequence[Decision]) -> Decision:
    """Join the decisions of several groups of events, one after the other."""
    if len(decisions) == 1:
        return decisions[0]
    changes: list[Change] = []
    positions: list[Position] = []
    others: dict[Position, Outcome] = {}
    for decision in decisions:
        changes += decision.changes
        positions += decision.outcomes.positions
        others.update((outcome.position, outcome) for outcome in exceptional(decision.outcomes))
    return Decision(changes, Outcomes(positions, others))


def end_event(position: Position, refusal: Refusal | None) -> Outcome:
    """Make the outcome of an event with a written change: published, or refused in whole or in
    part.
    """
    if refusal is None:
        return Outcome(position=position)
    reason = refusal.reason
    return Outcome(position=position, status=STATUS[reason], reason=reason, note=refusal.note)


def refusals(refused: Iterable[tuple[Position, str]]) -> list[Outcome]:
    """Make the outcomes of events refused by a target, each with the cause."""
    return [
        # The note says why, in the target's own words.
        Outcome(position=tuple(position), status=Status.ERROR, reason=Reason.REFUSED, note=note)
        for position, note in refused
    ]
