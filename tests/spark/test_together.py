"""Rows of frames on their way to their objects, and parts on their way to Spark's writers: pure parts, without a Spark."""

from __future__ import annotations

import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from unittest.mock import patch

import msgspec
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import eventlog_spark
from eventlog.convert.rows import ROWS as EVENTS
from eventlog.convert.rows import Placing
from eventlog.convert.tasks import UnitNumbers, may_conflict
from eventlog_spark import exchange
from eventlog_spark.exchange import (
    CONFLICTS,
    NAMING,
    NOTES,
    find_contested,
    scatter_numbers,
    scatter_rows,
    unbundle_blobs,
)

NUMBERS = st.one_of(st.none(), st.integers(1, 6))


def batches(rows: list[tuple[int | None, str]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    told = [{"record_id": number, "event_type": 1, "table_name": "usr", "table_key": key} for number, key in rows]
    for start in range(0, len(told), 2):
        yield pa.RecordBatch.from_pylist(told[start : start + 2], schema)


@given(st.lists(st.tuples(NUMBERS, st.sampled_from(["idu=1", 'idu="1"', "idu=2", "idu=3", "nonsense"]))))
def test_numbers_of_several_objects_are_found_for_the_buckets_of_all_of_these(
    rows: list[tuple[int | None, str]],
) -> None:
    placing, objects = Placing(None), defaultdict(set)
    for number, key in rows:
        if number is not None:
            objects[number].add(placing.number_of("usr", key, row_event=False))
    expected = {(number, one & 3) for number, places in objects.items() if len(places) > 1 for one in places}
    found = [
        (number, blob.bucket)
        for batch in find_contested(4, scatter_numbers(None, 4, batches(rows, NAMING)))
        for blob in unbundle_blobs(batch)
        for part in exchange.unpack_rows(blob.content)
        for number in part.column("record_id").to_pylist()
        if blob.kind == CONFLICTS
    ]
    assert set(found) == expected


@given(st.lists(st.lists(st.integers(1, 30), max_size=4), max_size=6))
def test_what_is_noted_of_a_frame_tells_whether_a_number_may_stand_twice(runs: list[list[int]]) -> None:
    """Files of one task follow each other in any order; none of their numbers is missed."""
    rows: list[tuple[int | None, str]] = [(number, "idu=1") for run in runs for number in run]
    with patch.object(exchange, "GATHERED_ROWS", 2):
        blobs = [blob for batch in scatter_rows(None, 1, 1, batches(rows, EVENTS)) for blob in unbundle_blobs(batch)]
    notes = [msgspec.json.decode(blob.content, type=UnitNumbers) for blob in blobs if blob.kind == NOTES]
    assert sum(one.rows for one in notes) == len(rows)
    if len({number for number, _ in rows}) < len(rows):
        assert may_conflict(notes)


def test_no_module_has_the_name_of_what_the_package_gives() -> None:
    for module in pkgutil.iter_modules(eventlog_spark.__path__):
        import_module(f"eventlog_spark.{module.name}")
    modules = [name for name in eventlog_spark.__all__ if isinstance(getattr(eventlog_spark, name), ModuleType)]
    assert modules == []
