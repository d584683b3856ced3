"""How fast rows that only name an object become documents with its values, read back from the table."""

from __future__ import annotations

from functools import partial
from typing import Final

from sqlalchemy import text

from bench.backlog import COLUMNS, Standing, backlog, engine
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.publish import bare

OBJECTS: Final = 100_000
QUICK: Final = 1_000
PROMISED: Final = 40_000
READ: Final = COLUMNS[:5]

FLOOR = "COPY of the joined rows and UPDATE BETWEEN in one snapshot"
OURS = "eventlog into XDS files"
TABLE: Final = f"CREATE TABLE person (idu integer PRIMARY KEY, {', '.join(f'{column} text' for column in READ)})"
VALUES: Final = ", ".join(f"'{column} ' || n" for column in READ)
FILL: Final = f"INSERT INTO person SELECT n, {VALUES} FROM generate_series(0, :count - 1) AS n"
ROWS: Final = """
INSERT INTO {log} (table_key, event_type, perpetrator, table_name)
SELECT 'idu=' || n, 6, 'app', 'person' FROM generate_series(0, :count - 1) AS n ORDER BY n
"""
JOINED: Final = (
    "COPY (SELECT record_id, person.* FROM (SELECT record_id, table_key FROM {log} WHERE status = 'N'"
    " ORDER BY record_id LIMIT {limit}) AS waiting JOIN person ON idu = CAST(substr(table_key, 5) AS integer)"
    " ORDER BY record_id) TO STDOUT"
)


def benchmark(*, quick: bool) -> Benchmark:
    """Objects of five columns, each named by one row of type 6."""
    log = backlog("queryback_log", QUICK if quick else OBJECTS, ROWS, "person")
    with engine().begin() as connection:
        connection.execute(text(TABLE))
        connection.execute(text(FILL), {"count": log.count})
        connection.execute(text("ANALYZE person"))
    return Benchmark(
        name="queryback",
        question="how fast are objects read back and published?",
        unit="object",
        contestants=[
            Contestant(name=FLOOR, prepare=log.refill, run=partial(bare, log, JOINED), units=log.count, floor=True),
            Contestant(name=OURS, prepare=log.refill, run=Standing(log).publish, units=log.count),
        ],
        targets=_targets,
        note=f"One row of type 6 for each object of {len(READ)} columns; cycles of 10,000 rows, 128 changes to a document.",
    )


def _targets(timings: Timings) -> list[Target]:
    rate = timings[OURS].rate
    return [
        Target(
            promise=f"at least {PROMISED:,} objects/s of {len(READ)} columns",
            measured=f"{rate:,.0f} objects/s",
            reached=rate >= PROMISED,
        ),
    ]
