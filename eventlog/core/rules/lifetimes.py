"""Lifetimes: a type 4 row closes one, the object's next row opens another. Read-backs need an open
one.

And the changes that one makes: neighbouring events of one object and one operation make one, until
a column repeats.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import astuple, replace

from eventlog.core.key_forms import forms_of
from eventlog.core.model import (
    ABSENT,
    EVERY_ROW,
    REFRESH,
    Change,
    Edit,
    Edits,
    Event,
    ImageEdits,
    Kind,
    Op,
    Position,
    Reason,
    Row,
    RowId,
    RowImage,
    find_refreshed_output,
)
from eventlog.core.rules.meaning import MEANING
from eventlog.core.rules.screen import Screened, Subject
from eventlog.core.schema import Table
from eventlog.core.tablekey import format_parts, parse

BACK = frozenset(kind for kind, meaning in MEANING.items() if meaning.back)
ROW_BACK = frozenset(kind for kind in BACK if MEANING[kind].row)
INSERTING = frozenset(map(int, (Kind.INSERT_FIELD, Kind.INSERT_ROW_BACK, Kind.INSERT_FIELD_BACK)))
DELETE_ROW = int(Kind.DELETE_ROW)


SAME_IMAGES: Final = "no value of the row has changed."


class Lifetime(Struct, frozen=True, gc=False):
    """The events of one lifetime, and the delete that closed it."""

    events: list[Event]
    closing: Event | None = None


def lifetimes(subject: Subject) -> Iterator[Lifetime]:
    """Yield the object's lifetimes, oldest first; only the last can be open."""
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
    """Return True if the event announces a new object; a new value in a child table does not."""
    return event.kind in INSERTING and event.column not in subject.multiple


def begins(subject: Subject, lifetime: Lifetime, row: Row | None) -> bool:
    """Return True if the object is new in this lifetime, and read back: a logged value makes an add."""
    events = lifetime.events
    # A logged value makes an add, which creates the object by itself.
    if lifetime.closing is not None or row is None or all(event.kind not in BACK for event in events):
        return False
    return any(inserts(subject, event) for event in events)


def as_created(changes: list[Change]) -> list[Change]:
    """Mark the first change of a new object as creating it, if its values were read back."""
    if not changes or changes[0].op is not Op.MODIFY:
        return changes
    return [replace(changes[0], created=True), *changes[1:]]


def list_wanted(screened: Screened) -> Mapping[RowId, frozenset[str]]:
    """Map objects to the attributes to read back; an empty set means a table nobody described."""
    columns_of: dict[RowId, frozenset[str]] = {}
    for subject in screened.subjects.values():
        if not subject.events:
            continue  # all of them are for one output alone
        if subject.loose:
            *_, last = lifetimes(subject)
            if last.closing is None and (wanted := _find_wanted(subject, last)):
                columns_of[subject.row] = columns_of.get(subject.row, wanted) | wanted
            continue
        # Rows of a table without a key come whole, and could not be found by anything.
        if subject.plain or (subject.table is not None and subject.table.whole_row):
            continue
        if len(subject.events) == 1 and subject.events[0].kind in ROW_BACK:  # by far the most
            attributes = subject.table.attribute_names if subject.table else frozenset()
            columns_of[subject.row] = columns_of.get(subject.row, attributes) | attributes
            continue
        # What was deleted cannot be read back, so only the last lifetime asks for anything.
        *_, last = lifetimes(subject)
        asked = find_read_back(subject, last)
        if last.closing is None and asked is not None:
            columns_of[subject.row] = columns_of.get(subject.row, asked) | asked
    return columns_of


def _find_wanted(subject: Subject, lifetime: Lifetime) -> frozenset[str]:
    """List what is read of an object whose key has several spellings: also how its row is spelled, which images
    tell by themselves.
    """
    asked = find_read_back(subject, lifetime)
    if asked is None and all(event.image is not None for event in lifetime.events):
        return frozenset()
    return (asked or frozenset()) | subject.loose


