"""The log source: waiting rows of an event log table, handed out in batches and marked with what became of them.

A row is picked by its status and never by its number: record_ids are drawn before commit, so a lower one may appear
after a higher one was read. For the same reason nothing is marked that is not in the batch, however the batch's
numbers lie.

Settling: outcomes become marks on the log's rows and notes in its companion table, in the caller's transaction.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from time import monotonic
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import Connection, Engine

from eventlog.core.errors import SourceError
from eventlog.core.model import Event, Outcome, Outcomes, Position, Reason, Status, exceptional, positions_of, written
from eventlog.core.schema import Catalog
from eventlog.core.seams import Batch, SourceCapabilities
from eventlog.core.secrets import masked
from eventlog.sources.log.left_out import EVER, LeftOut, note_behind, read_retries
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.owed import leave, waiting_only
from eventlog.sources.log.reading import LogSettings, Request, WaitingRows, numbers_of
from eventlog.sources.log.seen import SeenNumbers
from eventlog.sources.marks import (
    BEHIND,
    HOLDING,
    IN_HAND,
    PUBLISHER,
    RETRIED,
    TRACKED,
    UNREAD,
    Marks,
    Stretches,
    as_text,
    note_name,
    notes_of,
    read_runs,
    runs,
    stored,
    write_runs,
)
from eventlog.sources.notes import COUNTED, noted_events, split_counted
from eventlog.sql.log import Log, id_list
from eventlog.sql.names import LogNames

__all__ = ["LogSettings", "LogSource"]

Notes = Mapping[str, str]

MISSING_NUMBERS: Final = 5_000
"""Numbers that are looked for between the rows of a batch before reading ahead; more of them cost more than it saves."""

LARGE_BYTES: Final = 1_000_000
"""Rows that weigh so much on average fill the memory with their copies: in a driver's buffers, as values, as documents."""

RUN_ROWS: Final = 64
"""From this length on a run of numbers without gaps is marked by its ends; shorter ones go into one list."""

DELETED: Final = frozenset({Status.SUCCESS, Status.WARNING})
"""What `delete_from_log` deletes; errors stay where people can see them."""

_STAY: Final = frozenset({Reason.RETRY, Reason.HELD})

LATE_LOOK_SECONDS: Final = 30.0
"""Seconds between two looks for rows that have come behind others: it reads all that wait."""


