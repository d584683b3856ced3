"""A process with a Spark session that runs what it is told: its start is nobody's time, and several can stand ready.

python -m bench.sparkprocess MASTER      then a line of JSON for each order on standard input, and one as the answer
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from threading import Event, Thread

import msgspec
from msgspec import Struct

from bench.ending import at_end


class Order(Struct, frozen=True, kw_only=True):
    """Converts `source`, files or the log at a URL, into `destination`; without one, reads the log and drops the rows."""

    source: str
    destination: str | None = None
    schema: str | None = None


class Answer(Struct, frozen=True, kw_only=True):
    """How many rows, and what the largest Python worker held meanwhile."""

    rows: int
    worker_bytes: int


class SparkProcess:
    """The process, as the benchmark sees it; started when it is first asked for something."""

    def __init__(self, argument: str, module: str = "bench.sparkprocess") -> None:
        self._command = [sys.executable, "-m", module, argument]
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
def spark_process(master: str) -> SparkProcess:
    """The one process with that master: benchmarks that follow one another need not wait for Spark again."""
    return SparkProcess(master)


def main(master: str) -> None:
    """Does what stands on standard input until it ends."""
    from eventlog_spark import EventLogSource
    from eventlog_spark.session import Cluster, session

    with session(Cluster(master=master)) as spark:
        spark.dataSource.register(EventLogSource)
        for line in sys.stdin.buffer:
            order = msgspec.json.decode(line, type=Order)
            watch = _Workers()
            rows = _converted(order) if order.destination else _read(spark, order)
            print(msgspec.json.encode(Answer(rows=rows, worker_bytes=watch.stop())).decode(), flush=True)


def _converted(order: Order) -> int:
    from eventlog.convert.settings import Conversion, FilesInput, LogInput
    from eventlog.core.schema import catalog_from_json
    from eventlog_spark.convert import convert

    destination = Path(order.destination or "")
    shutil.rmtree(destination, ignore_errors=True)
    catalog = catalog_from_json(Path(order.schema).read_bytes()) if order.schema else None
    found = LogInput(url=order.source) if "://" in order.source else FilesInput(places=(order.source,))
    return convert(Conversion(input=found, destination=destination, catalog=catalog)).rows


def _read(spark: object, order: Order) -> int:
    from pyspark.sql import SparkSession

    assert isinstance(spark, SparkSession)
    frame = spark.read.format("eventlog").option("url", order.source).option("status", "N").load()
    frame.write.format("noop").mode("overwrite").save()
    return 0


class _Workers:
    """Looks at the memory of Spark's Python workers a few times a second."""

    def __init__(self) -> None:
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


def _worker_bytes(status: Path) -> int:
    try:
        if b"pyspark.daemon" not in status.with_name("cmdline").read_bytes():
            return 0
        found = [line for line in status.read_text().splitlines() if line.startswith("VmRSS")]
        return int(found[0].split()[1]) * 1024 if found else 0
    except OSError:
        return 0


if __name__ == "__main__":
    main(sys.argv[1])
