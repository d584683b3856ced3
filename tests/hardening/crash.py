"""Writers that write while a publisher works and fails, and a publisher that finishes what is left."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from eventlog.tracked.options import Style
from tests.hardening.ledger import runs
from tests.hardening.ledger.publishers import PATIENCE, Command
from tests.hardening.ledger.runs import waiting, write_config
from tests.hardening.ledger.writers import at_work
from tests.hardening.targets import Target
from tests.hardening.writing import TABLES, write


def prepare(engine: Engine, style: str) -> None:
    """A log and tracked tables."""
    runs.prepare(engine, TABLES, dict.fromkeys(("usr", "item"), Style(style)))


def configure(engine: Engine, folder: Path, aim: Target, url: str = "", **publisher: object) -> Path:
    """The publisher's configuration; a short lease lets the next one begin soon after one was killed."""
    settings = {"query_limit": 20, "batch_size": aim.changes, **publisher}
    return write_config(folder / "eventlog.toml", url or engine.url, [aim.config()], **settings)


@contextmanager
def writers(engine: Engine, seed: int, count: int = 2, pause: float = 0.15) -> Iterator[None]:
    """Applications at work until the block ends."""
    dices = [random.Random(seed * 100 + number) for number in range(count)]
    with at_work(*[lambda dice=dice: write(engine, dice, pause) for dice in dices]):
        yield


def publisher(config: Path, *, program: str = "", **environment: str) -> Command:
    """A started publisher."""
    words = ("run", "--config", str(config), "--log-format", "json")
    return Command(config.parent, *words, program=program, environment=environment)


def finish(engine: Engine, config: Path, last: Command | None = None) -> None:
    """Lets a publisher, or this one, work until no row waits, and ends it."""
    last = last or publisher(config)
    end, least = time.monotonic() + PATIENCE, waiting(engine)
    try:
        while rows := waiting(engine):
            # How many there are depends on how slow this machine is.
            if rows < least:
                end, least = time.monotonic() + PATIENCE, rows
            assert last.alive, f"the publisher ended: {last.said}"
            assert time.monotonic() < end, f"{rows} rows are still waiting: {last.said}"
            time.sleep(0.05)
    finally:
        last.kill()
