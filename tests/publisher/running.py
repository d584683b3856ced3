"""Makes a log with a journal once, and runs one history after the other on it."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from sqlalchemy import Engine, event, text

from eventlog.capture.install import install
from eventlog.publisher import consumer, journal_view, memory, proven, reader, selection
from eventlog.publisher.reader import JournalReader
from eventlog.sources.log.reading import NEAR_ROWS
from eventlog.sql.connect import connect
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import TRANSACTION, LogNames
from tests.publisher.forgetting import JOURNAL
from tests.publisher.real import real_targets
from tests.publisher.sharing import have_key
from tests.publisher.world import World
from tests.support.logged import with_bare_names

NAMES = LogNames()
_running: list[World] = []


def opened(url: str) -> Engine:
    """Open a database with a log and a journal; it need not outlive the machine."""
    return made(with_bare_names(connect(url, may_create=True)))


def _hurries(connection: Any, _: Any) -> None:
    """Keep undo in memory: a death in a history ends no process."""
    connection.executescript("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;")


def made(engine: Engine) -> Engine:
    """Make a log and a journal in a database; from now on each commit is a point at which a publisher may die."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _hurries)
    install(engine, NAMES)
    if not log_columns(engine, NAMES).transaction:
        with engine.begin() as connection:
            connection.execute(text(f"ALTER TABLE event_log ADD COLUMN {TRANSACTION} BIGINT"))
    commit = engine.dialect.do_commit

    def do_commit(connection: Any) -> None:
        world = _running[-1] if _running else None
        if world is not None:
            world.point("commit")
        commit(connection)
        if world is not None:
            world.disk.end()
            world.standbys.end()
            world.point("committed")

    def looks(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if _running and statement.startswith(("SELECT", "WITH")):
            _running[-1].before_a_look()

    def writes(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if _running and statement.startswith(("INSERT", "UPDATE", "DELETE")):
            _running[-1].statements.write_one()

    event.listen(engine, "before_cursor_execute", writes)
    engine.dialect.do_commit = do_commit  # type: ignore[assignment]  # the one place that every commit passes
    # Elsewhere the writer would wait for who reads, and both are one thread.
    if engine.dialect.name == "postgresql":
        event.listen(engine, "before_cursor_execute", looks)
        # What is done at once is a transaction without a commit that anybody calls.
        event.listen(engine, "before_cursor_execute", _note_begin)
        event.listen(engine, "after_cursor_execute", _note_end)
    return engine


def _is_at_once(statement: str) -> bool:
    """Return True for a statement that writes the journal by itself."""
    return statement.startswith("WITH held") and "_planned" in statement


def _note_begin(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
    if _running and _is_at_once(statement):
        _running[-1].point("commit")


def _note_end(_connection: Any, cursor: Any, statement: str, *_: Any) -> None:
    if _running and _is_at_once(statement) and cursor.rowcount:
        _running[-1].counts["entered at once"] += 1
        _running[-1].disk.end()
        _running[-1].standbys.end()
        _running[-1].point("committed")


def history(seed: int, engine: Engine) -> collections.Counter[str]:
    """Run one history on an empty log."""
    _running.clear()
    with engine.begin() as connection:
        for table in ("", *(f"_{name}" for name in JOURNAL)):
            connection.execute(text(f"DELETE FROM event_log{table}"))
        connection.execute(text("INSERT INTO event_log_mark (name, value) VALUES ('holding', 'x')"))
    world = World(seed, engine)
    if engine.dialect.name == "sqlite":
        with engine.begin() as connection:
            have_key(connection, wanted=not world.shares)
    _running.append(world)
    try:
        with world.leaving as leaving:
            leaving.enter_context(plans_beside(world.rng))
            for clocked in (reader, memory):
                leaving.enter_context(patch.object(clocked, "monotonic", lambda: world.now / 1000))
            leaving.enter_context(patch.object(reader, "CLOCK_SECONDS", 0.0))
            # How much time has passed on this machine decides nothing.
            leaving.enter_context(patch.object(proven, "PAUSE_SECONDS", 0.0 if world.asks_writers else float("inf")))
            leaving.enter_context(patch.object(proven, "WORTH_ROWS", 0))
            if world.looks_again:
                leaving.enter_context(patch.object(memory, "LOOK_SECONDS", -1.0))
            if world.real:
                world.folder = Path(leaving.enter_context(TemporaryDirectory(prefix="eventlog-history-")))
                leaving.enter_context(real_targets(world))
            return world.run()
    finally:
        _running.clear()


class Later(Future[Any]):
    """A call that works before who has begun it goes on, or when that one waits for it: so a history can be repeated."""

    def __init__(self, call: Callable[[], Any], *, waits: bool) -> None:
        super().__init__()
        self._call = call
        if not waits:
            self._work()

    def result(self, timeout: float | None = None) -> Any:
        self._work()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._work()
        error = super().exception(timeout)
        if error is not None and not isinstance(error, Exception):
            raise error  # who is killed in one thread does not live on in another
        return error

    def _work(self) -> None:
        if self.done():
            return
        try:
            self.set_result(self._call())
        except BaseException as error:  # noqa: BLE001  # raised by who waits for it
            self.set_exception(error)


@contextmanager
def plans_beside(chance: Random) -> Iterator[None]:
    """Make plans beside others in every history, with few rows too, and in databases with one writer at a time."""

    def begun(_: str, call: Callable[[], Any]) -> Later:
        if _running:
            _running[-1].counts["delivered beside"] += 1
        return Later(call, waits=chance.random() < 0.5)

    with (
        patch.object(consumer, "AHEAD_ROWS", 1),
        patch.object(consumer, "beside", begun),
        patch.object(JournalReader, "embedded", False),
        patch.object(memory, "MOST_SEEN_RANGES", chance.choice([2, memory.MOST_SEEN_RANGES])),
        patch.object(memory, "KEPT_NUMBERS", 2),
        patch.object(selection, "EVERY_ROW_SECONDS", 0.003),  # of which a turn is a thousandth
        patch.object(journal_view, "NEAR_ROWS", chance.choice([2, NEAR_ROWS])),
    ):
        yield
