"""Mixed load for a while: memory, open files, connections, the log's size and its lag stay flat.

EVENTLOG_SOAK says for how many seconds; without it there is no soak. From ten minutes on its figures are kept.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine, text

from bench.machine import Machine, this_machine
from eventlog.purge.deleting import Purge, purge
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.hardening.crash import configure, finish, kill, prepare, publisher, writers
from tests.hardening.quantity import RESULTS
from tests.hardening.replaying import tables
from tests.hardening.targets import ChangeTables, Files, Several

SECONDS = float(os.environ.get("EVENTLOG_SOAK", "0"))
KEPT = 600.0
LOAD = "two writers of small transactions, and 900 rows at once now and then, into XDS files and change tables"
AGE = 60.0
"""Seconds after which rows are purged, as an operator's timer does it."""

LAG = 2.0 if SECONDS >= KEPT else 8.0
"""Seconds of lag from which it grows. A busy machine lags for some seconds; in half a minute who stands still gains ten."""

SELDOM = 10.0
"""Seconds between two bulks at least, so that a busy machine has caught up by then."""

BULK = (
    "INSERT INTO usr SELECT n, 'many', 'x' FROM generate_series(1001, 1300) AS n",
    "UPDATE usr SET fname = 'more' WHERE idu > 1000",
    "DELETE FROM usr WHERE idu > 1000",
)
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
LOOK = (
    "SELECT count(*), coalesce(max(record_id), 0), count(*) FILTER (WHERE status = 'N'), pg_total_relation_size('event_log')"
    " + pg_total_relation_size('event_log_mark') + pg_total_relation_size('event_log_outcome'),"
    " coalesce(max(extract(epoch FROM localtimestamp - event_time)) FILTER (WHERE status = 'N'), 0),"
    " (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()) FROM event_log"
)


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
    """A soak, as it is kept with the other results; bench/plots.py draws it."""

    name: str
    minutes: float
    load: str
    day: dt.date
    machine: Machine
    samples: list[Sample]


@pytest.mark.in_turn
@pytest.mark.skipif(
    not SECONDS, reason="a soak takes its time: EVENTLOG_SOAK=30 ./dev test tests/hardening/test_soak.py"
)
def test_nothing_grows_while_the_publisher_works(postgresql: Engine, tmp_path: Path) -> None:
    aim = Several(Files(tmp_path, "row-back"), ChangeTables(postgresql, tmp_path))
    machine = this_machine()
    prepare(postgresql, aim.style)
    config = configure(postgresql, tmp_path, aim, lease=20.0)
    one = publisher(config)
    with writers(postgresql, 11, pause=0.05):
        samples = watched(postgresql, one.pid or 0, max(1.0, SECONDS / 120))
    assert one.is_alive()
    kill(one)
    finish(postgresql, config)
    if SECONDS < KEPT:  # the whole of it, which a purged log cannot account for any more
        assert aim.check(postgresql) == tables(postgresql)
    else:
        keep(samples, machine)
        assert aim.replayed() == tables(postgresql)
    expect_flat(samples)


def keep(samples: list[Sample], machine: Machine) -> None:
    """Writes the figures to the other results."""
    minutes = round(samples[-1].seconds / 60, 1)
    today = dt.datetime.now(tz=dt.UTC).date()
    found = Soak(name="soak", minutes=minutes, load=LOAD, day=today, machine=machine, samples=samples)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "soak.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")


def watched(engine: Engine, process: int, every: float) -> list[Sample]:
    began = bulk = time.monotonic()
    samples: list[Sample] = []
    while time.monotonic() - began < SECONDS:
        if time.monotonic() >= bulk:
            bulk = time.monotonic() + SELDOM
            for statement in BULK:  # what a publisher takes batch by batch, hand in hand
                with engine.begin() as connection:
                    connection.execute(text(statement))
        time.sleep(every)
        if SECONDS >= KEPT:
            for _ in purge(Log(engine, LogNames()), Purge(age=AGE)):
                continue
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM"))  # what a server does by itself, but for those of tests
        samples.append(sample(engine, process, began))
    return samples


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


def middles(samples: Sequence[Sample], of: Callable[[Sample], float]) -> tuple[float, float]:
    """The middle one of the second third, and of the last; the first third is warming up."""
    third = len(samples) // 3
    second, last = sorted(map(of, samples[third : 2 * third])), sorted(map(of, samples[-third:]))
    return second[third // 2], last[third // 2]


def grows(samples: Sequence[Sample], of: Callable[[Sample], float]) -> float:
    second, last = middles(samples, of)
    return last - second


def expect_flat(samples: list[Sample]) -> None:
    assert len(samples) >= 9
    assert grows(samples, lambda one: one.megabytes) < 8, [one.megabytes for one in samples]
    assert grows(samples, lambda one: one.files) <= 2, [one.files for one in samples]
    assert grows(samples, lambda one: one.connections) <= 1, [one.connections for one in samples]
    assert grows(samples, lambda one: one.lag) < LAG, [one.lag for one in samples]
    if SECONDS >= KEPT:
        assert grows(samples, lambda one: one.log_megabytes) < 2, [one.log_megabytes for one in samples]


def test_growth_is_noticed() -> None:
    flat = [
        Sample(seconds=n, megabytes=50, files=9, connections=3, rows=n, taken=n, log_megabytes=1, waiting=0, lag=0.1)
        for n in range(30)
    ]
    expect_flat(flat)
    assert grows(flat, lambda one: one.rows) == 10
    with pytest.raises(AssertionError):
        expect_flat([replace(one, megabytes=50.0 + one.rows) for one in flat])


def test_the_page_says_how_long_the_soak_was() -> None:
    found = msgspec.json.decode((RESULTS / "soak.json").read_bytes(), type=Soak)
    shown = {"memory in MB": "megabytes", "open files": "files", "connections": "connections"}
    shown |= {"the log in MB": "log_megabytes", "lag in seconds": "lag"}
    pairs = [
        "{} {} and {}".format(title, *middles(found.samples, lambda one, name=name: getattr(one, name)))  # type: ignore[misc]  # mypy does not know its type
        for title, name in shown.items()
    ]
    said = (
        f"{found.minutes:.0f} minutes, {found.samples[-1].taken} rows of the log; in the second third and in the last: "
        f"{', '.join(pairs)}."
    )
    assert found.minutes >= 20
    assert said in (RESULTS / "README.md").read_text(encoding="utf-8")
