"""The first step: put the events in order, set aside what takes no part, and gather the rest by object.

Everything that depends only on a table name, a raw key or a column name is looked up once and remembered, because a
log of a million field rows names the same few columns and every object several times.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from eventlog.errors import DataError
from eventlog.model import Event, Kind, Outcome, Reason, RowId
from eventlog.rules.identity import Identities, Naming
from eventlog.rules.meaning import MEANING, STATUS, Meaning, Options
from eventlog.schema import Catalog, Table

Place = tuple[int, Event, str | None, int]
"""Where an event stands in the batch's order, the event, the attribute it means, and what kind it counts as."""
_Meetings = dict[tuple[str | None, str | None], "tuple[Subject, Naming] | str"]


class Subject:
    """One object of the batch: its events in order, each with its index, attribute and kind."""

    __slots__ = ("kinds", "places", "row", "silent", "table")

    def __init__(self, row: RowId, table: Table | None) -> None:
        self.row = row
        self.table = table
        self.places: list[Place] = []
        self.kinds: set[int] = set()
        self.silent: set[int] = set()  # indexes of loopback deletes: they close a lifetime and say nothing


class Screened:
    """The events of a batch in their order, their objects, and the outcomes that are certain already."""

    __slots__ = ("events", "outcomes", "subjects")

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.outcomes: list[Outcome | None] = [None] * len(events)
        self.subjects: dict[RowId, Subject] = {}

    def aside(self, index: int, reason: Reason, note: str | None) -> None:
        """Ends the event there for a reason."""
        self.outcomes[index] = Outcome(
            position=self.events[index].position, status=STATUS[reason], reason=reason, note=note
        )


def screen(events: Sequence[Event], catalog: Catalog | None, options: Options) -> Screened:
    """Orders the events, sets aside those that take no part, and gathers the others by object."""
    screened = Screened(in_order(events, options))
    identities = Identities(catalog)
    meetings: tuple[_Meetings, _Meetings] = ({}, {})
    user = None if options.allow_loopback or not options.user else _folded(options.user)
    for index, event in enumerate(screened.events):
        meaning = MEANING.get(event.kind) if event.kind is not None else None
        if meaning is None or event.time is None:
            screened.aside(index, Reason.INVALID, _misfit(event))
            continue
        met = meetings[meaning.row]
        place = event.table, event.key
        meeting = met.get(place)
        if meeting is None:
            meeting = met[place] = _meet(screened, identities, event, row_event=meaning.row)
        if isinstance(meeting, str):
            screened.aside(index, Reason.INVALID, meeting)
        elif user is not None and event.perpetrator is not None and _folded(event.perpetrator) == user:
            _set_loopback_aside(screened, meeting[0], index, event)
        elif not (options.future and _not_due(screened, index, event, options)):
            _gather(screened, meeting, index, event, meaning)
    return screened


def in_order(events: Sequence[Event], options: Options) -> list[Event]:
    """The events in the order in which the rules see them: by position, or by time and then position."""
    ordered = sorted(events, key=_position)
    if options.future:
        ordered.sort(key=_due)
    return ordered


def moment(time: dt.datetime | str) -> dt.datetime | None:
    """A point in time to compare with, in UTC without a zone; None when the text is not one."""
    if isinstance(time, str):
        try:
            time = dt.datetime.fromisoformat(time.strip())
        except ValueError:
            return None
    return time if time.tzinfo is None else time.astimezone(dt.UTC).replace(tzinfo=None)


def _misfit(event: Event) -> str:
    """What is wrong with a row that names no event: words for the person who wrote the trigger."""
    if event.kind is None:
        return "event_type is NULL; it must be a number from 1 to 8."
    if event.kind not in MEANING:
        return f"event_type is {event.kind}; only the numbers from 1 to 8 have a meaning."
    return "event_time is NULL; it must say when the event happened."


def _meet(screened: Screened, identities: Identities, event: Event, *, row_event: bool) -> tuple[Subject, Naming] | str:
    """The object that a table_name and table_key mean, met for the first time; or what is wrong with them."""
    try:
        naming, row = identities.identify(event.table, event.key, row_event=row_event)
    except DataError as error:
        return str(error)
    subject = screened.subjects.setdefault(identities.identity(row), Subject(row, naming.table))
    return subject, naming


def _gather(
    screened: Screened, meeting: tuple[Subject, Naming], index: int, event: Event, meaning: Meaning
) -> None:
    subject, naming = meeting
    kind = event.kind or 0
    attribute = None
    if not meaning.row:
        attribute = naming.known.get(event.column)
        if attribute is None:
            try:
                attribute = naming.attribute(event.column)
            except DataError as error:
                screened.aside(index, Reason.INVALID, str(error))
                return
    elif naming.child is not None:
        kind = Kind.UPDATE_ROW_BACK  # whatever became of a child's row, its parent changed
    subject.kinds.add(kind)
    subject.places.append((index, event, attribute, kind))


def _set_loopback_aside(screened: Screened, subject: Subject, index: int, event: Event) -> None:
    if event.kind == Kind.DELETE_ROW:
        subject.silent.add(index)
        subject.kinds.add(Kind.DELETE_ROW)
        subject.places.append((index, event, None, Kind.DELETE_ROW))
    screened.aside(index, Reason.LOOPBACK, f"made by {event.perpetrator}, the publisher's own user.")


def _not_due(screened: Screened, index: int, event: Event, options: Options) -> bool:
    assert event.time is not None
    due = moment(event.time)
    if due is None:
        screened.aside(index, Reason.INVALID, f"event_time {event.time!r} is not a date and time.")
        return True
    if options.now is None or due <= (moment(options.now) or due):
        return False
    screened.aside(index, Reason.NOT_DUE, None)
    return True


def _position(event: Event) -> tuple[int, ...]:
    return event.position


def _due(event: Event) -> dt.datetime:
    return (moment(event.time) if event.time is not None else None) or dt.datetime.min


def _folded(user: str) -> str:
    return user.strip(" ").casefold()
