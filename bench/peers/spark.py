"""A log in PostgreSQL converted to XDS on Spark, beside the job that one would write with Spark's own means."""

from __future__ import annotations

from functools import partial
from typing import Final

from bench.capture.ground import database
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.peers.fetched import ABSENT, jdbc_driver
from bench.spark.ground import Ground
from bench.spark.reading import filled
from bench.sparkprocess import Order, SparkProcess, spark_process

ROWS: Final = 1_000_000
QUICK: Final = 1_000
PROMISED: Final = 5.0
"""Times the rate of the naive job."""
OURS, NAIVE = "eventlog on Spark", "JDBC, groupBy, Python UDF"


def benchmark(*, quick: bool) -> Benchmark:
    """The same log, on two cores each."""
    rows, ground = QUICK if quick else ROWS, Ground()
    url = filled(ground.rows(rows), database("naive"))
    jar = None if quick else jdbc_driver()
    order = Order(source=url, destination=str(ground.folder / "ours"), schema=str(ground.schema))
    contestants = [Contestant(name=OURS, run=ground.running(spark_process("local[2]"), order), units=rows)]
    if jar is not None:
        naive = SparkProcess(str(jar), module="bench.peers.naive")
        beside = Order(source=url, destination=str(ground.folder / "theirs"))
        contestants.append(Contestant(name=NAIVE, run=partial(naive.run, beside), units=rows))
    why = (
        "Spark would have to start once more, and this is a quick run" if quick else f"of its driver for Java, {ABSENT}"
    )
    return Benchmark(
        name="peers.spark",
        question="how fast does a log in PostgreSQL become XDS on Spark, beside a naive job?",
        unit="row",
        contestants=contestants,
        targets=partial(targets_of, ground=ground),
        note=(
            "Rows with status N, local[2], Spark's start not counted. Eventlog's conversion keeps the order of changes across"
            " files and an outcome for each row; the naive job merges neighbouring rows of one kind and does nothing else."
            + ("" if jar else f" The naive job is left out: {why}.")
        ),
    )


def targets_of(timings: Timings, *, ground: Ground) -> list[Target]:
    if NAIVE not in timings:
        return [ground.workers_target()]
    times = timings[OURS].rate / timings[NAIVE].rate
    promise = f"at least {PROMISED:g} times as fast as the naive job"
    return [Target(promise=promise, measured=f"{times:.1f} times", reached=times >= PROMISED)]
