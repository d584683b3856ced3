"""Numbers of rows that need not be looked at while others are left out: a cycle asks only for what lies beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from eventlog.core.model import RowId
from eventlog.core.rules.screen import Identities
from eventlog.sources.log.left_out import EVER, Passed, stamp_of
from eventlog.sources.marks import Stretches
from eventlog.sql.log import Log

PAGE_ROWS: Final = 20_000
"""So many rows are looked at by one statement at most when their numbers are learned."""

PIECE_NUMBERS: Final = 1_000
"""So many numbers are looked at anew in each cycle."""

BLOCK_NUMBERS: Final = 20_000
"""Of so many numbers together it is remembered whose rows they are, so that little is forgotten with one object."""

MOST_GAPS: Final = 5_000
"""Gaps that are asked for in one cycle; more of them would cost more than to pass over all rows."""

SLOTS: Final = 32
"""Gaps that a statement can name one by one, where a database finds ranges only by constants."""

REST_SECONDS: Final = 60.0
"""Nothing is remembered for so long after numbers had too many gaps."""

Gap = tuple[int, int]
"""The first and the last number of a stretch that nobody has seen."""


class SeenNumbers:
    """Numbers of rows that need not be looked at while objects are passed over: a cycle asks only for what lies beside them.

    Law: a number is remembered only where its row was seen to belong to an object that is passed over, or where we have
    settled it. Every other number may still belong to a row that commits late, so the gaps are asked for in each cycle.
    What is remembered is forgotten when its object is passed over no longer, when somebody holds, releases or requeues
    rows, and when a statement fails; and a piece of it is looked at anew in each cycle, for people change rows by SQL.
    What lagging outputs are owed is no row to look for either; that stands in the log's marks, and is never forgotten.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._told = "[]"
        self._numbers = Stretches()
        self._objects: dict[int, set[RowId]] = {}
        self._owed = Stretches()
        self.known = Stretches()
        """All that need not be looked at."""
        self._gaps: Sequence[Gap] = ()
        self._stamp: str | None = None
        self._next = EVER
        self._piece: Gap | None = None
        self._turn = 0
        self._rest_until = 0.0

    @property
    def last(self) -> int:
        """The highest number that is remembered; all rows above it are unknown."""
        return self.known.parts[-1][1] if self.known else EVER

    def forget(self) -> None:
        self._objects = {}
        self._keep(Stretches())
        self._piece = None

    def distrust(self) -> None:
        """Has the next cycle begin anew; whichever thread says so, nothing changes under another one's hands."""
        self._stamp = None

    def renew(self, stamp: str, passed: Passed, owed: Stretches) -> None:
        """Begins a cycle: `passed` is what is passed over in it, and `stamp` changes when rows are held or released.

        `owed` are rows that only lagging outputs are owed.
        """
        self._owed, self._told = owed, passed.told()
        gone = passed.gone()
        if stamp != self._stamp or not passed:
            self._stamp = stamp
            self.forget()
        elif gone:
            blocks = [block for block, objects in self._objects.items() if not gone.isdisjoint(objects)]
            for block in blocks:
                del self._objects[block]
            self._numbers -= Stretches([(one * BLOCK_NUMBERS, (one + 1) * BLOCK_NUMBERS - 1) for one in blocks])
        if self._numbers and self._piece is None:
            self._cut_a_piece()
        self._keep(self._numbers)

    def late(self, connection: Connection, told: str, unread: str, limit: int) -> list[int]:
        """Numbers of rows in the gaps that could be read now, and are not of objects that are passed over."""
        query = self._log.query(
            "late_numbers", **{"except": "except_passed"}, unread="unread_tables" if unread else "unread_none"
        )
        parameters: dict[str, Any] = {"passed": told} | ({"unread": unread} if unread else {})
        found: list[int] = []
        gaps = fewer(self._gaps, self._most_gaps)
        page = limit if len(gaps) == len(self._gaps) else max(limit, PAGE_ROWS)
        while gaps:
            asked = {**parameters, "limit": page, **gap_parameters(self._log, gaps)}
            numbers = [int(number) for (number,) in self._log.rows(connection, query, asked)]
            found += [number for number in numbers if number not in self._owed]
            if len(numbers) < page or len(found) >= limit:
                break
            gaps = [(max(first, numbers[-1] + 1), last) for first, last in gaps if last > numbers[-1]]
        return found[:limit]

    def anything(self, connection: Connection) -> bool:
        """Whether a row waits that could be read, or rows were held or released since the last cycle."""
        if stamp_of(connection, self._log) != self._stamp:
            return True
        look = self._log.query("anything_beyond", **{"except": "except_passed"})
        beyond = {"beyond": self.last, "passed": self._told}
        return bool(self._log.rows(connection, look, beyond) or self.late(connection, self._told, "", 1))

    def learn(self, connection: Connection, passed: Passed, identities: Identities, upto: int) -> None:
        """Remembers rows of objects that are passed over, as far as the cycle has read."""
        if not passed or monotonic() < self._rest_until:
            return
        regions = [(self.last + 1, upto)]
        if self._piece is not None and self._piece[1] <= upto:
            regions.append(self._piece)
            self._piece = None
        if self._gaps:
            self._turn = (self._turn + 1) % len(self._gaps)
            first, last = self._gaps[self._turn]
            regions.append((first, min(last, upto)))
        for first, last in regions:
            if first <= last:
                self._learn(connection, passed, identities, (first, last))

    def settled(self, numbers: Sequence[int]) -> None:
        """Remembers rows that wait no longer: they would be gaps."""
        if self._numbers:
            self._add(Stretches.of(numbers))

    def _learn(self, connection: Connection, passed: Passed, identities: Identities, region: Gap) -> None:
        query = self._log.query("passed_runs", **{"except": "except_passed"})
        above, upto = region[0] - 1, region[1]
        told = passed.told()
        while monotonic() >= self._rest_until:
            asked = {"above": above, "upto": upto, "limit": PAGE_ROWS, "passed": told}
            found = [
                ((int(first), int(last)), identities.row_id(table, key))
                for first, last, table, key in self._log.rows(connection, query, asked)
            ]
            mine = [(run, row) for run, row in found if row is not None]
            for (first, last), row in mine:
                for block in range(first // BLOCK_NUMBERS, last // BLOCK_NUMBERS + 1):
                    self._objects.setdefault(block, set()).add(row)
            self._add(Stretches([run for run, _ in mine]))
            if sum(last - first + 1 for (first, last), _ in found) < PAGE_ROWS:
                return
            above = max(last for (_, last), _ in found)

    def _add(self, found: Stretches) -> None:
        if not found:
            return
        self._keep(self._numbers | found)
        if len(self._gaps) > self._most_gaps:
            self.forget()
            self._rest_until = monotonic() + REST_SECONDS

    @property
    def _most_gaps(self) -> int:
        return SLOTS if self._log.dialect.constant_ranges else MOST_GAPS

    def _keep(self, numbers: Stretches) -> None:
        self._numbers = numbers
        self.known = numbers | self._owed if self._owed else numbers
        self._gaps = (Stretches([(EVER, self.last)]) - self.known).parts if self.known else ()

    def _cut_a_piece(self) -> None:
        """Takes the next piece out of what is remembered, so that it is read and learned anew."""
        parts = self._numbers.parts
        first = next((max(self._next, first) for first, last in parts if last >= self._next), parts[0][0])
        self._piece = (first, first + PIECE_NUMBERS - 1)
        self._next = first + PIECE_NUMBERS
        self._numbers -= Stretches([self._piece])


def gap_parameters(log: Log, gaps: Sequence[Gap]) -> Mapping[str, Any]:
    """Gaps as `late_numbers` takes them."""
    if not log.dialect.constant_ranges:
        return {"gaps": msgspec.json.encode(gaps).decode()}
    slots = [*gaps, *([(1, 0)] * (SLOTS - len(gaps)))]
    return {f"{end}_{slot}": gap[place] for slot, gap in enumerate(slots) for place, end in enumerate(("from", "to"))}


def fewer(gaps: Sequence[Gap], most: int) -> list[Gap]:
    """The gaps made fewer, where they are too many, by what lies between the nearest ones: what is asked for has more rows then."""
    if len(gaps) <= most:
        return list(gaps)
    between = sorted(range(1, len(gaps)), key=lambda place: gaps[place][0] - gaps[place - 1][1])
    kept = sorted(between[len(gaps) - most :])
    starts, ends = [0, *kept], [*kept, len(gaps)]
    return [(gaps[start][0], gaps[end - 1][1]) for start, end in zip(starts, ends, strict=True)]
