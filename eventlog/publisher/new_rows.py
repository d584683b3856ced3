"""Rows that wait and that nobody has taken: those above all that is taken, and late ones, between.

Law: the rows above are asked for first. A transaction that commits meanwhile may have its later
rows missed, and never its earlier ones. All gaps are asked for each time: an earlier row may be in
one whose transaction has just committed a later row of the same object above all of them. Where one
is late, one statement finds which rows are next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from eventlog.core.model import EVERY_ROW, Event, RowId
from eventlog.core.rules.screen import Identities, identities_of
from eventlog.core.schema import Catalog
from eventlog.core.table_names import write_name
from eventlog.publisher.memory import Sealed
from eventlog.publisher.proven import Proven
from eventlog.publisher.tables import EVER, LAST_NUMBER
from eventlog.sources.log.reading import (
    NEAR_ROWS,
    PROCESSED,
    LogSettings,
    Request,
    WaitingRows,
    continuing,
    end_with_a_change,
    find_torn_places,
)
from eventlog.sources.log.row_events import Rows
from eventlog.sources.marks import NO_ROWS, RowRanges, Run, as_text
from eventlog.sql.log import ALL, Log, id_list
from eventlog.sql.names import NAME_CHARACTERS
from eventlog.sql.pooler import IS_POOLED

if TYPE_CHECKING:
    from eventlog.publisher.journal_view import View

MOST_GAPS: Final = 1_000
"""So many gaps are asked for one by one; of more, neighbouring ones as one."""

SLOTS: Final = 32
"""Gaps that a statement can name one by one, where a database finds ranges only by constants."""

PAGE_ROWS: Final = 10_000
"""So many numbers are read at once where many gaps are asked for as one."""

LOOKED_ROWS: Final = 64
"""So many rows are read by who looks whether any wait: others may have to wait, and be looked at again and again."""

Spelling = tuple[str | None, str | None]
"""What a row says of its object: table_name and table_key, as they were written."""


class UnsealedRows:
    """Reads the rows of a log, each time as a look at its journal sees them."""

    def __init__(self, log: Log, settings: LogSettings, catalog: Catalog | None) -> None:
        self._log = log
        self._settings = settings
        self.reader = WaitingRows(log, catalog, settings)
        self._identities = identities_of(catalog)

    def next(self, view: View, limit: int) -> Sealed | None:
        """Read the next rows, so many or as many more as the last object has; None where none wait."""
        return view.memory.take_looked(limit) or self._read_next(view, limit)

    def _read_next(self, view: View, limit: int) -> Sealed | None:
        sealed = self._next(view, limit)
        if sealed is None and self._looks_whole(view):
            return self._next(view, limit)
        return sealed

    def _next(self, view: View, limit: int) -> Sealed | None:
        memory, final = view.memory, self._find_final_numbers(view)
        known, room = memory.known, self.reader.share
        if not known and not memory.any_parked:
            portion = self.reader.next(view.connection, Request(limit=limit, room=room))
        elif self._settings.handle_future_events:
            # Times count here, not numbers: what is due may lie anywhere among what is known.
            among = "among_due_unparked"
            request = Request(limit=limit, room=room, among=among, known=memory.taken)
            portion = self.reader.next(view.connection, request)
        else:
            portion = self.reader.next(view.connection, _above(memory.find_edge(known), limit, room))
            # Asked behind the others: a late row goes before what is above it.
            if self._late(view, known, 1):
                # One statement sees a transaction whole, or nothing of it. Some numbers more than
                # are wanted, for the end may be among rows of one change.
                numbers = self._late(view, known, limit + NEAR_ROWS, above=True)
                portion = self.reader.next(view.connection, _request_rows(numbers, limit, room))
        rows = portion.rows
        memory.proven.look(final, [] if portion.first is None else [portion.first])
        if not rows:
            return None
        rows = self._with_faults(view, rows)
        records = RowRanges.of([event.position[0] for event in rows])
        return Sealed(records, portion.weight, rows, is_new=True, more=portion.more)

    def _with_faults(self, view: View, events: Sequence[Event]) -> Sequence[Event]:
        """Mark events with a fault where the number cannot be the row's own.

        Of such a row nothing is published: its document would take another one's place.
        """
        newest = view.memory.last_processed
        if newest is None or not events:
            return events
        # A log that numbers its rows itself has one number twice only where somebody has given it.
        if not self._settings.handle_future_events and events[0].position[0] > newest:
            return events  # they come in the order of their numbers, and nearly always are all new
        low = [event.position[0] for event in events if event.position[0] <= newest]
        processed = view.numbers("processed_among", ids=id_list(low)) if low else NO_ROWS
        if not processed:
            return events
        faults = {number: PROCESSED.format(number) for number in processed}
        return [replace(event, fault=faults.get(event.position[0], event.fault)) for event in events]

    def unread(self, view: View, limit: int, most_late: int) -> Rows:
        """Read the next rows without their values, about so many.

        Rows of a change that goes on behind them are left out. None come where others are to be
        taken first.
        """
        memory, known = view.memory, view.memory.known
        if not (known or memory.any_parked) or self._settings.handle_future_events:
            return []
        asked = limit + NEAR_ROWS
        rows, goes_on = self.reader.unread(view.connection, _above(memory.find_edge(known), asked, ALL))
        late = self._late(view, known, most_late)
        if len(late) >= most_late:
            return []
        if late:  # by one statement, as above
            numbers = self._late(view, known, asked, above=True)
            rows, _ = self.reader.unread(view.connection, _request_rows(numbers))
            goes_on = len(numbers) >= asked
        end = len(rows)
        if goes_on:  # the last change may go on behind them
            end = end_with_a_change(rows, max(0, end - NEAR_ROWS))
        torn = find_torn_places(rows, end)
        return [row for index, row in enumerate(rows[:end]) if index not in torn]

    def first_numbers(self, view: View, limit: int) -> list[int]:
        """Find the first waiting rows not yet taken."""
        memory, known = view.memory, view.memory.known
        by_time, edge = self._settings.handle_future_events, memory.find_edge(known)
        has_gap = known and known.parts != ((EVER + 1, edge),)
        if not by_time and (memory.any_parked or has_gap):
            return self._late(view, known, limit, above=True)
        taken, among = memory.taken, "among_due_unparked" if by_time else "among_all"
        # Where nothing is known, rows below those that once waited here may have been set back.
        beyond = edge if known and not by_time else EVER
        query = self._log.query("oldest_waiting", among=among, kept="kept_any")
        values = {"beyond": beyond, "limit": limit + len(taken)}
        waiting = self._log.rows(view.connection, query, values)
        return [int(row[0]) for row in waiting if int(row[0]) not in taken][:limit]

    def anything(self, view: View) -> bool:
        """Return True if untaken rows wait. Where they are few, the next turn has them by this."""
        by_number = not (self._settings.handle_future_events or view.memory.any_parked)
        # Behind a pooler values are written as reading needs them in a transaction only.
        if by_number and IS_POOLED not in view.connection.info:
            sealed = self._read_next(view, LOOKED_ROWS)
            view.memory.looked = None if sealed is None or sealed.more else sealed
            return sealed is not None
        final = self._find_final_numbers(view)
        numbers = self.first_numbers(view, 1)
        view.memory.proven.look(final, numbers)
        return bool(numbers) or self._looks_whole(view)

    def _looks_whole(self, view: View) -> bool:
        """Look at everything where it is time; return True if rows wait that nobody would look for."""
        memory = view.memory
        if not memory.proven.is_whole_look_due():
            return False
        kept, memory.proven.numbers = memory.proven.numbers, RowRanges()
        began, numbers = monotonic(), self.first_numbers(view, 1)
        if numbers:  # somebody has set them back, or the numbers begin again
            memory.proven = Proven(unproven=0)
        else:
            memory.proven.look_whole(kept, began)
        return bool(numbers)

    def _find_final_numbers(self, view: View) -> RowRanges:
        """Find numbers for which the next look sees all rows that will ever come."""
        if self._settings.handle_future_events:  # rows of any number may be due any time
            return NO_ROWS
        return view.memory.proven.find_final_numbers(view.connection, self._log)

    def events(self, view: View, numbers: Sequence[int]) -> Sequence[Event]:
        """Read the events of these rows, as far as they still wait."""
        return self._with_faults(view, self._read_noted(view, numbers))

    def objects(self, view: View, numbers: Sequence[int]) -> dict[int, str]:
        """Map these rows to their objects, as far as they still wait."""
        events = self._read_noted(view, numbers)
        return {event.position[0]: object_of(self._identities, event) for event in events}

    def _read_noted(self, view: View, numbers: Sequence[int]) -> Sequence[Event]:
        if not numbers:
            return ()
        return self.reader.next(view.connection, _request_rows(numbers)).rows

    def continuing(self, view: View, numbers: Sequence[int]) -> set[int]:
        """Find rows that continue the change of the one before them of their object."""
        return continuing(self.reader.unread(view.connection, _request_rows(numbers))[0])

    def _late(self, view: View, known: RowRanges, limit: int, *, above: bool = False) -> list[int]:
        """Find waiting rows not yet taken, among or `above` known numbers."""
        last = LAST_NUMBER if above else view.memory.find_edge(known)
        ends = [(EVER, EVER), *known.parts, (last + 1, last + 1)]
        gaps = [(before[1] + 1, after[0] - 1) for before, after in pairwise(ends)]
        gaps = [(begin, end) for begin, end in gaps if begin <= end]
        return self.find_untaken(view, fewer(gaps, SLOTS if self._log.dialect.constant_ranges else MOST_GAPS), limit)

    def find_untaken(self, view: View, runs: Sequence[Run], limit: int) -> list[int]:
        """Find waiting rows in runs of numbers, neither parked by an output nor taken."""
        taken = view.memory.taken
        # A whole page even for one row: where gaps are asked for as one, most of it may be taken.
        most = max(limit, PAGE_ROWS)
        found: list[int] = []
        while runs and len(found) < limit:
            rows = view.ask("late_numbers", limit=most, **gap_parameters(self._log, runs))
            page = [int(number) for (number,) in rows]
            found += [number for number in page if number not in taken]
            if len(page) < most:
                break
            runs = [(max(first, page[-1] + 1), last) for first, last in runs if last > page[-1]]
        return found[:limit]


def _above(number: int, limit: int, room: int) -> Request:
    """Request rows above this number."""
    return Request(limit=limit, room=room, among="among_beyond", bounds={"beyond": number})


def _request_rows(numbers: Sequence[int], limit: int = ALL, room: int = ALL) -> Request:
    """Request rows with these numbers."""
    return Request(limit=limit, room=room, among="among_noted", bounds={"ids": id_list(numbers)})


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