class LogSource:
    """Reads and settles the log `names`. InstallError when the log, one of its columns or a companion is missing.

    `outputs` are the names of those that it is read for: it hands out nothing while one of them is paused.
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
        outputs: Collection[str] = (),
    ) -> None:
        self._outputs = outputs
        self.settings = settings or LogSettings()
        self.log = Log(engine, names or LogNames(), clock=self.settings.clock)
        self.marks = Marks(self.log)
        self._catalog = catalog
        self._lock = lock
        self._tracked = tracked
        self.outdated = False
        self._left_out = LeftOut(self.log, catalog, self.settings.backoff)
        self.seen = SeenNumbers(self.log)
        self._rows = WaitingRows(self.log, catalog, self.settings, self._left_out, self.seen)
        self._waited = False
        self._looked = float("-inf")
        self._left = 0
        self.log.check()

    @property
    def paused(self) -> frozenset[str]:
        """The outputs to which nothing is to go, as of the last reading."""
        return self._left_out.paused

    @property
    def capabilities(self) -> SourceCapabilities:
        return SourceCapabilities(
            read_ahead=self.read_ahead, outdated=lambda: self.outdated, leaves=lambda: bool(self._left_out.owed)
        )

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
            left_out = self._left_out
            left_out.retries = read_retries(connection, self.log, retried, longest)
            left_out.learn(marks)
            self.outdated = marks.get(TRACKED) != self._tracked
            if not self.paused.isdisjoint(self._outputs):
                return Batch(events=())
            self._note_behind(connection, waited=BEHIND in marks)
            noted = read_runs(marks.get(IN_HAND, ""))
            if noted and left_out.retries.waiting and self.settings.on_retry == "stop":
                return Batch(events=(), later=left_out.retries.latest)
            notes = notes_of(marks)
            # As they were handed out, without those that are gone, held, or behind held ones.
            if noted:
                found = self._rows.noted(connection, noted, left_out.held_objects(connection, notes))
                if found.events:
                    if not left_out.stand(connection):
                        return None
                    return self._with_notes(self._counted(connection, found, (), more=True), notes)
            return self._next_batch(connection, limit, marks)

    def note(self, notes: Notes) -> None:
        with self._transaction(lone=len(notes) == 1) as connection:
            mark = self.marks.set if self._lock is None else self._lock.mark
            for name, text in notes.items():
                mark(connection, note_name(name), text)

    def read_ahead(self, limit: int, handed_out: Sequence[Batch]) -> Batch:
        """The next rows above those of batches that are handed out; none where that could not be told or would not pay.

        None either when a row has been committed late below or between them, or when rows were held or released since
        the last reading: nothing may overtake them. What comes after a held row of its object is left out.
        """
        behind = self._left_out.retries.rows or self._left_out.unread.notes
        room = min(self.settings.share, self.settings.query_bytes - sum(map(_on_its_way, handed_out)))
        if behind or room <= 0 or self.settings.handle_future_events or self.log.dialect.embedded or limit <= 0:
            return Batch(events=())
        left = {number for batch in handed_out for number in batch.left}
        known = frozenset(chain(*map(numbers_of, handed_out)))
        stretches = (Stretches.of(known | left) | self._left_out.any_owed).parts
        between = [range(end + 1, start) for (_, end), (start, _) in pairwise(stretches)]
        if sum(map(len, between)) > MISSING_NUMBERS:
            return Batch(events=())
        last = min([stretches[-1][1] + 1, *(left - known)]) - 1
        bounds = {"first": stretches[0][0], "last": last, "missing": id_list([*chain(*between)])}
        above = Stretches.of(number for number in known if number > last)
        request = Request(limit=limit, room=room, among="among_ahead", bounds=bounds, alone=False, known=above)
        with self._transaction(lone=True) as connection:
            self._pass_over(connection, {})  # nothing is read ahead while there are notes
            found = self._rows.next(connection, request)
            if not self._left_out.stand(connection) or not found.events:
                return Batch(events=())
            before = [*chain.from_iterable(batch.rows for batch in handed_out)]
            more = found.more or bool(found.left) or limit <= len(found.events)
            return self._counted(connection, found, before, more=more)

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
        self._left = sum(outcome.reason is Reason.GOES_ON for outcome in exceptional(outcomes))
        with self._transaction() as connection:
            # Whoever holds rows meanwhile waits for us, or we for them: else the record of a hold would take the place of
            # a reason that is written at the same moment. Before the lock of the log, for its lease must not wait with us.
            self.marks.lock(connection, HOLDING)
            if self._lock is not None:
                self._lock.assure(connection)
            if self._left_out.owed:
                self._left_out.learn_owed(self.marks.all(connection))
            now = waiting_only(outcomes) if self._left_out.owed else outcomes
            settle(connection, self.log, now, self.settings, batch.attempts, waited=self._waited)
            if self._left_out.owed:
                leave(connection, self.marks, self._left_out.owed, outcomes)
            self._keep(connection, batch, outcomes, notes or {})
            if following is not None and following.events:
                self.marks.set(connection, IN_HAND, write_runs(numbers_of(following)))
        if self.seen.known:
            self.seen.settled([number for numbers in by_status(outcomes).values() for number in numbers])

    def _next_batch(self, connection: Connection, limit: int, marks: Mapping[str, str]) -> Batch | None:
        """Takes the next rows in hand; notes that are left speak of rows that wait, or of rows that are gone."""
        notes, left_out = notes_of(marks), self._left_out
        if not left_out.retries.rows:
            if RETRIED in marks:
                self.marks.clear(connection, RETRIED)
            about_rows, counted = split_counted(notes)
            if about_rows and not left_out.held and not self._any_waits(connection, noted_events(about_rows)):
                self.marks.clear_notes(connection)
                notes = {} if counted is None else {COUNTED: counted}
                if counted is not None:
                    self.marks.set(connection, note_name(COUNTED), counted)
        self._pass_over(connection, notes)
        if left_out.objects or left_out.any_owed or self.seen.known:
            self.seen.renew(left_out.stamp, left_out.objects, left_out.any_owed)
        left = self._left
        known = left_out.any_owed if self.settings.handle_future_events else Stretches()
        request = Request(limit=limit + left if limit > 0 else limit, room=self.settings.share, known=known)
        found = self._rows.next(connection, request)
        batch = self._with_notes(found, notes)
        if self.settings.handle_future_events:  # the clock is read after the rows, so that none is ahead of it
            batch = replace(batch, now=self.log.now(connection))
        if batch.events:
            more = found.more or bool(found.left) or 0 < limit <= len(found.events)
            batch = self._counted(connection, batch, (), more=more)
            return batch if self._take(connection, write_runs(numbers_of(batch))) else None
        if IN_HAND in marks:
            self.marks.clear(connection, IN_HAND)
        if BEHIND in marks and not left_out.held and not left_out.retries.rows:
            self.marks.clear(connection, BEHIND)  # nobody waits at all
        if UNREAD in marks and not left_out.tables:
            self.marks.clear(connection, UNREAD)
        return batch

    def _note_behind(self, connection: Connection, *, waited: bool) -> None:
        """Records why rows wait that are not read because of others, now and then; what the mark says outlives us."""
        ahead = [*(row.number for row in self._left_out.retries.waiting), *self._left_out.held]
        self._waited = waited
        if ahead and monotonic() - self._looked >= LATE_LOOK_SECONDS:
            self._looked = monotonic()
            if not waited:
                self.marks.set(connection, BEHIND, "rows")
            note_behind(connection, self.log, ahead)
            self._waited = True

    def _with_notes(self, batch: Batch, notes: Notes) -> Batch:
        """The batch with what was noted of it, and how often its rows were offered."""
        retries = self._left_out.retries
        about_rows, counted = split_counted(notes)
        batch = replace(batch, notes=about_rows, counted=counted)
        return replace(batch, attempts=retries.attempts, later=retries.earliest) if retries.rows else batch

    def _counted(self, connection: Connection, batch: Batch, before: Sequence[Event], *, more: bool) -> Batch:
        """The batch with the transactions that go on behind it, and behind the events before it."""
        return replace(batch, going_on=self._rows.going_on(connection, batch.rows, before, more=more))

    def _keep(self, connection: Connection, batch: Batch, outcomes: Sequence[Outcome], notes: Notes) -> None:
        """Lets go of the batch, but for what stays in hand, and says which rows wait for another attempt."""
        self.marks.clear_batch(connection)
        stay = staying(outcomes)
        if stay and self.settings.on_retry == "stop":
            self.marks.set(connection, IN_HAND, write_runs(stay))
        if stay and not self._waited:
            self.marks.set(connection, BEHIND, "rows")
        for name, text in notes.items():
            self.marks.set(connection, note_name(name), text)
        unread = self._left_out.unread.settle(batch.events, outcomes)
        if unread:
            self.marks.set(connection, UNREAD, as_text(unread))
        elif self._left_out.unread.notes:
            self.marks.clear(connection, UNREAD)
        before = {row.number for row in self._left_out.retries.rows}
        again = before.difference(event.position[0] for event in batch.events) if before else set[int]()
        again.update(outcome.position[0] for outcome in retried(outcomes))
        if again:
            self.marks.set(connection, RETRIED, write_runs(sorted(again)))
        elif before:
            self.marks.clear(connection, RETRIED)

    def _take(self, connection: Connection, numbers: str) -> bool:
        """Whether it is noted; it is not where the lock is lost, or rows were held or released since the marks were read."""
        if self._left_out.owed:  # those who lag settle meanwhile: all take these locks in the same order
            self.marks.lock(connection, HOLDING)
        if self._lock is not None:
            return self._lock.take_in_hand(connection, numbers, self._left_out.stamp)
        if known := self._left_out.stand(connection):
            self.marks.set(connection, IN_HAND, numbers)
        return known

    def _any_waits(self, connection: Connection, noted: Iterable[Position]) -> bool:
        """Whether a row still waits that may be at an output already, and must come again under its plan or not at all."""
        ids = id_list(sorted(number for (number,) in noted))
        return bool(self.log.rows(connection, self.log.query("still_waiting"), {"ids": ids}))

    def _pass_over(self, connection: Connection, notes: Notes) -> None:
        """Learns whose rows are left out: they come after a held one, or with one that is offered again later."""
        retried = [(EVER, row.table, row.key) for row in self._left_out.retries.waiting]
        self._left_out.pass_over(connection, notes, retried)

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


def _on_its_way(batch: Batch) -> int:
    """What a batch takes of the room for all that are on their way: of large rows each copy counts."""
    large = batch.weight > LARGE_BYTES * len(batch.events)
    return 2 * batch.weight if large else batch.weight


def settle(
    connection: Connection,
    log: Log,
    outcomes: Sequence[Outcome],
    settings: LogSettings,
    attempts: Mapping[Position, int],
    *,
    waited: bool = False,
) -> None:
    """Records reasons and attempts while the rows still wait, then marks or deletes those whose time is over.

    `attempts` are those of rows that were offered before; `waited` says that rows may have a record of what they
    waited for.
    """
    outcomes = one_a_number(outcomes)
    _note(connection, log, outcomes, settings, attempts)
    for status, numbers in by_status(outcomes).items():
        if attempts or waited:
            _end_attempts(connection, log, status, numbers)
        if settings.delete_from_log and status in DELETED:
            _change(connection, log, "delete", numbers, {})
        else:
            _change(connection, log, "mark", numbers, {"status": status.value})


def one_a_number(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """The outcomes, made one where several rows have one number: a database cannot be told which of them is meant.

    What waits keeps the others waiting, and a row that was published is not called an error for its neighbour's sake.
    """
    if all(len(position) == 1 for position in positions_of(outcomes)):
        return outcomes
    by_number: dict[int, list[Outcome]] = {}
    for outcome in outcomes:
        by_number.setdefault(outcome.position[0], []).append(outcome)
    return [_joined(number, alike) for number, alike in by_number.items()]


def _joined(number: int, alike: Sequence[Outcome]) -> Outcome:
    waiting = [one for one in alike if one.status is Status.NEW]
    bad = [one for one in alike if one.status in (Status.ERROR, Status.FATAL)]
    if waiting or not bad or len(bad) == len(alike):
        chosen = (waiting or bad or sorted(alike, key=lambda one: one.status is not Status.WARNING))[0]
        return replace(chosen, position=(number,))
    note = f"{len(alike)} rows have this record_id, and {len(bad)} of them could not be published: {note_of(bad[0])}"
    return Outcome(position=(number,), status=Status.WARNING, reason=bad[0].reason, note=note)


def by_status(outcomes: Sequence[Outcome]) -> dict[Status, list[int]]:
    """The record_ids that get each letter, ascending; those that stay N are left out."""
    found: dict[Status, list[int]] = {}
    for outcome in exceptional(outcomes):
        if outcome.status is not Status.NEW:
            found.setdefault(outcome.status, []).append(outcome.position[0])
    if isinstance(outcomes, Outcomes):
        others = outcomes.others
        positions = outcomes.positions
        if others:
            positions = [position for position in positions if position not in others]
        found.setdefault(Status.SUCCESS, []).extend([position[0] for position in positions])
    for numbers in found.values():
        numbers.sort()
    return {status: numbers for status, numbers in found.items() if numbers}


def is_noted(outcome: Outcome) -> bool:
    """Whether the companion table must say more than the letter does."""
    return outcome.status is not Status.NEW and (outcome.reason is not Reason.PUBLISHED or outcome.note is not None)


def note_of(outcome: Outcome) -> str | None:
    """The note as any database can keep it; a superseded event names its winner."""
    note = outcome.note
    if note is None and outcome.winner is not None:
        note = f"superseded by {written(outcome.winner)}"
    if note is None:
        return None
    return stored(masked(note).replace("\0", "\\0").encode("utf-8", "backslashreplace").decode())


def retried(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Those that are offered again after a while."""
    return [
        outcome for outcome in exceptional(outcomes) if outcome.status is Status.NEW and outcome.reason is Reason.RETRY
    ]


