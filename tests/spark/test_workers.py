"""Spark's Python workers: what they do once, before the first row."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from eventlog_spark.convert import placed_tasks
from eventlog_spark.deciding import ANSWERS, answered, unpacked_tasks
from eventlog_spark.faults import travelling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOLD = "frozen long, cores int, pool string"


def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    with travelling():
        for _ in batches:
            said = {
                "frozen": gc.get_freeze_count(),
                "cores": pa.cpu_count(),
                "pool": pa.default_memory_pool().backend_name,
            }
            columns = [pa.array([said["frozen"]]), pa.array([said["cores"]], pa.int32()), pa.array([said["pool"]])]
            yield pa.RecordBatch.from_arrays(columns, names=list(said))


def test_a_worker_is_frugal_and_looks_for_no_garbage_among_what_it_has_loaded(spark: SparkSession) -> None:
    gc.collect()
    for row in spark.range(0, 2, 1, 2).mapInArrow(told, TOLD).collect():
        assert row.frozen > 10_000  # pandas alone has more
        assert (row.cores, row.pool) == (1, "system")


def tasks_told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The tasks of a partition in one answer."""
    yield answered(" ".join(unpacked_tasks(batches)).encode())


def test_a_partition_has_its_own_tasks_alone(spark: SparkSession) -> None:
    told = placed_tasks(spark, [f"{number}" for number in range(11)], 4)
    answers = [bytes(row.content).decode() for row in told.mapInArrow(tasks_told, ANSWERS).collect()]
    assert answers == ["0 1", "2 3 4", "5 6 7", "8 9 10"]


def test_another_process_keeps_its_ways() -> None:
    before = pa.cpu_count(), pa.default_memory_pool().backend_name
    assert list(told(iter([pa.RecordBatch.from_pylist([{"id": 1}])])))
    assert (pa.cpu_count(), pa.default_memory_pool().backend_name) == before
