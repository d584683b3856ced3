"""What a history has of a publisher: its lock, journal and consumers on the world's clock, and how it dies."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from msgspec.structs import replace
from sqlalchemy import Connection

from eventlog.core.model import Change, Event, Outcome, Outcomes, ReadBack, Reason, RowId, Status
from eventlog.core.rules import Options, Round
from eventlog.core.rules.definitions import Definition, Definitions
from eventlog.core.rules.meaning import Decision, together
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Tenure
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider
from eventlog.publisher.encode import Part
from eventlog.publisher.journal import Journal
from eventlog.publisher.writing import JournalTransaction
from eventlog.sources.log.lock import LogLock
from eventlog.sources.marks import PUBLISHER, WRITTEN
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from tests.publisher.forgetting import Disk


class Clock(Protocol):
    """What they know of the world."""

    rng: Random
    denied: set[str]
    readings: int
    counts: Counter[str]
    disk: Disk
    images: float

    @property
    def clock(self) -> int:
        """Return the database's clock, in milliseconds."""


class Kill(BaseException):
    """The process dies."""


class PassingError(Exception):
    """An ordinary error; the process lives on."""


class TestLock(LogLock):
    """The lock of the log by its token alone: whoever comes has it, and it never runs out."""

    __test__ = False

    def __init__(self, log: Log, tenure: Tenure, admit: Callable[[Connection], None]) -> None:
        super().__init__(log, 60.0)
        self.token, self.tenure = f"publisher-{tenure.epoch}", tenure
        with log.transaction() as connection:
            admit(connection)
            mark = {"name": PUBLISHER, "value": f"2026-11-24T00:00:00.000 {self.token}"}
            connection.execute(log.query("mark_write"), mark)
            connection.execute(log.query("mark_write"), {"name": WRITTEN, "value": self.token})


LONGEST_DELAY = 20
"""Milliseconds, each of which is a turn."""

EPOCH = dt.datetime(1970, 1, 1)


class TestJournal(Journal):
    """Goes by the world's clock."""

    __test__ = False
    world: Clock

    @contextmanager
    def transaction(self, *, soon: bool = False) -> Iterator[JournalTransaction]:
        with self.one_at_a_time:
            self.world.disk.begin(soon=soon)
            with super().transaction(soon=soon) as found:
                yield found

    def _enter_at_once(self, query: str, values: dict[str, Any]) -> bool:
        with self.one_at_a_time:
            self.world.disk.begin(soon=query == "done_at_once")
            return super()._enter_at_once(query, values)

    def moment(self) -> dt.datetime:
        return EPOCH + dt.timedelta(milliseconds=self.world.clock)

    def delay(self, attempts: int) -> int:
        return self.world.rng.randint(1, LONGEST_DELAY)


class TestConsumer(Consumer):
    """A consumer of the world."""

    __test__ = False
    world: Clock

    def looks_unread(self, now: bool) -> None:
        """Switch on the search for rows that have to wait without reading them, as when most have to."""
        self._most_wait = self._most_wait or now


COLUMNS = ("v", "w", "x")
"""Of which a change has the first ones: the first column of the next change ends it."""

DEFINITION = 7
"""The number with which the images of rows begin."""

READ = "read"
"""The column of each row that says how many readings there were by then."""


class Readings:
    """Reads objects back, each time as they are then."""

    def __init__(self, world: Clock) -> None:
        self._world = world

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        self._world.readings += 1
        return {row: {READ: self._world.readings} for row in wanted}


def _needs_reading(_: Change) -> frozenset[str]:
    return frozenset({READ})


def tables_with_images() -> Catalog:
    """Make the tables; images have their first column."""
    columns = [Column(name="id", key=1), *[Column(name=name) for name in COLUMNS]]
    tables = [Table(name=name, columns=tuple(columns)) for name in "AB"]
    images = {DEFINITION: COLUMNS[:1]}
    known = [Definition(table=table, today=table, images=images) for table in tables]
    return Catalog(tables, former=Definitions(known, Catalog(tables)))


