"""What an output may be given next: rows whose time has come, and rows that it has ahead of it.

Law: waiting passes on. What waits blocks what comes after it of the same object, and is parked with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.core.model import Event, Reason
from eventlog.core.rules.screen import Identities
from eventlog.publisher.memory import Sealed
from eventlog.publisher.tables import NEVER, OnTheWay, Parked
from eventlog.publisher.unsealed import object_of
from eventlog.sources.marks import Stretches

if TYPE_CHECKING:
    from eventlog.publisher.reader import JournalReader

BEHIND: Final = "behind"
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

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes by it."""
        return not (self.batches or self.unparked or self.gone) and self.sealed is None

    @property
    def attempts(self) -> dict[int, int]:
        """How often rows were offered before, of those that were."""
        return {one.record: one.attempts for one in self.unparked if one.attempts}


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
    journal: JournalReader,
    output: str,
    *,
    now: int,
    limit: int,
    identities: Identities,
    on_the_way: Sequence[OnTheWay] = (),
    unreadable: Unreadable | None = None,
) -> Take:
    """The next rows of an output; `on_the_way` are documents that may be at a target which cannot be asked."""
    stamp = journal.stamp()
    due, batches, sealed = _at_hand(journal, output, now, limit)
    if not due and not batches and sealed is None:
        return Take(stamp=stamp)
    ahead = [*batches.values(), *([sealed] if sealed is not None else [])]
    waited = {one.record: one for one in due}
    by_number: dict[int, list[Event]] = {}
    for event in journal.events(ahead, waited):
        by_number.setdefault(event.position[0], []).append(event)
    objects = {number: object_of(identities, alike[0]) for number, alike in by_number.items()}
    new_objects = {objects[number] for number in by_number if number not in waited}
    waiting = journal.waiting_objects(output, new_objects) - {one.object for one in due}
    unsent = {name for one in on_the_way for name in one.objects}
    parking = Parking(output, blocked=waiting | unsent, led=waiting)
    held = journal.held(by_number)
    going: list[Event] = []
    unparked: list[Parked] = []
    for number, events in sorted(by_number.items()):
        name, former = objects[number], waited.get(number)
        if former is not None and former.due is not None and former.due > now:
            parking.stays(name)  # it has a time of its own, though another row of its object may go
            continue
        wait = _wait(parking, name, events, held=number in held, unreadable=unreadable or {}, now=now)
        if wait is not None and former is not None and parking.keeps(former, wait[0]):
            parking.stays(name)
            continue
        if wait is None:
            going.extend(events)
        else:
            parking.add(number, name, *wait, 0 if former is None else former.attempts)
        if former is not None:
            unparked.append(former)
    records = Stretches(part for batch in ahead for part in batch.records.parts)
    return Take(
        stamp=stamp,
        batches=tuple(batches),
        sealed=sealed,
        unparked=unparked,
        events=going,
        parked=parking.rows,
        gone=(records | Stretches.of(waited)) - Stretches.of(by_number),
        records=records,
        objects=objects,
    )


def _at_hand(
    journal: JournalReader, output: str, now: int, limit: int
) -> tuple[list[Parked], dict[int, Sealed], Sealed | None]:
    """Rows that waited until now, batches that are ahead of the output, and new rows where it is the foremost."""
    due = journal.due(output, now, limit)
    left = limit - len(due)
    if left <= 0:
        return due, {}, None
    batches = journal.next_batches(output, left, journal.settings.share)
    return due, batches, None if batches else journal.new_rows(left)


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
