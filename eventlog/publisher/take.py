"""What an output may be given next: rows whose time has come, and rows that it has ahead of it.

Law: waiting passes on. What waits blocks what comes after it of the same object, and is parked with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import Event, Reason
from eventlog.core.rules.screen import Identities, due
from eventlog.publisher.memory import Sealed
from eventlog.publisher.tables import NEVER, OnTheWay, Parked
from eventlog.publisher.unsealed import object_of
from eventlog.sources.marks import Stretches

if TYPE_CHECKING:
    from eventlog.publisher.view import View

BEHIND: Final = Reason.BEHIND.value
"""Why a row waits that comes after another one of its object."""

Unreadable = Mapping[str, tuple[int, str]]
"""Tables that may not be read: from when on they are tried again, and what the database said."""


class Take(Struct, frozen=True, kw_only=True):
    """Rows that may go to an output, and what becomes of the others that it has passed then.

    `sealed` are new rows, and `records` all rows of it and the batches; `gone` are rows that wait no longer.
    """

    stamp: str
    batches: tuple[int, ...] = ()
    sealed: Sealed | None = None
    unparked: Sequence[Parked] = ()
    events: Sequence[Event] = ()
    parked: Sequence[Parked] = ()
    gone: Stretches = Stretches()
    records: Stretches = Stretches()
    objects: Mapping[int, str] = {}
    set_aside: Sequence[tuple[int, int]] = ()
    """The transactions of the rows that wait by this take, and when these may go."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes by it."""
        return not (self.batches or self.unparked or self.gone) and self.sealed is None

    @property
    def attempts(self) -> dict[int, int]:
        """How often rows were offered before, of those that were."""
        return {one.record: one.attempts for one in self.unparked if one.attempts}


class ObjectNames(Mapping[int, str]):
    """The objects that rows speak of, by the rows' numbers; each is made when somebody asks, which few do."""

    def __init__(self, identities: Identities, events: Sequence[Event]) -> None:
        self._identities = identities
        self._events = events

    @cached_property
    def _by_number(self) -> Mapping[int, Event]:
        return {event.position[0]: event for event in self._events}

    def __getitem__(self, number: int) -> str:
        return object_of(self._identities, self._by_number[number])

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_number)

    def __len__(self) -> int:
        return len(self._by_number)


class Parking:
    """Collects the rows of a take that wait. The first of each object says from when on the object may go."""

    def __init__(self, output: str, blocked: Iterable[str] = (), led: Iterable[str] = ()) -> None:
        self.output = output
        self.rows: list[Parked] = []
        self._blocked = set(blocked)
        self._led = set(led)

    def blocks(self, name: str) -> bool:
        """Whether a row of this object has to wait."""
        return name in self._blocked

    def add(self, record: int, name: str, reason: str, due: int, note: str | None = None, attempts: int = 0) -> None:
        """Has a row wait until then, or behind an earlier one of its object."""
        leads = name not in self._led
        self._blocked.add(name)
        self._led.add(name)
        one = Parked(
            output=self.output,
            record=record,
            object=name,
            reason=reason,
            note=note,
            attempts=attempts,
            due=due if leads else None,
        )
        self.rows.append(one)

    def keeps(self, former: Parked, reason: str) -> bool:
        """Whether a row goes on waiting just as it does: behind another one, or as the one that others wait for."""
        if former.due is None:
            return former.object in self._led
        return reason == BEHIND

    def stays(self, name: str) -> None:
        """A row of this object goes on waiting as it does."""
        self._blocked.add(name)
        self._led.add(name)


