"""The rows of a log as one output of its publisher is given them: read, then finished with what became of each."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import Engine

from eventlog.core.model import Event, Outcome, Status
from eventlog.core.rules.screen import Identities
from eventlog.core.schema import Catalog
from eventlog.publisher.journal import Journal
from eventlog.publisher.plans import TakePlan
from eventlog.publisher.selection import Parking, Take, take
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import PUBLISHER, Marks
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames

OUTPUT = "out"
EVERY_ROW = 10**9


class TakenRows(Struct, frozen=True, kw_only=True):
    """Rows that may go, and the transactions of which more come behind them."""

    events: Sequence[Event]
    going_on: frozenset[int] | None = None

    @property
    def rows(self) -> Sequence[Event]:
        return self.events


class LogRows:
    """Takes the rows of a log batch by batch, as a consumer does without a target."""

    def __init__(
        self,
        engine: Engine,
        names: LogNames | None = None,
        catalog: Catalog | None = None,
        settings: LogSettings | None = None,
        clock: str | None = None,
    ) -> None:
        self.settings = settings or LogSettings()
        self.log = Log(engine, names or LogNames(), clock=clock)
        self.log.check()
        self._identities = Identities(catalog)
        # Nobody closes it, so its lease is never renewed: that would connect to the database of a test that is over.
        self._lock = LogLock(self.log, 600.0, alive=lambda: False)
        if not self._lock.take():  # one that the same test made before has it
            with self.log.transaction() as connection:
                Marks(self.log).clear(connection, PUBLISHER)
            assert self._lock.take()
        self.journal = Journal(self.log, self._lock, self.settings, catalog)
        self.output = OUTPUT
        self.journal.serve([(OUTPUT, ())])
        self._taken: Take | None = None

    def read(self, limit: int) -> TakenRows:
        """Take the next rows ready to go, parking those held behind others; 0 means all."""
        while True:
            now = self.journal.now()
            with self.journal.reading() as view:
                taken = take(view, self.output, now=now, limit=limit or EVERY_ROW, identities=self._identities)
                going_on = view.going_on(self.output, taken, now) if taken.events else None
            self._taken = taken
            if taken.events or taken.is_empty:
                return TakenRows(events=taken.events, going_on=None if going_on is None else going_on.every)
            self._plan([], {})

    def settle(self, batch: TakenRows, outcomes: Sequence[Outcome]) -> None:
        """Finishes the rows of the last batch; those with N come again after a while, those of which nothing is said at once."""
        assert self._taken is not None
        if batch.events:
            self._plan(batch.events, {outcome.position[0]: outcome for outcome in outcomes})

    def close(self) -> None:
        self._lock.leave()

    def _plan(self, events: Sequence[object], said: dict[int, Outcome]) -> None:
        taken, now = self._taken, self.journal.now()
        assert taken is not None
        parking = Parking(self.output)
        numbers = [event.position[0] for event in events if isinstance(event, Event)]
        for number in numbers:
            outcome = said.get(number)
            if outcome is None:
                parking.add(number, taken.objects[number], "new", 0)
            elif outcome.status is Status.NEW:
                attempts = taken.attempts.get(number, 0) + 1
                due = now + int(self.settings.backoff.delay(attempts, 1.0) * 1000)
                name = taken.objects[number]
                parking.add(number, name, outcome.reason.value, due, outcome.note, attempts)
        waiting = {one.record for one in parking.rows}
        plan = TakePlan(
            taken=taken,
            again=parking.rows,
            over=[number for number in numbers if number not in waiting],
            outcomes={number: outcome for number, outcome in said.items() if number not in waiting},
        )
        self.journal.plan(self.output, plan)
