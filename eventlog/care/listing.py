"""Lists of the log's rows: pages that read a bounded range of it and say where to look further,
and the newest rows.

Where indexes lead to all rows by their numbers, a range is a run of numbers. An adopted log
without such an index is read in ranges of the table as it lies on the disk: bounded too, and in
order within a range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from eventlog.care.ages import utc_text
from eventlog.care.rows import Choice, LogRow
from eventlog.core.model import Status
from eventlog.core.who import MOST_CHARACTERS, read_context
from eventlog.sql.dialect import offers
from eventlog.sql.log import Log

PAGE_ROWS: Final = 50
"""Rows of a page."""

REACH_ROWS: Final = 10_000
"""Rows that are looked through at once."""

REACH_PIECES: Final = 16
"""So many times as many are looked through at once where that is quick and little is found."""

PATIENCE_SECONDS: Final = 0.1
"""Seconds after which no further range is begun."""

WIDTH_CHARACTERS: Final = 200
"""Characters of a value in a list."""

BEYOND: Final = 2**63 - 1
"""A number that no row has."""

READ_ROWS: Final = 2_000
"""Rows that are in memory at once, of however many are asked for."""

LATE_ROWS: Final = 1_000
"""How far below the highest number a row may appear late and still be followed."""


class Filters(Choice, frozen=True, kw_only=True):
    """Which rows are asked for; what is empty asks for nothing.

    `text` is looked for in keys, columns, values, notes.

    `since` is a time by the clock of the log. `by` is looked for in users of the database and in what
    sessions said.
    """

    key: str = ""
    text: str = ""
    since: str = ""
    by: str = ""

    @property
    def waiting(self) -> bool:
        """Return True if only waiting rows can be meant."""
        return self.statuses == Status.NEW

    def summary(self) -> str:
        """Sum up the filters in a few words, but for the key and the search words: they may be values."""
        asked_for = {"status": self.statuses, "reason": self.reason, "table": self.table}
        if self.key:
            asked_for["key"] = "one"
        if self.text:
            asked_for["text"] = "some"
        if self.by:
            asked_for["by"] = "one"
        return ", ".join(f"{name} {what}" for name, what in asked_for.items() if what) or "every row"

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the queries of web.sql."""
        parameters = super().parameters() | {
            "any_key": int(not self.key),
            "key": self.key or " ",
            "any_text": int(not self.text),
            "pattern": _contains(self.text),
        }
        if self.since:
            parameters["since"] = self.since
        if self.by:
            parameters["by"] = _contains(self.by)
        return parameters


def _contains(words: str) -> str:
    """Write the LIKE pattern for these words, in lower case."""
    escaped = words.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"


class Cursor(Struct, frozen=True, kw_only=True):
    """Where a page begins: below a number, and where the disk's order is read, before a block."""

    before: int = BEYOND
    block: int | None = None


class Listing(Struct, frozen=True, kw_only=True):
    """A page of rows; `further` is where to go on, None at the end.

    `ordered`: no row of another page is newer. `searches`: the page is not full, and rows further back were not looked
    at yet.
    """

    rows: tuple[LogRow, ...]
    further: Cursor | None
    ordered: bool = True
    searches: bool = False


class _ListRange(Struct, frozen=True, kw_only=True):
    """A part of the log as a condition and its parameters, and the cursor behind it."""

    condition: str
    parameters: dict[str, Any]
    entries: str = "list_log"
    behind: Cursor | None
    block: int | None = None


