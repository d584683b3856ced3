"""How fast waiting per-field rows become durable XDS files, against a loop that only reads and marks them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from sqlalchemy import text

from bench.backlog import (
    BATCH_SIZE,
    COLUMNS,
    LIMIT,
    MARK,
    PER_CHANGE,
    Backlog,
    Standing,
    backlog,
    engine,
    settle_down,
    temporary_folder,
)
from bench.images import Images
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.pgq import OBJECTS_AT_ONCE, Queue, filled_queue

ROWS: Final = 400_000
QUICK: Final = 2_000
PROMISED: Final = 0.5
"""Of the floor's rate."""

FLOOR = "COPY and UPDATE BETWEEN in one snapshot"
OURS = "eventlog into XDS files"
WHOLE = "eventlog into XDS files, whole rows read back"
IMAGES = "eventlog into XDS files, images of whole rows"
WRITTEN = "bare write of the same bytes, one file"
PARSED = "PgQ consumer, payload parsed"
PUBLISHED = "PgQ consumer, into XDS files"
WHOLE_ROWS: Final = """
INSERT INTO {log} (table_key, event_type, perpetrator, table_name)
SELECT 'idu=' || n / (2 * {block}) * {block} + n % {block}, CASE WHEN n / {block} % 2 = 0 THEN 5 ELSE 6 END, 'app', 'usr'
FROM generate_series(0, :count - 1) AS n ORDER BY n
""".replace("{block}", str(OBJECTS_AT_ONCE))
"""The row changes that the queue holds, in their order, each as one row of a log that names the object."""
OBJECTS: Final = f"""
INSERT INTO usr SELECT n, {", ".join(f"'new ' || {place} + 8 * n" for place in range(len(COLUMNS)))}
FROM generate_series(0, CAST(:count AS integer) - 1) AS n ON CONFLICT DO NOTHING
"""
READ = (
    "COPY (SELECT record_id, event_type, table_name, table_key, column_name, old_value, new_value, event_time, perpetrator"
    " FROM {log} WHERE status = 'N' ORDER BY record_id LIMIT {limit}) TO STDOUT"
)


def benchmark(*, quick: bool) -> Benchmark:
    """The floor and the publisher in turn, on the same rows; a queue that holds the same row changes."""
    log = backlog("publish_log", QUICK if quick else ROWS)
    whole = _whole_rows(log.count // PER_CHANGE)
    images = Images(1 + len(COLUMNS), "xds", log.count // PER_CHANGE)
    queue = filled_queue(log.count // PER_CHANGE, temporary_folder())
    ours, same = Standing(log), Written(log)
    return Benchmark(
        name="publish",
        question="how fast do waiting rows become durable documents?",
        unit="row",
        contestants=[
            Contestant(name=FLOOR, prepare=log.refill, run=partial(bare, log), units=log.count, floor=True),
            Contestant(name=OURS, prepare=log.refill, run=ours.publish, done=same.keep, units=log.count),
            Contestant(name=WRITTEN, run=same.write, units=log.count),
            Contestant(name=WHOLE, prepare=whole.refill, run=Standing(whole).publish, units=log.count),
            Contestant(name=IMAGES, prepare=images.refill, run=images.publish, units=log.count),
            *_peers(queue, log.count),
        ],
        targets=_targets,
        note=(
            "Per-field rows of a table with seven columns: an object is inserted (six rows of type 1) and updated (two of"
            f" type 2), one value in ten needs escaping; cycles of {LIMIT:,} rows, {BATCH_SIZE} changes to a document. The"
            " floor reads the same rows in the same cycles and marks them, and does nothing with them. The bare write has the bytes of"
            " those documents in memory and brings them to the disk."
            f" 'Whole rows' is a log of types 5 and 6 with the same {whole.count:,} row changes, one row each, whose values"
            " are read back from the table; two changes of an object in one cycle become one element. 'Images' has these"
            " changes with all values, one row each, as triggers of that style write them."
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


class Written:
    """The bytes of the documents that a log became, and how long a disk takes for them alone."""

    def __init__(self, log: Backlog) -> None:
        self._log = log
        self._bytes = b""

    def keep(self) -> None:
        """Remembers what stands in the log's folder."""
        if not self._bytes:
            self._bytes = b"".join(document.read_bytes() for document in sorted(self._log.folder.glob("*.xml")))

    def write(self) -> None:
        """Writes it into one file, as durable as documents are."""
        with (self._log.folder.parent / "bytes").open("wb") as file:
            file.write(self._bytes)
            file.flush()
            os.fsync(file.fileno())


def _whole_rows(changes: int) -> Backlog:
    """A log that holds row changes as a queue does, one row each, and the table that they are read back from."""
    log = backlog("whole_log", changes, WHOLE_ROWS)
    with engine().begin() as connection:
        connection.execute(text(OBJECTS), {"count": changes // 2 + OBJECTS_AT_ONCE})
    settle_down("usr")
    return log


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


def _ahead(timings: Timings, peer: str) -> Iterator[Target]:
    """A queue has an event for each row change and a log of fields has several: which is ahead depends on what is counted."""
    events = timings[peer].rate / PER_CHANGE
    yield Target(
        promise=f"ahead of a {peer}, in events read",
        measured=f"{timings[OURS].rate:,.0f} log rows/s against {events:,.0f} whole rows/s",
        reached=timings[OURS].rate > events,
    )
    for log, kind in ((OURS, "a log of fields"), (WHOLE, "a log of whole rows"), (IMAGES, "a log of images")):
        yield Target(
            promise=f"ahead of a {peer}, in row changes, from {kind}",
            measured=f"{_changes(timings, log)} against {_changes(timings, peer)} row changes/s",
            reached=timings[log].rate > timings[peer].rate,
        )


def _targets(timings: Timings) -> list[Target]:
    share = timings[OURS].rate / timings[FLOOR].rate
    ahead = [target for peer in (PARSED, PUBLISHED) if peer in timings for target in _ahead(timings, peer)]
    return [
        Target(
            promise=f"at least {PROMISED:g} times as fast as reading and marking alone",
            measured=f"{share:.2f} times",
            reached=share >= PROMISED,
        ),
        *ahead,
    ]
