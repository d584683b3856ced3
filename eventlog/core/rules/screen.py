"""The first step: put the events in order, set aside what takes no part, and gather the rest by object.

Everything that depends only on a table name, a raw key or a column name is looked up once and remembered, because a
log of a million field rows names the same few columns and every object several times. Gathered events are spelled
as the catalog spells them, so that the later steps look at nothing but kind, column and values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.core.model import Event, Kind, Outcome, Position, Reason, RowId, refreshed_for
from eventlog.core.rules.identity import Identities, Naming
from eventlog.core.rules.meaning import MEANING, STATUS, Options
from eventlog.core.rules.times import moment
from eventlog.core.schema import Catalog, Table


class Subject(Struct, gc=False):
    """One object of the batch and its events in order; `plain` while they are only types 1, 2 and 3."""

    row: RowId
    table: Table | None
    events: list[Event]
    plain: bool = True


SubjectId = RowId | tuple[RowId, str]
"""An object, or an object and the one output that its events are for."""


class Meeting(Struct, frozen=True, gc=False):
    """What a table_name and a table_key, as written, turned out to mean."""

    subject: Subject
    naming: Naming
    names: dict[str | None, str]


class Screened:
    """The events of a batch in their order, their objects, and the outcomes that are certain already.

    What is for one output alone is gathered by itself: nothing that all outputs are told of may be superseded by it.
    """

    __slots__ = ("events", "outcomes", "silent", "subjects")

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.subjects: dict[SubjectId, Subject] = {}
        self.outcomes: dict[Position, Outcome] = {}
        self.silent: set[Position] = set()  # loopback deletes: they close a lifetime and say nothing

    def gather(self, subject: Subject, event: Event) -> None:
        only = refreshed_for(event.perpetrator)
        if only and event.kind != Kind.DELETE_ROW:
            subject = self.subjects.setdefault((subject.row, only), Subject(subject.row, subject.table, []))
        subject.events.append(event)
        subject.plain = False

    def aside(self, event: Event, reason: Reason, note: str | None) -> None:
        self.outcomes[event.position] = Outcome(
            position=event.position, status=STATUS[reason], reason=reason, note=note
        )


def screen(events: Sequence[Event], catalog: Catalog | None, options: Options, *, by_object: bool = False) -> Screened:
    """Orders the events, sets aside those that take no part, and gathers the others by object.

    Events that come `by_object`, each object's in their order, are in order enough: objects do not touch each other.
    """
    screened = Screened(events if by_object and not options.future else in_order(events, options))
    identities = Identities(catalog)
    meetings: dict[tuple[str | None, str | None, bool], Meeting | str] = {}
    table, key, row = None, None, None
    meeting: Meeting | str = ""
    ours = None if options.allow_loopback or not options.user else Ours(options.user)
    meaning_of = MEANING.get
    for event in screened.events:
        meaning = meaning_of(event.kind)
        if meaning is None or event.time is None or event.fault is not None:
            screened.aside(event, Reason.INVALID, _misfit(event))
            continue
        if event.key != key or event.table != table or meaning.row is not row:  # neighbours are often alike
            place = table, key, row = event.table, event.key, meaning.row
            meeting = meetings.get(place) or _meet(screened, identities, event, row_event=row)
            meetings[place] = meeting
        if isinstance(meeting, str):
            screened.aside(event, Reason.INVALID, meeting)
        elif options.future and _waits(screened, event, options):
            continue  # untouched, a loopback too: a delete that is not due closes nothing yet
        elif ours is not None and ours[event.perpetrator]:
            _set_loopback_aside(screened, meeting, event)
        elif meaning.row:
            _gather_row_event(screened, meeting, event)
        else:
            attribute = meeting.names.get(event.column) or _attribute(screened, meeting, event)
            if attribute is not None:
                meeting.subject.events.append(event if attribute == event.column else replace(event, column=attribute))
                if meaning.back:
                    meeting.subject.plain = False
    return screened


def in_order(events: Sequence[Event], options: Options) -> list[Event]:
    """The events in the order in which the rules see them: by position, or by time and then position."""
    ordered = sorted(events, key=attrgetter("position"))
    if options.future:
        ordered.sort(key=due)
    return ordered


def due(event: Event) -> dt.datetime:
    """When an event takes effect; events that do not say so come first, to be set aside."""
    return (moment(event.time) if event.time is not None else None) or dt.datetime.min


def _misfit(event: Event) -> str:
    """What is wrong with a row that names no event: words for the person who wrote the trigger."""
    if event.fault is not None:
        return event.fault
    if event.kind is None:
        return "event_type is NULL; it must be a number from 1 to 8."
    if event.kind not in MEANING:
        return f"event_type is {event.kind}; only the numbers from 1 to 8 have a meaning."
    return "event_time is NULL; it must say when the event happened."


def _meet(screened: Screened, identities: Identities, event: Event, *, row_event: bool) -> Meeting | str:
    """The object that a table_name and table_key mean, met for the first time; or what is wrong with them."""
    try:
        naming, row, identity = identities.identify(event.table, event.key, row_event=row_event)
    except DataError as error:
        return str(error)
    subject = screened.subjects.get(identity)
    if subject is None:
        subject = screened.subjects[identity] = Subject(row, naming.table, [])
    return Meeting(subject, naming, naming.known)


def _attribute(screened: Screened, meeting: Meeting, event: Event) -> str | None:
    try:
        return meeting.naming.attribute(event.column)
    except DataError as error:
        screened.aside(event, Reason.INVALID, str(error))
        return None


def _gather_row_event(screened: Screened, meeting: Meeting, event: Event) -> None:
    if meeting.naming.child is not None:  # whatever became of a child's row, its parent changed
        event = replace(event, kind=Kind.UPDATE_ROW_BACK)
    screened.gather(meeting.subject, event)


def _set_loopback_aside(screened: Screened, meeting: Meeting, event: Event) -> None:
    if event.kind == Kind.DELETE_ROW and meeting.naming.child is None:
        screened.silent.add(event.position)
        _gather_row_event(screened, meeting, event)
    screened.aside(event, Reason.LOOPBACK, f"made by {event.perpetrator}, the publisher's own user.")


def _waits(screened: Screened, event: Event, options: Options) -> bool:
    """Says whether the event is set aside because of its time."""
    time = None if event.time is None else moment(event.time)
    if time is None:
        screened.aside(event, Reason.INVALID, f"event_time {event.time!r} is not a date and time.")
        return True
    now = None if options.now is None else moment(options.now)
    if now is None or time <= now:
        return False
    screened.aside(event, Reason.NOT_DUE, None)
    return True


class Ours(dict[str | None, bool]):
    """Says of a perpetrator, however it is written, whether it is the publisher's own user."""

    def __init__(self, user: str) -> None:
        super().__init__({None: False})
        self._user = _folded(user)

    def __missing__(self, perpetrator: str) -> bool:
        self[perpetrator] = ours = _folded(perpetrator) == self._user
        return ours


def _folded(user: str) -> str:
    return user.strip(" ").casefold()