def listing(
    log: Log,
    filters: Filters,
    cursor: Cursor,
    *,
    numbered: bool,
    limit: int = PAGE_ROWS,
    width: int = WIDTH_CHARACTERS,
) -> Listing:
    """Read a page of filtered rows; `numbered`: the log has an index of its numbers."""
    by_block = not (numbered or filters.waiting) and reads_by_block(log)
    page: list[LogRow] = []
    end = monotonic() + PATIENCE_SECONDS
    far = 1
    further: Cursor | None = cursor
    with log.transaction() as connection:
        while further is not None and len(page) < limit:
            wanted, began = limit - len(page), monotonic()
            if by_block:
                row_range = _by_block(log, connection, further)
            else:
                # Where every row is meant, no more need be looked through than the page still
                # lacks.
                reach = wanted if filters == Filters() else far * REACH_ROWS
                row_range = _by_number(log, connection, filters, further, reach)
            if row_range is None:
                further = None
                break
            before = further.before
            rows = _rows(log, connection, filters, row_range, before=before, limit=wanted, width=width)
            page += rows
            further = row_range.behind
            if len(rows) == wanted:  # the range may have more of them
                further = Cursor(before=rows[-1].record_id, block=row_range.block)
            # The page is shown with what there is, and says where to look further.
            now = monotonic()
            if now >= end:
                break
            if now - began < PATIENCE_SECONDS / 4:
                far = min(2 * far, REACH_PIECES)
    searches = further is not None and len(page) < limit
    return Listing(rows=tuple(page), further=further, ordered=not by_block, searches=searches)


def newest(
    log: Log,
    filters: Filters,
    *,
    limit: int,
    width: int,
    after: int = -BEYOND,
    before: int = BEYOND,
    reach: int = REACH_ROWS,
) -> Iterator[LogRow]:
    """Yield the newest filtered rows, those between two numbers, the oldest of them first.

    Of many only a part is in memory: they are walked through from the newest one down, and read on
    the way back.
    """
    walked: list[tuple[_ListRange, int, int]] = []
    rows: list[LogRow] = []
    for row_range, end, rows in _walk(log, filters, limit, width, after, before, reach):
        walked.append((row_range, end, len(rows)))
    if len(walked) == 1:
        yield from reversed(rows)
        return
    for row_range, end, count in reversed(walked):
        with log.transaction() as connection:
            rows = _rows(log, connection, filters, row_range, before=end, limit=count, width=width)
        yield from reversed(rows)


def _walk(
    log: Log, filters: Filters, limit: int, width: int, after: int, before: int, reach: int
) -> Iterator[tuple[_ListRange, int, list[LogRow]]]:
    """Yield parts of the rows asked for, newest first; only the first part with values."""
    left = limit
    while left > 0:
        with log.transaction() as connection:
            wanted = min(left, reach) if filters == Filters() else reach
            row_range = _by_number(log, connection, filters, Cursor(before=before), wanted)
        if row_range is None:
            return
        low = max(row_range.parameters["low"], after + 1)
        while left > 0:
            part = replace(row_range, parameters={"low": low})
            with log.transaction() as connection:
                some = min(left, READ_ROWS)
                rows = _rows(log, connection, filters, part, before=before, limit=some, width=width)
            if rows:
                yield replace(part, parameters={"low": rows[-1].record_id}), before, rows
                # All but the first part are read again on the way back, so their values need not
                # come along now.
                left, width = left - len(rows), 1
            if len(rows) < some:
                break
            before = rows[-1].record_id
        if row_range.behind is None or low == after + 1:
            return
        # Nobody waits for a page here, and rows that are rare are found in a few steps.
        before, reach = low, reach * 4


def follow(
    log: Log,
    filters: Filters,
    *,
    limit: int,
    width: int,
    pause: Callable[[float], object],
) -> Iterator[LogRow]:
    """Yield the newest rows, then all new or changed rows, for ever; `pause` waits for the next
    look.

    A look reads the log's newest rows, slow without an index; nine tenths of the time are pauses.
    """
    seen: dict[int, LogRow] = {}
    rows = newest(log, filters, limit=limit, width=width)
    while True:
        start = monotonic()
        for row in rows:
            if seen.get(row.record_id) != row:
                seen[row.record_id] = row
                yield row
        spent = monotonic() - start
        # Numbers are given before a transaction ends, so a row may appear below one that was shown
        # already.
        after = max(seen, default=LATE_ROWS) - LATE_ROWS
        seen = {number: row for number, row in seen.items() if number > after}
        pause(max(1.0, 9 * spent))
        rows = newest(log, filters, limit=BEYOND, width=width, after=after, reach=LATE_ROWS)


