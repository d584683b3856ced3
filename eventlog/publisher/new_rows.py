"""Rows that wait and that nobody has taken: those above all that is taken, and late ones, between.

Law: the rows above are asked for first. A transaction that commits meanwhile may have its later
rows missed, and never its earlier ones. All gaps are asked for each time: an earlier row may be in
one whose transaction has just committed a later row of the same object above all of them. Where one
is late, one statement finds which rows are next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import SourceError
from eventlog.core.model import EVERY_ROW, Event, RowId
from eventlog.core.rules.screen import Identities, identities_of
from eventlog.core.schema import Catalog
from eventlog.core.table_names import write_name
from eventlog.publisher.memory import Memory, Sealed
from eventlog.publisher.proven import Proven
from eventlog.publisher.tables import EVER, LAST_NUMBER
from eventlog.publisher.threads import beside
from eventlog.sources.log.reading import (
    NEAR_ROWS,
    LogSettings,
    Portion,
    Request,
    WaitingRows,
    continuing,
    end_with_a_change,
    find_torn_places,
)
from eventlog.sources.log.row_events import Rows
from eventlog.sources.marks import RowRanges, Run, as_text
from eventlog.sql.log import ALL, Log, id_list
from eventlog.sql.names import NAME_CHARACTERS
from eventlog.sql.pooler import IS_POOLED

if TYPE_CHECKING:
    from sqlalchemy import Connection

MOST_GAPS: Final = 1_000
"""So many gaps are asked for one by one; of more, neighbouring ones as one."""

SLOTS: Final = 32
"""Gaps that a statement can name one by one, where a database finds ranges only by constants."""

PAGE_ROWS: Final = 10_000
"""So many numbers are read at once where many gaps are asked for as one."""

AHEAD_ROWS: Final = 1_000
"""Fewer rows are read quicker than a thread is begun."""

LOOKED_ROWS: Final = 64
"""So many rows are read by who looks whether any wait: others may have to wait, and be looked at again and again."""

AHEAD_SECONDS: Final = 1.0
"""So long nobody asks whether rows that were read ahead still wait: a receiver may be away for hours."""

Spelling = tuple[str | None, str | None]
"""What a row says of its object: table_name and table_key, as they were written."""


class ReadAhead:
    """Rows above all that is known, read in a thread of its own while others are made into documents.

    They count as long as `memory` does, which is dropped when somebody else writes to the journal,
    and after any error. Who takes rows away by SQL changes no journal: after a moment they are
    looked at again.
    """

    def __init__(self, log: Log, rows: WaitingRows, request: Request, memory: Memory) -> None:
        self.memory = memory
        self._log = log
        self._rows = rows
        self._request = request
        self._read_at = monotonic()
        self._reading = beside("eventlog-reads-ahead", self._read)

    def portion(self, request: Request, memory: Memory) -> Portion | None:
        """Return the rows, if these are the ones requested now."""
        portion = self._reading.result()
        if request == self._request and memory is self.memory:
            return portion
        return None

    @property
    def is_fresh(self) -> bool:
        """Return True if they were read a moment ago."""
        return monotonic() - self._read_at <= AHEAD_SECONDS

    def _read(self) -> Portion | None:
        try:
            with self._log.transaction(lone=True) as connection:
                portion = self._rows.next(connection, replace(self._request, beside=True))
                self._read_at = monotonic()
                return portion
        except SourceError:
            return None  # who asks for these rows reads them then, and raises what is wrong


class Looked(Struct, frozen=True):
    """All rows that waited at a look: who publishes them need not read them again."""

    memory: Memory
    sealed: Sealed
    read_at: float

    def find_rows(self, memory: Memory, limit: int) -> Sealed | None:
        """Return the rows if they still are all ready ones, and fit."""
        if memory is not self.memory or memory.any_parked or len(self.sealed.events or ()) > limit:
            return None
        return replace(self.sealed, is_new=monotonic() - self.read_at <= AHEAD_SECONDS)


class UnsealedRows:
    """Reads the rows of a log."""

    def __init__(self, log: Log, settings: LogSettings, catalog: Catalog | None) -> None:
        self._log = log
        self._settings = settings
        self.reader = WaitingRows(log, catalog, settings)
        self._identities = identities_of(catalog)
        self._ahead: ReadAhead | None = None
        self._looked: Looked | None = None

    def next(self, connection: Connection, memory: Memory, limit: int) -> Sealed | None:
        """Read the next rows, so many or as many more as the last object has; None where none wait."""
        looked, self._looked = self._looked, None
        if looked is not None and (sealed := looked.find_rows(memory, limit)) is not None:
            return sealed
        sealed = self._next(connection, memory, limit)
        if sealed is None and self._looks_whole(connection, memory):
            return self._next(connection, memory, limit)
        return sealed

    def _next(self, connection: Connection, memory: Memory, limit: int) -> Sealed | None:
        final = self._find_final_numbers(connection, memory)
        known, room = memory.known, self.reader.share
        # What was read ahead counts once, if it is this and nobody has changed anything since.
        ahead, self._ahead = self._ahead, None
        is_new = True
        if not known and not memory.any_parked:
            request = Request(limit=limit, room=room)
            portion = self.reader.next(connection, request)
        elif self._settings.handle_future_events:
            # Times count here, not numbers: what is due may lie anywhere among what is known.
            among = "among_due_unparked"
            request = Request(limit=limit, room=room, among=among, known=memory.taken)
            portion = self.reader.next(connection, request)
        else:
            request = _above(_edge(memory, known), limit, room)
            portion_ahead = None
            if ahead is not None:
                portion_ahead = ahead.portion(request, memory)
                is_new = portion_ahead is None or ahead.is_fresh
            if portion_ahead is not None:
                final = RowRanges()  # it was read before anybody was asked who writes
            portion = portion_ahead or self.reader.next(connection, request)
            # Asked behind the others: a late row goes before what is above it.
            if not _has_no_gap(memory, known) and self._late(connection, memory, known, 1):
                # One statement sees a transaction whole, or nothing of it. Some numbers more than
                # are wanted, for the end may be among rows of one change.
                numbers = self._late(connection, memory, known, limit + NEAR_ROWS, above=True)
                portion, is_new = self.reader.next(connection, _request_rows(numbers, limit, room)), True
        rows = portion.rows
        memory.proven.look(final, [event.position[0] for event in rows[:1]])
        if not rows:
            return None
        if portion.more and len(rows) >= AHEAD_ROWS and self._may_read_ahead:
            edge = max(_edge(memory, known), *[event.position[0] for event in rows])
            self._ahead = ReadAhead(self._log, self.reader, _above(edge, limit, room), memory)
        rows = self._with_faults(connection, rows, memory)
        records = RowRanges.of([event.position[0] for event in rows])
        return Sealed(records, portion.weight, rows, is_new, portion.more)

    @property
    def _may_read_ahead(self) -> bool:
        # An embedded database has one writer at a time, whom a reader would hold up. Where times
        # count nobody knows yet what will be due.
        return not (self._log.dialect.embedded or self._settings.handle_future_events)

    def _with_faults(self, connection: Connection, events: Sequence[Event], memory: Memory) -> Sequence[Event]:
        """Mark events with a fault where the number cannot be the row's own.

        Of such a row nothing is published: its document would take another one's place.
        """
        newest = memory.last_processed
        if newest is None or not events:
            return events
        # A log that numbers its rows itself has one number twice only where somebody has given it.
        if not self._settings.handle_future_events and events[0].position[0] > newest:
            return events  # they come in the order of their numbers, and nearly always are all new
        numbers = [event.position[0] for event in events]
        low = [number for number in numbers if number <= newest]
        faults: dict[int, str] = {}
        if low:
            query = self._log.query("processed_among")
            for (number,) in self._log.rows(connection, query, {"ids": id_list(low)}):
                faults[int(number)] = (
                    f"Another row of the log has record_id {int(number)} already, and is processed; "
                    "give this one a number of its own."
                )
        if not faults:
            return events
        checked: list[Event] = []
        for event in events:
            fault = faults.get(event.position[0])
            checked.append(event if fault is None else replace(event, fault=fault))
        return checked

    def unread(self, connection: Connection, memory: Memory, limit: int, most_late: int) -> Rows:
        """Read the next rows without their values, about so many.

        Rows of a change that goes on behind them are left out. None come where others are to be
        taken first, or where two have one number.
        """
        known = memory.known
        if not (known or memory.any_parked) or self._settings.handle_future_events:
            return []
        asked = limit + NEAR_ROWS
        request = _above(_edge(memory, known), asked, ALL)
        rows = self.reader.unread(connection, request)
        late = self._late(connection, memory, known, most_late)
        if len(late) >= most_late:
            return []
        if late:  # by one statement, as above
            numbers = self._late(connection, memory, known, asked, above=True)
            rows = self.reader.unread(connection, _request_rows(numbers))
        if len({row[0] for row in rows}) < len(rows):
            return []
        end = len(rows)
        if end >= asked:  # there are more behind them, and the last change may go on there
            end = end_with_a_change(rows, end - NEAR_ROWS)
        torn = find_torn_places(rows, end)
        return [row for index, row in enumerate(rows[:end]) if index not in torn]

    def first_numbers(self, connection: Connection, memory: Memory, limit: int) -> list[int]:
        """Find the first waiting rows not yet taken."""
        taken, known = memory.taken, memory.known
        by_time = self._settings.handle_future_events
        if by_time or (not memory.any_parked and (not known or _has_no_gap(memory, known))):
            among = "among_due_unparked" if by_time else "among_all"
            # Where nothing is known, rows below those that once waited here may have been set back.
            beyond = _edge(memory, known) if known and not by_time else EVER
            query = self._log.query("oldest_waiting", among=among, kept="kept_any")
            values = {"beyond": beyond, "limit": limit + len(taken)}
            waiting = self._log.rows(connection, query, values)
            return [int(row[0]) for row in waiting if int(row[0]) not in taken][:limit]
        return self._late(connection, memory, known, limit, above=True)

    def anything(self, connection: Connection, memory: Memory) -> bool:
        """Return True if untaken rows wait. Where they are few, the next turn has them by this."""
        by_number = not (self._settings.handle_future_events or memory.any_parked)
        # Behind a pooler values are written as reading needs them in a transaction only.
        if by_number and IS_POOLED not in connection.info:
            sealed = self.next(connection, memory, LOOKED_ROWS)
            if sealed is not None and not sealed.more:
                self._looked = Looked(memory, sealed, monotonic())
            return sealed is not None
        final = self._find_final_numbers(connection, memory)
        numbers = self.first_numbers(connection, memory, 1)
        memory.proven.look(final, numbers)
        return bool(numbers) or self._looks_whole(connection, memory)

    def _looks_whole(self, connection: Connection, memory: Memory) -> bool:
        """Look at everything where it is time; return True if rows wait that nobody would look for."""
        if not memory.proven.is_whole_look_due():
            return False
        kept, memory.proven.numbers = memory.proven.numbers, RowRanges()
        began, numbers = monotonic(), self.first_numbers(connection, memory, 1)
        if numbers:  # somebody has set them back, or the numbers begin again
            memory.proven = Proven(unproven=0)
        else:
            memory.proven.look_whole(kept, began)
        return bool(numbers)

    def _find_final_numbers(self, connection: Connection, memory: Memory) -> RowRanges:
        """Find numbers for which the next look sees all rows that will ever come."""
        if self._settings.handle_future_events:  # rows of any number may be due any time
            return RowRanges()
        return memory.proven.find_final_numbers(connection, self._log)

    def events(self, connection: Connection, memory: Memory, numbers: Sequence[int]) -> Sequence[Event]:
        """Read the events of these rows, as far as they still wait."""
        return self._with_faults(connection, self._read_noted(connection, numbers), memory)

    def objects(self, connection: Connection, numbers: Sequence[int]) -> dict[int, str]:
        """Map these rows to their objects, as far as they still wait."""
        return objects_of(self._identities, self._read_noted(connection, numbers))

    def names(self, connection: Connection, numbers: Sequence[int]) -> list[tuple[str, int]]:
        """List each object of each of these rows, with the number, as far as they still wait."""
        events = self._read_noted(connection, numbers)
        return [(object_of(self._identities, event), event.position[0]) for event in events]

    def _read_noted(self, connection: Connection, numbers: Sequence[int]) -> Sequence[Event]:
        if not numbers:
            return ()
        return self.reader.next(connection, _request_rows(numbers)).rows

    def continuing(self, connection: Connection, numbers: Sequence[int]) -> set[int]:
        """Find rows that continue the change of the one before them of their object."""
        return continuing(self.reader.unread(connection, _request_rows(numbers)))

    def list_unsealed(self, connection: Connection, memory: Memory, run: Run, limit: int) -> list[int]:
        """List waiting rows of a run, neither parked by an output nor taken."""
        first, last = run
        taken, unsealed = memory.taken, list[int]()
        while len(unsealed) < limit and first <= last:
            values = {"first": first, "last": last, "limit": PAGE_ROWS}
            query = self._log.query("unsealed_numbers")
            page = [int(number) for (number,) in self._log.rows(connection, query, values)]
            unsealed += [number for number in page if number not in taken]
            if len(page) < PAGE_ROWS:
                break
            first = page[-1] + 1
        return unsealed[:limit]

    def _late(
        self,
        connection: Connection,
        memory: Memory,
        known: RowRanges,
        limit: int,
        *,
        above: bool = False,
    ) -> list[int]:
        """Find waiting rows not yet taken, among or `above` known numbers."""
        taken = memory.taken
        last = LAST_NUMBER if above else _edge(memory, known)
        ends = [(EVER, EVER), *known.parts, (last + 1, last + 1)]
        gaps = [(before[1] + 1, after[0] - 1) for before, after in pairwise(ends)]
        gaps = [(begin, end) for begin, end in gaps if begin <= end]
        most_gaps = SLOTS if self._log.dialect.constant_ranges else MOST_GAPS
        asked = fewer(gaps, most_gaps)
        query = self._log.query("late_numbers")
        # A whole page even for one row: where gaps are asked for as one, most of it may be taken.
        most = max(limit, PAGE_ROWS)
        late: list[int] = []
        while asked and len(late) < limit:
            values = {"limit": most, **gap_parameters(self._log, asked)}
            page = [int(number) for (number,) in self._log.rows(connection, query, values)]
            late += [number for number in page if number not in taken]
            if len(page) < most:
                break
            asked = [(max(first, page[-1] + 1), last) for first, last in asked if last > page[-1]]
        return late[:limit]


def _above(number: int, limit: int, room: int) -> Request:
    """Request rows above this number."""
    return Request(limit=limit, room=room, among="among_beyond", bounds={"beyond": number})


def _request_rows(numbers: Sequence[int], limit: int = ALL, room: int = ALL) -> Request:
    """Request rows with these numbers."""
    return Request(limit=limit, room=room, among="among_noted", bounds={"ids": id_list(numbers)})


def _has_no_gap(memory: Memory, known: RowRanges) -> bool:
    """Return True if all numbers up to the last one are known."""
    return len(known.parts) == 1 and known.parts[0] == (EVER + 1, _edge(memory, known))


def _edge(memory: Memory, known: RowRanges) -> int:
    """Return a number without taken or waiting rows above it."""
    return max([memory.last_parked, *(last for _, last in known.parts[-1:])])


def object_of(identities: Identities, event: Event) -> str:
    """Name the object to park rows under.

    A row without an object's name is alone; one about a whole table counts for every object.
    """
    if event.key == EVERY_ROW:
        return EVERY_ROW
    row = identities.row_id(event.table, event.key)
    if row is None:
        return f"#{event.position[0]}"
    return name_of(row)


def objects_of(identities: Identities, events: Iterable[Event]) -> dict[int, str]:
    """Map rows to the objects to park them under.

    Rows of several objects with one number wait as one of every object: a table has one name for
    it.
    """
    objects: dict[int, str] = {}
    for event in events:
        name = object_of(identities, event)
        if objects.setdefault(event.position[0], name) != name:
            objects[event.position[0]] = EVERY_ROW
    return objects


def name_of(row: RowId) -> str:
    """Name the object to park its rows under."""
    name = f"{write_name(row.schema, row.table)}/{row.key}"
    if len(name.encode()) <= NAME_CHARACTERS:
        return name
    # The column has no more room. Two objects that meet in one hash would wait for each other.
    return f"~{hashlib.blake2b(name.encode(), digest_size=32).hexdigest()}"


def gap_parameters(log: Log, gaps: Sequence[Run]) -> Mapping[str, Any]:
    """Convert gaps to the parameters of `late_numbers`."""
    if not log.dialect.constant_ranges:
        return {"gaps": as_text(gaps)}
    # Slots that are left over get a range that holds no number.
    slots = [*gaps, *([(1, 0)] * (SLOTS - len(gaps)))]
    parameters: dict[str, int] = {}
    for slot, (first, last) in enumerate(slots):
        parameters[f"from_{slot}"] = first
        parameters[f"to_{slot}"] = last
    return parameters


def fewer(gaps: Sequence[Run], most: int) -> list[Run]:
    """Join the nearest gaps, with the rows between them, until there are at most so many."""
    if len(gaps) <= most:
        return list(gaps)
    between = sorted(range(1, len(gaps)), key=lambda index: gaps[index][0] - gaps[index - 1][1])
    kept = sorted(between[len(gaps) - most :])
    starts, ends = [0, *kept], [*kept, len(gaps)]
    return [(gaps[start][0], gaps[end - 1][1]) for start, end in zip(starts, ends, strict=True)]


def touch(names: Collection[str], others: Collection[str]) -> bool:
    """Return True if rows of these objects must not overtake each other."""
    if not names or not others:
        return False
    if EVERY_ROW in names or EVERY_ROW in others:
        return True
    return not set(names).isdisjoint(others)
