"""What rows of a log wait for, and how far its outputs are, read from the journal's tables.

What a row waits for is read once for all rows: the index of waiting rows counts them, one GROUP BY
over the parked ones finds why, and batches and plans are few. With 1,000,000 rows parked that is
one pass over an index for each of the two. Its state is named by `eventlog.sources.log.flow`.

A row that several outputs have parked counts once, by the kind that asks most for somebody. If they
have parked more than MOST_COUNTED_ROWS together, the one with most rows of a kind counts for all.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.times import moment
from eventlog.publisher.memory import read_memory
from eventlog.publisher.new_rows import fewer
from eventlog.publisher.tables import EVER, JournalRow
from eventlog.sources.log.flow import (
    Flow,
    OutputLag,
    Pace,
    Polling,
    Resumed,
    WaitingParts,
    count_recently_finished,
    patience,
)
from eventlog.sources.log.lock import read_holder
from eventlog.sources.marks import PACE, PUBLISHER, RESUMED, Marks, RowRanges, value_of
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

LAG_SECONDS: Final = 10.0
"""From this age on of the first row that only others have an output lags."""

MOST_COUNTED_ROWS: Final = 20_000
"""Of so many parked rows it is counted exactly how many there are, whichever outputs have them."""

MOST_LOOKS: Final = 100
"""So many ranges of rows are looked at one by one; of more, neighbouring ones count as one."""

READY, RETRYING, SUSPENDED, HELD, NOT_DUE = range(5)
"""What parked rows wait for, as `parked_ahead` numbers it: the higher, the more for somebody."""

AHEAD: Final = {"ahead": "parked_ahead"}
"""The part of queries that finds what objects wait for."""


class WaitingTable(Struct, frozen=True, kw_only=True):
    """Why a table cannot be read, in a word and in the database's, and the first row that waits for it."""

    reason: str
    note: str
    first: int


class ParkedRows(Struct, frozen=True):
    """So many rows wait, with the first and the last of them."""

    rows: int
    first: int
    last: int


def read_flow(
    connection: Connection,
    log: Log,
    settings: Polling,
    *,
    failing: bool = False,
) -> Flow:
    """Read the facts of a log as they are now, but for its triggers.

    `failing` means an output that did not take its last documents.
    """
    look = JournalLook(connection, log, settings)
    parts = look.parts()
    oldest: int | None = None
    lag: float | None = 0.0
    ready_lag: float | None = 0.0
    if parts.nobody_wants:
        oldest, lag = look.oldest(RowRanges(), READY, RETRYING, SUSPENDED)
    if parts.ready and parts.ready == parts.nobody_wants:
        ready_lag = lag  # they are the same rows, and the look at them is saved
    elif parts.ready:
        _, ready_lag = look.oldest(look.behind, READY)
    holder = look.marks.get(PUBLISHER)
    unread = read_unread_tables(connection, log) if parts.suspended else {}
    return Flow(
        parts=parts,
        unread_tables=Counter(table.reason for table in unread.values()),
        oldest=oldest,
        lag=lag,
        ready_lag=ready_lag,
        first_held=look.first_held,
        publishing=holder is not None and not read_holder(holder).is_over(look.now),
        failing=failing,
        finished=count_recently_finished(value_of(look.marks.get(PACE), Pace) or (), look.now_seconds),
        patience=patience(settings),
        lags=look.lags,
    )


def read_unread_tables(connection: Connection, log: Log) -> dict[str, WaitingTable]:
    """Read the unreadable tables, with the reason."""
    unread: dict[str, WaitingTable] = {}
    for table, reason, record in log.rows(connection, log.query("parked_unread")):
        known = unread.get(str(table))
        if known is not None:
            unread[str(table)] = replace(known, first=min(known.first, int(record)))
            continue
        rows = log.rows(connection, log.query("parked_row"), {"record_id": int(record)})
        notes = [str(note) for _, of_output, note, *_ in rows if of_output == reason and note]
        note = next(iter(notes), "the publisher cannot read it")
        unread[str(table)] = WaitingTable(reason=str(reason), note=note, first=int(record))
    return unread


def shares_of(total: int, counts: Iterable[int]) -> tuple[list[int], int]:
    """Cut the counts to fit into the total; return also the rest of it."""
    shares: list[int] = []
    for count in counts:
        shares.append(min(count, total))
        total -= shares[-1]
    return shares, total


