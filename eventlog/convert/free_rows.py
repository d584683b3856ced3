"""The waiting rows of a log that a conversion may take, found by their numbers and objects, in their order.

Law: nothing overtakes an earlier row of its object. A row that somebody holds is the end of its object; an
object of which an output lacks a row is left out as a whole. Behind a row about a whole table that is left
nothing goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

from eventlog.convert.taken import ALL, ConvertedRows
from eventlog.core.model import EVERY_ROW
from eventlog.core.rules.screen import identities_of
from eventlog.publisher.journal_view import View
from eventlog.publisher.memory import Memory, read_memory
from eventlog.publisher.new_rows import UnsealedRows, name_of
from eventlog.publisher.tables import EVER
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges
from eventlog.sql.log import ALL as WITHOUT_LIMIT
from eventlog.sql.log import id_list

if TYPE_CHECKING:
    from eventlog.core.schema import Catalog
    from eventlog.publisher.tables import JournalRow
    from eventlog.sql.log import Log

PAGE_ROWS: Final = 10_000
"""Rows that are looked at together: a batch of the journal, and a transaction of statuses."""

HOLDS_ALONE: Final = Memory(any_held=True)
"""What is known of a journal by who marks nothing: that rows are held."""

HELD: Final = "held"
LACKED: Final = "lacked"
BEHIND: Final = "behind"
"""Why rows are left: somebody holds them, an output lacks them, or they come behind such a row."""


def gets_all(memory: Memory, row: JournalRow) -> bool:
    """Return True if an output gets converted rows as well: it is paused, or has such rows ahead."""
    # Or it was paused, and has not caught up yet.
    return row.paused is not None or bool(memory.converted_ahead(row))


def join_taken(memory: Memory) -> RowRanges:
    """Join the rows outputs have ahead or on their way, without those sealed for a conversion.

    Sealed rows are behind every reader of the log.
    """
    reserved = memory.reserved_above
    ahead = [batch.records for number, batch in memory.batches.items() if reserved is None or number <= reserved]
    return RowRanges.union([*ahead, *memory.planned.values()])


def read_free_rows(log: Log, catalog: Catalog | None, *, marks: bool) -> ConvertedRows:
    """Read the rows that may be taken, and take none; if it `marks`, none an output lacks."""
    walk, free, settings = FreeRows(catalog, marks=marks), list[RowRanges](), LogSettings()
    rows = UnsealedRows(log, settings, catalog)
    with log.transaction(lone=True) as connection:
        if not (marks or log.rows(connection, log.query("hold_any"))[0][0] is not None):
            return ALL
        memory = read_memory(connection, log) if marks else HOLDS_ALONE
        while walk.first is not None:
            free.append(walk.next_page(View(log, settings, rows, connection, memory)))
    return ConvertedRows(RowRanges.union(free), dict(sorted(walk.left.items())))


class FreeRows:
    """Goes through the rows that wait, up to the last one that there was at the begin. `within` are those that
    are looked for, where others are nobody's business.
    """

    def __init__(self, catalog: Catalog | None, *, marks: bool, within: RowRanges | None = None) -> None:
        self.first: int | None = EVER + 1
        """Where the next page begins; None at the end."""
        self.left = Counter[str]()
        self._marks = marks
        self._within = within
        self._identities = identities_of(catalog)
        self._last: int | None = None
        self._blocked: set[str] = set()
        """Objects of which a row is left."""
        self._lacked: tuple[RowRanges, set[str]] = RowRanges(), set()
        """Rows that outputs lack, with their objects, as of the last page."""

    def next_page(self, view: View) -> RowRanges:
        """Find the rows of the next page that may be taken."""
        memory = view.memory
        if self._last is None:
            last = view.ask("waiting_last")[0][0]
            self._last = EVER if last is None else int(last)
        others = [row for row in memory.outputs.values() if not row.is_conversion and not gets_all(memory, row)]
        lacked = RowRanges.union([*memory.planned.values(), *[memory.lacking(row.name) for row in others]])
        span = {"first": self.first, "last": self._last, "limit": PAGE_ROWS}
        if not (self._blocked or memory.any_held or (self._marks and (memory.any_parked or lacked))):
            return self._free_numbers(self._end_page(view.ask("waiting_numbers", **span)), memory)
        return self._divide(view, self._end_page(view.ask("objects_between", **span)), lacked)

    def _end_page(self, rows: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
        """Leave the last number of a full page to the next one: more rows may have it."""
        self.first = None
        if len(rows) < PAGE_ROWS or rows[0][0] == rows[-1][0]:
            if len(rows) >= PAGE_ROWS:
                self.first = int(rows[-1][0]) + 1
            return rows
        self.first = int(rows[-1][0])
        return [row for row in rows if row[0] != rows[-1][0]]

    def _free_numbers(self, rows: Sequence[tuple[Any, ...]], memory: Memory) -> RowRanges:
        """Take rows by number alone, if nothing waits; not those a paused output has ahead."""
        numbers = self._choose(RowRanges.of(int(row[0]) for row in rows))
        free = numbers - join_taken(memory) if self._marks else numbers
        self._leave(LACKED, len(numbers) - len(free))
        return free

    def _choose(self, numbers: RowRanges) -> RowRanges:
        return numbers if self._within is None else numbers & self._within

    def _leave(self, reason: str, rows: int) -> None:
        if rows:
            self.left[reason] += rows

    def _divide(self, view: View, rows: Sequence[tuple[Any, ...]], lacked: RowRanges) -> RowRanges:
        """Divide rows where some are held, or lacked by outputs."""
        memory = view.memory
        names: dict[int, set[str]] = {}
        for number, _, table, key in rows:
            names.setdefault(int(number), set()).add(self._name_object(int(number), table, key))
        if not names:
            return RowRanges()
        held, waiting, passed = RowRanges(), set[str](), RowRanges()
        if memory.any_held:
            span = {"first": min(names), "last": max(names), "limit": WITHOUT_LIMIT}
            held = view.numbers("hold_numbers", **span)
        if self._marks:
            asked = {EVERY_ROW}.union(*names.values())
            for output in memory.outputs:
                waiting |= view.waiting_objects(output, asked)
            waiting |= self._name_lacked(view, lacked)
            if memory.any_parked:
                lacked |= view.numbers("parked_among", ids=id_list(list(names)))
            passed = join_taken(memory) - lacked
        if EVERY_ROW in waiting:
            self._blocked.add(EVERY_ROW)
        free: list[int] = []
        for number, objects in sorted(names.items()):
            reason = None
            if number in held:
                reason = HELD
            elif number in lacked or number in passed:
                reason = LACKED
            elif self._is_behind(objects, waiting, any_waits=self._marks and bool(memory.any_parked or lacked)):
                reason = BEHIND
            if reason is None:
                free.append(number)
                continue
            # A paused output gets later rows behind the ones that it has ahead, so they block nothing.
            if number not in passed or reason == HELD:
                self._blocked |= objects
            self._leave(reason, self._within is None or number in self._within)
        return self._choose(RowRanges.of(free))

    def _is_behind(self, objects: Collection[str], waiting: set[str], *, any_waits: bool) -> bool:
        if EVERY_ROW in self._blocked:
            return True
        if EVERY_ROW in objects:
            return any_waits or bool(self._blocked)
        return not (waiting.isdisjoint(objects) and self._blocked.isdisjoint(objects))

    def _name_lacked(self, view: View, lacked: RowRanges) -> set[str]:
        if lacked != self._lacked[0]:
            self._lacked = lacked, set(view.objects(lacked).values())
        return self._lacked[1]

    def _name_object(self, number: int, table: str | None, key: str | None) -> str:
        if key == EVERY_ROW:
            return EVERY_ROW
        row = self._identities.row_id(table, key)
        return f"#{number}" if row is None else name_of(row)
