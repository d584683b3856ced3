"""Rows of a log as the database has them become events here: nothing in them is judged."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from eventlog.core.model import Event, Position, Transaction, Who
from eventlog.core.rules.meaning import NOT_POSITIVE
from eventlog.core.times import moment
from eventlog.core.who import make_who
from eventlog.sql.log import Log

Rows = list[tuple[Any, ...]]

TRANSACTION_COLUMNS: Final = 13
"""So many columns rows have at least that say which transaction wrote them, and when."""

BEFORE_COLUMNS: Final = 11
"""So many columns come before a transaction's number, behind which its time comes."""

CONTEXT_COLUMNS: Final = frozenset({10, 12, 14})
"""So many columns rows have whose last one says who the application said is behind them."""

ORIGIN_END: Final = "\t"
"""Ends where a stream had a row; its transaction follows, if it is known."""

_number = itemgetter(0)
_origins = msgspec.json.Encoder()
_origin = msgspec.json.Decoder(tuple[int, dt.datetime | None, int | None])


def events_in_utc(rows: Rows, log: Log, faults: Mapping[int, str], *, who: bool = False) -> list[Event]:
    """Convert rows of `waiting_rows` to events in UTC, some with faults; `who`: add who made the change."""
    positions: list[Position] = list(zip(map(int, map(_number, rows))))
    transactions: list[Transaction | None] = [None] * len(rows)
    streams: list[str | None] = [None] * len(rows)
    if rows and len(rows[0]) >= TRANSACTION_COLUMNS and log.names.origin is not None:
        streams, transactions = _read_origins(rows)
    elif rows and len(rows[0]) >= TRANSACTION_COLUMNS:
        # Rows of one transaction share one value: one may have written all of them.
        shared: dict[Any, Transaction | None] = {None: None}
        for number, time in {row[BEFORE_COLUMNS]: row[BEFORE_COLUMNS + 1] for row in rows}.items():
            if number is not None:
                committed = None if time is None else moment(time)
                shared[number] = Transaction(id=int(number), time=committed)
        transactions = [shared[row[BEFORE_COLUMNS]] for row in rows]
    # By their places: to take each row apart would cost half as much again.
    events = [
        Event(
            position=position,
            kind=row[1],
            table=row[2],
            key=row[3],
            column=row[4],
            old=row[5],
            new=row[6],
            time=row[7],
            perpetrator=row[8],
            transaction=transaction,
            stream=stream,
        )
        for position, row, transaction, stream in zip(positions, rows, transactions, streams, strict=True)
    ]
    if positions and min(positions)[0] <= 0:
        events = [_refuse_number(event) for event in events]
    if faults:
        events = [_refuse_values(event, faults.get(event.position[0])) for event in events]
    if who:
        events = with_who(events, rows)
    if log.zone is None:
        return events
    return [replace(event, time=log.utc(event.time)) for event in events]


def with_who(events: Sequence[Event], rows: Rows) -> list[Event]:
    """Say of events who is behind them; those of one session share one object."""
    shared: dict[tuple[str | None, object], Who] = {}
    noted: list[Event] = []
    for event, row in zip(events, rows, strict=True):
        pair = event.perpetrator, row[-1] if len(row) in CONTEXT_COLUMNS else None
        who = shared.get(pair)
        if who is None:
            who = shared[pair] = make_who(*pair)
        noted.append(replace(event, who=who))
    return noted


def _refuse_number(event: Event) -> Event:
    number = event.position[0]
    return event if number > 0 else replace(event, fault=NOT_POSITIVE.format(number))


def _refuse_values(event: Event, fault: str | None) -> Event:
    return event if fault is None else replace(event, old=None, new=None, fault=fault)


def write_transaction(transaction: Transaction | None) -> str:
    """Write what stands behind the place where a stream had a row: which of its transactions wrote it."""
    if transaction is None:
        return ""
    return f"{ORIGIN_END}{_origins.encode((transaction.id, transaction.time, transaction.end)).decode()}"


def _read_origins(rows: Rows) -> tuple[list[str | None], list[Transaction | None]]:
    """Read where a stream had rows, and their transactions: those of one transaction share one object."""
    streams: list[str | None] = []
    transactions: list[Transaction | None] = []
    shared: dict[tuple[Any, str], Transaction | None] = {}
    for row in rows:
        stream, _, noted = (row[BEFORE_COLUMNS + 1] or "").partition(ORIGIN_END)
        streams.append(stream or None)
        which = row[BEFORE_COLUMNS], noted
        if which not in shared:
            shared[which] = _read_transaction(*which)
        transactions.append(shared[which])
    return streams, transactions


def _read_transaction(number: Any, noted: str) -> Transaction | None:
    # A change that a comparison found is of no transaction that anybody knows.
    if not noted:
        return None
    try:
        own, time, end = _origin.decode(noted)
    except msgspec.DecodeError:
        return None
    return Transaction(id=own, time=time, end=end, row=None if number is None else int(number))