def call_lifetime(screened: Screened, subject: Subject, lifetime: Lifetime, row: Row | None) -> Subject:
    """Name the object of a lifetime as its row in the table is spelled, or else as the log has it.

    Only a table of whose key several texts are one value has objects of several spellings. A delete is believed:
    it says what the row was called when it went.
    """
    event = lifetime.closing or lifetime.events[0]
    called = screened.spelled.get((event.table, event.key), subject.row)
    if lifetime.closing is None:
        called = spell_as_row(called, subject.table, row)
    return Subject(called, subject.table, [], loose=subject.loose)


def spell_as_row(called: RowId, table: Table | None, row: Row | None) -> RowId:
    """Name an object as the row spells its key that was read back; as it is called already where none was found."""
    if table is None or row is None:
        return called
    forms = forms_of(table)
    parts = []
    for name, text in parse(called.key).parts:
        value = row.get(name) if name in table.loose_key else None
        if isinstance(value, str):
            text = forms[name].spell(value) if name in forms else value  # noqa: PLW2901  # as it stands there
        parts.append((name, text))
    return replace(called, key=format_parts(parts))


def find_read_back(subject: Subject, lifetime: Lifetime) -> frozenset[str] | None:
    """List the attributes read back for the events of an open lifetime; None when there is nothing to
    read.
    """
    kinds = {event.kind for event in lifetime.events}
    if not ROW_BACK.isdisjoint(kinds):
        if subject.table:
            return subject.table.attribute_names
        return frozenset()
    if BACK.isdisjoint(kinds):
        return None
    read_back = [event.column for event in lifetime.events if event.kind in BACK]
    return frozenset(column for column in read_back if column is not None)


# Plain numbers, because looking a member up in its enum costs as much as the rest of a comparison,
# and these are made for every event.
INSERT_FIELD = int(Kind.INSERT_FIELD)
UPDATE_FIELD = int(Kind.UPDATE_FIELD)


class Unfinished(Struct, gc=False):
    """The change that the last events of a lifetime have begun, where its events come in pieces."""

    op: Op = Op.MODIFY
    edits: list[Edit] = []
    positions: list[Position] = []
    seen: set[str | None] = set()
    """The columns that the change has, of those that cannot come twice."""
    last: Event | None = None
    whole: bool = False
    """Whether it has the image of a row."""


def join(
    screened: Screened,
    subject: Subject,
    events: list[Event],
    row: Row | None,
    unfinished: Unfinished | None = None,
    *,
    over: bool = True,
) -> list[Change]:
    """Make the changes of one lifetime's remaining events, each event in one of them.

    Where they come in pieces, `unfinished` has the open change of former ones, and the last change
    stays in it until the lifetime is `over`.
    """
    if events and events[0].kind in ROW_BACK:  # it has superseded all others
        return whole_row(subject, events[0], row or {})
    if len(events) == 1 and events[0].image is not None and unfinished is None:
        return _only_image(screened, subject, events[0], events[0].image)
    changes: list[Change] = []
    op, last, whole = Op.MODIFY, None, False
    edits: list[Edit] = []
    positions: list[Position] = []
    seen: set[str | None] = set()
    if unfinished is not None:
        op, edits, positions, seen, last, whole = astuple(unfinished)
    multiple = subject.multiple
    for event in saying_something(screened, events):
        this, column, image = MEANING[event.kind].op, event.column, event.image
        is_other = this is not op or column in seen or image is not None
        # An image, another operation, a column that comes again, another transaction or another
        # person: no change has both.
        if is_other or (last is not None and (event.transaction, event.who) != (last.transaction, last.who)):
            if last is not None:
                changes.append(_change(subject, op, tuple(edits), tuple(positions), last, whole=whole))
                edits, positions = [], []
            op, whole = this, image is not None
            seen = set()
        positions.append(event.position)
        if image is not None:
            edits += image_edits(event, image)
            seen.update(image.names)
        else:
            edits.append(edit(event, row))
            # A child's column may repeat, for it holds several values.
            if column not in multiple:
                seen.add(column)
        last = event
    if over and last is not None:
        changes.append(_change(subject, op, tuple(edits), tuple(positions), last, whole=whole))
    if unfinished is not None:
        unfinished.op, unfinished.edits, unfinished.positions = op, edits, positions
        unfinished.seen, unfinished.last, unfinished.whole = seen, last, whole
    return changes


