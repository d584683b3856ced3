"""Numbers of rows that need not be looked at while objects are passed over: a cycle asks only for what lies beside them.

Law: a number is remembered only where its row was seen to belong to an object that is passed over, or where we have
settled it. Every other number may still belong to a row that commits late, so the gaps are asked for in each cycle.
What is remembered is forgotten when its object is passed over no longer, when somebody holds, releases or requeues
rows, and when a statement fails; and a piece of it is looked at anew in each cycle, for people change rows by SQL.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from eventlog.core.model import RowId
from eventlog.core.rules.identity import Identities
from eventlog.sources.log.rows import EVER, Passed
from eventlog.sources.marks import runs

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log

PAGE_ROWS: Final = 20_000
"""So many rows are looked at by one statement at most when their numbers are learned."""

PIECE_NUMBERS: Final = 1_000
"""So many numbers are looked at anew in each cycle."""

MIXED_NUMBERS: Final = 20_000
"""A stretch with rows of several objects is not longer, so that little is forgotten with one of them."""

MOST_GAPS: Final = 5_000
"""Gaps that are asked for in one cycle; more of them would cost more than to pass over all rows."""

SLOTS: Final = 32
"""Gaps that a statement can name one by one, where a database finds ranges only by constants."""

REST_SECONDS: Final = 60.0
"""Nothing is remembered for so long after numbers had too many gaps."""

NEVER: Final = 2**62
"""A number above that of every row."""

UNKNOWN: Final = ""
"""A stamp that no log has."""

Gap = tuple[int, int]
"""The first and the last number of a stretch that nobody has seen."""


class SeenRange(NamedTuple):
    """Numbers without a gap: rows of these objects, and rows that we have settled."""

    first: int
    last: int
    objects: frozenset[RowId] = frozenset()


class SeenNumbers:
    """What is remembered of one log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._passed = Passed()
        self._stretches: list[SeenRange] = []
        self._gaps: list[Gap] = []
        self._stamp = UNKNOWN
        self._next = EVER
        self._piece: Gap | None = None
        self._turn = 0
        self._rest_until = 0.0

    def __bool__(self) -> bool:
        return bool(self._stretches)

    @property
    def last(self) -> int:
        """The highest number that is remembered; all rows above it are unknown."""
        return self._stretches[-1].last if self._stretches else EVER

    def forget(self) -> None:
        """Begins anew."""
        self._keep([])
        self._piece = None

    def distrust(self) -> None:
        """Has the next cycle begin anew; whichever thread says so, nothing changes under another one's hands."""
        self._stamp = UNKNOWN

    def renew(self, stamp: str, passed: Passed) -> None:
        """Begins a cycle: `passed` is what is passed over in it, and `stamp` changes when rows are held or released."""
        gone = self._passed.gone(passed)
        self._passed = passed.copy()
        if stamp != self._stamp or not passed:
            self._stamp = stamp
            self.forget()
        elif gone:
            self._keep([one for one in self._stretches if not one.objects & gone])
        if self._stretches and self._piece is None:
            self._cut_a_piece()

    def late(self, connection: Connection, passed: Passed, unread: str, limit: int) -> list[int]:
        """Numbers of rows in the gaps that could be read now, and are not of objects that are passed over."""
        query = self._log.query(
            "late_numbers", **{"except": "except_passed"}, unread="unread_tables" if unread else "unread_none"
        )
        parameters: dict[str, Any] = {"limit": limit, "passed": passed.told(), **self._gap_parameters()}
        if unread:
            parameters["unread"] = unread
        return [int(number) for (number,) in self._log.rows(connection, query, parameters)]

    def anything(self, connection: Connection) -> bool:
        """Whether a row waits that could be read, or rows were held or released since the last cycle."""
        from eventlog.sources.log.rows import stamp_of

        if stamp_of(connection, self._log) != self._stamp:
            return True
        look = self._log.query("anything_beyond", **{"except": "except_passed"})
        beyond = {"beyond": self.last, "passed": self._passed.told()}
        return bool(self._log.rows(connection, look, beyond) or self.late(connection, self._passed, "", 1))

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
        if self._stretches:
            self._add([SeenRange(first, last) for first, last in runs(sorted(numbers))])

    def _learn(self, connection: Connection, passed: Passed, identities: Identities, region: Gap) -> None:
        query = self._log.query("passed_runs", **{"except": "except_passed"})
        above, upto = region[0] - 1, region[1]
        told = passed.told()
        while monotonic() >= self._rest_until:
            asked = {"above": above, "upto": upto, "limit": PAGE_ROWS, "passed": told}
            found = self._log.rows(connection, query, asked)
            objects = [identities.row_id(table, key) for _, _, table, key in found]
            self._add(
                [
                    SeenRange(int(first), int(last), frozenset([row]))
                    for (first, last, _, _), row in zip(found, objects, strict=True)
                    if row is not None
                ]
            )
            if sum(int(last) - int(first) + 1 for first, last, _, _ in found) < PAGE_ROWS:
                return
            above = max(int(last) for _, last, _, _ in found)

    def _add(self, found: list[SeenRange]) -> None:
        if not found:
            return
        self._keep(joined(sorted([*self._stretches, *found])))
        if len(self._gaps) > (SLOTS if self._log.dialect.constant_ranges else MOST_GAPS):
            self.forget()
            self._rest_until = monotonic() + REST_SECONDS

    def _keep(self, stretches: list[SeenRange]) -> None:
        self._stretches = stretches
        self._gaps = gaps(stretches)

    def _cut_a_piece(self) -> None:
        """Takes the next piece out of what is remembered, so that it is read and learned anew."""
        place = bisect_left([one.last for one in self._stretches], self._next)
        first = max(self._next, self._stretches[place].first) if place < len(self._stretches) else EVER
        if first == EVER:
            first = self._stretches[0].first
        self._piece = (first, first + PIECE_NUMBERS - 1)
        self._next = self._piece[1] + 1
        self._keep([part for one in self._stretches for part in without(one, self._piece)])

    def _gap_parameters(self) -> Mapping[str, Any]:
        if not self._log.dialect.constant_ranges:
            return {"gaps": msgspec.json.encode(self._gaps).decode()}
        slots = [*self._gaps, *([(1, 0)] * (SLOTS - len(self._gaps)))]
        return {
            f"{end}_{slot}": gap[place] for slot, gap in enumerate(slots) for place, end in enumerate(("from", "to"))
        }


def joined(stretches: list[SeenRange]) -> list[SeenRange]:
    """Stretches in their order, those that touch made one where that forgets no more than it should."""
    found: list[SeenRange] = []
    for one in stretches:
        before = found[-1] if found else None
        if before is not None and one.first <= before.last + 1:
            both = before.objects | one.objects
            last = max(before.last, one.last)
            if one.first <= before.last or len(both) < 2 or last - before.first < MIXED_NUMBERS:
                found[-1] = SeenRange(before.first, last, both)
                continue
        found.append(one)
    return found


def gaps(stretches: list[SeenRange]) -> list[Gap]:
    """What lies below the first of them and between them."""
    found: list[Gap] = []
    start = EVER
    for one in stretches:
        if one.first > start:
            found.append((start, one.first - 1))
        start = one.last + 1
    return found


def without(one: SeenRange, piece: Gap) -> list[SeenRange]:
    """What is left of a stretch."""
    parts = [(one.first, min(one.last, piece[0] - 1)), (max(one.first, piece[1] + 1), one.last)]
    return [SeenRange(first, last, one.objects) for first, last in parts if first <= last]
