"""A log as the publisher without journal leaves it, whatever happened: what its targets have then, nobody reads from marks."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from sqlalchemy import Engine

from eventlog.capture.install import upgrade
from eventlog.care import journal as care
from eventlog.care.rows import EVERYTHING
from eventlog.core.backoff import Backoff
from eventlog.core.model import Document, Outcome, Reason, Status
from eventlog.core.rules import Options, Round
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher.books import ConsumerSettings
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider
from eventlog.publisher.journal import Journal
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.log import Log
from eventlog.sql.names import MOVED_PLAN
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import site
from tests.support.memory import OneEach, UnaskedSink

OBJECTS = 6
REFUSED = 5
"""The object of which the first output can tell nothing."""


RECORDED: Final = Path(__file__).parents[1] / "corpora" / "moved"
"""What the last publisher without journal left: recorded with it, for it is no more."""


class RecordedTarget(Struct, frozen=True):
    """What a target had, what nobody knew that it had, and its last plan with the documents of it."""

    came: list[int]
    doubted: list[int]
    plan: str
    there: list[tuple[str, str]]
    of_plan: list[int]


class Recorded(Struct, frozen=True):
    """A log with its marks and its companion table, and its targets."""

    rows: int
    targets: dict[str, RecordedTarget]
    tables: dict[str, list[dict[str, Any]]]


class Target(UnaskedSink):
    """Takes documents one by one, and breaks off when it is told to: before it has one, or when it has it."""

    def __init__(self, left: RecordedTarget, *, asked: bool) -> None:
        self._asked = asked
        self.came = list(left.came)
        self.doubted = set(left.doubted)
        """Rows of which nobody learnt that they came."""
        self.asks: set[int] = set()
        self.breaks: tuple[int, bool, BaseException] | None = None
        self.plan = left.plan
        self._there = set(left.there)
        self._of_plan = list(left.of_plan)
        self.moved_at = 0
        """So much had come when the journal took over; what came twice by then is none of its doing."""

    @property
    def capabilities(self) -> SinkCapabilities:
        return SinkCapabilities(resolves=self._asked)

    def resolve(self, plan: str) -> Resolved:
        there = {one for of, one in self._there if of == plan} if plan == self.plan else set()
        return Resolved(last=self.plan, documents=frozenset(there))

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        said: list[Outcome] = []
        for document in documents:
            records = [position[0] for several in document.covers.values() for position in several]
            if self._is_time() and self.breaks is not None and not self.breaks[1]:
                self._break()
            if self.asks.intersection(records):
                said += [Outcome(position=(one,), status=Status.NEW, reason=Reason.RETRY) for one in records]
                continue
            if self.plan != plan:
                self.plan, self._of_plan = plan, []
            self._of_plan += records
            if (plan, document.id) not in self._there:
                self._there.add((plan, document.id))
                self.came += records
            if self._is_time():
                self._break()
            if self.breaks is not None:
                self.breaks = (self.breaks[0] - 1, *self.breaks[1:])
        return said

    def _is_time(self) -> bool:
        return self.breaks is not None and self.breaks[0] <= 0

    def _break(self) -> None:
        assert self.breaks is not None
        error, self.breaks = self.breaks[2], None
        self.doubted.update(self._of_plan)
        raise error


class MovedLog:
    """One log, three targets, and all that happens to them before and after the move."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine = engine
        self.rng = random.Random(seed)
        self.table: LogTable = site(engine)
        upgrade(engine, to="0006")
        self.log = Log(engine, self.table.names)
        left = msgspec.json.decode((RECORDED / f"{seed}.json").read_bytes(), type=Recorded)
        for table, rows in left.tables.items():
            self.table.run(f"DELETE FROM {table}")
            for row in rows:
                given = ", ".join(f":{column}" for column in row)
                self.table.run(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({given})", row)
        self.rows = left.rows
        self.targets = {name: Target(one, asked=name != "answering") for name, one in left.targets.items()}

    def outputs(self) -> list[Output]:
        formats = {"near": OneEach(refused=f"idu={REFUSED}")}
        return [
            Output(format=formats.get(name, OneEach()), sink=target, name=name, answers=name == "answering")
            for name, target in self.targets.items()
        ]

    def calm(self) -> None:
        """Every target takes what it is given."""
        for target in self.targets.values():
            target.asks, target.breaks = set(), None

    def check_places(self) -> None:
        """Each output lacks what its target has not, as the journal says; called as soon as it was filled."""
        waiting = {number for number, status in self.table.statuses().items() if status == "N"}
        for name, (lacked, in_doubt) in self.lacked().items():
            target = self.targets[name]
            target.moved_at = len(target.came)
            # Nothing came of rows that it can tell nothing about; of a target that nobody can ask there are doubts.
            told_apart = waiting - in_doubt - self.refused(name)
            if name == "answering":
                told_apart -= target.doubted
            assert lacked & told_apart == told_apart - set(target.came), name

    # --- what the journal says ---------------------------------------------------------------------------------------

    def lacked(self) -> Mapping[str, tuple[set[int], set[int]]]:
        """For each output the rows that it lacks as the journal says, and those of documents that it may have."""
        waiting = {number for number, status in self.table.statuses().items() if status == "N"}
        batches = [
            (int(number), self._numbers(records))
            for number, records in self.table.ask("SELECT id, records FROM event_log_batch")
        ]
        planned = [
            (str(output), str(plan), self._numbers(records))
            for output, plan, records in self.table.ask("SELECT output, plan, records FROM event_log_planned")
        ]
        known = set[int]().union(*(one for _, one in batches), *(one for _, _, one in planned))
        found: dict[str, tuple[set[int], set[int]]] = {}
        for name, position in self.table.ask("SELECT name, position FROM event_log_output"):
            ahead = [numbers for number, numbers in batches if number > int(position)]
            listed = [numbers for output, plan, numbers in planned if (output, plan) == (name, MOVED_PLAN)]
            places = [*ahead, *listed, *([waiting - known] if waiting - known else [])]
            for place, other in ((one, two) for one in places for two in places if one is not two):
                assert not place & other, f"{name} would get rows twice: {place & other}"
            open_rows = [numbers for output, plan, numbers in planned if output == name and plan != MOVED_PLAN]
            found[str(name)] = (set[int]().union(*places), set[int]().union(*open_rows))
        return found

    @staticmethod
    def _numbers(text: str) -> set[int]:
        runs = msgspec.json.decode(text, type=list[tuple[int, int]])
        return {number for first, last in runs for number in range(first, last + 1)}

    # --- the publisher with the journal ----------------------------------------------------------------------------

    def publish_with_journal(self) -> None:
        """Until nothing waits, with all that somebody holds or has paused."""
        self.calm()
        with self.log.transaction() as connection:
            care.release(connection, self.log, [EVERYTHING])
        with self.journal() as (journal, consumers, tenure):
            for name in self.targets:
                journal.pause(name, None)
            idle = 0
            while idle < 3:
                moved = [consumer.turn(tenure) for consumer in consumers]
                late = max(turn.later or 0 for turn in moved)
                assert late < 5, "nothing waits longer than it did"
                idle = 0 if any(turn.moved for turn in moved) or late else idle + 1

    def some_turns(self) -> None:
        """The publisher with the journal works for a while, and ends in order."""
        self.calm()
        if "answering" in self.targets:
            self.targets["answering"].asks = {self.rng.randint(1, self.rows + 1) for _ in range(3)}
        with self.journal() as (_, consumers, tenure):
            for consumer in self.rng.choices(consumers, k=self.rng.choice([0, 2, 5, 9])):
                consumer.turn(tenure)

    @contextmanager
    def journal(self) -> Iterator[tuple[Journal, list[Consumer], Tenure]]:
        """What the publisher with the journal has."""
        lock = LogLock(self.log, 60.0)
        assert lock.take()
        assert lock.tenure is not None
        settings = LogSettings(backoff=Backoff(first=0.2, longest=0.2))
        journal = Journal(self.log, lock, settings)
        journal.serve([(name, ()) for name in self.targets])
        decider = Decider(Round(options=Options()))
        strict = ConsumerSettings(limit=4, strictness=Strictness(on_retry="object"))
        yield journal, [Consumer(journal, one, decider, strict) for one in self.outputs()], lock.tenure
        lock.leave()

    def tables(self) -> dict[str, list[tuple[object, ...]]]:
        """All that the journal's tables hold."""
        endings = ("batch", "output", "planned", "parked", "hold", "said")
        return {one: self.table.ask(f"SELECT * FROM event_log_{one} ORDER BY 1, 2") for one in endings}

    def refused(self, name: str) -> set[int]:
        """The rows of which the output can tell nothing."""
        found = self.table.ask(f"SELECT record_id FROM event_log WHERE table_key = 'idu={REFUSED}'")
        return {int(number) for (number,) in found} if name == "near" else set()

    def judge(self) -> None:
        """Each row came to each target once, in the order of its object, and has the letter that it should."""
        objects = dict(self.table.ask("SELECT record_id, table_key FROM event_log"))
        refused = self.refused("near") if "near" in self.targets else set[int]()
        expected = {number: "E" if number in refused else "S" for number in objects}
        assert self.table.statuses() == expected
        for name, target in self.targets.items():
            assert set(target.came) == set(objects) - self.refused(name), name
            for key in set(objects.values()):
                mine = [number for number in target.came if objects[number] == key]
                first = list(dict.fromkeys(mine))
                assert first == sorted(first), (name, key, mine)
            again = set(target.came[target.moved_at :]) & set(target.came[: target.moved_at])
            assert again <= (target.doubted if name == "answering" else set()), (name, again)
            new = target.came[target.moved_at :]
            assert len(new) == len(set(new)), name
        for table in ("batch", "planned", "parked", "hold", "said"):
            assert self.table.ask(f"SELECT * FROM event_log_{table}") == []
