"""What a publisher takes while it works for a long time: memory, files, connections, the log's size and its lag."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from sqlalchemy import Engine, text

from bench.machine import Machine
from tests.hardening.quantity import RESULTS

PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Sample(Struct, frozen=True, kw_only=True):
    """One look at everything. `seconds` since the beginning, `megabytes` resident, `waiting` rows, `lag` in seconds.

    `rows` are those in the log, `taken` those that it has ever had.
    """

    seconds: float
    megabytes: float
    files: int
    connections: int
    rows: int
    taken: int
    log_megabytes: float
    waiting: int
    lag: float


class Soak(Struct, frozen=True, kw_only=True):
    """A soak, as it is kept with the other results."""

    name: str
    minutes: float
    load: str
    day: dt.date
    machine: Machine
    samples: list[Sample]


LOOK = (
    "SELECT count(*), coalesce(max(record_id), 0), count(*) FILTER (WHERE status = 'N'), pg_total_relation_size('event_log')"
    " + pg_total_relation_size('event_log_mark') + pg_total_relation_size('event_log_outcome'),"
    " coalesce(max(extract(epoch FROM localtimestamp - event_time)) FILTER (WHERE status = 'N'), 0),"
    " (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()) FROM event_log"
)


def sample(engine: Engine, process: int, began: float) -> Sample:
    """How things stand now."""
    with engine.connect() as connection:
        rows, taken, waiting, size, lag, connections = connection.execute(text(LOOK)).one()
    resident = int(Path(f"/proc/{process}/statm").read_text().split()[1]) * PAGE
    return Sample(
        seconds=round(time.monotonic() - began, 1),
        megabytes=round(resident / 2**20, 2),
        files=len(list(Path(f"/proc/{process}/fd").iterdir())),
        connections=int(connections),
        rows=int(rows),
        taken=int(taken),
        log_megabytes=round(size / 2**20, 2),
        waiting=int(waiting),
        lag=round(float(lag), 3),
    )


def grows(samples: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    """By how much the middle of the last third is above the middle of the second; the first third is warming up."""
    third = len(samples) // 3
    second, last = samples[third : 2 * third], samples[-third:]
    return _median([of(one) for one in last]) - _median([of(one) for one in second])


def said(found: Soak) -> str:
    """What a soak showed, in a sentence; each figure is the middle one of its third of the time."""
    third = len(found.samples) // 3
    second, last = found.samples[third : 2 * third], found.samples[-third:]
    shown = {"memory in MB": "megabytes", "open files": "files", "connections": "connections"}
    shown |= {"the log in MB": "log_megabytes", "lag in seconds": "lag"}
    pairs = [
        f"{title} {_median([getattr(one, name) for one in second])} and {_median([getattr(one, name) for one in last])}"
        for title, name in shown.items()
    ]
    return (
        f"{found.minutes:.0f} minutes, {found.samples[-1].taken} rows of the log; in the second third and in the last: "
        f"{', '.join(pairs)}."
    )


def keep(found: Soak) -> Path:
    """Writes figures to the other results; bench/plots.py draws them."""
    path = RESULTS / f"{found.name}.json"
    RESULTS.mkdir(exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    return path


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
