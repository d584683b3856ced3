"""The log source: waiting rows of an event log table, handed out in batches and marked with what became of them.

A row is picked by its status and never by its number: record_ids are drawn before commit, so a lower one may appear
after a higher one was read. For the same reason nothing is marked that is not in the batch, however the batch's
numbers lie.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from time import monotonic
from typing import TYPE_CHECKING, Final

from eventlog.errors import SourceError
from eventlog.marks import (
    BEHIND,
    IN_HAND,
    PUBLISHER,
    RETRIED,
    TRACKED,
    Marks,
    note_name,
    notes_of,
    read_runs,
    runs,
    write_runs,
)
from eventlog.model import Event, Outcome, Reason, Status, exceptional
from eventlog.rules.identity import Identities
from eventlog.schema import Catalog
from eventlog.seams import Batch
from eventlog.sources.held import Holds, note_behind
from eventlog.sources.logrows import OBJECT, Rows, end_of_object, events_of, numbers_of
from eventlog.sources.retries import Retries, read_retries
from eventlog.sources.settings import LogSettings
from eventlog.sources.settlement import retried, settle
from eventlog.sql.log import ALL, Log, id_list
from eventlog.sql.names import LogNames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

    from eventlog.sources.seat import Seat

__all__ = ["LogSettings", "LogSource"]

Notes = Mapping[str, str]

LOOKAHEAD: Final = 32
"""Rows read past the limit to see whether the last object goes on; four times as many each time that it still does."""

MOST_MISSING: Final = 5_000
"""Numbers that are looked for between the rows of a batch before reading ahead; more of them cost more than it saves."""

OFTEN: Final = 30.0
"""Seconds between two looks for rows that have come behind others: it reads all that wait."""

_STAY: Final = frozenset({Reason.RETRY, Reason.HELD})


class LogSource:
    """Reads and settles the log `names`. InstallError when the log, one of its columns or a companion is missing.

    With a `seat` it refuses to hand out, note or settle anything once another publisher has taken that. `tracked` is what
    that mark said before the catalog was made.
    """

    def __init__(
        self,
        engine: Engine,
        names: LogNames | None = None,
        catalog: Catalog | None = None,
        settings: LogSettings | None = None,
        seat: Seat | None = None,
        tracked: str | None = None,
    ) -> None:
        self.settings = settings or LogSettings()
        self.log = Log(engine, names or LogNames(), clock=self.settings.clock)
        self.marks = Marks(self.log)
        self._catalog = catalog
        self._seat = seat
        self._tracked = tracked
        self.outdated = False
        self._retries = Retries()
        self._holds = Holds(self.log)
        self._waited = False
        self._looked = float("-inf")
        self.log.check()

    def read(self, limit: int) -> Batch:
        """The batch in hand if there is one, else the next rows, noted before they are handed out."""
        while (batch := self._read(limit)) is None:
            pass
        return batch

    def _read(self, limit: int) -> Batch | None:
        """None where rows were held or released between two statements: one may have seen a row that the other did not."""
        with self._transaction(lone=True) as connection:  # whichever statement is the last: the marks are true
            marks = self.marks.all(connection)
            if self._seat is not None:
                self._seat.confirm(marks.get(PUBLISHER))
            retried, longest = read_runs(marks.get(RETRIED, "")), self.settings.backoff.longest
            self._retries = read_retries(connection, self.log, retried, longest)
            self._holds.learn(marks)
            self.outdated = marks.get(TRACKED) != self._tracked
            self._note_behind(connection, waited=BEHIND in marks)
            noted = read_runs(marks.get(IN_HAND, ""))
            if noted and self._retries.waiting and self.settings.on_retry == "stop":
                return Batch(events=(), later=self._retries.latest)
            events = self._noted(connection, noted) if noted else []
            if events:
                return self._batch(events, notes_of(marks), repeated=True) if self._holds.stand(connection) else None
            return self._next_batch(connection, limit, marks)

    def note(self, notes: Notes) -> None:
        """Keeps notes with the batch in hand, durable when it returns."""
        with self._transaction(lone=len(notes) == 1) as connection:
            mark = self.marks.set if self._seat is None else self._seat.mark
            for name, text in notes.items():
                mark(connection, note_name(name), text)

    def read_ahead(self, limit: int, handed_out: Sequence[Batch]) -> Batch:
        """The next rows above those of batches that are handed out; none where that could not be told or would not pay.

        None either when a row has been committed late below or between them, or is held: nothing may overtake it.
        """
        behind = self._retries.rows or self._holds.mark
        if behind or self.settings.handle_future_events or self.log.dialect.embedded or limit <= 0:
            return Batch(events=())
        stretches = sorted(run for batch in handed_out for run in runs(numbers_of(batch)))
        first, last = stretches[0][0], stretches[-1][1]
        between = [range(end + 1, start) for (_, end), (start, _) in pairwise(stretches)]
        if sum(map(len, between)) > MOST_MISSING:
            return Batch(events=())
        bounds = {"first": first, "last": last, "missing": id_list([*chain(*between)])}
        with self._transaction(lone=True) as connection:
            rows = self._next(connection, limit, "among_ahead", bounds)
            return Batch(events=events_of(rows) if self._holds.stand(connection) else ())

    def settle(
        self,
        batch: Batch,
        outcomes: Sequence[Outcome],
        notes: Notes | None = None,
        following: Batch | None = None,
    ) -> None:
        """Marks, deletes and records in one transaction, and lets go of the batch; rows with status NEW stay N.

        Where a database can leave it for later, the transaction is on disk before the next document is written: should
        a crash undo it, the same batch comes again with the same notes.
        """
        if not batch.events:
            return
        with self._transaction() as connection:
            if self._seat is not None:
                self._seat.assure(connection)
            settle(connection, self.log, outcomes, self.settings, batch.attempts, waited=self._waited)
            self._keep(connection, batch, outcomes, notes or {})
            if following is not None and following.events:
                self.marks.set(connection, IN_HAND, write_runs(numbers_of(following)))

    def _next_batch(self, connection: Connection, limit: int, marks: Mapping[str, str]) -> Batch | None:
        """Takes the next rows in hand; notes that are left speak of rows that wait, or of rows that are gone."""
        notes = notes_of(marks)
        if not self._retries.rows:
            if RETRIED in marks:
                self.marks.clear(connection, RETRIED)
            if notes:
                self.marks.clear_notes(connection)
                notes = {}
        events = events_of(self._next(connection, limit))
        future = self.settings.handle_future_events  # the clock is read after the rows, so that none is ahead of it
        batch = self._batch(events, notes, now=self.log.now(connection) if future else None)
        if events:
            return batch if self._take(connection, write_runs(numbers_of(batch))) else None
        if IN_HAND in marks:
            self.marks.clear(connection, IN_HAND)
        if BEHIND in marks and not self._holds.mark and not self._retries.rows:
            self.marks.clear(connection, BEHIND)  # nobody waits at all
        return batch

    def _note_behind(self, connection: Connection, *, waited: bool) -> None:
        """Records why rows wait that are not read because of others, now and then; what the mark says outlives us."""
        ahead = [*(row.number for row in self._retries.waiting), *self._holds.numbers()]
        self._waited = waited
        if ahead and monotonic() - self._looked >= OFTEN:
            self._looked = monotonic()
            if not waited:
                self.marks.set(connection, BEHIND, "rows")
            note_behind(connection, self.log, ahead)
            self._waited = True

    def _batch(
        self, events: Sequence[Event], notes: Notes, *, now: dt.datetime | None = None, repeated: bool = False
    ) -> Batch:
        retries = self._retries
        return Batch(
            events=events,
            now=now,
            repeated=repeated,
            notes=notes,
            attempts=retries.attempts if retries.rows else {},
            later=retries.earliest if retries.rows else None,
        )

    def _keep(self, connection: Connection, batch: Batch, outcomes: Sequence[Outcome], notes: Notes) -> None:
        """Lets go of the batch, but for what stays in hand, and says which rows wait for another attempt."""
        self.marks.clear_batch(connection)
        staying = [
            outcome.position[0]
            for outcome in exceptional(outcomes)
            if outcome.status is Status.NEW and outcome.reason in _STAY
        ]
        if staying and self.settings.on_retry == "stop":
            self.marks.set(connection, IN_HAND, write_runs(staying))
        if staying and not self._waited:
            self.marks.set(connection, BEHIND, "rows")
        for name, text in notes.items():
            self.marks.set(connection, note_name(name), text)
        before = {row.number for row in self._retries.rows}
        again = before.difference(event.position[0] for event in batch.events) if before else set[int]()
        again.update(outcome.position[0] for outcome in retried(outcomes))
        if again:
            self.marks.set(connection, RETRIED, write_runs(sorted(again)))
        elif before:
            self.marks.clear(connection, RETRIED)

    def _take(self, connection: Connection, numbers: str) -> bool:
        """Whether it is noted; it is not where the seat is lost, or rows were held or released since the marks were read."""
        if self._seat is not None:
            return self._seat.take_in_hand(connection, numbers, self._holds.stamp)
        if known := self._holds.stand(connection):
            self.marks.set(connection, IN_HAND, numbers)
        return known

    def _next(
        self, connection: Connection, limit: int, among: str | None = None, bounds: Mapping[str, object] | None = None
    ) -> Rows:
        """The first `limit` rows, and those after them that belong to the object of the last."""
        if limit <= 0:
            return self._passing(connection, self._waiting(connection, ALL))
        ahead = LOOKAHEAD
        while True:
            found = self._waiting(connection, limit + ahead, among, bounds)
            rows = self._passing(connection, found)
            end = end_of_object(rows, limit, Identities(self._catalog))
            if end < len(rows) or len(found) < limit + ahead:
                return rows[:end]
            ahead *= 4

    def _waiting(
        self, connection: Connection, limit: int, among: str | None = None, bounds: Mapping[str, object] | None = None
    ) -> Rows:
        future = self.settings.handle_future_events
        waiting = [row.number for row in self._retries.waiting]
        query = self.log.query(
            "waiting_rows",
            among=among or ("among_due" if future else "among_all"),
            **{"except": "except_retried" if waiting else "except_none"},
            order="order_by_time" if future else "order_by_number",
            transaction=self.settings.transaction_column,
        )
        retried = {"retried": id_list(waiting)} if waiting else {}
        ask = self.log.rows_at_once if among else self.log.rows  # ahead there is another thread that computes
        return ask(connection, query, {"limit": limit, **(bounds or {}), **retried})

    def _passing(self, connection: Connection, rows: Rows) -> Rows:
        """The rows without those whose object waits, however they write its key."""
        identities = Identities(self._catalog)
        rows = self._holds.free(connection, rows, identities)
        if not self._retries.waiting:
            return rows
        kept = self._retries.objects(identities)
        return [row for row in rows if identities.row_id(*row[OBJECT]) not in kept]

    def _noted(self, connection: Connection, numbers: Sequence[int]) -> list[Event]:
        """The events of the batch in hand as they were handed out, without those that are gone, held, or behind held ones."""
        fragments = {"among": "among_noted", "except": "except_none", "order": "order_by_number"}
        fragments |= {"transaction": self.settings.transaction_column}
        query = self.log.query("waiting_rows", **fragments)
        rows = self.log.rows(connection, query, {"ids": id_list(numbers), "limit": ALL})
        free = self._holds.free(connection, rows, Identities(self._catalog))
        events = {event.position[0]: event for event in events_of(free)}
        return [events[number] for number in numbers if number in events]

    @contextmanager
    def _transaction(self, *, lone: bool = False) -> Iterator[Connection]:
        """A transaction; when it fails because the log has lost a column meanwhile, the error says so."""
        try:
            with self.log.transaction(lone=lone) as connection:
                yield connection
        except SourceError:
            self.log.check()
            raise
