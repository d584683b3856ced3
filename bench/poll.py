"""What a poll that finds nothing costs, and whether rows that were processed before make it dearer."""

from __future__ import annotations

from functools import partial
from typing import Final

from sqlalchemy import create_engine, text

from bench.backlog import closed_at_the_end
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.postgresql import url
from eventlog.capture.install import install
from eventlog.sql.names import LogNames
from tests.support.log_rows import LogRows

PROCESSED: Final = 10_000_000
QUICK: Final = 20_000
POLLS: Final = 50
LIMIT: Final = 10_000
LONGEST: Final = 0.002
"""Seconds that an empty poll may take."""

NEW = "an empty log"
FILL = (
    "INSERT INTO {log} (table_key, status, event_type, perpetrator, table_name, column_name, old_value, new_value)"
    " SELECT 'idu=' || n % 100000, 'N', 2, 'app', 'usr', 'fname', 'Jack', 'John' FROM generate_series(1, :count) AS n"
)
AT_ONCE: Final = 500_000


def benchmark(*, quick: bool) -> Benchmark:
    """Polls of a new log, and of one that has published millions of rows."""
    count = QUICK if quick else PROCESSED
    full = f"{count:,} processed rows"
    sources = {NEW: _source("new_log", 0), full: _source("full_log", count)}
    return Benchmark(
        name="poll",
        question="do processed rows slow down a poll that finds nothing?",
        unit="poll",
        contestants=[
            Contestant(name=name, run=partial(_poll, source), units=POLLS, floor=name == NEW)
            for name, source in sources.items()
        ],
        targets=partial(_targets, full=full),
        note="PostgreSQL; the rows were inserted as N, marked, and vacuumed as autovacuum would.",
    )


def _source(name: str, count: int) -> LogRows:
    """A log in which so many rows went the way of every row: inserted as new, marked as published."""
    engine = closed_at_the_end(create_engine(url()))
    names = LogNames(table=name)
    install(engine, names)
    with engine.begin() as connection:
        connection.execute(text(f"ALTER TABLE {name} SET (autovacuum_enabled = false)"))  # it would run meanwhile
    for start in range(0, count, AT_ONCE):
        with engine.begin() as connection:
            connection.execute(text(FILL.format(log=name)), {"count": min(AT_ONCE, count - start)})
        with engine.begin() as connection:
            connection.execute(text(f"UPDATE {name} SET status = 'S' WHERE status = 'N'"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in (f"VACUUM ANALYZE {name}", "CHECKPOINT"):
            connection.execute(text(statement))
    return LogRows(engine, names)


def _poll(source: LogRows) -> None:
    for _ in range(POLLS):
        if source.read(LIMIT).events:
            raise AssertionError("the log was to have no waiting rows")


def _targets(timings: Timings, *, full: str) -> list[Target]:
    poll, floor = timings[full].each, timings[NEW].each
    return [
        Target(
            promise=f"an empty poll of a log with {full} under {LONGEST * 1e3:g} ms",
            measured=f"{poll * 1e3:.2f} ms",
            reached=poll < LONGEST,
        ),
        Target(
            promise="at most 1.5 times a poll of an empty log",
            measured=f"{poll / floor:.2f}×",
            reached=poll < 1.5 * floor,
        ),
    ]
