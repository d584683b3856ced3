"""Rows that wait and that nobody has taken: those above all that is taken, and those that committed late, between.

Law: the rows above are asked for first. A transaction that commits meanwhile may have its later rows missed, and never
its earlier ones. All gaps are asked for each time: an earlier row may be in one whose transaction has just committed
a later row of the same object above all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from eventlog.core.model import Event
from eventlog.core.rules.screen import Identities
from eventlog.core.schema import Catalog
from eventlog.core.seams import Batch
from eventlog.publisher.memory import MOST_GAPS, Memory, Sealed
from eventlog.sources.log.left_out import LeftOut
from eventlog.sources.log.reading import LogSettings, Request, WaitingRows
from eventlog.sources.log.seen import SLOTS, fewer, gap_parameters
from eventlog.sources.marks import Run, Stretches
from eventlog.sql.journal_tables import NAME_CHARACTERS
from eventlog.sql.log import ALL, Log, id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

PAGE_ROWS: Final = 10_000
"""So many numbers are read at once where many gaps are asked for as one."""


class UnsealedRows:
    """Reads the rows of a log."""

    def __init__(self, log: Log, settings: LogSettings, catalog: Catalog | None) -> None:
        self._log = log
        self._settings = settings
        self._rows = WaitingRows(log, catalog, settings, LeftOut(log, catalog))
        self._identities = Identities(catalog)

    def next(self, connection: Connection, memory: Memory, limit: int) -> Sealed | None:
        """The next rows, so many or as many more as the last object has; None where none wait."""
        known, room = memory.taken | memory.seen, self._settings.share
        if not known or self._settings.handle_future_events:
            found = self._rows.next(connection, Request(limit=limit, room=room, known=known))
        else:
            beyond = {"beyond": known.parts[-1][1]}
            found = self._rows.next(connection, Request(limit=limit, room=room, among="among_beyond", bounds=beyond))
            if late := self._late(connection, memory, known, limit):
                request = Request(limit=ALL, room=room, among="among_noted", bounds={"ids": id_list(late)})
                between = self._rows.next(connection, request)
                full = len(late) >= limit or found.weight + between.weight > room
                found = between if full else _together(between, found)
        if not found.events:
            return None
        return Sealed(Stretches.of(event.position[0] for event in found.rows), found.weight, found.rows)

    def events(self, connection: Connection, numbers: Sequence[int]) -> Sequence[Event]:
        """The events of these rows, as far as they still wait."""
        request = Request(limit=ALL, room=ALL, among="among_noted", bounds={"ids": id_list(numbers)})
        return self._rows.next(connection, request).rows if numbers else ()

    def objects(self, connection: Connection, numbers: Sequence[int]) -> dict[int, str]:
        """The objects that these rows speak of, as far as they still wait."""
        return {event.position[0]: object_of(self._identities, event) for event in self.events(connection, numbers)}

    def going_on(self, connection: Connection, events: Sequence[Event]) -> frozenset[int] | None:
        """The transactions of these events that have rows behind them; None where nobody can say that."""
        return self._rows.going_on(connection, events, (), more=True)

    def unsealed(self, connection: Connection, memory: Memory, run: Run, limit: int) -> list[int]:
        """Numbers of waiting rows of a run that no output has parked, and that nobody has taken."""
        first, last = run
        taken, found = memory.taken, list[int]()
        while len(found) < limit:
            values = {"first": first, "last": last, "limit": PAGE_ROWS}
            query = self._log.query("unsealed_numbers")
            page = [int(number) for (number,) in self._log.rows(connection, query, values)]
            found += [number for number in page if number not in taken]
            if len(page) < PAGE_ROWS:
                break
            first = page[-1] + 1
        return found[:limit]

    def _late(self, connection: Connection, memory: Memory, known: Stretches, limit: int) -> list[int]:
        """Numbers of waiting rows that lie below or between those that nobody has to look for."""
        parts = known.parts
        gaps = [(-(2**62), parts[0][0] - 1)]
        gaps += [(before[1] + 1, after[0] - 1) for before, after in pairwise(parts)]
        asked = fewer(gaps, SLOTS if self._log.dialect.constant_ranges else MOST_GAPS)
        query = self._log.query("late_numbers", **{"except": "except_none"}, unread="unread_none")
        late: list[int] = []
        while asked and len(late) < limit:
            values = {"limit": PAGE_ROWS, **gap_parameters(self._log, asked)}
            page = [int(number) for (number,) in self._log.rows(connection, query, values)]
            late += [number for number in page if number not in known]
            if len(page) < PAGE_ROWS:
                break
            asked = [(max(first, page[-1] + 1), last) for first, last in asked if last > page[-1]]
        for run in memory.loose:
            late += self.unsealed(connection, memory, run, limit)
        return sorted(late)[:limit]


def object_of(identities: Identities, event: Event) -> str:
    """What rows of one object are parked under; a row that names no object is alone."""
    row = identities.row_id(event.table, event.key)
    if row is None:
        return f"#{event.position[0]}"
    name = f"{row.schema}.{row.table}/{row.key}" if row.schema else f"{row.table}/{row.key}"
    if len(name.encode()) <= NAME_CHARACTERS:
        return name
    return f"~{hashlib.blake2b(name.encode(), digest_size=32).hexdigest()}"


def _together(former: Batch, later: Batch) -> Batch:
    events = sorted([*former.events, *later.events], key=lambda one: one.position)
    return Batch(events=events, weight=former.weight + later.weight)
