"""The log source: waiting rows of an event log table, handed out in batches and marked with what became of them.

A row is picked by its status and never by its number: record_ids are drawn before commit, so a lower one may appear
after a higher one was read. For the same reason nothing is marked that is not in the batch, however the batch's
numbers lie.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from time import monotonic
from typing import TYPE_CHECKING, Final

from eventlog.core.errors import SourceError
from eventlog.core.model import Event, Outcome, Position, Reason, Status, exceptional
from eventlog.core.rules.identity import Identities
from eventlog.core.schema import Catalog
from eventlog.core.seams import Batch, SourceCapabilities
from eventlog.sources.log.reading import LogSettings, Portion, Request, WaitingRows
from eventlog.sources.log.rows import (
    EVER,
    Ahead,
    Holds,
    Passed,
    Retries,
    Unread,
    held_ahead,
    note_behind,
    numbers_of,
    read_retries,
    write_notes,
)
from eventlog.sources.log.settlement import by_status, retried, settle
from eventlog.sources.marks import (
    BEHIND,
    IN_HAND,
    PUBLISHER,
    RETRIED,
    TRACKED,
    UNREAD,
    Marks,
    note_name,
    notes_of,
    read_runs,
    runs,
    write_runs,
)
from eventlog.sources.notes import noted_events
from eventlog.sql.log import Log, id_list
from eventlog.sql.names import LogNames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

    from eventlog.sources.log.lock import LogLock

__all__ = ["LogSettings", "LogSource"]

Notes = Mapping[str, str]

MISSING_NUMBERS: Final = 5_000
"""Numbers that are looked for between the rows of a batch before reading ahead; more of them cost more than it saves."""

LATE_LOOK_SECONDS: Final = 30.0
"""Seconds between two looks for rows that have come behind others: it reads all that wait."""

_STAY: Final = frozenset({Reason.RETRY, Reason.HELD})


class LogSource:
    """Reads and settles the log `names`. InstallError when the log, one of its columns or a companion is missing.

    With a `lock` it refuses to hand out, note or settle anything once another publisher has taken that. `tracked` is what
    that mark said before the catalog was made.
    """

    def __init__(
        self,
        engine: Engine,
        names: LogNames | None = None,
        catalog: Catalog | None = None,
        settings: LogSettings | None = None,
        lock: LogLock | None = None,
        tracked: str | None = None,
    ) -> None:
        self.settings = settings or LogSettings()
        self.log = Log(engine, names or LogNames(), clock=self.settings.clock)
        self.marks = Marks(self.log)
        self._catalog = catalog
        self._lock = lock
        self._tracked = tracked
        self.outdated = False
        self._retries = Retries()
        self._holds = Holds(self.log)
        self._rows = WaitingRows(self.log, catalog, self.settings)
        self.seen = self._rows.seen
        self._passed = Passed()
        self._unread = Unread(self.settings.backoff)
        self._waited = False
        self._looked = float("-inf")
        self.log.check()

    @property
    def capabilities(self) -> SourceCapabilities:
        """What it can do beyond what all can."""
        return SourceCapabilities(read_ahead=self.read_ahead, outdated=lambda: self.outdated)

    def read(self, limit: int) -> Batch:
        """The batch in hand if there is one, else the next rows, noted before they are handed out."""
        while (batch := self._read(limit)) is None:
            pass
        return batch

    def _read(self, limit: int) -> Batch | None:
        """None where rows were held or released between two statements: one may have seen a row that the other did not."""
        with self._transaction(lone=True) as connection:  # whichever statement is the last: the marks are true
            marks = self.marks.all(connection)
            if self._lock is not None:
                self._lock.confirm(marks.get(PUBLISHER))
            retried, longest = read_runs(marks.get(RETRIED, "")), self.settings.backoff.longest
            self._retries = read_retries(connection, self.log, retried, longest)
            self._holds.learn(marks)
            self._unread.learn(marks.get(UNREAD))
            self.outdated = marks.get(TRACKED) != self._tracked
            self._note_behind(connection, waited=BEHIND in marks)
            noted = read_runs(marks.get(IN_HAND, ""))
            if noted and self._retries.waiting and self.settings.on_retry == "stop":
                return Batch(events=(), later=self._retries.latest)
            events = self._noted(connection, noted, notes_of(marks)) if noted else []
            if events:
                portion = Portion(events=events, weight=self.settings.query_bytes)
                return self._batch(portion, notes_of(marks), repeated=True) if self._holds.stand(connection) else None
            return self._next_batch(connection, limit, marks)

    def note(self, notes: Notes) -> None:
        """Keeps notes with the batch in hand, durable when it returns."""
        with self._transaction(lone=len(notes) == 1) as connection:
            mark = self.marks.set if self._lock is None else self._lock.mark
            for name, text in notes.items():
                mark(connection, note_name(name), text)

    def read_ahead(self, limit: int, handed_out: Sequence[Batch]) -> Batch:
        """The next rows above those of batches that are handed out; none where that could not be told or would not pay.

        None either when a row has been committed late below or between them, or when rows were held or released since
        the last reading: nothing may overtake them. What comes after a held row of its object is left out.
        """
        behind = self._retries.rows or self._unread.notes
        room = min(self.settings.share, self.settings.query_bytes - sum(batch.weight for batch in handed_out))
        if behind or room <= 0 or self.settings.handle_future_events or self.log.dialect.embedded or limit <= 0:
            return Batch(events=())
        stretches = sorted(run for batch in handed_out for run in runs(numbers_of(batch)))
        left = {number for batch in handed_out for number in batch.left}
        known = frozenset(chain(*map(numbers_of, handed_out))) if left else frozenset[int]()
        if left:
            stretches = runs(sorted(known | left))
        between = [range(end + 1, start) for (_, end), (start, _) in pairwise(stretches)]
        if sum(map(len, between)) > MISSING_NUMBERS:
            return Batch(events=())
        last = min([stretches[-1][1] + 1, *(left - known)]) - 1
        bounds = {"first": stretches[0][0], "last": last, "missing": id_list([*chain(*between)])}
        above = frozenset(number for number in known if number > last)
        request = Request(limit=limit, room=room, among="among_ahead", bounds=bounds, alone=False, known=above)
        with self._transaction(lone=True) as connection:
            self._pass_over(connection, {})  # nothing is read ahead while there are notes
            found = self._rows.next(connection, request, self._passed, ())
            if not self._holds.stand(connection):
                return Batch(events=())
            return Batch(events=found.events, weight=found.weight, more=found.more, left=found.left)

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
            if self._lock is not None:
                self._lock.assure(connection)
            settle(connection, self.log, outcomes, self.settings, batch.attempts, waited=self._waited)
            self._keep(connection, batch, outcomes, notes or {})
            if following is not None and following.events:
                self.marks.set(connection, IN_HAND, write_runs(numbers_of(following)))
        if self.seen:
            self.seen.settled([number for numbers in by_status(outcomes).values() for number in numbers])

    def _next_batch(self, connection: Connection, limit: int, marks: Mapping[str, str]) -> Batch | None:
        """Takes the next rows in hand; notes that are left speak of rows that wait, or of rows that are gone."""
        notes = notes_of(marks)
        if not self._retries.rows:
            if RETRIED in marks:
                self.marks.clear(connection, RETRIED)
            if notes and not self._holds.mark and not self._any_waits(connection, noted_events(notes)):
                self.marks.clear_notes(connection)
                notes = {}
        self._pass_over(connection, notes)
        self.seen.renew(self._holds.stamp, self._passed)
        unread = self._unread.tables()
        request = Request(limit=limit, room=self.settings.share)
        found = self._rows.next(connection, request, self._passed, unread)
        future = self.settings.handle_future_events  # the clock is read after the rows, so that none is ahead of it
        batch = self._batch(found, notes, now=self.log.now(connection) if future else None)
        if found.events:
            return batch if self._take(connection, write_runs(numbers_of(batch))) else None
        if IN_HAND in marks:
            self.marks.clear(connection, IN_HAND)
        if BEHIND in marks and not self._holds.mark and not self._retries.rows:
            self.marks.clear(connection, BEHIND)  # nobody waits at all
        if UNREAD in marks and not unread:
            self.marks.clear(connection, UNREAD)
        return batch

    def _note_behind(self, connection: Connection, *, waited: bool) -> None:
        """Records why rows wait that are not read because of others, now and then; what the mark says outlives us."""
        ahead = [*(row.number for row in self._retries.waiting), *self._holds.numbers()]
        self._waited = waited
        if ahead and monotonic() - self._looked >= LATE_LOOK_SECONDS:
            self._looked = monotonic()
            if not waited:
                self.marks.set(connection, BEHIND, "rows")
            note_behind(connection, self.log, ahead)
            self._waited = True

    def _batch(
        self, portion: Portion, notes: Notes, *, now: dt.datetime | None = None, repeated: bool = False
    ) -> Batch:
        retries = self._retries
        return Batch(
            events=portion.events,
            now=now,
            repeated=repeated,
            notes=notes,
            attempts=retries.attempts if retries.rows else {},
            later=retries.earliest if retries.rows else None,
            weight=portion.weight,
            more=portion.more,
            left=portion.left,
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
            self.marks.set(connection, IN_HAND, write_runs(list(dict.fromkeys(staying))))
        if staying and not self._waited:
            self.marks.set(connection, BEHIND, "rows")
        for name, text in notes.items():
            self.marks.set(connection, note_name(name), text)
        unread = self._unread.settle(batch.events, outcomes)
        if unread:
            self.marks.set(connection, UNREAD, write_notes(unread))
        elif self._unread.notes:
            self.marks.clear(connection, UNREAD)
        before = {row.number for row in self._retries.rows}
        again = before.difference(event.position[0] for event in batch.events) if before else set[int]()
        again.update(outcome.position[0] for outcome in retried(outcomes))
        if again:
            self.marks.set(connection, RETRIED, write_runs(sorted(again)))
        elif before:
            self.marks.clear(connection, RETRIED)

    def _take(self, connection: Connection, numbers: str) -> bool:
        """Whether it is noted; it is not where the lock is lost, or rows were held or released since the marks were read."""
        if self._lock is not None:
            return self._lock.take_in_hand(connection, numbers, self._holds.stamp)
        if known := self._holds.stand(connection):
            self.marks.set(connection, IN_HAND, numbers)
        return known

    def _any_waits(self, connection: Connection, noted: Iterable[Position]) -> bool:
        """Whether a row still waits that may be at an output already, and must come again under its plan or not at all."""
        ids = id_list(sorted(number for (number,) in noted))
        return bool(self.log.rows(connection, self.log.query("still_waiting"), {"ids": ids}))

    def _pass_over(self, connection: Connection, notes: Notes) -> None:
        """Learns whose rows are left out: they come after a held one, or with one that is offered again later."""
        retried = [(EVER, row.table, row.key) for row in self._retries.waiting]
        self._passed.learn([*self._held(connection, notes), *retried], Identities(self._catalog))

    def _held(self, connection: Connection, notes: Notes) -> list[Ahead]:
        """From which row on an object waits for a held one."""
        return held_ahead(self._holds.rows(connection), notes)

    def _noted(self, connection: Connection, numbers: Sequence[int], notes: Notes) -> list[Event]:
        """The events of the batch in hand as they were handed out, without those that are gone, held, or behind held ones."""
        held = Passed()
        held.learn(self._held(connection, notes), Identities(self._catalog))
        return self._rows.noted(connection, numbers, held)

    @contextmanager
    def _transaction(self, *, lone: bool = False) -> Iterator[Connection]:
        """A transaction; when it fails because the log has lost a column meanwhile, the error says so."""
        try:
            with self.log.transaction(lone=lone) as connection:
                yield connection
        except SourceError:
            self.seen.distrust()
            self.log.check()
            raise
