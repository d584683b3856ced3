"""Rows of the log as they come from the database: what object each belongs to, how much it holds, the event that it is."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from eventlog.core.errors import SourceError, shortened
from eventlog.core.model import Event, Position, RowId, Transaction
from eventlog.core.rules.identity import Identities
from eventlog.core.rules.times import moment
from eventlog.core.seams import Batch

if TYPE_CHECKING:
    from eventlog.sql.log import Log


Rows = list[tuple[Any, ...]]
OBJECT: Final = slice(2, 4)
"""Where table_name and table_key stand in the rows."""

VALUES: Final = slice(5, 7)
"""Where old_value and new_value stand, if they are not too long to come with the others."""

LENGTHS: Final = slice(9, 11)
"""Where the lengths stand of values that are."""

NO_LENGTHS: Final = (None, None)

PLAIN_COLUMNS: Final = 9
TRANSACTION_COLUMNS: Final = 13
"""The columns of rows that were read as they are, and of rows that say which transaction wrote them, and when it ended."""

_lengths = itemgetter(LENGTHS)


def numbers_of(batch: Batch) -> list[int]:
    """The record_ids of a batch, each once, though a log that somebody else made may give one to several rows."""
    return list(dict.fromkeys(event.position[0] for event in batch.events))


def end_of_object(rows: Rows, limit: int, identities: Identities) -> int:
    """Where the object of row number `limit` ends among the neighbouring rows; rows of one number stay together."""
    if len(rows) <= limit:
        return len(rows)
    last = identities.row_id(*rows[limit - 1][OBJECT])
    end = limit
    while end < len(rows) and (
        rows[end][0] == rows[end - 1][0] or (last is not None and identities.row_id(*rows[end][OBJECT]) == last)
    ):
        end += 1
    return end


def start_of_object(rows: Rows, end: int, identities: Identities) -> int:
    """Where the object of the row before `end` begins among its neighbours; `end` where nothing stands before it."""
    last = identities.row_id(*rows[end - 1][OBJECT])
    start = end - 1
    while start > 0 and last is not None and identities.row_id(*rows[start - 1][OBJECT]) == last:
        start -= 1
    while start > 0 and rows[start - 1][0] == rows[start][0]:
        start -= 1
    return start or end


def any_large(rows: Rows) -> bool:
    """Whether a value of any row is only told by its length."""
    return bool(rows) and set(map(_lengths, rows)) != {NO_LENGTHS}


def size_of(row: tuple[Any, ...]) -> int:
    """How long the values of the row are together."""
    return sum(len(value) for value in row[VALUES] if value) + sum(int(length) for length in row[LENGTHS] if length)


def too_large(row: tuple[Any, ...], limit: int) -> str:
    """What is said of a row whose values nobody wants to hold."""
    column = f", column {shortened(row[4])}" if row[4] else ""
    return (
        f"old_value and new_value of {row[2]} {shortened(row[3] or '')}{column} have {size_of(row)} bytes together,"
        f" more than publisher.value_limit, which is {limit}. Raise it and requeue the row."
    )


def events_in_utc(rows: Iterable[tuple[Any, ...]], log: Log) -> list[Event]:
    """Rows of `waiting_rows` of a log, whose times may be those of a place."""
    events = events_of(rows)
    return events if log.zone is None else [replace(event, time=log.utc(event.time)) for event in events]


def events_of(rows: Iterable[tuple[Any, ...]]) -> list[Event]:
    """Rows of `waiting_rows`; nothing in them is judged here."""
    rows = list(rows)
    if None in map(itemgetter(0), rows):
        message = "A waiting row of the log has no record_id, so nothing can be said about it."
        raise SourceError(message, hint="Give it one, or take it away; `eventlog check` counts such rows.")
    if rows and len(rows[0]) == TRANSACTION_COLUMNS:
        return _of_transactions(rows)
    if rows and len(rows[0]) == PLAIN_COLUMNS:
        rows = [(*row, None, None) for row in rows]
    return [
        Event(
            position=position,
            kind=kind,
            table=table,
            key=key,
            column=column,
            old=old,
            new=new,
            time=time,
            perpetrator=perpetrator,
        )
        for position, (_, kind, table, key, column, old, new, time, perpetrator, _, _) in _numbered(rows)
    ]


def _numbered(rows: Rows) -> Iterable[tuple[Position, tuple[Any, ...]]]:
    """Rows with their positions: their numbers; of several rows with one number, the others have a second number behind it.

    Their order does not depend on how the database hands them out, so that a repeat is the same.
    """
    numbers = [int(row[0]) for row in rows]
    if len(set(numbers)) == len(numbers):
        return [((number,), row) for number, row in zip(numbers, rows, strict=True)]
    places: dict[int, list[int]] = {}
    for place, number in enumerate(numbers):
        places.setdefault(number, []).append(place)
    found: dict[int, tuple[Position, tuple[Any, ...]]] = {}
    for number, alike in places.items():
        ordered = sorted((rows[place] for place in alike), key=repr)
        for count, (place, row) in enumerate(zip(alike, ordered, strict=True)):
            found[place] = ((number, count) if count else (number,), row)
    return [found[place] for place in range(len(rows))]


def _of_transactions(rows: Rows) -> list[Event]:
    """Rows with the number and the time of their transaction behind them; equal numbers share one value."""
    times = {row[-2]: row[-1] for row in rows}
    transactions = {number: _transaction(number, time) for number, time in times.items()}
    events = events_of([row[:-2] for row in rows])
    return [replace(event, transaction=transactions[row[-2]]) for event, row in zip(events, rows, strict=True)]


def _transaction(number: Any, time: str | None) -> Transaction | None:
    return None if number is None else Transaction(id=int(number), time=None if time is None else moment(time))


EVER: Final = -(2**62)
"""A number below that of every row."""

MOST_SPELLINGS: Final = 100
"""Ways of writing one object that are remembered; whoever finds more of them writes its number behind a thousand zeros."""

Ahead = tuple[int, str | None, str | None]
"""From which number on rows are passed over, such as that of a held one, and the table_name and table_key of their object."""


class Passed:
    """Objects whose rows are passed over, and how rows have written them so far.

    From a held row of theirs on, or all of them while one is to be offered again: order within an object is promised.
    The database leaves their rows out, because there may be a million of them. It compares names and keys as they are
    written; a row that writes them in another way is left out here, and the database is told how that one writes them.
    """

    def __init__(self) -> None:
        self._first: dict[RowId, int] = {}
        self._spelled: dict[RowId, set[tuple[str, str]]] = {}
        self._gone: set[RowId] = set()

    def __len__(self) -> int:
        return len(self._first)

    def learn(self, ahead: Iterable[Ahead], identities: Identities) -> None:
        """Takes over what is passed over now; how objects are written is remembered of those that still are."""
        former, self._first = self._first, {}
        for number, table, key in ahead:
            row = identities.row_id(table, key)
            if row is None or table is None or key is None:
                continue
            self._first[row] = min(number, self._first.get(row, number))
            self._spelled.setdefault(row, set()).add((table, key))
        self._spelled = {row: spelled for row, spelled in self._spelled.items() if row in self._first}
        self._gone.update(row for row, first in former.items() if self._first.get(row, first + 1) > first)

    def gone(self) -> set[RowId]:
        """Objects that are passed over no longer, or from a later row on, since somebody asked."""
        gone, self._gone = self._gone, set()
        return gone

    def told(self) -> str:
        """What the database is told: table_name, table_key and the first number that is passed over."""
        spelled = [(*one, self._first[row]) for row, several in self._spelled.items() for one in several]
        return msgspec.json.encode([one for one in spelled if _can_be_told(*one[:2])]).decode()

    def free(self, rows: Rows, identities: Identities) -> tuple[Rows, bool]:
        """The rows that are not passed over, and whether something is to be told of the others."""
        if not self._first:
            return rows, False
        kept: Rows = []
        news = False
        for row in rows:
            place = identities.row_id(*row[OBJECT])
            if place is None or int(row[0]) < self._first.get(place, int(row[0]) + 1):
                kept.append(row)
            elif len(spelled := self._spelled[place]) < MOST_SPELLINGS and row[OBJECT] not in spelled:
                spelled.add(row[OBJECT])
                news = news or _can_be_told(*row[OBJECT])
        return kept, news


def _can_be_told(table: str, key: str) -> bool:
    """Whether every database can read it as JSON; SQLite keeps any bytes as text, NUL among them."""
    return table.isprintable() and key.isprintable()
