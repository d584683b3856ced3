"""A log in PostgreSQL read into Spark, beside the server's own COPY of the same rows to a file."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

from bench.capture.ground import database
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.spark.ground import NAMES, Ground
from bench.sparkprocess import Order, spark_process

BESIDE_COPY = 0.5
COPY, SPARK = "COPY to a file", "PostgreSQL to Spark"


def benchmark(*, quick: bool) -> Benchmark:
    """The same rows to a file and to Spark."""
    rows, ground = 2_000 if quick else 5_000_000, Ground()
    url = filled(ground.rows(rows), database("reading"))
    reading = ground.running(spark_process("local[2]"), Order(source=url))
    return Benchmark(
        name="spark.reading",
        question="how fast does a log come from PostgreSQL into Spark?",
        unit="row",
        contestants=[
            Contestant(name=COPY, run=partial(_copy, url, ground.folder / "rows.csv"), units=rows, floor=True),
            Contestant(name=SPARK, run=reading, units=rows),
        ],
        targets=partial(_targets, ground=ground),
        note=(
            "Rows with status N, ten columns. Spark takes all columns and drops the rows; PostgreSQL and whoever reads share"
            " two cores."
        ),
    )


def filled(rows: Path, url: str) -> str:
    """The URL, where a log holds the rows of the file now."""
    import psycopg
    from pyarrow import parquet

    from eventlog.capture.install import install
    from eventlog.sql.connect import connect

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


def _targets(timings: Timings, *, ground: Ground) -> list[Target]:
    read = timings[SPARK].rate / timings[COPY].rate
    return [
        Target(
            promise=f"PostgreSQL is read into Spark at least {BESIDE_COPY} times as fast as it copies to a file",
            measured=f"{read:.2f} times",
            reached=read >= BESIDE_COPY,
        ),
        ground.workers_target(),
    ]
