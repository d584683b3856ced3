"""Rows of the log as they come from the database: what object each belongs to, how much it holds, the event that it is.

Objects whose rows are passed over: from a held row of theirs on, or all of them while one is to be offered again.

The database leaves their rows out, because there may be a million of them. It compares names and keys as they are
written; a row that writes them in another way is left out here, and the database is told how that one writes them.

Rows that somebody holds: later rows of their objects wait behind them, for order within an object is promised.

Rows that their receiver did not take: how often they were offered, and when they are offered again.

Tables that the publisher may not read: their rows are passed over, and tried again after a while, for a right can be granted.

What a row waits for that nobody has read yet.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.backoff import Backoff
from eventlog.core.errors import SourceError, shortened
from eventlog.core.model import Captured, Event, Outcome, Position, Reason, RowId, Transaction, exceptional
from eventlog.core.rules.identity import Identities
from eventlog.core.rules.times import moment
from eventlog.core.seams import Batch
from eventlog.sources.marks import HELD, HOLDING, RETRIED, Marks, read_runs, write_runs
from eventlog.sources.notes import noted_documents
from eventlog.sql.log import id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

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
"""From which number on rows are passed over, and the table_name and table_key of their object."""


class Passed:
    """What is passed over in this cycle, and how rows have written it so far."""

    def __init__(self) -> None:
        self._first: dict[RowId, int] = {}
        self._spelled: dict[RowId, set[tuple[str, str]]] = {}

    def __len__(self) -> int:
        return len(self._first)

    def learn(self, ahead: Iterable[Ahead], identities: Identities) -> None:
        """Takes over what is passed over now; how objects are written is remembered of those that still are."""
        self._first = {}
        for number, table, key in ahead:
            row = identities.row_id(table, key)
            if row is None or table is None or key is None:
                continue
            self._first[row] = min(number, self._first.get(row, number))
            self._spelled.setdefault(row, set()).add((table, key))
        self._spelled = {row: spelled for row, spelled in self._spelled.items() if row in self._first}

    def copy(self) -> Passed:
        """The same, which stays as it is when this one learns."""
        other = Passed()
        other._first = dict(self._first)
        other._spelled = {row: set(spelled) for row, spelled in self._spelled.items()}
        return other

    def gone(self, later: Passed) -> frozenset[RowId]:
        """Objects of which rows are passed over here that are not in `later`."""
        return frozenset(row for row, first in self._first.items() if later._first.get(row, first + 1) > first)

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
    """Whether every database can read it as JSON; SQLite keeps any bytes as text."""
    if "\0" in table or "\0" in key:
        return False
    return table.isprintable() and key.isprintable()


Held = list[tuple[int, str | None, str | None]]
"""record_id, table_name and table_key of held rows."""

NOTED_ROWS: Final = 10_000
"""Of so many rows that have waited longest it is recorded which row they wait behind."""

NEVER_HELD: Final = "-"
"""Stands for the mark `holding` of a log of which no row was ever held."""


def note_held(connection: Connection, log: Log) -> None:
    """Keeps the numbers of all held rows in a mark, so that a cycle need not look for them, and lets readers notice."""
    note_change(connection, log)
    numbers = [int(number) for (number,) in log.rows(connection, log.query("held_numbers"))]
    if numbers:
        Marks(log).set(connection, HELD, write_runs(numbers))
    else:
        Marks(log).clear(connection, HELD)


class Holds:
    """What of a log was held when its marks were read, and whether that is still so."""

    def __init__(self, log: Log) -> None:
        self.mark: str | None = None
        self.stamp = NEVER_HELD
        self._log = log

    def learn(self, marks: Mapping[str, str]) -> None:
        """Takes over what the marks say."""
        self.mark, self.stamp = marks.get(HELD), marks.get(HOLDING, NEVER_HELD)

    def numbers(self) -> list[int]:
        """The record_ids that are held."""
        return read_runs(self.mark or "")

    def rows(self, connection: Connection) -> Held:
        """The held rows that still wait."""
        return read_held(connection, self._log, self.mark)

    def stand(self, connection: Connection) -> bool:
        """Whether nobody has held or released rows since the marks were read.

        Else one statement may have left out a held row that another, which was to look for it, did not know of.
        """
        return stamp_of(connection, self._log) == self.stamp


def stamp_of(connection: Connection, log: Log) -> str:
    """What changes each time that rows are held, released or requeued."""
    return Marks(log).get(connection, HOLDING) or NEVER_HELD


def note_change(connection: Connection, log: Log) -> None:
    """Lets readers notice that what they know of rows is old."""
    Marks(log).set(connection, HOLDING, secrets.token_hex(8))


def read_held(connection: Connection, log: Log, mark: str | None) -> Held:
    """The held rows that still wait."""
    if not mark:
        return []
    found = log.rows(connection, log.query("held_rows"), {"ids": id_list(read_runs(mark))})
    return [(int(number), table, key) for number, table, key in found]


def held_ahead(held: Held, notes: Mapping[str, str]) -> list[Ahead]:
    """From which row on an object waits for a held one: from the first that stands in a document with it.

    Such a document may have gone out. It comes again whole or not at all: what is left of it would be another one
    under the same name.
    """
    documents = noted_documents(notes) if held else []
    return [
        (min([number, *[least for (least,) in chain(*[one for one in documents if (number,) in one])]]), table, key)
        for number, table, key in held
    ]


def note_behind(connection: Connection, log: Log, numbers: Iterable[int]) -> None:
    """Records of rows that wait behind these ones, and have no record yet, which one; of others `explain` can tell."""
    connection.execute(log.query("note_behind"), {"ids": id_list(sorted(set(numbers))), "most": NOTED_ROWS})


FAR_SECONDS: Final = 1.0
"""Seconds beyond the longest wait from which on a wait is none that somebody asked for."""


class Retry(Struct, frozen=True, kw_only=True, gc=False):
    """One row that waits for its next attempt, in `seconds` from now; the object as it is written in the row."""

    number: int
    table: str | None
    key: str | None
    attempts: int
    seconds: float


class Retries(Struct, frozen=True, kw_only=True):
    """All of them in one log."""

    rows: Sequence[Retry] = ()

    @property
    def waiting(self) -> list[Retry]:
        """Those whose time has not come."""
        return [row for row in self.rows if row.seconds > 0]

    @property
    def earliest(self) -> float | None:
        """Seconds until the first of them is offered again."""
        return min((row.seconds for row in self.waiting), default=None)

    @property
    def latest(self) -> float | None:
        """Seconds until none of them waits any more."""
        return max((row.seconds for row in self.waiting), default=None)

    @property
    def attempts(self) -> Mapping[Position, int]:
        """How often each was offered."""
        return {(row.number,): row.attempts for row in self.rows}


def read_retries(connection: Connection, log: Log, numbers: Sequence[int], longest: float | None = None) -> Retries:
    """What became of the rows that were offered before: those that somebody settled or sent off meanwhile are gone.

    None waits for more than the `longest` time from now on, where that is said: the database's clock was set back, or
    the configuration was changed.
    """
    if not numbers:
        return Retries()
    found = log.rows(connection, log.query("retried_rows"), {"ids": id_list(numbers)})
    rows = [_retry(*row) for row in found]
    far = [] if longest is None else [row.number for row in rows if row.seconds > longest + FAR_SECONDS]
    if not far:
        return Retries(rows=rows)
    connection.execute(log.query("attempts_sooner"), {"ids": id_list(far), "delay": longest})
    return read_retries(connection, log, numbers)


def _retry(number: Any, table: str | None, key: str | None, attempts: Any, seconds: Any) -> Retry:
    return Retry(number=int(number), table=table, key=key, attempts=int(attempts or 0), seconds=float(seconds))


Notes = Mapping[str, str]
"""What was said of tables, by their names as rows have written them."""


class Unread:
    """Which tables are passed over; what is known of them stands in a mark, for people to see, and outlives us."""

    def __init__(self, backoff: Backoff) -> None:
        self.notes: Notes = {}
        self._backoff = backoff
        self._attempts: dict[str, int] = {}
        self._next: dict[str, float] = {}

    def learn(self, mark: str | None) -> None:
        """Takes over what the mark says; a table that somebody else has met is tried at once."""
        self.notes = read_notes(mark)

    def tables(self) -> set[str]:
        """The tables whose time has not come."""
        now = monotonic()
        return {table for table in self.notes if self._next.get(table, now) > now}

    def settle(self, events: Sequence[Captured], outcomes: Sequence[Outcome]) -> Notes:
        """What is known of tables after a batch with these events."""
        failed = failed_tables(events, outcomes)
        if not self.notes and not failed:
            return {}
        tried = {event.table for event in events if event.table is not None}
        for table in failed:
            attempts = self._attempts[table] = self._attempts.get(table, 0) + 1
            self._next[table] = monotonic() + self._backoff.delay(attempts, secrets.SystemRandom().random())
        left = {table: note for table, note in self.notes.items() if table not in tried}
        for table in tried.difference(failed):
            self._attempts.pop(table, None)
        return left | failed


def failed_tables(events: Sequence[Captured], outcomes: Sequence[Outcome]) -> dict[str, str]:
    """The tables of the events that could not be read for want of a right, and what was said of each."""
    notes = {one.position: one.note or "" for one in exceptional(outcomes) if one.reason is Reason.NO_RIGHT}
    if not notes:
        return {}
    named = [event for event in events if isinstance(event, Event) and event.position in notes]
    return {event.table: notes[event.position] for event in named if event.table is not None}


def read_notes(mark: str | None) -> dict[str, str]:
    """What `write_notes` wrote; what cannot be read is forgotten, for the tables are tried again."""
    try:
        return msgspec.json.decode(mark or "{}", type=dict[str, str])
    except msgspec.DecodeError:
        return {}


def write_notes(notes: Notes) -> str:
    """The notes as text."""
    return msgspec.json.encode(notes).decode()


def waits_for(
    log: Log,
    connection: Connection,
    record_id: int,
    row: RowId | None,
    identities: Identities,
    on_retry: Literal["stop", "object"],
) -> str:
    """A sentence about the rows that come before this one of the object `row`."""
    marks = Marks(log).all(connection)
    held = read_held(connection, log, marks.get(HELD))
    retries = read_retries(connection, log, read_runs(marks.get(RETRIED, ""))).waiting
    if (first := _first(held, record_id, row, identities)) is not None:
        return f"It waits behind row {first} of the same object, which is held."
    tried = [(retry.number, retry.table, retry.key) for retry in retries]
    if (first := _first(tried, record_id, row, identities)) is not None:
        return f"It waits behind row {first} of the same object, which is offered again first."
    if retries and on_retry == "stop":
        return f"It waits behind row {retries[0].number}, which is offered again first, for on_retry is stop."
    return "It waits."


def _first(ahead: Iterable[tuple[Any, ...]], record_id: int, row: RowId | None, identities: Identities) -> int | None:
    """The first of these rows that comes before one of the same object."""
    mine = [number for number, table, key in ahead if number < record_id and identities.row_id(table, key) == row]
    return None if row is None else min(mine, default=None)
