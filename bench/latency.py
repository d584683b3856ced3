"""How long after its commit a change stands in a durable document, and what a publisher costs that has nothing to do."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import text

from bench.arrivals import Arrivals
from bench.backlog import Backlog, backlog, engine, written_config
from bench.measure import Benchmark, Contestant, Target, Timings

RATE: Final = 100
"""Changes in a second."""
CHANGES: Final = 1_000
QUICK: Final = 20
IDLE: Final = 10.0
"""Seconds for which it is watched doing nothing."""
MOST: Final = {0.5: 0.005, 0.99: 0.020}
"""Seconds within which that part of the changes must have arrived."""
SHARE: Final = 0.01
"""Of a core, for a publisher that has nothing to do."""

MEDIAN, SLOWEST, WAITING = (
    "commit → document, half of the changes",
    "commit → document, 99 %",
    "CPU time of an idle second",
)
CHANGE = (
    "INSERT INTO {log} (table_key, event_type, perpetrator, table_name, column_name, old_value, new_value)"
    " VALUES ('idu=1', 2, 'app', 'usr', 'fname', 'Jack', 'John') RETURNING record_id"
)


class Watch:
    """A publisher at work, watched again and again; the two figures of one run come from the same changes."""

    def __init__(self, log: Backlog, changes: int, idle: float) -> None:
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
        with publisher(self._log) as process:
            _warm_up(self._log, process)
            time.sleep(self._idle / 2)  # it looks often at first, and seldom when there has been nothing for long
            before = _cpu(process.pid)
            time.sleep(self._idle)
            return (_cpu(process.pid) - before) / self._idle

    def _delays(self) -> list[float]:
        self._log.refill()
        with publisher(self._log) as process, Arrivals(self._log.folder) as arrivals:
            _warm_up(self._log, process)
            committed = _write(self._log, self._changes)
            return arrivals.delays(committed)


@contextmanager
def publisher(log: Backlog) -> Iterator[subprocess.Popen[bytes]]:
    """`eventlog run` as a process of its own; it has a folder for documents when this begins."""
    log.folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "eventlog", "run", "--log-level", "error", "--config"]
    process = subprocess.Popen([*command, str(written_config(log.config()))], cwd=Path(__file__).parents[1])
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
    watch = Watch(backlog("latency_log", 0), QUICK if quick else CHANGES, 0.5 if quick else IDLE)
    return Benchmark(
        name="latency",
        question="how soon is a change published?",
        unit="change",
        contestants=[
            Contestant(name=MEDIAN, run=partial(watch.latency, 0.5)),
            Contestant(name=SLOWEST, run=partial(watch.latency, 0.99)),
            Contestant(name=WAITING, run=watch.idling),
        ],
        targets=_targets,
        note=(
            f"{RATE} commits a second of one log row each; from when the commit has returned to when the document has its"
            " name, flushed to the disk. The publisher is a process of its own with its usual settings."
        ),
    )


def _targets(timings: Timings) -> list[Target]:
    waited = zip((MEDIAN, SLOWEST), MOST.values(), strict=True)
    return [
        *(
            Target(
                promise=f"{name}: at most {most * 1e3:g} ms",
                measured=f"{timings[name].median * 1e3:.1f} ms",
                reached=timings[name].median <= most,
            )
            for name, most in waited
        ),
        Target(
            promise=f"an idle publisher takes less than {SHARE:.0%} of a core",
            measured=f"{timings[WAITING].median:.2%}",
            reached=timings[WAITING].median < SHARE,
        ),
    ]
