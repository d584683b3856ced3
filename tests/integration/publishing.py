"""A publisher under test: a log with a table beside it, the publisher as a process or in a thread, and what came out."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, Self

from sqlalchemy import Engine

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from tests.conformance.event_logs import LogTable, installed
from tests.support.forking import Forked
from tests.support.xds_events import read_events

PATIENCE = 180.0
"""Seconds that anything may take on a machine that is busy with other things."""


def site(engine: Engine) -> LogTable:
    """A log, and the table that its rows speak of."""
    log = installed(engine)
    log.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40), lname VARCHAR(40))")
    return log


def url_of(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def config_of(engine: Engine, folder: Path, **publisher: Any) -> Config:
    settings = {"allow_loopback": True, "lease": 30.0, **publisher}
    return Config(
        source=SourceConfig(url=url_of(engine)),
        publisher=PublisherConfig(**settings),
        output=(FilesOutput(path=str(folder)),),
    )


def publish_all(config: Config, **given: Any) -> None:
    """Publishes until nothing is left, by a publisher that is given what else it takes."""
    with Publisher(config, **given) as publisher:
        for _ in publisher.rounds(until_empty=True):
            pass


def until(condition: Callable[[], object], what: str) -> None:
    """Waits for something that must come to pass."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"waited in vain: {what}"
        time.sleep(0.02)


def finished(log: LogTable, count: int, letter: str = "S") -> Callable[[], bool]:
    """Whether so many rows carry the letter and none waits."""
    return lambda: list(log.statuses().values()) == [letter] * count


def published(folder: Path) -> dict[str, list[str]]:
    """The event-ids in each document, by the document's name."""
    return {
        path.stem: [str(event.event_id) for event in read_events(path.read_bytes())]
        for path in sorted(folder.glob("*.xml"))
    }


@contextmanager
def in_thread(publisher: Publisher) -> Iterator[Publisher]:
    """The publisher at work until the block ends; what it raised is raised there, before what the block says."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            for _ in publisher.rounds():
                pass
        except BaseException as error:  # noqa: BLE001 - it is raised again where the test sees it
            raised.append(error)

    thread = Thread(target=work)
    thread.start()
    try:
        yield publisher
    finally:
        publisher.stop()
        thread.join(PATIENCE)
        publisher.close()
        if raised:  # it explains why the block waited in vain
            raise raised[0]
    assert not thread.is_alive()


class Process:
    """`eventlog run` as a process of its own; `journal` is what it has told so far."""

    def __init__(
        self, engine: Engine, folder: Path, *options: str, program: str = "", out: bool = True, **settings: Any
    ) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
        environment |= {
            "EVENTLOG_SOURCE__URL": url_of(engine),
            "EVENTLOG_PUBLISHER__ALLOW_LOOPBACK": "yes",
            "EVENTLOG_PUBLISHER__LEASE": "1.0",
            **{f"EVENTLOG_PUBLISHER__{name.upper()}": str(value) for name, value in settings.items()},
        }
        self.said = folder.parent / f"{folder.name}.journal"
        where = ("--out", str(folder)) if out else ()
        words = ("run", *where, "--log-format", "json", *options)
        self.error = self.said.open("ab")
        self.process = Forked(*words, environment=environment, err=self.error, program=program)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
        self.error.close()

    @property
    def journal(self) -> list[Mapping[str, Any]]:
        return [json.loads(line) for line in self.said.read_text().splitlines() if line.startswith("{")]

    def actions(self) -> list[str]:
        return [str(record["action"]) for record in self.journal]

    def wait_for(self, action: str, times: int = 1) -> Mapping[str, Any]:
        """The record of something that it must do."""
        until(lambda: self.actions().count(action) >= times or self.process.poll() is not None, action)
        found = [record for record in self.journal if record["action"] == action]
        assert len(found) >= times, f"it never said {action}: {self.said.read_text()}"
        return found[times - 1]

    def tell(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(PATIENCE)

    def stop(self) -> int:
        self.tell(signal.SIGTERM)
        return self.end()