def staying(outcomes: Sequence[Outcome]) -> list[int]:
    """The rows that stay in hand, where whoever publishes waits for them."""
    return list(
        dict.fromkeys(
            [one.position[0] for one in exceptional(outcomes) if one.status is Status.NEW and one.reason in _STAY]
        )
    )


def _note(
    connection: Connection,
    log: Log,
    outcomes: Sequence[Outcome],
    settings: LogSettings,
    attempts: Mapping[Position, int],
) -> None:
    noted = [_record(outcome) for outcome in exceptional(outcomes) if is_noted(outcome)]
    if noted:
        connection.execute(log.query("note_outcome"), {"records": as_text(noted)})
    chance = secrets.SystemRandom().random()  # one for all, so that what belongs together comes again together
    for note, numbers in _held(outcomes).items():
        connection.execute(log.query("note_waiting"), {"note": stored(note), "ids": id_list(numbers)})
    tried = [
        _record(outcome) | {"delay": settings.backoff.delay(attempts.get(outcome.position, 0) + 1, chance)}
        for outcome in retried(outcomes)
    ]
    if tried:
        connection.execute(log.query("note_attempt"), {"records": as_text(tried)})


def _held(outcomes: Sequence[Outcome]) -> dict[str, list[int]]:
    """Rows that were read and go on waiting behind others, by the note that says so."""
    found: dict[str, list[int]] = {}
    for outcome in exceptional(outcomes):
        if outcome.status is Status.NEW and outcome.reason is Reason.HELD:
            found.setdefault(note_of(outcome) or "", []).append(outcome.position[0])
    return found


