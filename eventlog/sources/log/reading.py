"""How waiting rows are read: as many as may be on their way together, by number and by size.

Law: no value is fetched before its length is known to fit. Short values come with their rows at
once, because so many of them fit always; of the others the lengths come first.

A batch does not end within a change. Sessions that write at the same time draw their numbers in
turn, so the rows of one change need not be neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection

from eventlog.core.backoff import Backoff
from eventlog.core.errors import SourceError, shorten
from eventlog.core.model import Event
from eventlog.core.rules.meaning import MEANING
from eventlog.core.rules.screen import Identities, identities_of
from eventlog.core.schema import Catalog
from eventlog.sources.log.ends import TransactionEnds
from eventlog.sources.log.row_events import BEFORE_COLUMNS, TRANSACTION_COLUMNS, Rows, events_in_utc
from eventlog.sources.marks import RowRanges
from eventlog.sql.dialect import offers
from eventlog.sql.log import ALL, Log, id_list

LOOKAHEAD_ROWS: Final = 32
"""Rows read past the limit to see whether the last object goes on; more each time that it does."""

ROW_BYTES: Final = 500
"""What a row takes here beside its values: it bounds how many are read past the limit."""

SHORT_BYTES: Final = 512
"""A value up to this length comes with its row, however many rows are asked for."""

LONGEST_BYTES: Final = 2**30
"""No length that a database is asked for is larger."""

NO_VALUE_BYTES: Final = -1
"""Every value is longer, so none comes with its row."""

NEAR_ROWS: Final = 32
"""So far behind the end of a batch rows of a change are looked for that has some before it."""

OBJECT: Final = slice(2, 4)
"""Where table_name and table_key stand in the rows."""

VALUES: Final = slice(5, 7)
"""Where old_value and new_value stand, if they are not too long to come with the others."""

LENGTHS: Final = slice(9, 11)
"""Where the lengths stand of values that are."""

NO_LENGTHS: Final = (None, None)

SHARED: Final = "record_id {} is in several rows; give each a number of its own, and requeue them."
"""The fault of all rows with one number."""

PROCESSED: Final = (
    "Another row of the log has record_id {} already, and is processed; give this one a number of its own."
)
"""The fault of a row with the number of a processed one."""

_number, _kind, _column = itemgetter(0), itemgetter(1), itemgetter(4)
_transaction, _lengths = itemgetter(BEFORE_COLUMNS), itemgetter(LENGTHS)


class Request(Struct, frozen=True, kw_only=True):
    """Which rows are asked for: how many, among which, and how many bytes their values may have.

    A row that has more comes by itself. `known` are rows that are not wanted.
    """

    limit: int
    room: int
    among: str | None = None
    bounds: Mapping[str, object] = {}
    known: RowRanges = RowRanges()


class Portion(Struct, frozen=True, kw_only=True):
    """Rows that are read together, and what their values have at most, in bytes; `more` wait behind.

    `first` is the number of the first row that was seen: it may be left, for its change goes on behind the others.
    """

    rows: Sequence[Event]
    weight: int
    more: bool
    first: int | None


class WaitingRows:
    """Reads rows of a log that wait."""

    def __init__(self, log: Log, catalog: Catalog | None, settings: LogSettings) -> None:
        self._log = log
        self._settings = settings
        self.share = settings.share
        self._identities = identities_of(catalog)
        self._ends = TransactionEnds(log)
        self._transaction = ""
        """The query that adds the transaction to waiting rows; nobody asks for it with ""."""
        if settings.transactions and log.names.origin is not None:
            self._transaction = "transaction_captured"
        elif settings.transactions and log.names.transaction is not None:
            self._transaction = "transaction_written"
        elif settings.transactions and offers(log.dialect, "transaction_known"):
            self._transaction = "transaction_known"
        self._context = "context_written" if settings.who and log.names.context is not None else ""

    def next(self, connection: Connection, request: Request) -> Portion:
        """Read the first rows, and more of the last one's object while there is space."""
        identities, limit, share, known = self._identities, request.limit, self.share, len(request.known)
        # Values up to this length come with their rows: all that are asked for fit with two each.
        plain = min(max(SHORT_BYTES, share // (2 * limit)), LONGEST_BYTES)
        run, most = LOOKAHEAD_ROWS, max(LOOKAHEAD_ROWS, share // ROW_BYTES)
        while True:
            rows, faults, is_full = self._ask(connection, request, limit + run + known, plain)
            if known:
                rows = [row for row in rows if row[0] not in request.known]
            end = len(rows)
            if limit < end:
                end = end_with_a_change(rows, end_of_object(rows, limit, identities))
            goes_on = end == len(rows) and is_full
            # Nobody can say yet where the last object ends: a longer look costs less than a cut.
            if goes_on and run < most:
                run = min(run * 16, most)
                continue
            if goes_on:
                end = start_of_object(rows, end, identities)
            return self._portion(connection, rows, end, plain, request, faults, more=goes_on)

    def unread(self, connection: Connection, request: Request) -> tuple[Rows, bool]:
        """Read the first rows without values, with an incomplete last change; return True if more may be behind."""
        rows, _, is_full = self._ask(connection, request, request.limit, NO_VALUE_BYTES)
        return rows, is_full

    def ends_behind(self, connection: Connection, events: Sequence[Event]) -> dict[int, int] | None:
        """Return the last waiting row of each transaction continuing behind these; None if unknown."""
        # A row is there once its transaction is committed, and then all rows of that are. Not where
        # times count: there a row of the same transaction may not be due yet.
        if not self._settings.ends or self._settings.handle_future_events:
            return None
        if self._transaction not in ("transaction_written", "transaction_captured"):
            return None
        # Rows come in the order of their numbers, and those of a transaction share one object of it.
        last_events = {id(event.transaction): event for event in events}
        # Compared with its own last row: rows of others that were left may have higher numbers.
        lasts: dict[int, int] = {}
        for event in last_events.values():
            if event.transaction is not None:
                mark = event.transaction.mark
                lasts[mark] = max(lasts.get(mark, 0), event.position[0])
        return self._ends.behind(connection, lasts, events[0].position[0])

    def _ask(
        self, connection: Connection, request: Request, limit: int, plain: int
    ) -> tuple[Rows, dict[int, str], bool]:
        """Read rows, one of each number; return also what is wrong with some, and whether more may be behind."""
        among, order = request.among or "among_all", "order_by_number"
        # Rows that are asked for by their numbers were found due already.
        if self._settings.handle_future_events and among != "among_noted":
            among, order = request.among or "among_due", "order_by_time"
        fragments = {"among": among, "order": order, "transaction": self._transaction, "context": self._context}
        query = self._log.query("waiting_rows", **fragments)
        rows = self._log.rows(connection, query, {"limit": limit + 1, "plain": plain, **request.bounds})
        if is_full := len(rows) > limit:
            # Others behind may have the number of the last one.
            end = limit
            while end and rows[end - 1][0] == rows[limit][0]:
                end -= 1
            rows = rows[:end] or rows
        return *keep_one_each(rows), is_full

    def _portion(
        self,
        connection: Connection,
        rows: Rows,
        end: int,
        plain: int,
        request: Request,
        faults: dict[int, str],
        *,
        more: bool,
    ) -> Portion:
        """Return the rows before `end` that fit, with all their values; add the faults of those that are too large."""
        weight, cut = 2 * plain * end, end
        are_large = any_large(rows[:end])
        if are_large or weight > request.room:
            cut, weight = self._fit(rows[:end], request.room, faults)
        more = more or cut < len(rows)
        if cut < end:
            # No object is cut but one that has no room alone.
            end = cut
            identity = self._identities.row_id
            if identity(*rows[end - 1][OBJECT]) == identity(*rows[end][OBJECT]):
                end = start_of_object(rows, end, self._identities)
        # Rows of a change that goes on behind the end are left for later with it.
        whole, torn = rows[:end], set[int]()
        if end < len(rows):
            torn = find_torn_places(rows, end)
        if 0 < len(torn) < end:  # else there is no room for the whole of a change
            whole = [row for index, row in enumerate(whole) if index not in torn]
        if are_large and any_large(whole):
            whole = self._with_values(connection, whole, plain, faults)
        events = events_in_utc(whole, self._log, faults, who=self._settings.who)
        return Portion(rows=events, weight=weight, more=more, first=int(rows[0][0]) if rows else None)

    def _fit(self, rows: Rows, room: int, faults: dict[int, str]) -> tuple[int, int]:
        """Return how many rows fit, and what they weigh."""
        weight, limit = 0, self._settings.value_limit
        for index, row in enumerate(rows):
            size = size_of(row)
            if size > limit:
                faults.setdefault(int(row[0]), too_large(row, limit))
            # Nobody fetches the values of one with a fault, so that it takes nobody's room.
            if int(row[0]) in faults:
                continue
            if weight + size > room and weight > 0:
                return index, weight
            weight += size
        return len(rows), weight

    def _with_values(self, connection: Connection, rows: Rows, plain: int, faults: dict[int, str]) -> Rows:
        """Read rows without a fault again of which a value came as its length."""
        large = [int(row[0]) for row in rows if row[LENGTHS] != NO_LENGTHS and int(row[0]) not in faults]
        request = Request(limit=ALL, room=ALL, among="among_noted", bounds={"ids": id_list(large)})
        limit = self._settings.value_limit
        found, shared, _ = self._ask(connection, request, ALL, min(max(plain, limit), LONGEST_BYTES))
        again = {int(row[0]): row for row in found}
        faults.update({number: too_large(row, limit) for number, row in again.items() if size_of(row) > limit})
        faults.update(shared)
        gone = {*large} - again.keys()  # between the two statements
        return [again.get(int(row[0]), row) for row in rows if int(row[0]) not in gone]


class LogSettings(Struct, frozen=True, kw_only=True):
    """How a log is read and marked.

    `backoff` is how long rows wait after their receiver asked for another time. With `transactions`
    each event says which one wrote it, where the database knows; with `ends` each batch says which
    transactions go on behind it, where the log itself says the true ones. With `who` each says who is
    behind it. The values of all batches
    on their way have at most `query_bytes` together, unless a single row has more; a row whose
    values have more than `value_limit` bytes is not read.
    """

    handle_future_events: bool = False
    delete_from_log: bool = False
    backoff: Backoff = Backoff()
    transactions: bool = False
    ends: bool = False
    who: bool = False
    query_bytes: int = 32_000_000
    value_limit: int = 64_000_000

    @property
    def share(self) -> int:
        """Return the bytes of values a batch may have."""
        # While its documents are written two more are made ready.
        return self.query_bytes // 3


def keep_one_each(rows: Rows) -> tuple[Rows, dict[int, str]]:
    """Keep one row of each number; return them, and what is wrong with the numbers that several rows have.

    SourceError if a row has no number.
    """
    kept = {row[0]: row for row in rows}
    if None in kept:
        raise SourceError(
            "A waiting row of the log has no record_id, so its status cannot be written.",
            hint="Give it one, or take it away; `eventlog check` counts such rows.",
        )
    if len(kept) == len(rows):
        return rows, {}
    shared = [int(number) for number, count in Counter(map(_number, rows)).items() if count > 1]
    return [*kept.values()], {number: SHARED.format(number) for number in shared}


def find_torn_places(rows: Rows, end: int) -> set[int]:
    """Find field rows before `end` whose change continues behind it, between rows of others.

    A change ends where its object's next row has another kind, or repeats a column.
    """
    behind: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows[end : end + NEAR_ROWS]:
        behind.setdefault(row[OBJECT], row)
    near = {row[OBJECT] for row in rows[max(0, end - NEAR_ROWS) : end]}
    objects = {key: row for key, row in behind.items() if key in near and _column(row) is not None}
    if not objects:
        return set()
    last: dict[tuple[Any, ...], dict[str, int]] = {key: {} for key in objects}
    kinds: dict[tuple[Any, ...], object] = {}
    for index, row in enumerate(rows[:end]):
        key = row[OBJECT]
        if key in objects:
            if _begins(row, last[key], kinds.get(key)):
                last[key] = {}
            last[key][_column(row)] = index
            kinds[key] = _kind_of_change(row)
    torn: set[int] = set()
    for key, row in objects.items():
        if not _begins(row, last[key], kinds[key]):
            torn.update(last[key].values())
    return torn


def end_with_a_change(rows: Rows, end: int) -> int:
    """Return the first end from this one on behind a whole change; few rows may have none."""
    while end < len(rows) and len(find_torn_places(rows, end)) == end:
        end += 1
    return end


def continuing(rows: Rows) -> set[int]:
    """Find rows that continue the change of the row before them."""
    numbers: set[int] = set()
    columns: dict[tuple[Any, ...], set[str | None]] = {}
    kinds: dict[tuple[Any, ...], object] = {}
    for row in rows:
        key = row[OBJECT]
        if _begins(row, columns.setdefault(key, set()), kinds.get(key)):
            columns[key] = set()
        else:
            numbers.add(int(row[0]))
        columns[key].add(_column(row))
        kinds[key] = _kind_of_change(row)
    return numbers


def _begins(row: tuple[Any, ...], columns: Collection[str | None], kind: object) -> bool:
    """Return True if a row begins another change than the one with these columns."""
    column = _column(row)
    return column is None or None in columns or column in columns or _kind_of_change(row) != kind


def _kind_of_change(row: tuple[Any, ...]) -> tuple[object, object]:
    """Return the operation and transaction common to all rows of a change."""
    meaning = MEANING.get(_kind(row))
    transaction = None
    if len(row) >= TRANSACTION_COLUMNS:
        transaction = _transaction(row)
    return meaning and meaning.op, transaction


def end_of_object(rows: Rows, limit: int, identities: Identities) -> int:
    """Return the end of the object of row `limit` among neighbouring rows."""
    last = identities.row_id(*rows[limit - 1][OBJECT])
    end = limit
    while end < len(rows) and last is not None and identities.row_id(*rows[end][OBJECT]) == last:
        end += 1
    return end


def start_of_object(rows: Rows, end: int, identities: Identities) -> int:
    """Return the start of the object of the row before `end`; `end` if that is the first."""
    last = identities.row_id(*rows[end - 1][OBJECT])
    start = end - 1
    while start > 0 and last is not None and identities.row_id(*rows[start - 1][OBJECT]) == last:
        start -= 1
    return start or end


def any_large(rows: Rows) -> bool:
    """Return True if a value came as its length only."""
    return bool(rows) and set(map(_lengths, rows)) != {NO_LENGTHS}


def size_of(row: tuple[Any, ...]) -> int:
    """Return the size of a row's values together."""
    fetched = sum(len(value) for value in row[VALUES] if value)
    return fetched + sum(int(length) for length in row[LENGTHS] if length)


def too_large(row: tuple[Any, ...], limit: int) -> str:
    """Explain that a row's values exceed the limit."""
    where = f"{row[2]} {shorten(row[3] or '')}"
    if row[4]:
        where += f", column {shorten(row[4])}"
    return (
        f"old_value and new_value of {where} have {size_of(row)} bytes together,"
        f" more than publisher.value_limit, which is {limit}. Raise it and requeue the row."
    )
