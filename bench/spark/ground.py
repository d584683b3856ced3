"""What the benchmarks of Spark share: rows in Parquet, processes with a session, and the memory of their workers."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from bench.ending import at_end
from bench.measure import Contestant, Target
from bench.rules import CATALOG, LogRow, log_rows
from bench.sparkprocess import Answer, Order, SparkProcess

WORKER_BYTES = 400 * 2**20
GROUP = 100_000
NAMES = (
    *("record_id", "table_key", "status", "event_type", "event_time"),
    *("perpetrator", "table_name", "column_name", "old_value", "new_value"),
)


class Ground:
    """A folder with rows to convert, and what was seen of the workers that did it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="eventlog-bench-"))
        at_end(shutil.rmtree, self.folder, ignore_errors=True)
        self.schema = _write_schema(self.folder)
        self._most = 0

    def rows(self, number: int, *, hot: bool = False) -> Path:
        """A Parquet file of so many rows, or of the same rows as if they were all of one object."""
        path = self.folder / f"{number}{'-hot' if hot else ''}.parquet"
        return path if path.exists() else write_rows(path, log_rows(number), hot=hot)

    def order(self, number: int, *, hot: bool = False) -> Order:
        """What makes files of XDS out of so many rows."""
        return self.order_of(self.rows(number, hot=hot))

    def order_of(self, source: Path) -> Order:
        """What makes files of XDS out of these rows."""
        return Order(source=str(source), destination=str(self.folder / "out"), schema=str(self.schema))

    def conversion(self, process: SparkProcess, name: str, number: int) -> Contestant:
        """A conversion of so many rows on Spark, whose start is not counted."""
        return Contestant(name=name, run=self.running(process, self.order(number)), units=number)

    def cpu_seconds(self, process: SparkProcess, order: Order) -> float:
        """The CPU seconds of all processes while an order is done."""
        return self.run(process, order).cpu_seconds

    def running(self, process: SparkProcess, order: Order) -> Callable[[], Answer]:
        """Has an order done and looks at the workers meanwhile."""
        return partial(self.run, process, order)

    def workers_target(self) -> Target:
        """What was promised of the workers' memory."""
        return Target(
            promise="Python workers under 400 MiB each",
            measured=f"{self._most / 2**20:,.0f} MiB",
            reached=0 < self._most < WORKER_BYTES,
        )

    def run(self, process: SparkProcess, order: Order) -> Answer:
        """The same at once."""
        answer = process.run(order)
        self._most = max(self._most, answer.worker_bytes)
        return answer


def _write_schema(folder: Path) -> Path:
    from eventlog.core.schema_file import catalog_to_json

    (folder / "schema.json").write_bytes(catalog_to_json(CATALOG))
    return folder / "schema.json"


def write_rows(path: Path, rows: Iterator[LogRow], *, group: int = GROUP, hot: bool = False) -> Path:
    """Writes rows of a log as Parquet, so many in a row group; as if all were of one object where they are hot."""
    import pyarrow as pa
    from pyarrow import parquet

    types = [pa.int64() if name in ("record_id", "event_type") else pa.string() for name in NAMES]
    with parquet.ParquetWriter(path, pa.schema(list(zip(NAMES, types, strict=True))), compression="zstd") as writer:
        while several := list(islice(rows, group)):
            columns = [pa.array(column, kind) for column, kind in zip(zip(*several, strict=True), types, strict=True)]
            if hot:
                columns[NAMES.index("table_key")] = pa.array(["idu=1"] * len(several))
            writer.write_table(pa.table(columns, names=list(NAMES)))
    return path
