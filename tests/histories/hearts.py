"""Hearts: how the kit drives a publisher. A new heart is one more class here, and nothing else of
the kit changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar, Protocol
from unittest.mock import patch
from weakref import WeakKeyDictionary

from sqlalchemy import text

from eventlog.admin import outputs, rows
from eventlog.config.settings import Config
from eventlog.delivery.output import Output
from eventlog.publisher import consumer, unsealed
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.making import Outgoing
from eventlog.publisher.reader import JournalReader
from eventlog.publisher.tables import OnTheWay
from eventlog.publisher.take import Take
from eventlog.publisher.view import View
from eventlog.sources.marks import Stretches
from eventlog.sql.log import Log


class Heart(Protocol):
    """One publisher. It runs as a process on the stage: its threads and waits are the stage's.

    `rows` and `outputs` are the modules with what operators do.
    """

    rows: ClassVar[ModuleType]
    outputs: ClassVar[ModuleType]

    def start(self, config: Config, outputs: list[Output]) -> None:
        """Begins, as a process does: what a former one knew in memory it does not know."""

    def turn(self) -> bool:
        """Goes on for a while, a cycle perhaps; whether it goes on after that."""

    def stop(self) -> None:
        """Asks for the end; called by another thread."""

    def close(self) -> None:
        """Ends in order."""

    @staticmethod
    def on_its_way(log: Log) -> Mapping[str, frozenset[int]]:
        """The rows that may be on their way to an output, as the log has it; under "" those that
        may be to any.
        """
        ...

    @staticmethod
    def left_at_rest(log: Log) -> list[str]:
        """What is kept in the log of rows and deliveries that are over; nothing when all is quiet."""
        ...


class JournalHeart:
    """`Publisher`, which keeps its state in the journal's tables: a consumer for each output."""

    rows: ClassVar[ModuleType] = rows
    outputs: ClassVar[ModuleType] = outputs

    def __init__(self) -> None:
        from eventlog.daemon.publisher import Publisher

        self._make: Any = Publisher
        self._publisher: Any = None
        self._rounds: Iterator[object] = iter(())

    def start(self, config: Config, outputs: list[Output]) -> None:
        self._publisher = self._make(config, outputs=outputs)
        self._rounds = self._publisher.rounds()

    def turn(self) -> bool:
        return next(self._rounds, None) is not None

    def stop(self) -> None:
        if self._publisher is not None:
            self._publisher.stop()

    def close(self) -> None:
        if self._publisher is not None:
            self._publisher.close()

    @staticmethod
    def on_its_way(log: Log) -> Mapping[str, frozenset[int]]:
        found: dict[str, frozenset[int]] = {}
        with log.transaction() as connection:
            waiting = log.rows(connection, text(f"SELECT record_id FROM {log.names.whole} WHERE status = 'N'"))
            any_row = frozenset(int(number) for (number,) in waiting)
            for consumer, numbers in _taking.items():
                taken = any_row if numbers is None else numbers
                found[consumer.name] = found.get(consumer.name, frozenset()) | taken
            for output, _, _, records in log.rows(connection, log.query("planned_records")):
                numbers = frozenset(Stretches(json.loads(records)))
                found[str(output)] = found.get(str(output), frozenset()) | numbers
        return found

    @staticmethod
    def left_at_rest(log: Log) -> list[str]:
        found = []
        with log.engine.connect() as connection:
            for hole in ("batches", "planned", "parked", "holds", "said"):
                table = log.names.journal[hole]
                found += [f"{table}: {row}" for row in connection.execute(text(f"SELECT * FROM {table}"))]
        return found


_taking: WeakKeyDictionary[Consumer, frozenset[int] | None] = WeakKeyDictionary()
"""The rows that each consumer has read last, None while it reads: somebody may take one away before it is planned, and
nobody asks again.
"""

_taken = Consumer._taken


def _taken_and_noted(consumer: Consumer, view: View, on_the_way: Sequence[OnTheWay], now: int) -> Take:
    _taking[consumer] = None
    try:
        taken = _taken(consumer, view, on_the_way, now)
    except BaseException:
        _taking[consumer] = frozenset()
        raise
    _taking[consumer] = frozenset(event.position[0] for event in taken.events)
    return taken


_taken_ahead = Consumer._taken_ahead


def _taken_ahead_and_noted(consumer: Consumer, planned: Outgoing, now: int) -> Take | None:
    now_taken, _taking[consumer] = _taking.get(consumer) or frozenset(), None
    ahead = frozenset[int]()
    try:
        following = _taken_ahead(consumer, planned, now)
        if following is not None:
            ahead = frozenset(event.position[0] for event in following.events)
        return following
    finally:
        _taking[consumer] = now_taken | ahead


@contextmanager
def observed() -> Iterator[None]:
    """While it lasts, it is noted what consumers read, and plans are made beside others, also with few rows and where a
    database has one writer at a time.
    """
    with (
        patch.object(Consumer, "_taken", _taken_and_noted),
        patch.object(Consumer, "_taken_ahead", _taken_ahead_and_noted),
        patch.object(consumer, "AHEAD_ROWS", 1),
        patch.object(unsealed, "AHEAD_ROWS", 1),
        patch.object(JournalReader, "embedded", False),
    ):
        yield
