"""Ten times the rows on Spark, and all rows at one object: how much more CPU they take."""

from __future__ import annotations

from functools import partial

from bench.measure import Benchmark, Contestant, Target, Timings
from bench.spark.ground import Ground
from bench.sparkprocess import spark_process

GROWTH = 10.5
HOT_OBJECT = 1.5
HOT, SPREAD = "rows of one object", "the same rows of many objects"


def benchmark(*, quick: bool) -> Benchmark:
    """Two sizes, and rows of one object, in one session."""
    sizes, ground = (200, 2_000) if quick else (1_000_000, 10_000_000), Ground()
    apart = 2_000 if quick else 500_000
    process = spark_process("local[2]")
    orders = {f"{rows:,} rows": (rows, ground.order(rows)) for rows in sizes}
    orders |= {SPREAD: (apart, ground.order(apart)), HOT: (apart, ground.order(apart, hot=True))}
    return Benchmark(
        name="spark.growth",
        question="what do ten times the rows cost on Spark, and rows that are all of one object?",
        unit="row",
        contestants=[
            Contestant(name=name, run=partial(ground.cpu_seconds, process, order), units=rows)
            for name, (rows, order) in orders.items()
        ],
        targets=partial(_targets, ground=ground, sizes=sizes),
        note=(
            "CPU seconds of the JVM and all Python processes on local[2], Spark's start not counted. Per-field rows from"
            f" Parquet to XDS files. One object has {apart:,} rows, which otherwise are those of an object for each eight."
        ),
    )


def _targets(timings: Timings, *, ground: Ground, sizes: tuple[int, int]) -> list[Target]:
    small, large = (timings[f"{rows:,} rows"] for rows in sizes)
    growth = large.median / small.median
    hot = timings[HOT].median / timings[SPREAD].median
    return [
        Target(
            promise=f"ten times the rows take at most {GROWTH} times the CPU",
            measured=f"{growth:.2f} times",
            reached=growth <= GROWTH,
        ),
        Target(
            promise=f"rows of one object take at most {HOT_OBJECT} times the CPU of the same rows of many",
            measured=f"{hot:.2f} times",
            reached=hot <= HOT_OBJECT,
        ),
        ground.workers_target(),
    ]
