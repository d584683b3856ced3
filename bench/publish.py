"""How fast waiting per-field rows become durable XDS files, against a loop that only reads and marks them."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Final

from bench.backlog import BATCH_SIZE, LIMIT, PER_CHANGE, Backlog, Standing, backlog, engine, temporary_folder
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.pgq import Queue, filled_queue

ROWS: Final = 400_000
QUICK: Final = 2_000
PROMISED: Final = 0.5
"""Of the floor's rate."""
GAINED: Final = 1.5
"""What two workers are to be faster than one."""

FLOOR = "COPY and UPDATE BETWEEN in one snapshot"
OURS = "eventlog into XDS files"
SHARED = "the same, workers = 2"
PARSED = "PgQ consumer, payload parsed"
PUBLISHED = "PgQ consumer, into XDS files"
READ = (
    "COPY (SELECT record_id, event_type, table_name, table_key, column_name, old_value, new_value, event_time, perpetrator"
    " FROM {log} WHERE status = 'N' ORDER BY record_id LIMIT {limit}) TO STDOUT"
)
MARK = "UPDATE {log} SET status = 'S' WHERE record_id BETWEEN {first} AND {last} AND status = 'N'"


def benchmark(*, quick: bool) -> Benchmark:
    """The floor and the publisher in turn, on the same rows; a queue that holds the same row changes."""
    log, shared = (backlog(name, QUICK if quick else ROWS) for name in ("publish_log", "shared_log"))
    queue = filled_queue(log.count // PER_CHANGE, temporary_folder())
    return Benchmark(
        name="publish",
        question="how fast do waiting rows become durable documents?",
        unit="row",
        contestants=[
            Contestant(name=FLOOR, prepare=log.refill, run=partial(bare, log), units=log.count, floor=True),
            Contestant(name=OURS, prepare=log.refill, run=Standing(log).publish, units=log.count),
            Contestant(name=SHARED, prepare=shared.refill, run=Standing(shared, 2).publish, units=log.count),
            *_peers(queue, log.count),
        ],
        targets=_targets,
        note=(
            "Per-field rows of a table with seven columns: an object is inserted (six rows of type 1) and updated (two of"
            f" type 2), one value in ten needs escaping; cycles of {LIMIT:,} rows, {BATCH_SIZE} changes to a document. The"
            " floor reads the same rows in the same cycles and marks them, and does nothing with them. Two workers share"
            f" {len(os.sched_getaffinity(0))} cores with the server and the process that reads, writes and marks."
            + (
                f" PgQ is left out: {queue}."
                if isinstance(queue, str)
                else f" PgQ's consumer gets the same row changes as {queue.changes:,} events of whole rows, in batches"
                " that hold as many of them, and knows no former values; its rate is told in log rows too, of which"
                f" {PER_CHANGE} make one row change here. Reading and marking alone, the floor, is what no publisher of"
                " a log of fields can be faster than."
            )
        ),
    )


def _peers(queue: Queue | str, rows: int) -> list[Contestant]:
    if isinstance(queue, str):
        return []
    return [
        Contestant(name=PARSED, prepare=queue.rewind, run=queue.parse, units=rows),
        Contestant(name=PUBLISHED, prepare=queue.rewind, run=queue.publish, units=rows),
    ]


def bare(log: Backlog, read: str = READ) -> None:
    """Reads and marks every row in cycles, and looks at nothing but the first and the last number."""
    session: Any = engine().raw_connection()
    marked = 0
    try:
        cursor = session.cursor()
        while True:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            with cursor.copy(read.format(log=log.name, limit=LIMIT)) as copy:
                chunks = [bytes(chunk) for chunk in copy]
            if not chunks:
                break
            first, last = chunks[0].split(b"\t", 1)[0], chunks[-1].rsplit(b"\n", 2)[-2].split(b"\t", 1)[0]
            cursor.execute(MARK.format(log=log.name, first=first.decode(), last=last.decode()))
            marked += cursor.rowcount
            session.commit()
    finally:
        session.close()
    if marked != log.count:
        raise AssertionError(f"{marked} of {log.count} rows were marked")


def _changes(timings: Timings, contestant: str) -> str:
    """Row changes in a second: several log rows make one, and each of a queue's events is one."""
    return f"{timings[contestant].rate / PER_CHANGE:,.0f}"


def _targets(timings: Timings) -> list[Target]:
    share = timings[OURS].rate / timings[FLOOR].rate
    gained = timings[SHARED].rate / timings[OURS].rate
    ahead = [
        Target(
            promise=f"ahead of a {peer}, in row changes",
            measured=(
                f"{_changes(timings, OURS)} against {_changes(timings, peer)} row changes/s; events read:"
                f" {timings[OURS].rate:,.0f} log rows/s against {_changes(timings, peer)} whole rows/s"
            ),
            reached=timings[OURS].rate > timings[peer].rate,
        )
        for peer in (PARSED, PUBLISHED)
        if peer in timings
    ]
    return [
        Target(
            promise=f"at least {PROMISED:g} times as fast as reading and marking alone",
            measured=f"{share:.2f} times",
            reached=share >= PROMISED,
        ),
        Target(
            promise=f"two workers at least {GAINED:g} times as fast as one",
            measured=f"{gained:.2f} times",
            reached=gained >= GAINED,
        ),
        *ahead,
    ]