class JournalLook:
    """One look at the journal. A row is free that no output has parked and nobody holds."""

    def __init__(self, connection: Connection, log: Log, settings: Polling) -> None:
        self._connection, self._log, self._settings = connection, log, settings
        self.now = log.now(connection)
        self.now_seconds = self.now.replace(tzinfo=dt.UTC).timestamp()
        memory = read_memory(connection, log)
        # After the outputs: who finds one resumed must find the mark of that, or pauses it again.
        self.marks = Marks(log).all(connection)
        first = self._ask("hold_first")[0][0]
        self.first_held = None if first is None else int(first)
        unparked = [] if first is None else self._ask("hold_unparked")
        self._held_unparked = RowRanges.of(int(number) for (number,) in unparked)
        now = int(self.now_seconds * 1000)
        self._clock = {"now": now, "late": now - int(patience(settings) * 1000)}
        self._parked = self._count_each_output()
        self._once = self._count_once()
        self.behind = RowRanges()
        """Rows that the foremost output has, and that those lack which lag."""
        self.distances: dict[str, OutputLag] = {}
        """How far each output is behind the others, also by a row that came just now."""
        self.lags: dict[str, OutputLag] = {}
        """The same of those that lag or are paused."""
        foremost = max(memory.outputs.values(), key=lambda row: row.position, default=None)
        self._foremost = "" if foremost is None else foremost.name
        for name, row in sorted(memory.outputs.items()):
            # The rows that it lacks and the foremost one has, except held ones.
            behind = memory.lacking(name) - memory.lacking(self._foremost) - self._held_unparked
            lag = self.distances[name] = self._measure(row, behind)
            # Outputs are never all at one place: a moment behind the others is no lag.
            is_late = lag.seconds is None or lag.seconds >= LAG_SECONDS
            if lag.paused or (lag.rows > 0 and is_late):
                self.lags[name] = lag
                if lag.rows:
                    self.behind |= behind

    def parts(self) -> WaitingParts:
        """Count waiting rows by cause, each once: together all rows with the status N."""
        total = int(self._ask("count_waiting")[0][0])
        counts = {kind: parked.rows for kind, parked in self._once.items()}
        held = counts.get(HELD, 0) + len(self._held_unparked)
        not_due = counts.get(NOT_DUE, 0)
        if self._settings.handle_future_events and total:
            due = self._ask("count_part", {"among": "among_due", "kept": "kept_any"})
            not_due = total - int(due[0][0])
        kept = (held, counts.get(SUSPENDED, 0), counts.get(RETRYING, 0), not_due)
        # The journal may still keep rows that somebody has taken out of the log, and that wait for
        # nothing. So no count is more than what is left of the total.
        (held, suspended, retrying, not_due), rest = shares_of(total, kept)
        lagging = min(rest, len(self.behind) - self._count_parked_within(self.behind))
        return WaitingParts(
            ready=rest - lagging,
            held=held,
            retrying=retrying,
            suspended=suspended,
            lagging=lagging,
            not_due=not_due,
        )

    def oldest(self, passed: RowRanges, *kinds: int) -> tuple[int | None, float | None]:
        """Find the longest waiting row, and its wait: of free ones that are not `passed`, and of those parked so."""
        numbers = [self._once[kind].first for kind in kinds if kind in self._once]
        # Rows that committed late between many parked ones are not looked for: that costs too much.
        beyond = self._beyond_many_parked()
        for _ in range(MOST_LOOKS):
            free = self._first_waiting("kept_unparked", beyond)
            if free is None:
                break
            if free[0] not in passed:
                numbers.append(free[0])
                break
            beyond = next(last for first, last in passed.parts if first <= free[0] <= last)
        if not numbers:
            return None, 0.0
        return min(numbers), self._age_of(min(numbers))

    # --- outputs ----------------------------------------------------------------------------------

    def _measure(self, row: JournalRow, behind: RowRanges) -> OutputLag:
        """Measure how far an output is behind the foremost one."""
        rows = max(0, len(behind) - self._count_parked_within(behind))
        first = behind.parts[0][0] if rows else None
        is_overdue = False
        if row.paused is not None:
            # It has been paused for too long, or keeps too many rows meanwhile.
            seconds = self.now_seconds - (row.paused_at or self.now_seconds)
            longest, most = self._settings.max_paused_seconds, self._settings.max_paused_rows
            is_overdue = bool(longest and seconds > longest) or bool(most and rows > most)
        return OutputLag(
            rows=rows,
            first=first,
            seconds=None if first is None else self._age_of(first),
            paused=row.paused is not None,
            resumed=value_of(self.marks.get(f"{RESUMED}{row.name}"), Resumed),
            pause=row.paused,
            overdue=is_overdue,
        )

    def _count_parked_within(self, rows: RowRanges) -> int:
        """Count those of the rows waiting for the foremost output itself."""
        if self._foremost not in self._parked or not rows:
            return 0
        waiting = 0
        for first, last in fewer(rows.parts, MOST_LOOKS):
            waiting += int(self._ask("parked_within", output=self._foremost, first=first, last=last)[0][0])
        return waiting

    # --- parked rows ------------------------------------------------------------------------------

    def _count_each_output(self) -> dict[str, dict[int, ParkedRows]]:
        """Count parked rows by output and kind."""
        parked: dict[str, dict[int, ParkedRows]] = {}
        for output, kind, *numbers in self._ask("parked_by_kind", AHEAD, **self._clock):
            parked.setdefault(str(output), {})[int(kind)] = ParkedRows(*map(int, numbers))
        # A row that somebody holds is held, whatever it is behind.
        held = [] if self.first_held is None else self._ask("parked_held", AHEAD, **self._clock)
        for output, kind, *numbers in held:
            kinds, rows = parked[str(output)], ParkedRows(*map(int, numbers))
            others = kinds[int(kind)]
            kinds[int(kind)] = replace(others, rows=others.rows - rows.rows)
            former = kinds.get(HELD, replace(rows, rows=0))
            first, last = min(former.first, rows.first), max(former.last, rows.last)
            kinds[HELD] = ParkedRows(former.rows + rows.rows, first, last)
        return parked

    def _count_once(self) -> dict[int, ParkedRows]:
        """Count parked rows by kind, once for all outputs."""
        several = list(self._parked.values())
        if len(several) > 1 and self._count_parked() <= MOST_COUNTED_ROWS:
            once = self._ask("parked_once", AHEAD, **self._clock)
            return {int(kind): ParkedRows(int(count), int(first), int(first)) for kind, count, first in once}
        most: dict[int, ParkedRows] = {}
        for kinds in several:
            for kind, parked in kinds.items():
                if kind not in most or parked.rows > most[kind].rows:
                    most[kind] = parked
        return most

    def _count_parked(self) -> int:
        return sum(parked.rows for kinds in self._parked.values() for parked in kinds.values())

    # --- the row that has waited longest ----------------------------------------------------------

    def _beyond_many_parked(self) -> int:
        """Find the last parked row, where many are parked and the first waiting row is among them."""
        if self._count_parked() <= MOST_COUNTED_ROWS:
            return EVER
        parked = [rows for kinds in self._parked.values() for rows in kinds.values()]
        oldest = self._first_waiting("kept_any", EVER)
        if oldest is None or oldest[0] < min(rows.first for rows in parked):
            return EVER
        return max(rows.last for rows in parked)

    def _age_of(self, number: int) -> float | None:
        """Return a row's waiting time in seconds; None where it is unknown."""
        oldest = self._first_waiting("kept_any", number - 1, among="among_all")
        # Somebody may have taken it away, or finished it, since its number was read.
        time = None if oldest is None or oldest[0] != number else self._log.utc(oldest[1])
        since = moment(time) if time else None
        return None if since is None else max(0.0, (self.now - since).total_seconds())

    def _first_waiting(self, kept: str, beyond: int, among: str | None = None) -> tuple[int, Any] | None:
        """Find the first waiting row behind a number, and its time; without `among` one that is due."""
        due = "among_due" if self._settings.handle_future_events else "among_all"
        rows = self._ask("oldest_waiting", {"among": among or due, "kept": kept}, beyond=beyond, limit=1)
        return (int(rows[0][0]), rows[0][1]) if rows else None

    def _ask(self, query: str, fragments: Mapping[str, str] | None = None, **values: Any) -> list[tuple[Any, ...]]:
        return self._log.rows(self._connection, self._log.query(query, **(fragments or {})), values)
