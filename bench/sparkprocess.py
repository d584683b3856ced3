"""A process with a Spark session that runs what it is told: its start is nobody's time, and several can stand ready.

python -m bench.sparkprocess MASTER [KEY=VALUE ...]

Then a line of JSON for each order on standard input, and one as the answer. The rest are settings of Spark's.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Event, Thread
from time import thread_time
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from bench.cputime import TreeTime
from bench.ending import at_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BARE_ROWS = 150_000
"""Rows of a file, where Spark writes without rules."""


class Order(Struct, frozen=True, kw_only=True):
    """Converts `source`, files or the log at a URL, into `destination`; without one, reads the log and drops the rows.

    With `rows`, which the files have, Spark does what it can without rules.
    """

    source: str
    destination: str | None = None
    schema: str | None = None
    rows: int = 0


class Answer(Struct, frozen=True, kw_only=True):
    """How many rows, CPU seconds of all processes, and what the largest Python worker held meanwhile."""

    rows: int
    cpu_seconds: float
    worker_bytes: int


class SparkProcess:
    """The process, as the benchmark sees it; started when it is first asked for something."""

    def __init__(self, *arguments: str, module: str = "bench.sparkprocess") -> None:
        self._command = [sys.executable, "-m", module, *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, order: Order) -> Answer:
        """Has an order done."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        process.stdin.flush()
        return msgspec.json.decode(process.stdout.readline(), type=Answer)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            at_end(self._process.communicate)
        return self._process


@cache
def spark_process(master: str, *settings: str) -> SparkProcess:
    """The one process with that master: benchmarks that follow one another need not wait for Spark again."""
    return SparkProcess(master, *settings)


def main(master: str, *settings: str) -> None:
    """Does what stands on standard input until it ends."""
    from eventlog_spark import EventLogSource
    from eventlog_spark.cluster import Cluster, read_conf, session

    with session(Cluster(master=master, conf=read_conf(settings))) as spark:
        spark.dataSource.register(EventLogSource)
        for line in sys.stdin.buffer:
            order = msgspec.json.decode(line, type=Order)
            watch = _Workers()
            time = TreeTime()
            rows = (
                _bare(spark, order) if order.rows else _converted(order) if order.destination else _read(spark, order)
            )
            largest = watch.stop()
            answer = Answer(rows=rows, cpu_seconds=time.stop() - watch.seconds, worker_bytes=largest)
            print(msgspec.json.encode(answer).decode(), flush=True)


def _converted(order: Order) -> int:
    from eventlog.convert.settings import Conversion, FilesInput, LogInput
    from eventlog.core.schema_file import catalog_from_json
    from eventlog_spark.addresses import Addresses, convert_at
    from eventlog_spark.convert import convert

    destination = _emptied(order)
    catalog = catalog_from_json(Path(order.schema).read_bytes()) if order.schema else None
    found = LogInput(url=order.source) if "://" in order.source else FilesInput(places=(order.source,))
    conversion = Conversion(input=found, destination=destination, catalog=catalog)
    if order.destination is not None and order.destination.startswith("file:"):
        return convert_at(conversion, Addresses(destination=order.destination, inputs=(order.source,))).rows
    return convert(conversion).rows


def _emptied(order: Order) -> Path:
    destination = Path((order.destination or "").removeprefix("file:"))
    shutil.rmtree(destination, ignore_errors=True)
    return destination


def _bare(spark: SparkSession, order: Order) -> int:
    """Two exchanges, two sorts, and a text of each row: the least that a conversion has to have done."""
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    tasks = 1 + order.rows // BARE_ROWS
    rows = spark.read.parquet(order.source)
    together = rows.repartition(tasks, "table_key").sortWithinPartitions("table_key", "record_id")
    text = F.concat_ws("|", *[name for name in rows.columns if name != "record_id"]).alias("value")
    place = F.expr(f"CAST((record_id - 1) DIV {BARE_ROWS} AS INT)").alias("place")
    ordered = together.select("record_id", place, text).repartitionById(tasks, "place")
    ordered.sortWithinPartitions("record_id").select("value").write.text(str(_emptied(order)))
    return order.rows


def _read(spark: SparkSession, order: Order) -> int:
    frame = spark.read.format("eventlog").option("url", order.source).option("status", "N").load()
    frame.write.format("noop").mode("overwrite").save()
    return 0


class _Workers:
    """Looks at the memory of Spark's Python workers a few times a second, and says how many seconds it took to look."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._most = 0
        self._done = Event()
        self._looker = Thread(target=self._look, daemon=True)
        self._looker.start()

    def stop(self) -> int:
        self._done.set()
        self._looker.join()
        return self._most

    def _look(self) -> None:
        while not self._done.wait(0.2):
            for status in Path("/proc").glob("[0-9]*/status"):
                self._most = max(self._most, _worker_bytes(status))
        self.seconds = thread_time()


def _worker_bytes(status: Path) -> int:
    try:
        if b"pyspark.daemon" not in status.with_name("cmdline").read_bytes():
            return 0
        found = [line for line in status.read_text().splitlines() if line.startswith("VmRSS")]
        return int(found[0].split()[1]) * 1024 if found else 0
    except OSError:
        return 0


if __name__ == "__main__":
    main(*sys.argv[1:])