def _only_image(screened: Screened, subject: Subject, event: Event, image: RowImage) -> list[Change]:
    """Make the change of an image alone in its object's life, as most are."""
    if event.kind == UPDATE_FIELD and event.new == event.old:
        screened.aside(event, Reason.NOTHING, SAME_IMAGES)
        return []
    op = Op.ADD if event.kind == INSERT_FIELD else Op.MODIFY
    return [_change(subject, op, image_edits(event, image), (event.position,), event, whole=True)]


def saying_something(screened: Screened, events: list[Event]) -> list[Event]:
    """Set aside updates from NULL to NULL and equal images; return the others."""
    nothing = [event for event in events if event.new == event.old and event.kind == UPDATE_FIELD]
    nothing = [event for event in nothing if event.new is None or event.image is not None]
    if not nothing:
        return events
    for event in nothing:
        is_image = event.image is not None
        note = SAME_IMAGES if is_image else "old_value and new_value are both NULL."
        screened.aside(event, Reason.NOTHING, note)
    set_aside = {event.position for event in nothing}
    return [event for event in events if event.position not in set_aside]


def edit(event: Event, row: Row | None) -> Edit:
    """Make the edit of one field event."""
    kind, column = event.kind, event.column or ""
    if kind == UPDATE_FIELD:
        return Edit(column, event.old, event.new)
    if kind == INSERT_FIELD:
        return Edit(column, ABSENT, event.new)
    if kind in BACK:
        # what it was before, nobody noted
        return Edit(column=column, new=(row or {})[column], reset=True)
    return Edit(column=column, old=event.old, new=event.new, reset=True)


def image_edits(event: Event, image: RowImage) -> ImageEdits:
    """Make the edits of an image: one for each column, also where the value stayed."""
    if event.kind == INSERT_FIELD:
        return ImageEdits(image.names, after=image.after)
    return ImageEdits(image.names, image.before, image.after, reset=image.before is None)


def whole_row(subject: Subject, event: Event, values: Row) -> list[Change]:
    """Make a modify of every attribute's present value; an add for a table without further
    attributes.
    """
    only = find_refreshed_output(event.perpetrator)
    if subject.loose:
        # How the key is spelled was read with it, and is no value of its own.
        values = {name: value for name, value in values.items() if name not in subject.loose}
    edits = tuple([Edit(column=name, new=value, reset=True) for name, value in values.items()])
    is_refresh = event.perpetrator is not None and event.perpetrator.rstrip(" ") == REFRESH
    change = Change(
        row=subject.row,
        op=Op.MODIFY if values else Op.ADD,
        edits=edits,
        positions=(event.position,),
        time=event.time,
        transaction=event.transaction,
        who=event.who,
        refresh=bool(only) or is_refresh,
        only=only,
    )
    return [change]


def ending(screened: Screened, subject: Subject, lifetime: Lifetime) -> list[Change]:
    """Delete the object, where its lifetime was closed and not by the publisher's own user."""
    event = lifetime.closing
    if event is None or event.position in screened.silent:
        return []
    # Only a row without an image may speak of a whole table: without a key an image stands there too.
    is_truncation = event.key == EVERY_ROW and event.image is None
    return [
        Change(
            row=subject.row,
            op=Op.TRUNCATE if is_truncation else Op.DELETE,
            edits=row_that_went(event),
            positions=(event.position,),
            time=event.time,
            whole=is_truncation or event.image is not None,
            transaction=event.transaction,
            who=event.who,
            stream=event.stream,
        )
    ]


def row_that_went(event: Event) -> Edits:
    """Read the deleted row from a delete, if it brings one."""
    if event.image is None or event.image.before is None:
        return ()
    return ImageEdits(event.image.names, event.image.before)


def _change(
    subject: Subject, op: Op, edits: Edits, positions: tuple[Position, ...], last: Event, *, whole: bool
) -> Change:
    return Change(
        row=subject.row,
        op=op,
        edits=edits,
        positions=positions,
        time=last.time,
        whole=whole,
        transaction=last.transaction,
        who=last.who,
        stream=last.stream,
    )