def _record(outcome: Outcome) -> dict[str, Any]:
    """As the statements read it; without a note the key is left out, because not every database takes JSON's null for NULL."""
    found: dict[str, Any] = {"id": outcome.position[0], "status": outcome.status.value, "reason": outcome.reason.value}
    note = note_of(outcome)
    return found if note is None else found | {"note": note}


def _end_attempts(connection: Connection, log: Log, status: Status, numbers: Sequence[int]) -> None:
    """Rows that `note_outcome` recorded have no attempts open any more; what is left ended without a reason of its own."""
    parameters = {"status": status.value, "reason": Reason.PUBLISHED.value, "ids": id_list(numbers)}
    connection.execute(log.query("end_attempts"), parameters)


def _change(connection: Connection, log: Log, verb: str, numbers: Sequence[int], values: Mapping[str, str]) -> None:
    """Marks or deletes exactly these rows.

    Marking by the ends of a range is twice as fast as by a list, but a range also holds what was committed late. Only
    a run of consecutive numbers has no room for a row that is not in it, so only runs are marked by their ends.
    """
    stretches = runs(numbers)
    long = [(first, last) for first, last in stretches if last - first + 1 >= RUN_ROWS]
    for first, last in long:
        connection.execute(log.query(f"{verb}_run"), {**values, "first": first, "last": last})
    kept = set(stretches).difference(long)
    scattered = [number for first, last in sorted(kept) for number in range(first, last + 1)]
    if scattered:
        connection.execute(log.query(f"{verb}_rows"), {**values, "ids": id_list(scattered)})