def reads_by_block(log: Log) -> bool:
    """Return True if the database reads a part of a table by its place on the disk."""
    return offers(log.dialect, "list_places")


def one_row(log: Log, record_id: int, *, width: int = 2**30) -> LogRow | None:
    """Read a row with all of its values, each up to the wanted length."""
    entries = "list_halves" if offers(log.dialect, "list_halves") else "list_log"
    row_range = _ListRange(condition="list_numbers", parameters={"low": record_id}, entries=entries, behind=None)
    with log.transaction() as connection:
        rows = _rows(log, connection, Filters(), row_range, before=record_id + 1, limit=1, width=width)
    return rows[0] if rows else None


def _by_number(
    log: Log,
    connection: Connection,
    filters: Filters,
    cursor: Cursor,
    reach: int,
) -> _ListRange | None:
    entries, condition = "list_log", "list_numbers"
    if filters.waiting:
        condition = "list_waiting_numbers"
        query = log.query("list_low", among="list_waiting")
    elif offers(log.dialect, "list_halves"):
        # One index has the numbers of the waiting rows and another those of all others: each half
        # is read by its own.
        entries = "list_halves"
        query = log.query("list_low_of_all")
    else:
        query = log.query("list_low", among="list_every")
    low, count = log.rows(connection, query, {"before": cursor.before, "reach": reach})[0]
    if low is None:
        return None
    behind = None
    if int(count) == reach:
        behind = Cursor(before=int(low))
    return _ListRange(entries=entries, condition=condition, parameters={"low": int(low)}, behind=behind)


def _by_block(log: Log, connection: Connection, cursor: Cursor) -> _ListRange | None:
    table = {"log": log.dialect.qualify(log.names.schema, log.names.table)}
    end, reach = map(int, log.rows(connection, log.query("list_end"), table)[0])
    if cursor.block is not None:
        # An address may name any block, and a table may have become smaller.
        last_range_ends = -(-end // reach) * reach
        end = min(cursor.block, last_range_ends)
    if end <= 0:
        return None
    # RowRanges lie where they lay for the page before, although the table has grown meanwhile.
    first = (end - 1) // reach * reach
    ends = {"first_place": first, "last_place": first + reach}
    first_place, last_place = log.rows(connection, log.query("list_bounds"), ends)[0]
    return _ListRange(
        condition="list_places",
        parameters={"first_place": first_place, "last_place": last_place},
        behind=Cursor(block=first) if first > 0 else None,
        block=first + reach,
    )


def _rows(
    log: Log, connection: Connection, filters: Filters, row_range: _ListRange, *, before: int, limit: int, width: int
) -> list[LogRow]:
    parameters = filters.parameters() | row_range.parameters | {"before": before, "limit": limit, "width": width}
    since = "list_since" if filters.since else "list_ever"
    parts = {"row_range": row_range.condition, "entries": row_range.entries, "since": since}
    known = log.names.context is not None
    parts["context"] = "list_context" if known else "list_no_context"
    by = "list_by" if known else "list_by_user"
    parts["by"] = by if filters.by else "list_by_anybody"
    query = log.query("list_rows", reason="list_reason", note="list_note", **parts)
    rows: list[LogRow] = []
    for row in log.rows(connection, query, parameters):
        values = dict(zip(LogRow.__struct_fields__, row, strict=True))
        # The journal has the time of the next attempt in milliseconds; 0 is no time.
        due = int(values["next_attempt"] or 0)
        values["next_attempt"] = None
        if due > 0:
            values["next_attempt"] = utc_text(due / 1000)
        values["attempts"] = values["attempts"] or None
        values["context"] = (read_context(values["context"]) or "")[:MOST_CHARACTERS] or None
        rows.append(LogRow(**values))
    return rows
