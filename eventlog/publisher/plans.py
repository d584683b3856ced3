"""What a consumer enters in the journal: where rows go, and what became of planned documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from eventlog.core.errors import EventlogError
from eventlog.core.model import Count, Outcome, Status
from eventlog.publisher.memory import Sealed
from eventlog.publisher.tables import OnTheWay, Parked
from eventlog.sources.marks import Stretches


class HoldsChangedError(EventlogError):
    """Somebody held, released or gave up rows since they were read: they are read again."""


class TakePlan(Struct, frozen=True, kw_only=True):
    """Where the rows of a take go: into documents, to those that wait, or over, unpublished.

    `sealed` are new rows, which become a batch by this; `passed` are batches of which the output
    has nothing ahead any more. `unparked` are rows that waited until now. `gone` are rows that
    somebody else has taken away or given a letter. `readable` are tables that could not be read
    before: the rows of theirs that wait may go.
    """

    stamp: str
    plan: str = ""
    sealed: Sealed | None = None
    passed: Sequence[int] = ()
    unparked: Sequence[Parked] = ()
    planned: Sequence[OnTheWay] = ()
    parked: Sequence[Parked] = ()
    readable: Sequence[str] = ()
    over: Collection[int] = ()
    outcomes: Mapping[int, Outcome] = {}
    gone: Stretches = Stretches()


class Settled(Struct, frozen=True):
    """Rows that got their status, and how many of them which."""

    statuses: Mapping[Status, int] = {}
    records: Stretches = Stretches()


class Done(Struct, frozen=True, kw_only=True):
    """What became of planned documents: rows are over unless they come `again` or are `gone`.

    `has` is the plan that the target is known to have, where that is not the last one that it was
    given. `asked` says that the target can be asked what it has.
    """

    planned: Sequence[OnTheWay]
    asked: bool = False
    outcomes: Mapping[int, Outcome] = {}
    again: Sequence[Parked] = ()
    gone: Stretches = Stretches()
    told: Mapping[int, Count] | None = None
    has: str | None = None
