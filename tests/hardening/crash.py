"""Writers that write while a publisher works and fails, and a publisher that finishes what is left.

Publishers and writers are processes of their own, forked from a server that has loaded the program already.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.convert.work import find_why_alone
from tests.hardening.targets import Target
from tests.hardening.writing import TABLES, write

PATIENCE = 180.0
LOADED = (
    "eventlog.daemon.command",
    "eventlog.daemon.publisher",
    "eventlog.daemon.service",
    "eventlog.config.build",
    "eventlog.qlik.change_tables.format",
    "eventlog.qlik.messages.write",
    "eventlog.sinks.change_files.sink",
    "eventlog.sinks.database.sink",
    "eventlog.sinks.kafka.sink",
    "confluent_kafka",
    "sqlalchemy.dialects.postgresql",
    "psycopg",
    "lxml.etree",
)


def processes() -> ForkServerContext:
    """Where processes come from; a test that needs some is skipped where they can have no flags together."""
    if why := find_why_alone():
        pytest.skip(why)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LOADED))
    return context


def prepare(engine: Engine, style: str) -> None:
    """A log and tracked tables."""
    from eventlog.capture.install import install
    from eventlog.capture.track import track
    from eventlog.sql.names import LogNames
    from eventlog.tracked.options import Style, TriggerOptions

    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA journal_mode=wal")
        for statement in TABLES:
            connection.execute(text(statement))
    install(engine, LogNames())
    track(engine, ["usr", "item"], TriggerOptions(style=Style(style)), LogNames())


def configure(engine: Engine, folder: Path, aim: Target, url: str = "", lease: float = 0.5) -> Path:
    """The publisher's configuration; a short lease lets the next one begin soon after one was killed."""
    url = url or engine.url.render_as_string(hide_password=False)
    file = folder / "eventlog.toml"
    file.write_text(
        f'[source]\nurl = "{url}"\n[publisher]\nallow_loopback = true\nlease = {lease}\npolling_interval = 1\n'
        f"query_limit = 20\nretry_first = 0.05\nretry_longest = 0.2\nbatch_size = {aim.changes}\n[[output]]\n{aim.output()}"
    )
    return file


def publish(config: str) -> None:
    """The publisher, until it is killed."""
    from eventlog.daemon.publisher import Publisher

    os.dup2(os.open(f"{config}.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    with Publisher.from_config(Path(config)) as publisher:
        for _ in publisher.rounds():
            pass


@contextmanager
def writers(engine: Engine, seed: int, count: int = 2, pause: float = 0.15) -> Iterator[None]:
    """Applications at work until the block ends."""
    context = processes()
    stop = context.Event()
    url = engine.url.render_as_string(hide_password=False)
    working = [context.Process(target=write, args=(url, seed * 100 + n, stop, pause)) for n in range(count)]
    for one in working:
        one.start()
    try:
        yield
    finally:
        stop.set()
        for one in working:
            one.join(PATIENCE)
            assert one.exitcode == 0, "a writer did not come to its end"


def publisher(config: Path) -> ForkServerProcess:
    """A started publisher."""
    one = processes().Process(target=publish, args=(str(config),), daemon=True)
    one.start()
    return one


def finish(engine: Engine, config: Path, last: ForkServerProcess | None = None) -> None:
    """Lets a publisher, or this one, work until no row waits, and ends it."""
    last = last or publisher(config)
    end, least = time.monotonic() + PATIENCE, waiting(engine)
    try:
        while rows := waiting(engine):
            # How many there are depends on how slow this machine is.
            if rows < least:
                end, least = time.monotonic() + PATIENCE, rows
            assert last.is_alive(), f"the publisher ended: {_said(config)}"
            assert time.monotonic() < end, f"{rows} rows are still waiting: {_said(config)}"
            time.sleep(0.05)
    finally:
        _kill(last)


def waiting(engine: Engine) -> int:
    """How many rows wait."""
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM event_log WHERE status = 'N'")).scalar_one())


def _kill(one: ForkServerProcess) -> None:
    with suppress(ProcessLookupError):
        os.kill(one.pid or 0, signal.SIGKILL)
    one.join(PATIENCE)


def _said(config: Path) -> str:
    errors = Path(f"{config}.err")
    return errors.read_text(errors="replace")[-800:] if errors.exists() else ""
