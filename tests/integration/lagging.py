"""Outputs in memory that fail when they are told to, and what a log says of those that lag."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Semaphore

from eventlog.config.settings import Config
from eventlog.core.errors import SinkError
from eventlog.core.model import Document, Outcome, Position, Reason, Status
from eventlog.core.seams import Tenure
from eventlog.delivery.output import Output
from eventlog.explain.states import OutputPlace, read_places
from eventlog.sources.marks import Marks
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import config_of
from tests.support.at_rest import find_left
from tests.support.memory import OneEach, UnaskedSink


class Receiver(UnaskedSink):
    """A target in memory: it knows plans and ids, as real ones do, and fails when it is told to."""

    def __init__(self) -> None:
        self.away = False
        self.for_good = False
        self.asks: set[Position] = set()
        self.asked = 0
        """How many documents it wanted to get again."""
        self.answer: dict[Position, Outcome] = {}
        self.seconds = 0.0
        self.gate: Semaphore | None = None
        """Each call waits until it is let through."""
        self.waits = False
        self.got: list[tuple[Position, ...]] = []
        self.ids: list[str] = []
        self._seen: set[tuple[str, str]] = set()
        self.opened: list[Tenure | None] = []
        self.refuses_to_open = False

    def open(self, tenure: Tenure | None) -> None:
        if self.refuses_to_open:
            raise SinkError("Nobody answers.")
        self.opened.append(tenure)

    def last(self) -> str:
        return self.ids[-1] if self.ids else ""

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        if self.away:
            raise SinkError("The receiver is away.", may_pass=not self.for_good)
        time.sleep(self.seconds)
        if self.gate is not None:
            self.waits = True
            self.gate.acquire()
        said: list[Outcome] = []
        for document in documents:
            positions = [position for several in document.covers.values() for position in several]
            if self.asks.intersection(positions):
                self.asked += 1
                said += [Outcome(position=one, status=Status.NEW, reason=Reason.RETRY) for one in positions]
                continue
            said += [self.answer[one] for one in positions if one in self.answer]
            if (plan, document.id) not in self._seen:
                self._seen.add((plan, document.id))
                self.ids.append(document.id)
                self.got.append(tuple(positions))
        return said

    def close(self) -> None:
        """It has nothing to give back."""

    @property
    def numbers(self) -> list[int]:
        return [position[0] for several in self.got for position in several]


class Outputs:
    """Receivers by the names of their outputs, whatever publisher they belong to."""

    def __init__(self, *names: str) -> None:
        self.receivers = {name: Receiver() for name in names}

    def made(self, answers: Sequence[str] = ()) -> list[Output]:
        return [
            Output(format=OneEach(), sink=sink, name=name, answers=name in answers)
            for name, sink in self.receivers.items()
        ]

    def __getitem__(self, name: str) -> Receiver:
        return self.receivers[name]


def config(log: LogTable, tmp_path: Path, **publisher: object) -> Config:
    return config_of(log.engine, tmp_path, **{"polling_interval": 1, "query_limit": 5, **publisher})


def places(log: LogTable) -> Mapping[str, OutputPlace]:
    known = Log(log.engine, log.names)
    with known.transaction() as connection:
        return read_places(connection, known)


def marks_of(log: LogTable) -> Mapping[str, str]:
    known = Log(log.engine, log.names)
    with known.transaction() as connection:
        return Marks(known).all(connection)


def lagging(log: LogTable) -> list[str]:
    """The outputs that lack rows which another one has."""
    found = places(log)
    least = min((place.kept for place in found.values()), default=0)
    return [name for name, place in found.items() if place.kept > least]


def owed(log: LogTable, name: str) -> int:
    return places(log)[name].kept


def left_at_rest(log: LogTable) -> list[str]:
    """What the journal keeps of rows and deliveries; nothing once all is over."""
    return [*find_left(log.ask, log.names.whole)]


def all_settled(log: LogTable, count: int, letter: str = "S") -> Callable[[], bool]:
    return lambda: list(log.statuses().values()) == [letter] * count


def write(log: LogTable, first: int, last: int, objects: int = 7) -> None:
    for number in range(first, last + 1):
        log.write(number, key=f"idu={number % objects}")
