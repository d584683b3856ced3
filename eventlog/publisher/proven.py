"""Numbers that nobody has to look for: what is not there of them never comes.

While somebody keeps an old snapshot open the server keeps what rows were in its index of waiting
rows, and each look from the beginning reads all that was published since.

Law: who inserts into the log locks it before a number is drawn, and until the end of the
transaction. So when all that had it locked after a number was seen are over, a look that begins then
sees every row below that number which will ever come. A prepared transaction draws no more numbers: only
those may be its own that were drawn when it was seen first.

Rows that somebody sets back by SQL are none of these: a look at everything finds them, which takes a
hundredth of the time at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.publisher.tables import EVER, LAST_NUMBER
from eventlog.sources.marks import NO_ROWS, RowRanges
from eventlog.sql.dialect import offers
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

WORTH_ROWS: Final = 500
"""So many rows are published before it is asked again who writes: to pass over them costs as much."""

PAUSE_SECONDS: Final = 1.0
"""Nobody is asked more often."""

PART: Final = 100
"""A look at everything takes at most such a part of the time."""


class Proven(Struct):
    """What is proven of the numbers of a log, as long as nobody else has written to the journal."""

    numbers: RowRanges = RowRanges()
    unproven: int = WORTH_ROWS
    """How many rows were sealed since it was last asked who writes."""
    highest: int = EVER
    """The highest number that was sealed."""
    asked: int = EVER
    """What that was when it was last asked who writes; nothing, where nothing is to be proven."""
    writers: AbstractSet[str] = frozenset()
    """Who could still commit a lower one then."""
    prepared: dict[str, int] = {}
    """The last number that was drawn when a prepared transaction was seen first."""
    next_ask: float = 0.0
    next_whole_look: float = 0.0

    def seal(self, records: RowRanges) -> None:
        """Note published rows: they need not be passed over for ever."""
        if records:
            self.highest = max(self.highest, records.parts[-1][1])
            self.unproven += len(records)

    def find_final_numbers(self, connection: Connection, log: Log) -> RowRanges:
        """Find numbers for which a look from now on sees all rows that will ever come."""
        is_asked, is_worth = self.asked > EVER, self.unproven >= WORTH_ROWS
        if not (is_asked or is_worth) or monotonic() < self.next_ask or not offers(log.dialect, "log_writers"):
            return NO_ROWS
        self.next_ask = monotonic() + PAUSE_SECONDS
        if self.highest == EVER:
            for (number,) in log.rows(connection, log.query("newest_processed")):
                self.highest = int(number)
        # All numbers up to the highest were drawn before it is asked who writes.
        rows = [(str(name), bool(is_prepared)) for name, is_prepared in log.rows(connection, log.query("log_writers"))]
        prepared = [name for name, is_prepared in rows if is_prepared]
        if not self.prepared.keys() >= set(prepared):
            drawn = [number for (number,) in log.rows(connection, log.query("last_drawn"))]
            last = LAST_NUMBER if not drawn or drawn[0] is None else int(drawn[0])
            self.prepared |= {name: last for name in prepared if name not in self.prepared}
        self.prepared = {name: self.prepared[name] for name in prepared}
        writers = {name for name, is_prepared in rows if not is_prepared}
        final = NO_ROWS
        if is_asked and self.writers.isdisjoint(writers):
            first = max(self.prepared.values(), default=EVER) + 1
            final, self.asked = RowRanges.run(first, self.asked), EVER
        if self.asked == EVER and is_worth:
            self.asked, self.writers, self.unproven = self.highest, writers, 0
        return final

    def look(self, final: RowRanges, waiting: Sequence[int]) -> None:
        """Note the first row a look has found, begun when these numbers were settled."""
        if not final:
            return
        if waiting and waiting[0] <= final.parts[-1][1]:
            self.unproven = WORTH_ROWS  # it is asked again
            return
        self.numbers |= final
        self.next_whole_look = max(self.next_whole_look, monotonic() + PAUSE_SECONDS)

    def is_whole_look_due(self) -> bool:
        """Return True if it is time to look at everything once more."""
        return bool(self.numbers) and monotonic() >= self.next_whole_look

    def look_whole(self, kept: RowRanges, began: float) -> None:
        """Note that nothing waits, whatever its number."""
        self.numbers = kept
        self.next_whole_look = monotonic() + max(PAUSE_SECONDS, PART * (monotonic() - began))
