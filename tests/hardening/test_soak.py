"""Mixed load for a while: memory, open files, connections, the log's size and its lag stay flat.

EVENTLOG_SOAK says for how many seconds; without it there is no soak. From ten minutes on its figures are kept.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, text

from tests.hardening.crash import configure, finish, prepare, publisher, writers
from tests.hardening.replaying import tables
from tests.hardening.soaking import Sample, Soak, grows, keep, sample
from tests.hardening.targets import Files

SECONDS = float(os.environ.get("EVENTLOG_SOAK", "0"))
KEPT = 600.0
ROWS = 5000
"""Rows that the log keeps; older ones are purged as an operator's timer does it."""


@pytest.mark.skipif(
    not SECONDS, reason="a soak takes its time: EVENTLOG_SOAK=40 ./dev test tests/hardening/test_soak.py"
)
def test_nothing_grows_while_the_publisher_works(postgresql: Engine, tmp_path: Path) -> None:
    aim = Files(tmp_path, "field")
    prepare(postgresql, aim.style)
    with postgresql.begin() as connection:  # tests' servers run without it, but a log needs it
        connection.execute(text("ALTER TABLE event_log SET (autovacuum_vacuum_scale_factor = 0.05)"))
    config = configure(postgresql, tmp_path, aim)
    one = publisher(config, "files")
    with writers(postgresql, 11, pause=0.05):
        samples = _watched(postgresql, one.pid or 0, max(1.0, SECONDS / 60))
    assert one.is_alive()
    one.kill()
    one.join()
    finish(postgresql, config, "files")
    if SECONDS < KEPT:  # the whole of it, which a purged log cannot account for any more
        assert aim.check(postgresql) == tables(postgresql)
    else:
        keep(Soak(name="soak", minutes=round(SECONDS / 60, 1), samples=samples))
    _expect_flat(samples)


def _watched(engine: Engine, process: int, every: float) -> list[Sample]:
    began = time.monotonic()
    samples: list[Sample] = []
    while time.monotonic() - began < SECONDS:
        time.sleep(every)
        if SECONDS >= KEPT:
            _purge(engine)
        samples.append(sample(engine, process, began))
    return samples


def _purge(engine: Engine) -> None:
    """Takes old rows away, and the space that they had."""
    with engine.begin() as connection:
        connection.execute(
            text(
                "DELETE FROM event_log WHERE status <> 'N' AND record_id < (SELECT max(record_id) FROM event_log) - :kept"
            ),
            {"kept": ROWS},
        )
        connection.execute(
            text("DELETE FROM event_log_outcome WHERE record_id NOT IN (SELECT record_id FROM event_log)")
        )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM event_log"))


def _expect_flat(samples: list[Sample]) -> None:
    assert len(samples) >= 9
    assert grows(samples, lambda one: one.megabytes) < 8, [one.megabytes for one in samples]
    assert grows(samples, lambda one: one.files) <= 2, [one.files for one in samples]
    assert grows(samples, lambda one: one.connections) <= 1, [one.connections for one in samples]
    assert grows(samples, lambda one: one.lag) < 2, [one.lag for one in samples]
    if SECONDS >= KEPT:
        assert grows(samples, lambda one: one.log_megabytes) < 2, [one.log_megabytes for one in samples]


def test_growth_is_noticed() -> None:
    flat = [
        Sample(seconds=n, megabytes=50, files=9, connections=3, rows=n, log_megabytes=1, waiting=0, lag=0.1)
        for n in range(30)
    ]
    _expect_flat(flat)
    assert grows(flat, lambda one: one.rows) == 10
    with pytest.raises(AssertionError):
        _expect_flat([replace(one, megabytes=50.0 + one.rows) for one in flat])
