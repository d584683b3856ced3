"""Inputs of twenty times the memory of an executor: do they end, is the output right, and what do the workers hold?"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

from msgspec import Struct

from bench.measure import Benchmark, Contestant, Target, Timings
from bench.rules import CATALOG, COLUMNS, UPDATED, LogRow, events, log_rows
from bench.spark.ground import Ground, write_rows
from bench.sparkprocess import Order, SparkProcess, spark_process
from eventlog.core.model import Document
from eventlog.core.rules import decide
from eventlog.core.seams import encode
from eventlog.xds.write import XdsFormat

EXECUTOR_BYTES = 512 * 2**20
TIMES = 20
CLUSTER = "local-cluster[2,1,1024]"
SETTINGS = ("spark.executor.memory=512m", "spark.driver.memory=512m")
POOL_BYTES = 8_000_000
"""Values are cut from so many random bytes: as text, none of them becomes short when it is packed."""

GROUP_BYTES = 16_000_000
LOOKED_AT = 8
"""Objects whose elements are compared, at the beginning of all files and at their end."""


class Input(Struct, frozen=True, kw_only=True):
    """Rows whose values have so many characters."""

    rows: int
    length: int

    @property
    def size(self) -> int:
        return self.rows * self.length

    @property
    def name(self) -> str:
        return f"{self.rows:,} rows of {self.length:,} characters"

    def log_rows(self, pool: str) -> Iterator[LogRow]:
        """The rows: those of all benchmarks, with long values."""
        for number, key, status, kind, time, perpetrator, table, column, old, _ in log_rows(self.rows):
            start = number * 7_919 % (len(pool) - self.length)
            new = pool[start : start + self.length]
            yield number, key, status, kind, time, perpetrator, table, column, old, new


def benchmark(*, quick: bool) -> Benchmark:
    """Long values, and many rows, on a cluster whose executors have 512 MB; the large inputs are converted once."""
    least = TIMES * EXECUTOR_BYTES
    lengths = (100_000, 1_000)
    sizes = [2_000_000] if quick else [least // 10, least]
    inputs = [Input(rows=_whole(size // length), length=length) for length in lengths for size in sizes]
    ground, process = Ground(), spark_process(CLUSTER, *SETTINGS)
    pool = Random(1).randbytes(POOL_BYTES // 2).hex()  # noqa: S311  # no secret
    return Benchmark(
        name="spark.memory",
        question="do executors of 512 MB convert inputs of twenty times their memory?",
        unit="row",
        contestants=[
            Contestant(
                name=one.name,
                run=partial(_run, ground, process, one, pool),
                units=one.rows,
                series=f"values of {one.length:,} characters",
                size=one.rows,
                once=one.size >= least,
            )
            for one in inputs
        ],
        targets=partial(_targets, ground=ground),
        note=(
            f"CPU seconds of all processes. Two executors of one core and 512 MB each ({CLUSTER}), a driver of 512 MB. Per-field"
            " rows from Parquet to XDS files. Values are random text, which does not become shorter when it is packed. Rows"
            f" are counted, and the first and the last {LOOKED_AT} objects compared byte by byte. The large inputs"
            " run once."
        ),
    )


def _whole(rows: int) -> int:
    """As many rows as whole objects have."""
    per_object = len(COLUMNS) + UPDATED
    return -(-rows // per_object) * per_object


def _run(ground: Ground, process: SparkProcess, one: Input, pool: str) -> float:
    """Converts, compares, and removes what was made."""
    source = ground.folder / f"{one.rows}-{one.length}.parquet"
    if not source.exists():
        write_rows(source, one.log_rows(pool), group=max(1, GROUP_BYTES // one.length))
    order = ground.order_of(source)
    answer = ground.run(process, order)
    assert answer.rows == one.rows, f"{answer.rows} of {one.rows} rows"
    _compare(order, one, pool)
    return answer.cpu_seconds


def _compare(order: Order, one: Input, pool: str) -> None:
    """AssertionError where the files do not begin and end as the rules and the format say."""
    parts = sorted(Path(order.destination or "").glob("part-*.xml"))
    opening, closing = (text.encode() for text in XdsFormat().wrapping())
    count = LOOKED_AT * (len(COLUMNS) + UPDATED)
    first = _body(islice(one.log_rows(pool), count)).removesuffix(closing)
    last = _body(deque(one.log_rows(pool), maxlen=count)).removeprefix(opening)
    with parts[0].open("rb") as file:
        assert file.read(len(first)) == first, f"{parts[0]} begins in another way"
    with parts[-1].open("rb") as file:
        file.seek(-len(last), 2)
        assert file.read() == last, f"{parts[-1]} ends in another way"


def _body(rows: Iterable[LogRow]) -> bytes:
    """The rows as one document."""
    changes = decide(events(rows), catalog=CATALOG).changes
    form = XdsFormat(batch_size=len(changes))
    [document] = [one for one in encode(form, changes, CATALOG) if isinstance(one, Document)]
    return document.body


def _targets(_timings: Timings, *, ground: Ground) -> list[Target]:
    return [ground.workers_target()]
