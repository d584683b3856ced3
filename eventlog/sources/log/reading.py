"""How waiting rows are read: as many as may be on their way together, by number and by size.

Law: no value is fetched before its length is known to fit. Short values come with their rows at
once, because so many of them fit always; of the others the lengths come first.

A batch does not end within a change. Sessions that write at the same time draw their numbers in
turn, so the rows of one change need not be neighbours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from eventlog.core.backoff import Backoff
from eventlog.core.errors import shorten
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

_kind, _column, _transaction, _lengths = itemgetter(1), itemgetter(4), itemgetter(BEFORE_COLUMNS), itemgetter(LENGTHS)


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
    """Rows that are read together, and what their values have at most, in bytes; `more` wait behind."""

    rows: Sequence[Event]
    weight: int
    more: bool


class RowFault(str):
    """What is wrong with a row, where its old value would stand: the rows may have one number."""

    __slots__ = ()


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
        identities, limit, share = self._identities, request.limit, self.share
        # Values up to this length come with their rows: all that are asked for fit with two each.
        plain = min(max(SHORT_BYTES, share // (2 * limit)), LONGEST_BYTES)
        run, most = LOOKAHEAD_ROWS, max(LOOKAHEAD_ROWS, share // ROW_BYTES)
        while True:
            asked = limit + run + len(request.known)
            read = self._ask(connection, request, asked, plain)
            rows = read
            if request.known:
                rows = [row for row in read if row[0] not in request.known]
            end = len(rows)
            if limit < end:
                end = end_with_a_change(rows, end_of_object(rows, limit, identities))
            goes_on = end == len(rows) and len(read) == asked
            # Nobody can say yet where the last object ends: a longer look costs less than a cut.
            if goes_on and run < most:
                run = min(run * 16, most)
                continue
            if goes_on:
                end = start_of_object(rows, end, identities)
            return self._portion(connection, rows, end, plain, request, more=goes_on)

    def unread(self, connection: Connection, request: Request) -> Rows:
        """Read the first rows without values; an incomplete last change is included."""
        return self._ask(connection, request, request.limit, NO_VALUE_BYTES)

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

    def _ask(self, connection: Connection, request: Request, limit: int, plain: int) -> Rows:
        among, order = request.among or "among_all", "order_by_number"
        # Rows that are asked for by their numbers were found due already.
        if self._settings.handle_future_events and among != "among_noted":
            among, order = request.among or "among_due", "order_by_time"
        fragments = {"among": among, "order": order, "transaction": self._transaction, "context": self._context}
        query = self._log.query("waiting_rows", **fragments)
        return self._log.rows(connection, query, {"limit": limit, "plain": plain, **request.bounds})

    def _portion(
        self, connection: Connection, rows: Rows, end: int, plain: int, request: Request, *, more: bool
    ) -> Portion:
        """Return the rows before `end` that fit, with all their values."""
        weight, cut, refused = 2 * plain * end, end, list[int]()
        are_large = any_large(rows[:end])
        if are_large or weight > request.room:
            cut, weight, refused = self._fit(rows[:end], request.room)
        more = more or cut < len(rows)
        if refused:
            rows = [*rows]
            for index in refused:
                rows[index] = self._make_refused(rows[index])
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
            whole = self._with_values(connection, whole, plain)
        events = events_in_utc(whole, self._log, who=self._settings.who)
        if are_large or refused:
            for index, event in enumerate(events):
                if isinstance(event.old, RowFault):
                    events[index] = replace(event, old=None, fault=str(event.old))
        return Portion(rows=events, weight=weight, more=more)

    def _fit(self, rows: Rows, room: int) -> tuple[int, int, list[int]]:
        """Return how many rows fit, what they weigh, and the places of those that are too large."""
        weight = 0
        refused: list[int] = []
        for index, row in enumerate(rows):
            size = size_of(row)
            if size > self._settings.value_limit:
                # Nobody fetches its values, so that it takes nobody's room.
                refused.append(index)
            elif weight + size > room and weight > 0 and (end := start_of_number(rows, index)):
                return end, weight, refused
            else:
                weight += size
        return len(rows), weight, refused

    def _make_refused(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Replace the values of a row that is too large by a fault."""
        fault = RowFault(too_large(row, self._settings.value_limit))
        between = row[VALUES.stop : LENGTHS.start]
        return (*row[: VALUES.start], fault, None, *between, *NO_LENGTHS, *row[LENGTHS.stop :])

    def _with_values(self, connection: Connection, rows: Rows, plain: int) -> Rows:
        """Read rows again of which a value came as its length: all that share its number, which does not tell them apart."""
        large = {int(row[0]) for row in rows if row[LENGTHS] != NO_LENGTHS}
        request = Request(limit=ALL, room=ALL, among="among_noted", bounds={"ids": id_list(sorted(large))})
        limit = self._settings.value_limit
        again: dict[int, Rows] = {}
        for row in self._ask(connection, request, ALL, min(max(plain, limit), LONGEST_BYTES)):
            again.setdefault(int(row[0]), []).append(self._make_refused(row) if size_of(row) > limit else row)
        complete: Rows = []
        for row in rows:
            number = int(row[0])
            if number in large:  # it may have gone between the two statements
                complete += again.pop(number, [])
            else:
                complete.append(row)
        return complete


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
    # Rows of one number stay together, and others of the object of such a row would overtake it.
    neighbours = {index + step for index in torn for step in (-1, 1)} - torn
    numbers = {rows[index][0] for index in torn}
    if any(0 <= index < end and rows[index][0] in numbers for index in neighbours):
        return set()
    return torn


def end_with_a_change(rows: Rows, end: int) -> int:
    """Return the first end from this one on behind a whole change; few rows may have none."""
    while end < len(rows) and (len(find_torn_places(rows, end)) == end or rows[end][0] == rows[end - 1][0]):
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
    while end < len(rows):
        row = rows[end]
        # Rows of one number stay together: no statement could tell them apart.
        has_same_number = row[0] == rows[end - 1][0]
        if not has_same_number and (last is None or identities.row_id(*row[OBJECT]) != last):
            break
        end += 1
    return end


def start_of_object(rows: Rows, end: int, identities: Identities) -> int:
    """Return the start of the object of the row before `end`; `end` if that is the first."""
    last = identities.row_id(*rows[end - 1][OBJECT])
    start = end - 1
    while start > 0 and last is not None and identities.row_id(*rows[start - 1][OBJECT]) == last:
        start -= 1
    return start_of_number(rows, start) or end


def start_of_number(rows: Rows, index: int) -> int:
    """Return the first neighbouring row with the same number."""
    while index > 0 and rows[index - 1][0] == rows[index][0]:
        index -= 1
    return index


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
