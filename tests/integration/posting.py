"""A publisher with several connections to a receiver under test: rows of objects, what is said of them, how they end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import HttpOutput
from tests.conformance.event_logs import LogTable
from tests.integration.parallel_server import Fate, ParallelServer
from tests.integration.publishing import Process, until, url_of
from tests.integration.scripted_server import Step, answer


def said(level: str, *events: int) -> Step:
    statuses = "".join(f'<status level="{level}" event-id="{event}">so it is</status>' for event in events)
    return answer(f'<nds dtdversion="2.0"><output>{statuses}</output></nds>'.encode())


@contextmanager
def threads_end() -> Iterator[None]:
    """Sees to it that no thread is left behind."""
    before = set(threading.enumerate())
    yield
    until(lambda: set(threading.enumerate()) <= before, f"threads end: {threading.enumerate()}")


def fill(log: LogTable, objects: str) -> None:
    """A row for each letter, of the object that it names; in turn of two kinds, so that each is a change of its own."""
    for number, letter in enumerate(objects, 1):
        kind = 2 + objects[: number - 1].count(letter) % 2
        log.write(number, key=f"idu={ord(letter)}", event_type=kind, old_value="Jack", new_value="John")


def publisher(log: LogTable, server: ParallelServer, connections: int = 4, **settings: Any) -> Publisher:
    output = {name: settings.pop(name) for name in ("total_timeout", "read_timeout") if name in settings}
    publishing = {"allow_loopback": True, "retry_first": 0.0, **settings}
    return Publisher(
        Config(
            source=SourceConfig(url=url_of(log.engine)),
            publisher=PublisherConfig(**publishing),
            output=(HttpOutput(url=server.url, connections=connections, **output),),
        )
    )


def letters(log: LogTable) -> str:
    return "".join(log.statuses().values())


def always(step: Step) -> Fate:
    return lambda _number, _attempt: step


def at_first(number: int, step: Step) -> Fate:
    """Plays a step when that document comes for the first time, and takes everything else."""
    return lambda found, attempt: step if (found, attempt) == (number, 1) else answer()


def when_all_came(server: Callable[[], ParallelServer], count: int, step: Step) -> Step:
    """Answers when so many are there."""

    def wait(connection: Any) -> None:
        assert server().until(lambda: len(server().came) >= count)
        step(connection)

    return wait


def running(log: LogTable, folder: Path, server: ParallelServer, *keys: str) -> Process:
    """A publisher of its own, with four connections."""
    file = folder / "eventlog.toml"
    output = ['sink = "http"', f'url = "{server.url}"', "connections = 4", *keys]
    file.write_text("[[output]]\n" + "\n".join(output) + "\n")
    return Process(log.engine, folder / "out", "--config", str(file), out=False)
