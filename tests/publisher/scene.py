"""A log with a journal, real consumers, and receivers that a test tells what to answer."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Engine

from eventlog.config.settings import PublisherConfig
from eventlog.core.backoff import Backoff
from eventlog.core.errors import SinkError
from eventlog.core.model import Document, Outcome, Reason, Status
from eventlog.core.rules import Options, Round
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider
from eventlog.publisher.flow import read_flow
from eventlog.publisher.journal import Journal
from eventlog.publisher.turn_report import ConsumerSettings
from eventlog.sources.log.flow import Flow
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.log import Log
from eventlog.xds.write import XdsFormat
from tests.conformance.event_logs import LogTable, installed
from tests.support.at_rest import find_left


class ToldReceiver:
    """A target that is away, or answers that some rows come again or are refused; `askable` ones know which plan they have."""

    def __init__(self, *, askable: bool = False) -> None:
        self.capabilities = SinkCapabilities(resolves=askable)
        self.away = False
        self.again: set[int] = set()
        self.refused: set[int] = set()
        self.came: list[int] = []
        self.plan = ""

    def open(self, tenure: Tenure) -> None:
        pass

    def last(self) -> str:
        return ""

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        pass

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        if self.away:
            raise SinkError("Nobody is there.")
        self.plan = plan
        covered = [position for one in documents for several in one.covers.values() for position in several]
        self.came += [position[0] for position in covered if position[0] not in self.again]
        again = [position for position in covered if position[0] in self.again]
        refused = [position for position in covered if position[0] in self.refused]
        return [
            *(Outcome(position=one, status=Status.NEW, reason=Reason.RETRY, note="busy") for one in again),
            *(Outcome(position=one, status=Status.ERROR, reason=Reason.REFUSED, note="no group") for one in refused),
        ]

    def resolve(self, plan: str) -> Resolved:
        return Resolved(last=self.plan, documents=None if plan and plan == self.plan else frozenset())

    def close(self) -> None:
        pass


def decider_without_tables(*_: object) -> Decider:
    """Make a decider that takes keys and values as written: the database has no such tables."""
    return Decider(Round(options=Options()))


class Scene:
    """One log; each output has a receiver of its own, in the order in which they were added."""

    def __init__(self, engine: Engine, *names: str, askable: bool = False, **how: Any) -> None:
        self.table: LogTable = installed(engine)
        self.log = Log(engine, self.table.names)
        self.lock = LogLock(self.log, 600.0)
        assert self.lock.take()
        settings = LogSettings(backoff=Backoff(first=3600, longest=3600), **how)
        self.journal = Journal(self.log, self.lock, settings)
        self.receivers: dict[str, ToldReceiver] = {}
        self.consumers: dict[str, Consumer] = {}
        self.askable = askable
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        self.receivers[name] = ToldReceiver(askable=self.askable)
        sink: Any = self.receivers[name]
        self.journal.serve([(name, ())])
        settings = ConsumerSettings(limit=5, strictness=Strictness(on_retry="object"))
        decider = Decider(Round(options=Options()))
        self.consumers[name] = Consumer(
            self.journal, Output(format=XdsFormat(), sink=sink, name=name), decider, settings
        )

    def write(self, first: int, last: int, *, objects: int = 3, seconds: float = -60.0) -> None:
        """Write rows with these numbers, of so many objects in turn, `seconds` from now."""
        time = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")
        for number in range(first, last + 1):
            self.table.write(number, key=f"idu={number % objects}", event_time=time, new_value=f"value-{number}")

    def publish(self, *names: str) -> None:
        """Give turns to these outputs, or to all, until nothing moves; an absent receiver's output stays behind."""
        assert self.lock.tenure is not None
        for name in names or tuple(self.consumers):
            consumer, goes_on = self.consumers[name], True
            with suppress(SinkError):
                while goes_on:
                    turn = consumer.turn(self.lock.tenure)
                    if turn.stale is not None:
                        consumer.decider.looks.note(turn.stale)  # the tables are as they were
                    goes_on = turn.moved or turn.stale is not None

    def flow(self, *, failing: bool = False, **settings: Any) -> Flow:
        with self.log.transaction() as connection:
            return read_flow(connection, self.log, PublisherConfig(**settings), failing=failing)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return self.table.ask(sql)

    def waiting(self) -> list[int]:
        """Return the waiting rows, by the log alone."""
        return [int(number) for (number,) in self.ask("SELECT record_id FROM event_log WHERE status = 'N' ORDER BY 1")]

    def left(self) -> dict[str, int]:
        """Count the rows in each table of the journal with any."""
        return {name: len(rows) for name, rows in find_left(self.ask).items()}
