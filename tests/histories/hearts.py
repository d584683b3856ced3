"""Hearts: how the kit drives a publisher. A new heart is one more class here, and nothing else of
the kit changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from eventlog.config.settings import Config
from eventlog.delivery.output import Output
from eventlog.sources.marks import Stretches
from eventlog.sql.log import Log


class Heart(Protocol):
    """One publisher. It runs as a process on the stage: its threads and waits are the stage's."""

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


class MarksHeart:
    """The heart that keeps its state in marks: `Publisher`, with outputs in step and outputs that
    lag.
    """

    def __init__(self) -> None:
        from eventlog.daemon.publisher import Publisher

        self._make = Publisher
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
        found: set[int] = set()
        for name, value in _marks(log).items():
            if name == "in hand":
                found.update(Stretches.read(value))
            elif name.startswith("lagging: ") and value:
                state = json.loads(value)
                found.update(Stretches.read(state.get("in_hand", "")))
                found.update(*map(_noted, state.get("notes", {}).values()))
            elif name.startswith("note: "):
                found.update(_noted(value))
        return {"": frozenset(found)}

    @staticmethod
    def left_at_rest(log: Log) -> list[str]:
        names = ("in hand", "retried", "held", "said", "owed: ", "lagging: ", "paused: ", "note: ")
        return sorted(f"mark {name!r}: {value}" for name, value in _marks(log).items() if name.startswith(names))


def _marks(log: Log) -> dict[str, str]:
    with log.transaction() as connection:
        return {str(name): str(value) for name, value in log.rows(connection, log.query("marks_read"))}


def _noted(text: str) -> set[int]:
    """The rows of which a note says that they are planned."""
    found: set[int] = set()
    value = json.loads(text)
    for planned in value.get("planned", ()) if isinstance(value, dict) else ():
        found.update(Stretches.read(planned[1]) if isinstance(planned[1], str) else [one[0] for one in planned[1]])
    return found
