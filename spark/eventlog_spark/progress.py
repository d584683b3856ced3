"""Tells how far Spark is with a step: to whoever watches a conversion, by names in Spark's UI, and by metrics."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final

from eventlog.convert.pipeline import ConversionWatch, Unwatched
from eventlog.convert.work import SharedTally

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import SparkSession

    from eventlog.convert.commit import Summary

_log = logging.getLogger("eventlog_spark")
TAG: Final = "eventlog"
LOOK_SECONDS: Final = 0.5
"""Seconds between two looks."""


_counters: dict[str, dict[str, Any]] = {}
"""The counters of the application that runs, by its id: this process has one at a time."""


def count_conversion(spark: SparkSession, summary: Summary) -> None:
    """Add a finished conversion to Spark's metrics `AccumulatorSource.eventlog.…` of the driver, which all its sinks show."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    counts = {"conversions": 1, "rows": summary.rows - summary.duplicates, "changes": summary.changes}
    counts |= {"bad_rows": summary.bad, "parts": summary.parts}
    context: Any = spark.sparkContext
    try:
        if context.applicationId not in _counters:
            registered = _register_counters(context, [*counts])
            _counters.clear()
            _counters[context.applicationId] = registered
        for name, count in counts.items():
            _counters[context.applicationId][name].add(count)
    except (Py4JError, PySparkException) as error:
        # A platform may forbid it, and no conversion fails for its numbers.
        _log.warning("Spark's metrics do not count the conversion: %s", error)


def _register_counters(context: Any, names: Sequence[str]) -> dict[str, Any]:
    counters = {name: context._jsc.sc().longAccumulator(f"eventlog.{name}") for name in names}  # noqa: SLF001  # PySpark names no accumulator
    java = context._jvm  # noqa: SLF001  # nor registers any
    by_name = java.java.util.HashMap()
    for name, counter in counters.items():
        by_name.put(f"eventlog.{name}", counter)
    # Scala's object, as Java calls it.
    source = getattr(java.org.apache.spark.metrics.source, "LongAccumulatorSource$")
    getattr(source, "MODULE$").register(context._jsc.sc(), java.PythonUtils.toScalaMap(by_name))  # noqa: SLF001  # the same
    return counters


@contextmanager
def watch_jobs(
    spark: SparkSession,
    watch: ConversionWatch,
    stage: str,
    rows: int | None,
    met: Accumulator[int] | None = None,
) -> Iterator[None]:
    """Count rows during the block, in proportion to the finished tasks of Spark's.

    If the number of rows is unknown, count the rows the tasks have `met` by now.
    """
    if isinstance(watch, Unwatched):
        with describe_jobs(spark, stage):
            yield
        return
    tally, done = SharedTally(), Event()
    watch.begin(stage, rows, tally)
    looker = Thread(target=_look, args=(spark, tally, rows, met, done), daemon=True)
    looker.start()
    try:
        with describe_jobs(spark, stage):
            yield
    finally:
        done.set()
        looker.join()
        # What the last tasks have met comes with the end of the job.
        if rows is None and met is not None:
            tally.shared.value = met.value


@contextmanager
def describe_jobs(spark: SparkSession, stage: str) -> Iterator[None]:
    """Name the jobs of the block in Spark's UI, give them the tag `eventlog`, and log how long they took."""
    context, key = spark.sparkContext, "spark.job.description"
    former, began = context.getLocalProperty(key), time.monotonic()
    context.setLocalProperty(key, f"eventlog: {stage}")
    context.addJobTag(TAG)
    try:
        yield
    finally:
        context.removeJobTag(TAG)
        context.setLocalProperty(key, former)  # type: ignore[arg-type]  # None takes it away
        _log.info("%s: %.1f s", stage, time.monotonic() - began)


def _look(
    spark: SparkSession,
    tally: SharedTally,
    rows: int | None,
    met: Accumulator[int] | None,
    done: Event,
) -> None:
    from py4j.protocol import Py4JError

    while not done.wait(LOOK_SECONDS):
        if rows is None:
            if met is not None:
                tally.shared.value = max(tally.shared.value, met.value)
            continue
        # Where Java has ended, whoever waits for the tasks says so.
        with suppress(Py4JError, ConnectionError):
            tracker = spark.sparkContext.statusTracker()
            # A stage may end between the two questions, and is None then.
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = [info for info in infos if info is not None]
            tasks = sum(info.numTasks for info in stages)
            finished = sum(info.numCompletedTasks for info in stages)
            tally.shared.value = max(tally.shared.value, rows * finished // max(1, tasks))
