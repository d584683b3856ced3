"""What an output may be given next: rows whose time has come, and rows that it has ahead of it.

Law: waiting passes on. What waits blocks what comes after it of the same object, and is parked with
it. So does a document that may be at a receiver, but for rows before it that are to come again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import EVERY_ROW, Event, Reason
from eventlog.core.rules.screen import Identities, due
from eventlog.publisher.memory import Sealed, Stamp
from eventlog.publisher.new_rows import object_of
from eventlog.publisher.table_faults import TableFault
from eventlog.publisher.tables import EVER, FOR_SOMEBODY, LAST_NUMBER, OnTheWay, Parked
from eventlog.sources.marks import RowRanges
from eventlog.sql.log import id_list

if TYPE_CHECKING:
    from eventlog.publisher.journal_view import View

BEHIND: Final = Reason.BEHIND.value
"""Why a row waits that comes after another one of its object."""

EVERY_ROW_SECONDS: Final = 1.0
"""Seconds between two looks of a row of a whole table whether rows before it wait."""

Untried = Mapping[str, TableFault]
"""Tables that cannot be read, and are not to be tried again yet."""


class Take(Struct, frozen=True, kw_only=True):
    """Rows that may go to an output, and what becomes of the others that it has passed then.

    `sealed` are new rows, `records` all rows of it and the `batches`, of which the output has
    nothing ahead then; `unparked` are rows that waited until now; `gone` wait no longer, because
    somebody has taken them away or given them a status.
    """

    stamp: Stamp
    batches: tuple[int, ...] = ()
    sealed: Sealed | None = None
    unparked: Sequence[Parked] = ()
    events: Sequence[Event] = ()
    parked: Sequence[Parked] = ()
    gone: RowRanges = RowRanges()
    records: RowRanges = RowRanges()
    objects: Mapping[int, str] = {}
    set_aside: Sequence[tuple[int, int | None]] = ()
    """The transactions of the rows that wait by this take, and when these may go; None if held."""
    untried: frozenset[str] = frozenset()
    """The tables of rows that wait by this take because their table cannot be read."""
    others_wait: bool = True
    """Whether rows that are not among these may wait for the output."""
    is_all: bool = False
    """Whether these are all rows that waited when they were read."""

    @property
    def is_empty(self) -> bool:
        """Return True if nothing changes by it."""
        return not (self.batches or self.unparked or self.gone) and self.sealed is None

    @property
    def attempts(self) -> dict[int, int]:
        """Count the earlier attempts of rows."""
        return {waited.record: waited.attempts for waited in self.unparked if waited.attempts}


class ObjectNames(Mapping[int, str]):
    """The objects of rows, by the rows' numbers. Each is made when somebody asks, which few do."""

    def __init__(self, identities: Identities, events: Sequence[Event]) -> None:
        self._identities = identities
        self._events = events

    @cached_property
    def _by_number(self) -> Mapping[int, Event]:
        return _by_number(self._events)

    def __getitem__(self, number: int) -> str:
        return object_of(self._identities, self._by_number[number])

    def __iter__(self) -> Iterator[int]:
        return iter(self._by_number)

    def __len__(self) -> int:
        return len(self._by_number)


class Unanswered(Struct, frozen=True, dict=True):
    """Documents that may be at a receiver which cannot be asked: what is behind them waits.

    `again` is the first row of each object that the receiver wants again: it goes before what was
    behind it. With `stops` nothing goes but such rows, and those before them.
    """

    documents: Sequence[OnTheWay] = ()
    again: Mapping[str, int] = {}
    stops: bool = False

    @cached_property
    def first_rows(self) -> Mapping[str, int]:
        """Map each object of these documents to its first row."""
        first: dict[str, int] = {}
        for document in self.documents:
            for name, record in document.objects.items():
                first[name] = min(record, first.get(name, record))
        return first

    def holds_up(self, name: str, record: int) -> bool:
        """Return True if the row that frees an object waits for one of them, and all behind it."""
        if not self.documents or name == EVERY_ROW:
            return False
        if name in self.again or EVERY_ROW in self.again:
            return record > self.first_rows.get(name, LAST_NUMBER)
        return self.stops or name in self.first_rows

    def blocks(self, record: int, name: str, attempts: int) -> bool:
        """Return True if a row of this object, offered so often, is behind one of them."""
        if not self.documents:
            return False
        if self.stops and not attempts and record > self._last_again(name):
            return True
        if name == EVERY_ROW:
            return not self.again or record > min(self.first_rows.values(), default=record)
        comes_again = name in self.again or EVERY_ROW in self.again
        return name in self.first_rows and (not comes_again or record > self.first_rows[name])

    def _last_again(self, name: str) -> int:
        """Return the last row to be retried among those waiting for this object."""
        asked = self.again if name == EVERY_ROW else {name, EVERY_ROW}
        return max([self.again.get(one, EVER) for one in asked], default=EVER)


NOTHING_SENT: Final = Unanswered()


