"""What conversions cost in CPU seconds of whole process trees: Spark alone, the local engine, folders and addresses."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from bench.cputime import TreeTime
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.rules import CATALOG
from bench.spark.ground import Ground
from bench.sparkprocess import Order, spark_process

BARE, LOCAL, FOLDER, ADDRESS = "Spark SQL without rules", "local engine, 2 processes", "Spark, folder", "Spark, address"
BESIDE_BARE = 2.6
BESIDE_LOCAL = 1.1


def benchmark(*, quick: bool) -> Benchmark:
    """The same Parquet file four times; a figure is CPU seconds, not time on the clock."""
    rows, ground = 2_000 if quick else 5_000_000, Ground()
    source, out = ground.rows(rows), ground.folder / "out"
    order = Order(source=str(source), destination=str(out), schema=str(ground.schema))
    orders = {
        BARE: Order(source=str(source), destination=str(out), rows=rows),
        FOLDER: order,
        ADDRESS: Order(source=f"file:{source}", destination=f"file:{out}", schema=order.schema),
    }
    runs = {name: partial(ground.cpu_seconds, spark_process("local[2]"), one) for name, one in orders.items()}
    runs[LOCAL] = partial(_locally, source, ground.folder / "here")
    return Benchmark(
        name="spark.plans",
        question="what do conversions on Spark cost in CPU seconds, beside Spark alone and the local engine?",
        unit="row",
        contestants=[
            Contestant(name=name, run=runs[name], units=rows, floor=name == BARE)
            for name in (BARE, LOCAL, FOLDER, ADDRESS)
        ],
        targets=_targets,
        note=(
            "CPU seconds of the JVM and all Python processes, local[2], Spark's start not counted; one session for all,"
            " which has converted once before. Per-field rows from Parquet to XDS files. Spark SQL without rules reads the"
            " ten columns, exchanges and sorts rows by table_key, joins their columns to one text, exchanges and sorts"
            " these by record_id, and writes them."
        ),
    )


def _locally(source: Path, destination: Path) -> float:
    from eventlog.convert.local import convert
    from eventlog.convert.settings import Conversion, FilesInput

    shutil.rmtree(destination, ignore_errors=True)
    time = TreeTime()
    convert(Conversion(input=FilesInput(places=(str(source),)), destination=destination, catalog=CATALOG), jobs=2)
    return time.stop()


def _targets(timings: Timings) -> list[Target]:
    floors = ((BARE, BESIDE_BARE), (LOCAL, BESIDE_LOCAL))
    promised = [(name, floor, most) for name in (FOLDER, ADDRESS) for floor, most in floors]
    return [
        Target(
            promise=f"{name}: at most {most} times the CPU of {floor}",
            measured=f"{timings[name].each / timings[floor].each:.2f} times",
            reached=timings[name].each <= most * timings[floor].each,
        )
        for name, floor, most in promised
    ]
