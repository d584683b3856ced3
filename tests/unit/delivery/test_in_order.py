"""No event ends before one of its object that waits, where an output lags."""

from __future__ import annotations

from eventlog.core.model import Event, Kind, Outcome, Reason, Status
from eventlog.core.rules.screen import Identities
from eventlog.delivery.answers import in_order


def event(number: int, key: str) -> Event:
    return Event(position=(number,), kind=Kind.DELETE_ROW, table="usr", key=key)


def test_what_comes_behind_what_waits_waits_with_it() -> None:
    events = [event(1, "idu=1"), event(2, "idu=1"), event(3, "idu=2"), event(4, "IDU=1"), event(5, "idu=3")]
    events.append(event(6, "idu=3"))
    outcomes = [
        Outcome(position=(1,)),
        Outcome(position=(2,), status=Status.NEW, reason=Reason.RETRY),
        Outcome(position=(3,)),
        Outcome(position=(4,), status=Status.WARNING, reason=Reason.VANISHED),
        Outcome(position=(5,), status=Status.NEW, reason=Reason.GOES_ON),
        Outcome(position=(6,)),
    ]
    found = in_order(outcomes, events, Identities(None))
    assert [(one.status, one.reason) for one in found] == [
        *[(one.status, one.reason) for one in outcomes[:3]],
        (Status.NEW, Reason.HELD),
        (Status.NEW, Reason.GOES_ON),
        (Status.NEW, Reason.GOES_ON),
    ]


def test_where_nothing_waits_everything_stays() -> None:
    outcomes = [Outcome(position=(1,)), Outcome(position=(2,), status=Status.ERROR, reason=Reason.REFUSED)]
    assert in_order(outcomes, [event(1, "idu=1"), event(2, "idu=1")], Identities(None)) is outcomes
