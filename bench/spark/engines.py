"""The same Parquet file through the local engine and through Spark, on one core and on two."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from bench.measure import Benchmark, Contestant, Target, Timings
from bench.rules import CATALOG
from bench.spark.ground import Ground
from bench.sparkprocess import spark_process

BESIDE_LOCAL = 0.9
SECOND_CORE = 1.6
LOCAL, ONE, TWO = "local engine, 2 processes", "Spark, local[1]", "Spark, local[2]"


def benchmark(*, quick: bool) -> Benchmark:
    """Both engines, from Parquet to XDS files."""
    rows, ground = 2_000 if quick else 5_000_000, Ground()
    source = ground.rows(rows)
    ones = [] if quick else [ground.conversion(spark_process("local[1]"), ONE, rows)]
    return Benchmark(
        name="spark.engines",
        question="what does Spark cost beside the local engine, and what does a second core add?",
        unit="row",
        contestants=[
            Contestant(name=LOCAL, run=partial(_locally, source, ground.folder / "here"), units=rows, floor=True),
            ground.conversion(spark_process("local[2]"), TWO, rows),
            *ones,
        ],
        targets=partial(_targets, ground=ground),
        note=(
            "Per-field rows from Parquet to XDS files; Spark's start is not counted, that of the local engine's two"
            " processes is. Spark's session is on the same two cores."
            + (f" {ONE} is left out: Spark would have to start once more, and this is a quick run." if quick else "")
        ),
    )


def _locally(source: Path, destination: Path) -> None:
    from eventlog.convert.local import convert
    from eventlog.convert.settings import Conversion, FilesInput

    shutil.rmtree(destination, ignore_errors=True)
    found = FilesInput(places=(str(source),))
    convert(Conversion(input=found, destination=destination, catalog=CATALOG), jobs=2)


def _targets(timings: Timings, *, ground: Ground) -> list[Target]:
    beside = timings[TWO].rate / timings[LOCAL].rate
    found = [
        Target(
            promise=f"local[2] at least {BESIDE_LOCAL} times the local engine's two processes",
            measured=f"{beside:.2f} times",
            reached=beside >= BESIDE_LOCAL,
        ),
        ground.workers_target(),
    ]
    if ONE in timings:
        second = timings[TWO].rate / timings[ONE].rate
        promise = f"local[2] at least {SECOND_CORE} times local[1]"
        found.append(Target(promise=promise, measured=f"{second:.2f} times", reached=second >= SECOND_CORE))
    return found
