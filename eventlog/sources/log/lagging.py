"""The source of an output that lags: the rows that it is owed, in the order of their numbers.

It reads what those who are ahead have settled, and nothing else, so it never is ahead of anybody. What it has in hand
and its notes stand in a mark of its own. When it was the last that was owed a row, the row gets its letter.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from eventlog.core.backoff import Backoff
from eventlog.core.errors import SourceError
from eventlog.core.model import Outcome, Reason, exceptional
from eventlog.core.schema import Catalog
from eventlog.core.seams import Batch, SourceCapabilities
from eventlog.sources.log.left_out import EVER, LeftOut
from eventlog.sources.log.owed import LagState, Saying, read_lag, settled_numbers, waiting_only, write_said
from eventlog.sources.log.reading import LogSettings, Request, WaitingRows, numbers_of
from eventlog.sources.log.source import retried, settle, staying
from eventlog.sources.marks import (
    HOLDING,
    IN_HAND,
    LAGGING,
    OWED,
    PUBLISHER,
    SAID,
    TRACKED,
    Marks,
    Stretches,
    any_owed,
    as_text,
    read_owed,
    write_runs,
)
from eventlog.sources.notes import split_counted
from eventlog.sql.log import Log, id_list
from eventlog.sql.names import LogNames

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from eventlog.sources.log.lock import LogLock

WINDOW_ROWS: Final = 20_000
"""So many rows beyond the limit are asked for, for the object of the last row may go on."""

AT_ONCE: Final = Backoff(first=0.0, longest=0.0)
"""What is recorded of rows that are offered again: no time, for others may be owed them and read them now."""

Objects = dict[int, tuple[str | None, str | None]]


class LaggingSource:
    """Reads and settles what the output `name` is owed; `tracked` is what that mark said before the catalog was made."""

    def __init__(
        self,
        engine: Engine,
        names: LogNames,
        name: str,
        catalog: Catalog | None,
        settings: LogSettings,
        lock: LogLock,
        tracked: str | None = None,
    ) -> None:
        self.name = name
        self.settings = settings
        self.log = Log(engine, names, clock=settings.clock)
        self.marks = Marks(self.log)
        self.owed = Stretches()
        """What it was owed when it was last looked at."""
        self.paused = False
        self._catalog = catalog
        self._lock = lock
        self._tracked = tracked
        self._outdated = False
        self._left_out = LeftOut(self.log, catalog)
        self._rows = WaitingRows(self.log, catalog, replace(settings, handle_future_events=False), self._left_out)
        self._state = LagState()
        self._left = 0
        self._again: dict[int, float] = {}
        self._objects: Objects = {}

    @property
    def capabilities(self) -> SourceCapabilities:
        return SourceCapabilities(outdated=lambda: self._outdated)

    def read(self, limit: int) -> Batch:
        """The batch in hand if there is one, else the next rows that it is owed."""
        while True:
            with self._transaction(lone=True) as connection:
                marks = self.marks.all(connection)
                self._lock.confirm(marks.get(PUBLISHER))
                self._learn(marks)
                later = self._later()
                if self.paused or (later is not None and self.settings.on_retry == "stop"):
                    return Batch(events=(), later=later)
                in_hand = Stretches.read(self._state.in_hand)
                if (in_hand - self.owed) & Stretches.read(marks.get(IN_HAND, "")):
                    return Batch(events=())  # those who are ahead have not settled it yet
                in_hand &= self.owed
                waiting = [(EVER, *self._objects[number]) for number, at in self._again.items() if at > monotonic()]
                self._left_out.pass_over(connection, self._state.notes, waiting)
                found = (
                    self._rows.noted(connection, [*in_hand], self._left_out.objects) if in_hand else Batch(events=())
                )
                batch = self._batch(connection, found) if found.events else self._next(connection, limit)
                if self._left_out.stand(connection):
                    return batch

    def note(self, notes: Mapping[str, str]) -> None:
        self._state = replace(self._state, notes={**self._state.notes, **notes})
        with self._transaction(lone=True) as connection:
            self._lock.mark(connection, f"{LAGGING}{self.name}", as_text(self._state))

    def settle(
        self,
        batch: Batch,
        outcomes: Sequence[Outcome],
        notes: Mapping[str, str] | None = None,
        following: Batch | None = None,
    ) -> None:
        """Lets go of the batch; rows that nobody else is owed get their letters."""
        if not batch.events:
            return
        with self._transaction() as connection:
            self.marks.lock(connection, HOLDING)  # whoever else settles waits for us, or we for them
            self._lock.assure(connection)
            marks = self.marks.all(connection)
            owed = self._owed(marks)
            mine = owed.pop(self.name)
            done = settled_numbers(outcomes) & mine  # what somebody gave up meanwhile may be on its way anew
            others = any_owed(owed.values())
            saying = Saying(marks.get(SAID))
            final = done - others
            ended = saying.merged(outcomes, final)
            settle(connection, self.log, ended, self.settings, {}, waited=self._state.waited)
            settle(connection, self.log, waiting_only(outcomes), replace(self.settings, backoff=AT_ONCE), {})
            saying.add(outcomes, done & others)
            saying.forget(final)
            write_said(connection, self.marks, saying)
            self.owed = mine - done
            self.marks.set(connection, f"{OWED}{self.name}", self.owed.text())
            self._state = self._kept(batch, outcomes, notes or {})
            self.marks.set(connection, f"{LAGGING}{self.name}", as_text(self._state))

    def gone(self) -> None:
        """Forgets what it is owed and nobody can read any more: somebody has taken the rows away, or settled them."""
        if not self.owed and not self._state.in_hand:
            return
        with self._transaction() as connection:
            self.marks.lock(connection, HOLDING)
            self._lock.assure(connection)
            marks = self.marks.all(connection)
            owed = self._owed(marks)[self.name]
            self.owed = Stretches.of(self._still_waiting(connection, owed))
            if self.owed != owed:
                self.marks.set(connection, f"{OWED}{self.name}", self.owed.text())
            in_hand = Stretches.read(self._state.in_hand)
            if in_hand and not in_hand & (self.owed | Stretches.read(marks.get(IN_HAND, ""))):
                self._state = replace(self._state, in_hand="")
                self.marks.set(connection, f"{LAGGING}{self.name}", as_text(self._state))

    def _still_waiting(self, connection: Connection, owed: Stretches) -> Iterator[int]:
        numbers = iter(owed)
        while window := [*islice(numbers, WINDOW_ROWS)]:
            found = self.log.rows(connection, self.log.query("still_waiting"), {"ids": id_list(window)})
            yield from (int(number) for (number,) in found)

    def _learn(self, marks: Mapping[str, str]) -> None:
        self._left_out.learn(marks)
        self._outdated = marks.get(TRACKED) != self._tracked
        self.paused = self.name in self._left_out.paused
        self.owed = self._owed(marks)[self.name]
        self._state = read_lag(marks, self.name)
        self._again = {number: at for number, at in self._again.items() if number in self.owed}

    def _owed(self, marks: Mapping[str, str]) -> dict[str, Stretches]:
        """What all who lag are owed; an error where this output is not among them any more."""
        owed = read_owed(marks)
        if self.name not in owed:
            said = f"Somebody has forgotten the output {self.name} while this publisher writes to it."
            hint = "Take it out of the configuration, or begin again: it gets what comes from then on."
            raise SourceError(said, hint=hint, may_pass=False)
        return owed

    def _later(self) -> float | None:
        """In how many seconds rows come again that their receiver did not take; None where none waits for that."""
        now = monotonic()
        waiting = [at - now for at in self._again.values() if at > now]
        if not waiting:
            return None
        return max(waiting) if self.settings.on_retry == "stop" else min(waiting)

    def _next(self, connection: Connection, limit: int) -> Batch:
        """The first rows that it is owed, as far as they may be read: window by window, for a window may be passed over."""
        limit = limit + self._left if limit > 0 else limit
        numbers, size = iter(self.owed), limit + WINDOW_ROWS if limit > 0 else len(self.owed)
        while window := [*islice(numbers, size)]:
            request = Request(
                limit=limit, room=self.settings.share, among="among_noted", bounds={"ids": id_list(window)}
            )
            found = self._rows.next(connection, request)
            if found.events:
                return self._batch(connection, found)
        return Batch(events=(), later=self._later())

    def _batch(self, connection: Connection, found: Batch) -> Batch:
        """Takes in hand what was found, with all that is known of it."""
        events = found.rows
        about_rows, counted = split_counted(self._state.notes)
        self._state = replace(self._state, in_hand=write_runs([event.position[0] for event in events]))
        self._objects = {event.position[0]: (event.table, event.key) for event in events} | {
            number: self._objects[number] for number in self._again
        }
        future = self.settings.handle_future_events
        return replace(
            found,
            now=self.log.now(connection) if future and not found.repeated else None,
            notes=about_rows,
            counted=counted,
            going_on=self._rows.going_on(connection, events, (), more=True),
            attempts={(number,): count for number, count in self._state.attempts.items()},
            later=self._later(),
        )

    def _kept(self, batch: Batch, outcomes: Sequence[Outcome], notes: Mapping[str, str]) -> LagState:
        """What must be known with the next batch; when rows are offered again, nobody but us has to know."""
        chance = secrets.SystemRandom().random()
        attempts = dict(self._state.attempts)
        again = {one.position[0] for one in retried(outcomes)}
        for number in numbers_of(batch):
            self._again.pop(number, None)
            if number not in again:
                attempts.pop(number, None)
                continue
            attempts[number] = attempts.get(number, 0) + 1
            self._again[number] = monotonic() + self.settings.backoff.delay(attempts[number], chance)
        self._left = sum(one.reason is Reason.GOES_ON for one in exceptional(outcomes))
        stay = staying(outcomes)
        in_hand = write_runs(stay) if self.settings.on_retry == "stop" else ""
        return LagState(in_hand=in_hand, notes=notes, attempts=attempts, waited=self._state.waited or bool(stay))

    @contextmanager
    def _transaction(self, *, lone: bool = False) -> Iterator[Connection]:
        try:
            with self.log.transaction(lone=lone) as connection:
                yield connection
        except SourceError:
            self.log.check()
            raise
