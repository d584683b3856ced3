"""Mixed load for a while: memory, open files, connections, the log's size and its lag stay flat.

EVENTLOG_SOAK says for how many seconds; without it there is no soak. From ten minutes on its figures are kept.
"""

from __future__ import annotations

import datetime as dt
import os
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, text

from bench.machine import Machine, this_machine
from eventlog.purge.deleting import Purge, purge
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.hardening.crash import configure, finish, prepare, publisher, writers
from tests.hardening.quantity import RESULTS
from tests.hardening.replaying import tables
from tests.hardening.soaking import Sample, Soak, grows, keep, said, sample
from tests.hardening.targets import Several

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


@pytest.mark.in_turn
@pytest.mark.skipif(
    not SECONDS, reason="a soak takes its time: EVENTLOG_SOAK=30 ./dev test tests/hardening/test_soak.py"
)
def test_nothing_grows_while_the_publisher_works(postgresql: Engine, tmp_path: Path) -> None:
    aim, machine = Several(postgresql, tmp_path), this_machine()
    prepare(postgresql, aim.style)
    config = configure(postgresql, tmp_path, aim, lease=20.0)
    one = publisher(config)
    with writers(postgresql, 11, pause=0.05):
        samples = _watched(postgresql, one.process.pid, max(1.0, SECONDS / 120))
    assert one.alive, one.said
    one.kill()
    finish(postgresql, config)
    if SECONDS < KEPT:  # the whole of it, which a purged log cannot account for any more
        assert aim.check(postgresql) == tables(postgresql)
    else:
        keep(_soak(samples, machine))
        assert aim.replayed() == tables(postgresql)
    _expect_flat(samples)


def _soak(samples: list[Sample], machine: Machine) -> Soak:
    minutes = round(samples[-1].seconds / 60, 1)
    today = dt.datetime.now(tz=dt.UTC).date()
    return Soak(name="soak", minutes=minutes, load=LOAD, day=today, machine=machine, samples=samples)


def _watched(engine: Engine, process: int, every: float) -> list[Sample]:
    began = time.monotonic()
    samples: list[Sample] = []
    bulk = began
    while time.monotonic() - began < SECONDS:
        if time.monotonic() >= bulk:
            bulk = time.monotonic() + SELDOM
            _many_at_once(engine)
        time.sleep(every)
        if SECONDS >= KEPT:
            _purge(engine)
        _vacuum(engine)
        samples.append(sample(engine, process, began))
    return samples


def _many_at_once(engine: Engine) -> None:
    """What a publisher takes batch by batch, hand in hand."""
    for statement in BULK:
        with engine.begin() as connection:
            connection.execute(text(statement))


def _purge(engine: Engine) -> None:
    """Takes old rows away."""
    for _ in purge(Log(engine, LogNames()), Purge(age=AGE)):
        continue


def _vacuum(engine: Engine) -> None:
    """What a server does by itself, but for those of tests."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM"))


def _expect_flat(samples: list[Sample]) -> None:
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
    _expect_flat(flat)
    assert grows(flat, lambda one: one.rows) == 10
    with pytest.raises(AssertionError):
        _expect_flat([replace(one, megabytes=50.0 + one.rows) for one in flat])


def test_the_page_says_how_long_the_soak_was() -> None:
    found = msgspec.json.decode((RESULTS / "soak.json").read_bytes(), type=Soak)
    assert found.minutes >= 20
    assert said(found) in (RESULTS / "README.md").read_text(encoding="utf-8")