WHY = {"A": (Reason.LOCKED,), "B": (Reason.NO_RIGHT, Reason.DAMAGED)}
"""Why tables cannot be read."""


class WorldDecider(Decider):
    """Decides that rows wait whose tables cannot be read, as the rules do of rows that are read back."""

    def __init__(self, world: Clock) -> None:
        catalog = tables_with_images() if world.images else None
        super().__init__(Round(catalog=catalog, options=Options(), reader=Readings(world), needs=_needs_reading))
        self.world = world

    def _find_known(self, output: str, groups: Sequence[Sequence[Event]]) -> Any:
        known = super()._find_known(output, groups)
        self.world.counts["shared"] += known is not None
        return known

    def _parts(self, asked: Round, groups: Sequence[Sequence[Event]]) -> list[Part]:
        denied = [event.position for group in groups for event in group if event.table in self.world.denied]
        if not denied:
            return super()._parts(asked, groups)
        others = {
            event.position: Outcome(
                position=event.position,
                status=Status.NEW,
                reason=WHY[event.table][self.world.readings % len(WHY[event.table])],
            )
            for group in groups
            for event in group
            if event.table is not None and event.table in self.world.denied
        }
        parts = super()._parts(asked, [[event for event in group if event.position not in others] for group in groups])
        refused = Decision([], Outcomes(denied, others))
        return [replace(part, decision=together([part.decision, refused])) for part in parts]


class Row:
    """A row as the oracle knows it. `past` has, for each time that it was set back after it had its letter, how often
    it had come to each output by then; `change` is the first row of its change.
    """

    def __init__(self, uid: int, record: int, object_name: str, transaction: int, change: int) -> None:
        self.uid, self.record, self.object, self.transaction = uid, record, object_name, transaction
        self.change = change
        self.setbacks, self.gone, self.foreign, self.was_held = 0, False, False, False
        self.allowed: set[tuple[str, str]] | None = None
        self.carried: set[tuple[str, str]] = set()
        """The plans that had it when somebody changed its letter: their documents stay as they are."""
        self.came: dict[str, tuple[int, str]] = {}
        """When it came first to each output, and by which plan."""
        self.past: list[dict[str, int]] = []
        self.letter = ""
        """What it had when somebody purged it."""
        self.excused: set[str] = set()
        """The outputs for which somebody gave it up, or that somebody forgot."""
        self.skipped = False
        """Whether somebody gave it up for an output that stays."""
        self.alike = [self]
        """The rows that wait with it under its number, or did so last."""
        self.was_shared = False
        """Whether others ever waited with it under its number."""

    @property
    def names_no_object(self) -> bool:
        return self.object.endswith("/")


class Publisher:
    """What a process has in memory."""

    def __init__(self, journal: TestJournal, tenure: Tenure, world: Clock) -> None:
        self.journal, self.tenure = journal, tenure
        self.decider = WorldDecider(world)
        """Of all outputs, which share what it decides."""
        self.consumers: dict[str, TestConsumer] = {}

    def read_ahead(self) -> set[int]:
        """Find the rows read for the next turn of an output."""
        return self.made_ahead() | self.looked_at()

    def made_ahead(self) -> set[int]:
        """Find the rows of plans that were made for the next turn: nobody asks once more whether they wait."""
        plans_made = [consumer._ahead for consumer in self.consumers.values()]
        portions = [made.taken.events for made in plans_made if made is not None]
        return {event.position[0] for events in portions for event in events}

    def looked_at(self) -> set[int]:
        """Find the rows read by a look, and in no plan."""
        memory = self.journal._memory
        rows = () if memory is None or memory.looked is None else memory.looked.events or ()
        at_hand = [consumer._books.made for consumer in self.consumers.values()]
        planned = {event.position[0] for made in at_hand if made is not None for event in made.taken.events}
        return {event.position[0] for event in rows} - planned
