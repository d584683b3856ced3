"""What Spark adds to the local engine and what it costs: bulk conversion on one core and two, and reading PostgreSQL."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from functools import partial
from itertools import islice
from pathlib import Path

from bench.measure import Benchmark, Contestant, Target, Timings
from bench.rules import CATALOG, LogRow, log_rows
from bench.sparkprocess import Order, SparkProcess

BESIDE_LOCAL = 0.7
SECOND_CORE = 1.6
GROWTH = 10.5
BESIDE_COPY = 0.5
WORKER_BYTES = 2**30
GROUP = 100_000
NAMES = (
    *("record_id", "table_key", "status", "event_type", "event_time"),
    *("perpetrator", "table_name", "column_name", "old_value", "new_value"),
)


class Worker:
    """What the largest Python worker of Spark was seen to hold, over all runs."""

    most = 0


def benchmark(*, quick: bool) -> Benchmark:
    """The same Parquet file through both engines; the same log to a file and to Spark."""
    small, middle, large = (1_000, 2_000, 10_000) if quick else (1_000_000, 5_000_000, 10_000_000)
    folder = Path(tempfile.mkdtemp(prefix="eventlog-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    schema = _write_schema(folder)
    files = {rows: _write_rows(folder / f"{rows}.parquet", rows) for rows in (small, middle, large)}
    url = _filled(files[middle])
    one, two = SparkProcess("local[1]"), SparkProcess("local[2]")

    def spark(process: SparkProcess, rows: int) -> Contestant:
        name = f"local[{1 if process is one else 2}], {rows:,} rows"
        order = Order(source=str(files[rows]), destination=str(folder / "out"), schema=str(schema))
        return Contestant(name=name, run=partial(_run, process, order), units=rows)

    return Benchmark(
        name="spark",
        question="what does Spark add, and what does it cost?",
        unit="row",
        contestants=[
            Contestant(
                name="local engine, 2 processes",
                run=partial(_locally, files[middle], folder / "here"),
                units=middle,
                floor=True,
            ),
            *(spark(two, rows) for rows in (small, middle, large)),
            spark(one, middle),
            Contestant(name="COPY to a file", run=partial(_copy, url, folder / "rows.csv"), units=middle),
            Contestant(name="PostgreSQL to Spark", run=partial(_run, two, Order(source=url)), units=middle),
        ],
        targets=partial(_targets, sizes=(small, middle, large)),
        note=(
            "Per-field rows from Parquet to XDS files; Spark's start is not counted. PostgreSQL, Spark and whoever reads"
            " share the cores of one machine."
        ),
    )


def _targets(timings: Timings, *, sizes: tuple[int, int, int]) -> list[Target]:
    small, middle, large = (timings[f"local[2], {rows:,} rows"] for rows in sizes)
    beside = middle.rate / timings["local engine, 2 processes"].rate
    second = middle.rate / timings[f"local[1], {sizes[1]:,} rows"].rate
    growth = large.median / small.median
    read = timings["PostgreSQL to Spark"].rate / timings["COPY to a file"].rate
    return [
        Target(
            promise=f"local[2] at least {BESIDE_LOCAL} times the local engine's two processes",
            measured=f"{beside:.2f} times",
            reached=beside >= BESIDE_LOCAL,
        ),
        Target(
            promise=f"local[2] at least {SECOND_CORE} times local[1]",
            measured=f"{second:.2f} times",
            reached=second >= SECOND_CORE,
        ),
        Target(
            promise=f"ten times the rows take at most {GROWTH} times as long",
            measured=f"{growth:.2f} times",
            reached=growth <= GROWTH,
        ),
        Target(
            promise=f"PostgreSQL is read into Spark at least {BESIDE_COPY} times as fast as it copies to a file",
            measured=f"{read:.2f} times",
            reached=read >= BESIDE_COPY,
        ),
        Target(
            promise="Python workers under 1 GiB each",
            measured=f"{Worker.most / 2**20:,.0f} MiB",
            reached=Worker.most < WORKER_BYTES,
        ),
    ]


def _run(process: SparkProcess, order: Order) -> None:
    Worker.most = max(Worker.most, process.run(order).worker_bytes)


def _locally(source: Path, destination: Path) -> None:
    """In a process of its own, as a user would start it; Spark's is not counted with its start, so neither is this."""
    from eventlog.convert.local import convert
    from eventlog.convert.settings import Conversion, FilesInput

    shutil.rmtree(destination, ignore_errors=True)
    found = FilesInput(places=(str(source),))
    convert(Conversion(input=found, destination=destination, catalog=CATALOG), jobs=2)


def _write_schema(folder: Path) -> Path:
    from eventlog.schema import catalog_to_json

    (folder / "schema.json").write_bytes(catalog_to_json(CATALOG))
    return folder / "schema.json"


def _write_rows(path: Path, number: int) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    types = [pa.int64() if name in ("record_id", "event_type") else pa.string() for name in NAMES]
    rows = iter(log_rows(number))
    with parquet.ParquetWriter(path, pa.schema(list(zip(NAMES, types, strict=True))), compression="zstd") as writer:
        while group := list[LogRow](islice(rows, GROUP)):
            columns = [pa.array(column, kind) for column, kind in zip(zip(*group, strict=True), types, strict=True)]
            writer.write_table(pa.table(columns, names=list(NAMES)))
    return path


def _filled(rows: Path) -> str:
    """A PostgreSQL server with a log that holds the rows of the file."""
    import psycopg
    from pyarrow import parquet

    from bench import postgresql
    from eventlog.sql.connect import connect
    from eventlog.sql.install import install

    url = postgresql.url()
    engine = connect(url)
    install(engine)
    engine.dispose()
    with psycopg.connect(url.replace("+psycopg", "")) as connection, connection.cursor() as cursor:
        with cursor.copy(f"COPY event_log ({', '.join(NAMES)}) FROM STDIN") as copy:
            for batch in parquet.ParquetFile(rows).iter_batches():
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    copy.write_row(row)
        connection.commit()
        connection.autocommit = True
        cursor.execute("VACUUM ANALYZE event_log")
    return url


def _copy(url: str, target: Path) -> None:
    """What psql does, and the least that anybody has to who wants the rows."""
    from bench.postgresql import binaries

    query = f"COPY (SELECT {', '.join(NAMES)} FROM event_log WHERE status = 'N') TO STDOUT"
    with target.open("wb") as file:
        psql = str((binaries() or Path()) / "psql")
        subprocess.run([psql, "--quiet", "--command", query, url.replace("+psycopg", "")], check=True, stdout=file)
