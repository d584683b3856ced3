"""Rows of the log as they come from the database: what object each belongs to, and the event that it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from eventlog.model import Event, Transaction
from eventlog.rules.identity import Identities
from eventlog.seams import Batch

Rows = list[tuple[Any, ...]]
OBJECT: Final = slice(2, 4)
"""Where table_name and table_key stand in the rows."""

WITH_TRANSACTION: Final = 10
"""The columns of rows that say which transaction wrote them."""


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


def events_of(rows: Iterable[tuple[Any, ...]]) -> list[Event]:
    """Rows of `waiting_rows`; nothing in them is judged here."""
    rows = list(rows)
    if rows and len(rows[0]) == WITH_TRANSACTION:
        return _of_transactions(rows)
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
        for number, kind, table, key, column, old, new, time, perpetrator in rows
    ]


def _of_transactions(rows: Rows) -> list[Event]:
    """Rows with the number of their transaction behind them; equal numbers share one value."""
    numbers = {row[-1] for row in rows}
    transactions = {number: None if number is None else Transaction(id=int(number)) for number in numbers}
    events = events_of([row[:-1] for row in rows])
    return [replace(event, transaction=transactions[row[-1]]) for event, row in zip(events, rows, strict=True)]
