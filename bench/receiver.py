"""How fast documents reach a receiver that takes its time for each, over one connection and over several."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from bench.backlog import PER_CHANGE, Backlog, Standing, backlog
from bench.ending import at_end
from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.config.settings import Config
from eventlog.sinks.http.plugin import HttpOutput

DOCUMENTS: Final = 2_000
QUICK: Final = 20
TAKES: Final = 0.005
"""Seconds that the receiver takes for a document."""
PROMISED: Final = {2: 1.5, 8: 4.0}
"""How many times as fast as one so many connections are to be."""


class Posting(Standing):
    """A publisher that sends a document for each change, and stays open from one run to the next."""

    def __init__(self, log: Backlog, connections: int) -> None:
        self._connections = connections
        super().__init__(log)

    def config(self) -> Config:
        """The log's own, with the receiver for an output."""
        config = super().config()
        output = HttpOutput(url=f"http://127.0.0.1:{port()}/", connections=self._connections)
        return replace(config, publisher=replace(config.publisher, batch_size=1), output=(output,))


@cache
def port(kind: str = "") -> int:
    """Where a receiver of this kind listens, a process of its own that is started at the first call."""
    command = [sys.executable, "-m", "bench.slow", str(TAKES), kind]
    receiver = subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE)
    at_end(receiver.wait)
    at_end(receiver.terminate)
    assert receiver.stdout is not None
    return int(receiver.stdout.readline())


def benchmark(*, quick: bool) -> Benchmark:
    """The same waiting rows, sent over one connection, two and eight."""
    documents = QUICK if quick else DOCUMENTS
    logs = {
        connections: backlog(f"receiver_log_{connections}", documents * PER_CHANGE) for connections in (1, *PROMISED)
    }
    return Benchmark(
        name="receiver",
        question=f"how fast do documents reach a receiver that takes {TAKES * 1000:g} ms for each?",
        unit="document",
        contestants=[
            Contestant(
                name=name_of(connections), prepare=log.refill, run=Posting(log, connections).publish, units=documents
            )
            for connections, log in logs.items()
        ],
        targets=_targets,
        note=(
            f"One change to a document, {documents:,} documents of {documents // 2:,} objects: each object has two, which"
            " follow each other in the log and never go at the same time. The receiver is a process of its own on the same"
            " machine, takes that long for every document however many come at once, and says nothing of it."
        ),
    )


def name_of(connections: int) -> str:
    """What stands beside the figure."""
    return "one connection" if connections == 1 else f"connections = {connections}"


def _targets(timings: Timings) -> list[Target]:
    one = timings[name_of(1)]
    gained = {connections: timings[name_of(connections)].rate / one.rate for connections in PROMISED}
    return [
        Target(
            promise=f"{connections} connections at least {promised:g} times as fast as one",
            measured=f"{gained[connections]:.2f} times",
            reached=gained[connections] >= promised,
        )
        for connections, promised in PROMISED.items()
    ]
