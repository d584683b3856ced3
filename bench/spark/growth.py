"""Ten times the rows on Spark: how much more than ten times as long they take."""

from __future__ import annotations

from functools import partial

from bench.measure import Benchmark, Target, Timings
from bench.spark.ground import Ground
from bench.sparkprocess import spark_process

GROWTH = 10.5


def benchmark(*, quick: bool) -> Benchmark:
    """Two sizes in one session."""
    sizes, ground = (200, 2_000) if quick else (1_000_000, 10_000_000), Ground()
    process = spark_process("local[2]")
    return Benchmark(
        name="spark.growth",
        question="what do ten times the rows cost on Spark?",
        unit="row",
        contestants=[ground.conversion(process, f"{rows:,} rows", rows) for rows in sizes],
        targets=partial(_targets, ground=ground, sizes=sizes),
        note="Per-field rows from Parquet to XDS files on local[2]; Spark's start is not counted.",
    )


def _targets(timings: Timings, *, ground: Ground, sizes: tuple[int, int]) -> list[Target]:
    small, large = (timings[f"{rows:,} rows"] for rows in sizes)
    growth = large.median / small.median
    return [
        Target(
            promise=f"ten times the rows take at most {GROWTH} times as long",
            measured=f"{growth:.2f} times",
            reached=growth <= GROWTH,
        ),
        ground.workers_target(),
    ]
