"""Rows that wait and are left out of what is read now, and why: the one place that knows.

A row is left out because somebody holds it, or a row of its object before it; because its receiver did not take it, or
a row of its object, and it is offered again later; because its table may not be read; or because only outputs that lag
are owed it. All of that stands in the log's marks, and is learned anew with each batch.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from time import monotonic
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from eventlog.core.backoff import Backoff
from eventlog.core.model import Captured, Event, Outcome, Position, Reason, RowId, exceptional
from eventlog.core.rules.screen import Identities
from eventlog.core.schema import Catalog
from eventlog.sources.marks import (
    HELD,
    HOLDING,
    OWED,
    UNREAD,
    Marks,
    Stretches,
    any_owed,
    paused_outputs,
    read_owed,
    read_runs,
    value_of,
)
from eventlog.sources.notes import noted_documents
from eventlog.sql.log import Log, id_list

NOTED_ROWS: Final = 10_000
"""Of so many rows that have waited longest it is recorded which row they wait behind."""

NEVER_HELD: Final = "-"
"""Stands for the mark `holding` of a log of which no row was ever held."""

Rows = list[tuple[Any, ...]]
OBJECT: Final = slice(2, 4)
"""Where table_name and table_key stand in the rows."""

EVER: Final = -(2**62)
"""A number below that of every row."""

NEVER: Final = 2**62
"""A number above that of every row."""

Ahead = tuple[int, str | None, str | None]
"""From which number on rows are passed over, such as that of a held one, and the table_name and table_key of their object."""


def stamp_of(connection: Connection, log: Log) -> str:
    """What changes each time that rows are held, released or requeued."""
    return Marks(log).get(connection, HOLDING) or NEVER_HELD


def note_change(connection: Connection, log: Log) -> None:
    """Lets readers notice that what they know of rows is old."""
    Marks(log).set(connection, HOLDING, secrets.token_hex(8))


def read_held(connection: Connection, log: Log, numbers: Sequence[int]) -> list[Ahead]:
    """Those of these held rows that still wait."""
    if not numbers:
        return []
    found = log.rows(connection, log.query("held_rows"), {"ids": id_list(numbers)})
    return [(int(number), table, key) for number, table, key in found]


def held_ahead(held: Sequence[Ahead], notes: Mapping[str, str]) -> list[Ahead]:
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
    rows = [
        Retry(number=int(number), table=table, key=key, attempts=int(attempts or 0), seconds=float(seconds))
        for number, table, key, attempts, seconds in found
    ]
    far = [] if longest is None else [row.number for row in rows if row.seconds > longest + FAR_SECONDS]
    if not far:
        return Retries(rows=rows)
    connection.execute(log.query("attempts_sooner"), {"ids": id_list(far), "delay": longest})
    return read_retries(connection, log, numbers)


class Unread:
    """Which tables are passed over; what is known of them stands in a mark, for people to see, and outlives us."""

    def __init__(self, backoff: Backoff) -> None:
        self.notes: Mapping[str, str] = {}
        """What was said of tables, by their names as rows have written them."""
        self._backoff = backoff
        self._attempts: dict[str, int] = {}
        self._next: dict[str, float] = {}

    def learn(self, mark: str | None) -> None:
        """Takes over what the mark says; a table that somebody else has met is tried at once."""
        self.notes = value_of(mark, dict[str, str]) or {}

    def tables(self) -> set[str]:
        """The tables whose time has not come."""
        now = monotonic()
        return {table for table in self.notes if self._next.get(table, now) > now}

    def settle(self, events: Sequence[Captured], outcomes: Sequence[Outcome]) -> Mapping[str, str]:
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


MOST_SPELLINGS: Final = 100
"""Ways of writing one object that are remembered; whoever finds more of them writes its number behind a thousand zeros."""


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


class LeftOut:
    """What of one log is left out of what is read now.

    Contract: whoever reads calls `learn` with the marks at the beginning of a transaction, and takes what it has read only
    if they `stand` at the end: somebody may have held or released rows between two statements, and one of them may
    have left out a held row that another, which was to look for it, did not know of.
    """

    def __init__(self, log: Log, catalog: Catalog | None = None, backoff: Backoff | None = None) -> None:
        self.held: Sequence[int] = ()
        """The record_ids of the rows that somebody holds."""
        self.stamp = NEVER_HELD
        """Another text each time that rows are held, released or requeued."""
        self.retries = Retries()
        self.objects = Passed()
        self.unread = Unread(backoff or Backoff())
        self.tables: Collection[str] = ()
        """The tables that may not be read, and whose time has not come."""
        self.owed: Mapping[str, Stretches] = {}
        """What each lagging output is owed."""
        self.any_owed = Stretches()
        self.paused: frozenset[str] = frozenset()
        """The outputs to which nothing is to go."""
        self._log = log
        self._catalog = catalog
        self._owed_texts: Mapping[str, str] = {}

    def learn(self, marks: Mapping[str, str]) -> None:
        """Takes over what the marks say."""
        self.held, self.stamp = read_runs(marks.get(HELD, "")), marks.get(HOLDING, NEVER_HELD)
        self.unread.learn(marks.get(UNREAD))
        self.tables = self.unread.tables()
        self.paused = paused_outputs(marks)
        self.learn_owed(marks)

    def learn_owed(self, marks: Mapping[str, str]) -> None:
        """Takes over what is owed; what has not changed is not read again."""
        texts = {name: text for name, text in marks.items() if name.startswith(OWED)}
        if texts != self._owed_texts:
            self.owed, self._owed_texts = read_owed(texts), texts
            self.any_owed = any_owed(self.owed.values())

    def stand(self, connection: Connection) -> bool:
        """Whether nobody has held or released rows since the marks were read."""
        return stamp_of(connection, self._log) == self.stamp

    def held_objects(self, connection: Connection, notes: Mapping[str, str]) -> Passed:
        """The objects of held rows alone."""
        found = Passed()
        found.learn(held_ahead(read_held(connection, self._log, self.held), notes), Identities(self._catalog))
        return found

    def pass_over(self, connection: Connection, notes: Mapping[str, str], others: Iterable[Ahead] = ()) -> None:
        """Learns whose rows are left out: they come after a held one, or with one that is offered again later."""
        self.objects.learn(
            [*held_ahead(read_held(connection, self._log, self.held), notes), *others], Identities(self._catalog)
        )
