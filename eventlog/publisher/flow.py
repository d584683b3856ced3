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
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.times import moment
from eventlog.publisher.memory import Memory, read_memory
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
        oldest, lag = look.oldest_unheld()
    if parts.ready and parts.ready == parts.nobody_wants:
        ready_lag = lag  # they are the same rows, and the look at them is saved
    elif parts.ready:
        _, ready_lag = look.oldest_ready()
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


def lacking(memory: Memory, name: str) -> RowRanges:
    """Find the rows ahead of an output, or perhaps on their way to it."""
    position = memory.outputs[name].position
    ahead = [batch.records for number, batch in memory.batches.items() if number > position]
    return RowRanges.union([*ahead, memory.planned.get(name, RowRanges())])


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
        memory = read_memory(connection, log, "", seen=False)
        # After the outputs: who finds one resumed must find the mark of that, or pauses it again.
        self.marks = Marks(log).all(connection)
        outputs = memory.outputs
        foremost = max(outputs.values(), key=lambda row: row.position, default=None)
        self._foremost = foremost
        self._lacking = {name: lacking(memory, name) for name in outputs}
        now = int(self.now_seconds * 1000)
        self._clock = {"now": now, "late": now - int(patience(settings) * 1000)}
        self.first_held = None
        self._held_unparked = RowRanges()
        first = self._ask("hold_first")[0][0]
        if first is not None:
            self.first_held = int(first)
            unparked = self._ask("hold_unparked")
            self._held_unparked = RowRanges.of(int(number) for (number,) in unparked)
        self._parked = self._each_output()
        self._once = self._each_once()
        self._behind: RowRanges = RowRanges()
        """Rows that the foremost output has, and that those lack which lag."""
        self.distances = dict(self._read_distances(outputs))
        """How far each output is behind the others, also by a row that came just now."""
        self.lags: dict[str, OutputLag] = {}
        """The same of those that lag or are paused."""
        for name, lag in self.distances.items():
            # Outputs are never all at one place: a moment behind the others is no lag.
            is_late = lag.seconds is None or lag.seconds >= LAG_SECONDS
            if lag.paused or (lag.rows > 0 and is_late):
                self.lags[name] = lag
                if lag.rows:
                    self._behind |= self._behind_of(name)

    def parts(self) -> WaitingParts:
        """Count waiting rows by cause, each once: together all rows with the status N."""
        total = int(self._ask("count_waiting")[0][0])
        counts = {kind: parked.rows for kind, parked in self._once.items()}
        held = counts.get(HELD, 0) + len(self._held_unparked)
        not_due = counts.get(NOT_DUE, 0)
        if self._settings.handle_future_events and total:
            not_due = total - int(self._ask("count_part", self._fragments("kept_any"))[0][0])
        kept = (held, counts.get(SUSPENDED, 0), counts.get(RETRYING, 0), not_due)
        # The journal may still keep rows that somebody has taken out of the log, and that wait for
        # nothing. So no count is more than what is left of the total.
        (held, suspended, retrying, not_due), rest = shares_of(total, kept)
        lagging = 0
        if self._behind:
            lagging = min(rest, len(self._behind) - self._count_parked_within(self._behind))
        return WaitingParts(
            ready=rest - lagging,
            held=held,
            retrying=retrying,
            suspended=suspended,
            lagging=lagging,
            not_due=not_due,
        )

    def oldest_unheld(self) -> tuple[int | None, float | None]:
        """Find the longest waiting row of those due and not held, and its wait."""
        return self._older(self._free(RowRanges()), READY, RETRYING, SUSPENDED)

    def oldest_ready(self) -> tuple[int | None, float | None]:
        """Find the longest waiting row of those ready for outputs without a lag, and its wait."""
        return self._older(self._free(self._behind), READY)

    # --- outputs ----------------------------------------------------------------------------------

    def _read_distances(self, outputs: Mapping[str, JournalRow]) -> Iterator[tuple[str, OutputLag]]:
        """Measure how far each output is behind the foremost one."""
        for name, row in sorted(outputs.items()):
            behind = self._behind_of(name)
            rows = max(0, len(behind) - self._count_parked_within(behind))
            first = seconds = None
            if rows:
                first = behind.parts[0][0]
                seconds = self._age_of(first)
            lag = OutputLag(
                rows=rows,
                first=first,
                seconds=seconds,
                paused=row.paused is not None,
                resumed=value_of(self.marks.get(f"{RESUMED}{name}"), Resumed),
                pause=row.paused,
                overdue=self._is_overdue(row, rows),
            )
            yield name, lag

    def _is_overdue(self, row: JournalRow, rows: int) -> bool:
        """Return True if an output has been paused for too long, or keeps too many rows meanwhile."""
        if row.paused is None:
            return False
        seconds = self.now_seconds - (row.paused_at or self.now_seconds)
        longest, most = self._settings.max_paused_seconds, self._settings.max_paused_rows
        return bool(longest and seconds > longest) or bool(most and rows > most)

    def _behind_of(self, name: str) -> RowRanges:
        """Find the rows an output lacks and the foremost one has, except held ones."""
        assert self._foremost is not None
        return self._lacking[name] - self._lacking[self._foremost.name] - self._held_unparked

    def _count_parked_within(self, rows: RowRanges) -> int:
        """Count those of the rows waiting for the foremost output itself."""
        if self._foremost is None or self._foremost.name not in self._parked or not rows:
            return 0
        waiting = 0
        for first, last in fewer(list(rows.parts), MOST_LOOKS):
            output = self._foremost.name
            rows_parked = self._ask("parked_within", output=output, first=first, last=last)
            waiting += int(rows_parked[0][0])
        return waiting

    # --- parked rows ------------------------------------------------------------------------------

    def _each_output(self) -> dict[str, dict[int, ParkedRows]]:
        """Count parked rows by output and kind."""
        parked: dict[str, dict[int, ParkedRows]] = {}
        for output, kind, *numbers in self._ask("parked_by_kind", AHEAD, **self._clock):
            parked.setdefault(str(output), {})[int(kind)] = ParkedRows(*map(int, numbers))
        if self.first_held is None:
            return parked
        # A row that somebody holds is held, whatever it is behind.
        for output, kind, *numbers in self._ask("parked_held", AHEAD, **self._clock):
            kinds, held = parked[str(output)], ParkedRows(*map(int, numbers))
            others = kinds[int(kind)]
            kinds[int(kind)] = ParkedRows(others.rows - held.rows, others.first, others.last)
            former = kinds.get(HELD, ParkedRows(0, held.first, held.last))
            kinds[HELD] = ParkedRows(
                former.rows + held.rows,
                min(former.first, held.first),
                max(former.last, held.last),
            )
        return parked

    def _each_once(self) -> dict[int, ParkedRows]:
        """Count parked rows by kind, once for all outputs."""
        several = list(self._parked.values())
        if not several:
            return {}
        if len(several) == 1:
            return several[0]
        if sum(parked.rows for kinds in several for parked in kinds.values()) <= MOST_COUNTED_ROWS:
            once: dict[int, ParkedRows] = {}
            for kind, count, first in self._ask("parked_once", AHEAD, **self._clock):
                once[int(kind)] = ParkedRows(int(count), int(first), int(first))
            return once
        most: dict[int, ParkedRows] = {}
        for kinds in several:
            for kind, parked in kinds.items():
                if kind not in most or parked.rows > most[kind].rows:
                    most[kind] = parked
        return most

    # --- the row that has waited longest ----------------------------------------------------------

    def _free(self, passed: RowRanges) -> tuple[Any, ...] | None:
        """Find the first free row outside these: its number, its time and its object."""
        # Rows that committed late between many parked ones are not looked for: that costs too much.
        beyond = self._beyond_many_parked()
        for _ in range(MOST_LOOKS):
            fragments = self._fragments("kept_unparked")
            oldest = self._ask("oldest_waiting", fragments, beyond=beyond, limit=1)
            if not oldest:
                return None
            number = int(oldest[0][0])
            if number not in passed:
                return oldest[0]
            beyond = next(last for first, last in passed.parts if first <= number <= last)
        return None

    def _beyond_many_parked(self) -> int:
        """Find the last parked row, where many are parked and the first waiting row is among them."""
        parked = [rows for kinds in self._parked.values() for rows in kinds.values()]
        if sum(rows.rows for rows in parked) <= MOST_COUNTED_ROWS:
            return EVER
        oldest = self._ask("oldest_waiting", self._fragments("kept_any"), beyond=EVER, limit=1)
        if not oldest or int(oldest[0][0]) < min(rows.first for rows in parked):
            return EVER
        return max(rows.last for rows in parked)

    def _older(self, free: tuple[Any, ...] | None, *kinds: int) -> tuple[int | None, float | None]:
        """Choose the older one of a free row and of the parked ones of these kinds."""
        numbers = [self._once[kind].first for kind in kinds if kind in self._once]
        if free is not None:
            numbers.append(int(free[0]))
        if not numbers:
            return None, 0.0
        return min(numbers), self._age_of(min(numbers))

    def _age_of(self, number: int) -> float | None:
        """Return a row's waiting time in seconds; None where it is unknown."""
        fragments = self._fragments("kept_any", "among_all")
        oldest = self._ask("oldest_waiting", fragments, beyond=number - 1, limit=1)
        # Somebody may have taken it away, or finished it, since its number was read.
        if not oldest or int(oldest[0][0]) != number:
            return None
        time = self._log.utc(oldest[0][1])
        since = moment(time) if time else None
        if since is None:
            return None
        return max(0.0, (self.now - since).total_seconds())

    def _fragments(self, kept: str, among: str | None = None) -> dict[str, str]:
        due = "among_due" if self._settings.handle_future_events else "among_all"
        return {"among": among or due, "kept": kept}

    def _ask(self, query: str, fragments: Mapping[str, str] | None = None, **values: Any) -> list[tuple[Any, ...]]:
        return self._log.rows(self._connection, self._log.query(query, **(fragments or {})), values)
