"""Rows of the log as they come from the database: what object each belongs to, how much it holds, the event that it is."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Final

from msgspec.structs import replace

from eventlog.core.errors import shortened
from eventlog.core.model import Event, Transaction
from eventlog.core.rules.identity import Identities
from eventlog.core.seams import Batch

Rows = list[tuple[Any, ...]]
OBJECT: Final = slice(2, 4)
"""Where table_name and table_key stand in the rows."""

VALUES: Final = slice(5, 7)
"""Where old_value and new_value stand, if they are not too long to come with the others."""

LENGTHS: Final = slice(9, 11)
"""Where the lengths stand of values that are."""

NO_LENGTHS: Final = (None, None)

WITHOUT_LENGTHS: Final = 9
WITH_TRANSACTION: Final = 12
"""The columns of rows that were read as they are, and of rows that say which transaction wrote them."""

_lengths = itemgetter(LENGTHS)


def numbers_of(batch: Batch) -> list[int]:
    """The record_ids of a batch."""
    return [event.position[0] for event in batch.events]


def end_of_object(rows: Rows, limit: int, identities: Identities) -> int:
    """Where the object of row number `limit` ends among the neighbouring rows."""
    if len(rows) <= limit:
        return len(rows)
    last = identities.row_id(*rows[limit - 1][OBJECT])
    end = limit
    while last is not None and end < len(rows) and identities.row_id(*rows[end][OBJECT]) == last:
        end += 1
    return end


def start_of_object(rows: Rows, end: int, identities: Identities) -> int:
    """Where the object of the row before `end` begins among its neighbours; `end` where nothing stands before it."""
    last = identities.row_id(*rows[end - 1][OBJECT])
    start = end - 1
    while start > 0 and last is not None and identities.row_id(*rows[start - 1][OBJECT]) == last:
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


def events_of(rows: Iterable[tuple[Any, ...]]) -> list[Event]:
    """Rows of `waiting_rows`; nothing in them is judged here."""
    rows = list(rows)
    if rows and len(rows[0]) == WITH_TRANSACTION:
        return _of_transactions(rows)
    if rows and len(rows[0]) == WITHOUT_LENGTHS:
        rows = [(*row, None, None) for row in rows]
    return [
        Event(
            position=(int(number),),
            kind=kind,
            table=table,
            key=key,
            column=column,
            old=old,
            new=new,
            time=time,
            perpetrator=perpetrator,
        )
        for number, kind, table, key, column, old, new, time, perpetrator, _, _ in rows
    ]


def _of_transactions(rows: Rows) -> list[Event]:
    """Rows with the number of their transaction behind them; equal numbers share one value."""
    numbers = {row[-1] for row in rows}
    transactions = {number: None if number is None else Transaction(id=int(number)) for number in numbers}
    events = events_of([row[:-1] for row in rows])
    return [replace(event, transaction=transactions[row[-1]]) for event, row in zip(events, rows, strict=True)]
