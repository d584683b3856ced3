"""Lifetimes: a type 4 row closes one, the object's next row opens another. Read-backs need an open one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from eventlog.core.model import Event, Kind, RowId
from eventlog.core.rules.meaning import MEANING
from eventlog.core.rules.screen import Screened, Subject

BACK = frozenset(kind for kind, meaning in MEANING.items() if meaning.back)
ROW_BACK = frozenset(kind for kind in BACK if MEANING[kind].row)
DELETE_ROW = int(Kind.DELETE_ROW)


class Lifetime(Struct, frozen=True, gc=False):
    """The events of one lifetime, and the delete that closed it."""

    events: list[Event]
    closing: Event | None = None


def lifetimes(subject: Subject) -> Iterator[Lifetime]:
    """The object's lifetimes, oldest first; only the last can be open."""
    events: list[Event] = []
    for event in subject.events:
        if event.kind == DELETE_ROW:
            yield Lifetime(events, event)
            events = []
        else:
            events.append(event)
    if events:
        yield Lifetime(events)


def wanted(screened: Screened) -> Mapping[RowId, frozenset[str]]:
    """The objects and attributes that must be read back; an empty set stands for a table nobody described."""
    found: dict[RowId, frozenset[str]] = {}
    for subject in screened.subjects.values():
        if subject.plain or not subject.events:
            continue
        if len(subject.events) == 1 and subject.events[0].kind in ROW_BACK:  # by far the most
            found[subject.row] = subject.table.attribute_names if subject.table else frozenset()
            continue
        *_, last = lifetimes(subject)
        attributes = asked_for(subject, last)
        if last.closing is None and attributes is not None:
            found[subject.row] = attributes
    return found


def asked_for(subject: Subject, lifetime: Lifetime) -> frozenset[str] | None:
    """The attributes that the events of an open lifetime read back; None when they read nothing."""
    kinds = {event.kind for event in lifetime.events}
    if not ROW_BACK.isdisjoint(kinds):
        return subject.table.attribute_names if subject.table else frozenset()
    if BACK.isdisjoint(kinds):
        return None
    return frozenset(event.column for event in lifetime.events if event.kind in BACK and event.column is not None)
