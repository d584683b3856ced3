"""How long after its commit a change stands in a durable document, and what a publisher costs that has nothing to do."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from operator import truediv
from pathlib import Path
from typing import Final

from sqlalchemy import text

from bench.arrivals import Arrivals
from bench.backlog import Backlog, backlog, engine, written_config
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.postgresql import url

RATE: Final = 100
"""Changes in a second."""
CHANGES: Final = 1_000
QUICK: Final = 20
IDLE: Final = 10.0
"""Seconds for which it is watched doing nothing."""
MOST: Final = {0.5: 2.0, 0.99: 3.0}
"""How many times as long as with the bare loop that part of the changes may take."""
SHARE: Final = 0.01
"""Of a core, for a publisher that has nothing to do."""

MEDIAN, SLOWEST, WAITING, BARE_MEDIAN, BARE_SLOWEST = (
    "commit → document, half of the changes",
    "commit → document, 99 %",
    "CPU time of an idle second",
    "a bare loop, half of the changes",
    "a bare loop, 99 %",
)
CHANGE = (
    "INSERT INTO {log} (table_key, event_type, perpetrator, table_name, column_name, old_value, new_value)"
    " VALUES ('idu=1', 2, 'app', 'usr', 'fname', 'Jack', 'John') RETURNING record_id"
)


Begin = Callable[[Backlog], AbstractContextManager[subprocess.Popen[bytes]]]
"""Begins a process that publishes a log."""


class Watch:
    """A publisher at work, watched again and again; the two figures of one run come from the same changes."""

    def __init__(self, begin: Begin, log: Backlog, changes: int, idle: float) -> None:
        self._begin = begin
        self._log = log
        self._changes = changes
        self._idle = idle
        self._runs: list[list[float]] = []
        self._asked = dict.fromkeys(MOST, 0)

    def latency(self, part: float) -> float:
        """Seconds within which this part of the changes has arrived, in one run after the other."""
        run = self._asked[part]
        self._asked[part] += 1
        if run == len(self._runs):
            self._runs.append(sorted(self._delays()))
        delays = self._runs[run]
        return delays[min(int(len(delays) * part), len(delays) - 1)]

    def idling(self) -> float:
        """CPU seconds that the process takes for a second in which nothing happens."""
        self._log.refill()
        with self._begin(self._log) as process:
            _warm_up(self._log, process)
            time.sleep(self._idle / 2)  # it looks often at first, and seldom when there has been nothing for long
            before = _cpu(process.pid)
            time.sleep(self._idle)
            return (_cpu(process.pid) - before) / self._idle

    def _delays(self) -> list[float]:
        self._log.refill()
        with self._begin(self._log) as process, Arrivals(self._log.folder) as arrivals:
            _warm_up(self._log, process)
            committed = _write(self._log, self._changes)
            return arrivals.delays(committed)


@contextmanager
def publisher(log: Backlog) -> Iterator[subprocess.Popen[bytes]]:
    """`eventlog run` as a process of its own; it has a folder for documents when this begins."""
    command = ["eventlog", "run", "--log-level", "error", "--config"]
    with _module(log, *command, str(written_config(log.config()))) as process:
        yield process


@contextmanager
def bare_loop(log: Backlog) -> Iterator[subprocess.Popen[bytes]]:
    """The least that a publisher does with a row, as a process of its own."""
    with _module(log, "bench.bare_loop", url(), log.name, str(log.folder)) as process:
        yield process


@contextmanager
def _module(log: Backlog, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module until the end of the block."""
    log.folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen([sys.executable, "-m", *arguments], cwd=Path(__file__).parents[1])
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def _warm_up(log: Backlog, process: subprocess.Popen[bytes]) -> None:
    """Waits until a first change is published."""
    _write(log, 1)
    end = time.monotonic() + 30
    while not any(log.folder.glob("*.xml")):
        if time.monotonic() > end or process.poll() is not None:
            raise AssertionError("the publisher did not publish")
        time.sleep(0.01)


def _write(log: Backlog, changes: int) -> dict[int, float]:
    """Commits changes, each by itself at its time; when each was committed, by record_id."""
    committed: dict[int, float] = {}
    statement = text(CHANGE.format(log=log.name))
    with engine().connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        start = time.monotonic()
        for number in range(changes):
            time.sleep(max(0.0, start + number / RATE - time.monotonic()))
            record_id = connection.execute(statement).scalar_one()
            committed[record_id] = time.monotonic()
    return committed


def _cpu(process: int) -> float:
    """Seconds that the process has been on a core, by the scheduler's own books: ticks are too coarse for an idle one."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def benchmark(*, quick: bool) -> Benchmark:
    """Single changes at a steady rate, and none at all."""
    log, changes, idle = backlog("latency_log", 0), QUICK if quick else CHANGES, 0.5 if quick else IDLE
    watch, bare = Watch(publisher, log, changes, idle), Watch(bare_loop, log, changes, idle)
    return Benchmark(
        name="latency",
        question="how soon is a change published?",
        unit="change",
        contestants=[
            Contestant(name=MEDIAN, run=partial(watch.latency, 0.5)),
            Contestant(name=SLOWEST, run=partial(watch.latency, 0.99)),
            Contestant(name=BARE_MEDIAN, run=partial(bare.latency, 0.5), floor=True),
            Contestant(name=BARE_SLOWEST, run=partial(bare.latency, 0.99), floor=True),
            Contestant(name=WAITING, run=watch.idling),
        ],
        targets=_targets,
        note=(
            f"{RATE} commits a second of one log row each; from when the commit has returned to when the document has its"
            " name, flushed to the disk. The publisher is a process of its own with its usual settings. The bare loop looks"
            " every millisecond, writes one file with fsync and rename, and marks the row: no journal, no lock."
        ),
    )


def _targets(timings: Timings) -> list[Target]:
    targets = []
    for name, bare, most in zip((MEDIAN, SLOWEST), (BARE_MEDIAN, BARE_SLOWEST), MOST.values(), strict=True):
        # Each against the bare loop of the same round.
        ratio = statistics.median(map(truediv, timings[name].seconds, timings[bare].seconds))
        targets.append(
            Target(
                promise=f"{name}: at most {most:.1f} times the bare loop",
                measured=f"{ratio:.2f} ({timings[name].median * 1e3:.1f} ms)",
                reached=ratio <= most,
            )
        )
    return [
        *targets,
        Target(
            promise=f"an idle publisher takes at most {SHARE:.0%} of a core",
            measured=f"{timings[WAITING].median:.2%}",
            reached=timings[WAITING].median <= SHARE,
        ),
    ]
