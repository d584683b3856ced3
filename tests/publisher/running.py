"""Makes a log with a journal once, and runs one history after the other on it."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

from sqlalchemy import Engine, event, text

from eventlog.capture.install import install
from eventlog.publisher import consumer, memory, unsealed, view
from eventlog.publisher.reader import JournalReader
from eventlog.publisher.unsealed import UnsealedRows
from eventlog.sources.log.reading import NEAR_ROWS
from eventlog.sql.connect import connect
from eventlog.sql.dialect import dialect_of
from eventlog.sql.journal_tables import journal_tables
from eventlog.sql.names import LogNames
from tests.publisher.world import World

NAMES = LogNames()
_running: list[World] = []


def opened(url: str) -> Engine:
    """A database that need not outlive the machine, with a log and a journal."""
    engine = connect(url, may_create=True)
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
    return made(engine)


def made(engine: Engine) -> Engine:
    """Makes a log and a journal in a database, whose commits are points at which a publisher may die from now on."""
    install(engine, NAMES)
    tables = journal_tables(NAMES, dialect_of(engine))
    tables.drop_all(engine)
    tables.create_all(engine)
    commit = engine.dialect.do_commit

    def do_commit(connection: Any) -> None:
        world = _running[-1] if _running else None
        if world is not None:
            world.point("commit")
        commit(connection)
        if world is not None:
            world.point("committed")

    def looks(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if _running and statement.startswith(("SELECT", "WITH")):
            _running[-1].before_a_look()

    engine.dialect.do_commit = do_commit  # type: ignore[assignment]  # the one place that every commit passes
    # Elsewhere the writer would wait for who reads, and both are one thread.
    if engine.dialect.name == "postgresql":
        event.listen(engine, "before_cursor_execute", looks)
    return engine


def history(seed: int, engine: Engine) -> collections.Counter[str]:
    """One history on an empty log."""
    _running.clear()
    with engine.begin() as connection:
        for table in ("", "_batch", "_output", "_planned", "_parked", "_hold", "_said", "_outcome", "_mark"):
            connection.execute(text(f"DELETE FROM event_log{table}"))
        connection.execute(text("INSERT INTO event_log_mark (name, value) VALUES ('holding', 'x')"))
    world = World(seed, engine)
    _running.append(world)
    try:
        with plans_beside(world.rng):
            return world.run()
    finally:
        _running.clear()


def _may_read_ahead(rows: UnsealedRows) -> bool:
    return not rows._settings.handle_future_events


@contextmanager
def plans_beside(chance: Random) -> Iterator[None]:
    """Plans are made beside others in every history, also with few rows and where a database has one writer at a time."""

    class Delivery:
        """A thread that works before the other one does, or after it: so a history can be repeated."""

        def __init__(self, target: Callable[[], None], **_: object) -> None:
            self._target, self._waits = target, chance.random() < 0.5

        def start(self) -> None:
            if not self._waits:
                self._target()

        def join(self) -> None:
            if self._waits:
                self._target()

    with (
        patch.object(consumer, "AHEAD_ROWS", 1),
        patch.object(unsealed, "AHEAD_ROWS", 1),
        patch.object(consumer, "Thread", Delivery),
        patch.object(unsealed, "Thread", Delivery),
        patch.object(JournalReader, "embedded", False),
        patch.object(UnsealedRows, "_may_read_ahead", property(_may_read_ahead)),
        patch.object(memory, "MOST_SEEN_RANGES", chance.choice([2, memory.MOST_SEEN_RANGES])),
        patch.object(memory, "KEPT_NUMBERS", 2),
        patch.object(view, "NEAR_ROWS", chance.choice([2, NEAR_ROWS])),
    ):
        yield