class Parking(Struct):
    """Collects the rows of a take that wait. The first of each object says when it may go."""

    output: str
    blocked: set[str] = set()
    """Objects of which rows wait, as this take finds."""
    waiting: Collection[str] = ()
    """Those of which rows waited before: what did not wait with these comes behind them."""
    led: set[str] = set()
    """Those of which an earlier row says when they may go."""
    moved: set[str] = set()
    """Those of which a row waits from now on, or for another reason than before."""
    of_every_row: int = LAST_NUMBER
    """The first row that speaks of a whole table and waits; all that are behind it wait with it."""
    rows: list[Parked] = []

    def add(
        self,
        record: int,
        name: str,
        reason: str,
        due: int | None,
        note: str | None = None,
        attempts: int = 0,
    ) -> None:
        """Park a row until `due`, or behind an earlier one of its object."""
        self.moved.add(name)
        if name in self.led:
            due = None
            # Only the first of an object says that it waits for somebody: without a time they look alike.
            if reason in FOR_SOMEBODY:
                reason = BEHIND
        self.stays(record, name)
        row = Parked(
            output=self.output,
            record=record,
            object=name,
            reason=reason,
            note=note,
            attempts=attempts,
            due=due,
        )
        self.rows.append(row)

    def keeps(self, former: Parked, reason: str) -> bool:
        """Return True if a row goes on waiting as it does: behind another one, or as the first of them."""
        if former.due is None:
            # What was left of a transaction is decided by itself: all of an object, or nothing of it.
            is_torn = former.reason == Reason.GOES_ON.value and former.object in self.moved
            return former.object in self.led and not is_torn
        return reason == BEHIND

    def is_behind(self, name: str, former: Parked | None) -> bool:
        """Return True if earlier rows of its object wait; rows that waited are not behind their own
        rest.
        """
        if name in self.blocked:
            return True
        return name in self.waiting and (former is None or former.object != name)

    def stays(self, record: int, name: str) -> None:
        """Have a row of this object go on waiting as it does."""
        if name == EVERY_ROW:
            self.of_every_row = min(self.of_every_row, record)
        self.blocked.add(name)
        self.led.add(name)


def take(
    view: View,
    output: str,
    *,
    now: int,
    limit: int,
    identities: Identities,
    unanswered: Unanswered = NOTHING_SENT,
    untried: Untried | None = None,
) -> Take:
    """Take the next rows of an output; new ones outside any batch where it has nothing ahead of it."""
    stamp = view.memory.stamp
    again, freed = view.due(output, now, limit, unanswered)
    # What was left of transactions that go on takes nobody's room: it goes with what is behind it.
    room = limit
    for waited_row in again:
        room -= waited_row.reason != Reason.GOES_ON.value
    batches: dict[int, Sealed] = {}
    sealed = None
    if room > 0 and not unanswered.stops:
        batches = view.next_batches(output, room)
        # Nothing may overtake rows of an interrupted conversion, and only it knows their objects.
        if not batches and view.memory.reserved_above is None:
            sealed = view.rows.next(view, room)
    if not again and not batches and sealed is None:
        return Take(stamp=stamp)
    ahead = list(batches.values())
    if sealed is not None:
        ahead.append(sealed)
    records = RowRanges.union([batch.records for batch in ahead])
    waited = {row.record: row for row in again}
    events = view.events(ahead, waited)
    taken = Take(stamp=stamp, batches=tuple(batches), sealed=sealed, events=events, records=records)
    memory = view.memory
    others_wait = memory.any_held or (memory.any_parked and view.others_wait(output, again, now))
    is_restored = memory.output(output).restored is not None
    if unanswered.documents or untried or others_wait or is_restored:
        return _divide(view, output, taken, waited, freed, now, identities, unanswered, untried or {})
    # By far the most common: nothing waits but what is among these, and all rows go.
    taken = replace(taken, objects=ObjectNames(identities, events), others_wait=False)
    if not again and not batches:  # new rows are all there
        return replace(taken, is_all=sealed is not None and not sealed.more)
    there = RowRanges.of([event.position[0] for event in events])
    return replace(
        taken,
        events=sorted(events, key=attrgetter("position")),
        unparked=[row for row in again if row.record in there],
        gone=(records | RowRanges.of(waited)) - there,
    )


