"""Lifetimes: a type 4 row closes one, the object's next row opens another. Read-backs need an open one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import Change, Event, Kind, Op, Row, RowId
from eventlog.core.rules.meaning import MEANING
from eventlog.core.rules.screen import Screened, Subject

BACK = frozenset(kind for kind, meaning in MEANING.items() if meaning.back)
ROW_BACK = frozenset(kind for kind in BACK if MEANING[kind].row)
INSERTING = frozenset(map(int, (Kind.INSERT_FIELD, Kind.INSERT_ROW_BACK, Kind.INSERT_FIELD_BACK)))
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


def inserts(subject: Subject, event: Event) -> bool:
    """Whether the event says that the object is new; a value that came into a child table does not."""
    multiple = subject.table.multiple if subject.table is not None else ()
    return event.kind in INSERTING and event.column not in multiple


def begins(subject: Subject, lifetime: Lifetime, row: Row | None) -> bool:
    """Whether the object is new in this lifetime, and read back; where values were logged, an add tells it."""
    events = lifetime.events
    if lifetime.closing is not None or row is None or all(event.kind not in BACK for event in events):
        return False
    return any(inserts(subject, event) for event in events)


def as_created(changes: list[Change]) -> list[Change]:
    """The changes of a new object: where its values were read back, the first of them is what creates it."""
    if not changes or changes[0].op is not Op.MODIFY:
        return changes
    return [replace(changes[0], created=True), *changes[1:]]


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
