"""Rows that wait and are left out of what is read now, and why: the one place that knows.

A row is left out because somebody holds it, or a row of its object before it; because its receiver did not take it, or
a row of its object, and it is offered again later; because its table may not be read; or because only outputs that lag
are owed it. All of that stands in the log's marks, and is learned anew with each batch.

Numbers that need not be looked at are remembered besides, so that a cycle asks only for what lies beside them.
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
from eventlog.core.rules.identity import Identities
from eventlog.core.schema import Catalog
from eventlog.sources.log.rows import EVER, Ahead, Passed
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
)
from eventlog.sources.notes import noted_documents
from eventlog.sql.log import Log, id_list

NOTED_ROWS: Final = 10_000
"""Of so many rows that have waited longest it is recorded which row they wait behind."""

NEVER_HELD: Final = "-"
"""Stands for the mark `holding` of a log of which no row was ever held."""


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
        self.notes = read_notes(mark)

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


def read_notes(mark: str | None) -> dict[str, str]:
    """What `write_notes` wrote; what cannot be read is forgotten, for the tables are tried again."""
    try:
        return msgspec.json.decode(mark or "{}", type=dict[str, str])
    except msgspec.DecodeError:
        return {}


def write_notes(notes: Mapping[str, str]) -> str:
    return msgspec.json.encode(notes).decode()


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
        self.seen = SeenNumbers(log)
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


PAGE_ROWS: Final = 20_000
"""So many rows are looked at by one statement at most when their numbers are learned."""

PIECE_NUMBERS: Final = 1_000
"""So many numbers are looked at anew in each cycle."""

BLOCK_NUMBERS: Final = 20_000
"""Of so many numbers together it is remembered whose rows they are, so that little is forgotten with one object."""

MOST_GAPS: Final = 5_000
"""Gaps that are asked for in one cycle; more of them would cost more than to pass over all rows."""

SLOTS: Final = 32
"""Gaps that a statement can name one by one, where a database finds ranges only by constants."""

REST_SECONDS: Final = 60.0
"""Nothing is remembered for so long after numbers had too many gaps."""

NEVER: Final = 2**62
"""A number above that of every row."""

Gap = tuple[int, int]
"""The first and the last number of a stretch that nobody has seen."""


class SeenNumbers:
    """Numbers of rows that need not be looked at while objects are passed over: a cycle asks only for what lies beside them.

    Law: a number is remembered only where its row was seen to belong to an object that is passed over, or where we have
    settled it. Every other number may still belong to a row that commits late, so the gaps are asked for in each cycle.
    What is remembered is forgotten when its object is passed over no longer, when somebody holds, releases or requeues
    rows, and when a statement fails; and a piece of it is looked at anew in each cycle, for people change rows by SQL.
    What lagging outputs are owed is no row to look for either; that stands in the log's marks, and is never forgotten.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._told = "[]"
        self._numbers = Stretches()
        self._objects: dict[int, set[RowId]] = {}
        self._owed = Stretches()
        self._known = Stretches()
        self._gaps: Sequence[Gap] = ()
        self._stamp: str | None = None
        self._next = EVER
        self._piece: Gap | None = None
        self._turn = 0
        self._rest_until = 0.0

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def last(self) -> int:
        """The highest number that is remembered; all rows above it are unknown."""
        return self._known.parts[-1][1] if self._known else EVER

    def forget(self) -> None:
        self._objects = {}
        self._keep(Stretches())
        self._piece = None

    def distrust(self) -> None:
        """Has the next cycle begin anew; whichever thread says so, nothing changes under another one's hands."""
        self._stamp = None

    def renew(self, stamp: str, passed: Passed, owed: Stretches) -> None:
        """Begins a cycle: `passed` is what is passed over in it, and `stamp` changes when rows are held or released.

        `owed` are rows that only lagging outputs are owed.
        """
        self._owed, self._told = owed, passed.told()
        gone = passed.gone()
        if stamp != self._stamp or not passed:
            self._stamp = stamp
            self.forget()
        elif gone:
            blocks = [block for block, objects in self._objects.items() if not gone.isdisjoint(objects)]
            for block in blocks:
                del self._objects[block]
            self._numbers -= Stretches([(one * BLOCK_NUMBERS, (one + 1) * BLOCK_NUMBERS - 1) for one in blocks])
        if self._numbers and self._piece is None:
            self._cut_a_piece()
        self._keep(self._numbers)

    def late(self, connection: Connection, told: str, unread: str, limit: int) -> list[int]:
        """Numbers of rows in the gaps that could be read now, and are not of objects that are passed over."""
        query = self._log.query(
            "late_numbers", **{"except": "except_passed"}, unread="unread_tables" if unread else "unread_none"
        )
        parameters: dict[str, Any] = {"passed": told} | ({"unread": unread} if unread else {})
        found: list[int] = []
        gaps = fewer(self._gaps, self._most_gaps)
        page = limit if len(gaps) == len(self._gaps) else max(limit, PAGE_ROWS)
        while gaps:
            asked = {**parameters, "limit": page, **self._gap_parameters(gaps)}
            numbers = [int(number) for (number,) in self._log.rows(connection, query, asked)]
            found += [number for number in numbers if number not in self._owed]
            if len(numbers) < page or len(found) >= limit:
                break
            gaps = [(max(first, numbers[-1] + 1), last) for first, last in gaps if last > numbers[-1]]
        return found[:limit]

    def anything(self, connection: Connection) -> bool:
        """Whether a row waits that could be read, or rows were held or released since the last cycle."""
        if stamp_of(connection, self._log) != self._stamp:
            return True
        look = self._log.query("anything_beyond", **{"except": "except_passed"})
        beyond = {"beyond": self.last, "passed": self._told}
        return bool(self._log.rows(connection, look, beyond) or self.late(connection, self._told, "", 1))

    def learn(self, connection: Connection, passed: Passed, identities: Identities, upto: int) -> None:
        """Remembers rows of objects that are passed over, as far as the cycle has read."""
        if not passed or monotonic() < self._rest_until:
            return
        regions = [(self.last + 1, upto)]
        if self._piece is not None and self._piece[1] <= upto:
            regions.append(self._piece)
            self._piece = None
        if self._gaps:
            self._turn = (self._turn + 1) % len(self._gaps)
            first, last = self._gaps[self._turn]
            regions.append((first, min(last, upto)))
        for first, last in regions:
            if first <= last:
                self._learn(connection, passed, identities, (first, last))

    def settled(self, numbers: Sequence[int]) -> None:
        """Remembers rows that wait no longer: they would be gaps."""
        if self._numbers:
            self._add(Stretches.of(numbers))

    def _learn(self, connection: Connection, passed: Passed, identities: Identities, region: Gap) -> None:
        query = self._log.query("passed_runs", **{"except": "except_passed"})
        above, upto = region[0] - 1, region[1]
        told = passed.told()
        while monotonic() >= self._rest_until:
            asked = {"above": above, "upto": upto, "limit": PAGE_ROWS, "passed": told}
            found = [
                ((int(first), int(last)), identities.row_id(table, key))
                for first, last, table, key in self._log.rows(connection, query, asked)
            ]
            mine = [(run, row) for run, row in found if row is not None]
            for (first, last), row in mine:
                for block in range(first // BLOCK_NUMBERS, last // BLOCK_NUMBERS + 1):
                    self._objects.setdefault(block, set()).add(row)
            self._add(Stretches([run for run, _ in mine]))
            if sum(last - first + 1 for (first, last), _ in found) < PAGE_ROWS:
                return
            above = max(last for (_, last), _ in found)

    def _add(self, found: Stretches) -> None:
        if not found:
            return
        self._keep(self._numbers | found)
        if len(self._gaps) > self._most_gaps:
            self.forget()
            self._rest_until = monotonic() + REST_SECONDS

    @property
    def _most_gaps(self) -> int:
        return SLOTS if self._log.dialect.constant_ranges else MOST_GAPS

    def _keep(self, numbers: Stretches) -> None:
        self._numbers = numbers
        self._known = numbers | self._owed if self._owed else numbers
        self._gaps = (Stretches([(EVER, self.last)]) - self._known).parts if self._known else ()

    def _cut_a_piece(self) -> None:
        """Takes the next piece out of what is remembered, so that it is read and learned anew."""
        parts = self._numbers.parts
        first = next((max(self._next, first) for first, last in parts if last >= self._next), parts[0][0])
        self._piece = (first, first + PIECE_NUMBERS - 1)
        self._next = first + PIECE_NUMBERS
        self._numbers -= Stretches([self._piece])

    def _gap_parameters(self, gaps: Sequence[Gap]) -> Mapping[str, Any]:
        if not self._log.dialect.constant_ranges:
            return {"gaps": msgspec.json.encode(gaps).decode()}
        slots = [*gaps, *([(1, 0)] * (SLOTS - len(gaps)))]
        return {
            f"{end}_{slot}": gap[place] for slot, gap in enumerate(slots) for place, end in enumerate(("from", "to"))
        }


def fewer(gaps: Sequence[Gap], most: int) -> list[Gap]:
    """The gaps made fewer, where they are too many, by what lies between the nearest ones: what is asked for has more rows then."""
    if len(gaps) <= most:
        return list(gaps)
    between = sorted(range(1, len(gaps)), key=lambda place: gaps[place][0] - gaps[place - 1][1])
    kept = sorted(between[len(gaps) - most :])
    starts, ends = [0, *kept], [*kept, len(gaps)]
    return [(gaps[start][0], gaps[end - 1][1]) for start, end in zip(starts, ends, strict=True)]