def _divide(
    view: View,
    output: str,
    taken: Take,
    waited: Mapping[int, Parked],
    freed: Collection[str],
    now: int,
    identities: Identities,
    unanswered: Unanswered,
    untried: Untried,
) -> Take:
    """Divide a take where rows wait: some go, others begin to wait or wait on."""
    by_number = _by_number(taken.events)
    objects, new_names = _name_objects(by_number, waited, identities)
    parking = _parking(view, output, new_names, waited, freed, unanswered, by_number)
    held = view.numbers("held_among", ids=id_list([*by_number])) if view.memory.any_held and by_number else ()
    waiting_tables = set[str]()
    restored = view.memory.output(output).restored
    going: list[Event] = []
    unparked: list[Parked] = []
    gone_on = 0
    for number in _in_order(view, by_number):
        event, name, former = by_number[number], objects[number], waited.get(number)
        if former is not None and former.waits_at(now):
            # It has a time of its own, though another row of its object may go.
            parking.stays(number, former.object)
            continue
        attempts = 0 if former is None else former.attempts
        is_blocked = unanswered.blocks(number, name, attempts)
        is_behind = parking.is_behind(name, former) or (is_blocked and name != EVERY_ROW)
        wait = _wait(event, number in held, is_behind, untried, waiting_tables, now)
        if restored is not None and number <= restored and (wait is None or number not in held):
            wait = Reason.RESTORED.value, None, None
        # Rows behind one that speaks of a whole table wait with it, whatever their objects are.
        if number > parking.of_every_row:
            name = objects[number] = EVERY_ROW
            wait = wait or (BEHIND, now, None)
        may_stay = former is not None and former.object == name
        if wait is None and name == EVERY_ROW:
            # For earlier ones of any object.
            waits = is_blocked or bool(parking.rows) or view.count_parked_below(output, number) > gone_on
            wait = (BEHIND, now + round(EVERY_ROW_SECONDS * 1000), None) if waits else None
            may_stay = False
        # A row that waits on as it did stays as it is, with the time that it has.
        if wait is not None and former is not None and may_stay and parking.keeps(former, wait[0]):
            parking.stays(number, name)
            continue
        if wait is None:
            going.append(event)
            gone_on += former is not None
        else:
            parking.add(number, name, *wait, attempts)
        if former is not None:
            unparked.append(former)
    return replace(
        taken,
        unparked=unparked,
        events=going,
        parked=parking.rows,
        set_aside=_set_aside(parking.rows, by_number),
        untried=frozenset(waiting_tables),
        gone=(taken.records | RowRanges.of(waited)) - RowRanges.of(by_number),
        objects=objects,
    )


def _by_number(events: Iterable[Event]) -> dict[int, Event]:
    return {event.position[0]: event for event in events}


def _parking(
    view: View,
    output: str,
    names: Collection[str],
    waited: Mapping[int, Parked],
    freed: Collection[str],
    unanswered: Unanswered,
    here: Collection[int],
) -> Parking:
    """Collect the waiting rows of these objects: rows behind those wait, too."""
    known = view.waiting_objects(output, names)
    waiting = known.difference(freed)
    # The first that speaks of a whole table is among these, and leads the others of its kind.
    if any(row.object == EVERY_ROW for row in waited.values()):
        waiting.discard(EVERY_ROW)
    # The first row that speaks of a whole table, and waits elsewhere or may be on its way.
    of_every_row = [unanswered.first_rows.get(EVERY_ROW, LAST_NUMBER)]
    if EVERY_ROW in known:
        rows = view.list_parked_of(output, [EVERY_ROW], len(here) + 1)
        of_every_row += [row.record for row in rows if row.record not in here]
    return Parking(
        output,
        waiting=waiting - {EVERY_ROW},
        led=waiting,
        of_every_row=min(of_every_row),
    )


def _name_objects(
    by_number: Mapping[int, Event], waited: Mapping[int, Parked], identities: Identities
) -> tuple[dict[int, str], set[str]]:
    """Map rows to objects; list further objects with perhaps waiting rows."""
    objects = {number: row.object for number, row in waited.items() if number in by_number}
    named: dict[int, str] = {}
    for number, event in by_number.items():
        # Rows that waited behind one of every object go on under their own, as new ones do.
        if objects.get(number, EVERY_ROW) == EVERY_ROW:
            named[number] = object_of(identities, event)
    return objects | named, {*named.values(), EVERY_ROW}


def _in_order(view: View, by_number: Mapping[int, Event]) -> list[int]:
    order = sorted(by_number)
    # What takes effect earlier comes first, whatever its number is.
    if view.settings.handle_future_events:
        order.sort(key=lambda number: due(by_number[number]))
    return order


def _set_aside(parked: Sequence[Parked], by_number: Mapping[int, Event]) -> list[tuple[int, int | None]]:
    """List the transactions of waiting rows, and when these are due."""
    waiting: list[tuple[int, int | None]] = []
    for row in parked:
        transaction = by_number[row.record].transaction
        if transaction is not None:
            waiting.append((transaction.mark, None if row.is_held else row.due or 0))
    return waiting


def _wait(
    event: Event,
    held: bool,
    is_behind: bool,
    untried: Untried,
    waiting_tables: set[str],
    now: int,
) -> tuple[str, int | None, str | None] | None:
    """Return why a row waits, until when, and its note; None where it may go.

    Enter an untried table in `waiting_tables`.
    """
    if held:
        return Reason.HELD.value, None, None
    if is_behind:
        return BEHIND, now, None
    if event.table is not None and event.table in untried:
        fault = untried[event.table]
        waiting_tables.add(event.table)
        return fault.why.reason.value, fault.rest_due, fault.why.note
    return None