def take(
    view: View,
    output: str,
    *,
    now: int,
    limit: int,
    identities: Identities,
    on_the_way: Sequence[OnTheWay] = (),
    unreadable: Unreadable | None = None,
) -> Take:
    """The next rows of an output, and new ones that no batch has where it has nothing ahead of it. `on_the_way` are
    documents that may be at a target which cannot be asked.
    """
    stamp = view.memory.stamp
    again, freed, batches, sealed = _at_hand(view, output, now, limit)
    if not again and not batches and sealed is None:
        return Take(stamp=stamp)
    ahead = [*batches.values(), *([sealed] if sealed is not None else [])]
    records = Stretches(part for batch in ahead for part in batch.records.parts)
    waited = {one.record: one for one in again}
    events = view.events(ahead, waited)
    found = Take(stamp=stamp, batches=tuple(batches), sealed=sealed, events=events, records=records)
    if not (again or on_the_way or unreadable or view.any_waits):  # by far the most common: all of them go
        read_now = all(batch.is_new for batch in ahead)
        there = records if read_now else Stretches.of(event.position[0] for event in events)
        return replace(found, gone=records - there, objects=ObjectNames(identities, events))
    return _divided(view, output, found, waited, freed, now, identities, on_the_way, unreadable or {})


def _divided(
    view: View,
    output: str,
    found: Take,
    waited: Mapping[int, Parked],
    freed: Collection[str],
    now: int,
    identities: Identities,
    on_the_way: Sequence[OnTheWay],
    unreadable: Unreadable,
) -> Take:
    """What was found, where rows wait: which of them go, and which wait or wait on."""
    by_number: dict[int, list[Event]] = {}
    for event in found.events:
        by_number.setdefault(event.position[0], []).append(event)
    objects = {
        number: waited[number].object if number in waited else object_of(identities, alike[0])
        for number, alike in by_number.items()
    }
    new_objects = {objects[number] for number in by_number if number not in waited}
    waiting = view.waiting_objects(output, new_objects).difference(freed)
    unsent = {name for one in on_the_way for name in one.objects}
    parking = Parking(output, blocked=waiting | unsent, led=waiting)
    held = view.held(by_number)
    going: list[Event] = []
    unparked: list[Parked] = []
    order = sorted(by_number)
    if view.settings.handle_future_events:  # what takes effect earlier comes first, whatever its number is
        order.sort(key=lambda number: due(by_number[number][0]))
    for number in order:
        alike, name, former = by_number[number], objects[number], waited.get(number)
        if former is not None and former.due is not None and former.due > now:
            parking.stays(name)  # it has a time of its own, though another row of its object may go
            continue
        wait = _wait(parking, name, alike, held=number in held, unreadable=unreadable, now=now)
        if wait is not None and former is not None and parking.keeps(former, wait[0]):
            parking.stays(name)
            continue
        if wait is None:
            going.extend(alike)
        else:
            parking.add(number, name, *wait, 0 if former is None else former.attempts)
        if former is not None:
            unparked.append(former)
    return replace(
        found,
        unparked=unparked,
        events=going,
        parked=parking.rows,
        set_aside=[
            (event.transaction.mark, one.due or 0)
            for one in parking.rows
            for event in by_number[one.record]
            if event.transaction is not None
        ],
        gone=(found.records | Stretches.of(waited)) - Stretches.of(by_number),
        objects=objects,
    )


def _at_hand(
    view: View, output: str, now: int, limit: int
) -> tuple[list[Parked], Collection[str], dict[int, Sealed], Sealed | None]:
    """Rows that waited until now with the objects that are free by them, batches that are ahead of the output, and new
    rows where it is the foremost.
    """
    again, freed = view.due(output, now, limit)
    # What was left of transactions that go on takes nobody's room: it goes with what comes behind it.
    left = limit - sum(one.reason != Reason.GOES_ON.value for one in again)
    if left <= 0:
        return again, freed, {}, None
    batches = view.next_batches(output, left, view.settings.share)
    return again, freed, batches, None if batches else view.new_rows(left)


def _wait(
    parking: Parking, name: str, events: Sequence[Event], *, held: bool, unreadable: Unreadable, now: int
) -> tuple[str, int, str | None] | None:
    """Why a row waits, until when, and what is said of that; None where it may go."""
    if held:
        return Reason.HELD.value, NEVER, None
    if parking.blocks(name):
        return BEHIND, now, None
    for event in events:
        if event.table is not None and event.table in unreadable:
            until, note = unreadable[event.table]
            return Reason.NO_RIGHT.value, until, note
    return None
