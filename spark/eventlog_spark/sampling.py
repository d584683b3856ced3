"""Finds where record_ids lie in input that does not say so beforehand: lines and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from eventlog.convert.inputs import UNIT_BYTES, Unit
from eventlog.convert.plan import ROW_BYTES
from eventlog.convert.settings import Conversion
from eventlog_spark.cutting import RowSpan
from eventlog_spark.deciding import answered
from eventlog_spark.faults import travelling
from eventlog_spark.scattering import rows_of

GLANCE_BATCHES: Final = 2
"""Batches that stand for a unit which is not larger than others; a whole file of CSV is looked through."""


def sampled(
    conversion: Conversion, units: Sequence[Unit], places: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The spans of record_ids in the units at these places."""
    with travelling():
        for batch in places:
            for place in batch.column(0).to_pylist():
                yield answered(msgspec.json.encode(list(_spans(conversion, units[place]))))


def _spans(conversion: Conversion, unit: Unit) -> Iterator[RowSpan]:
    rows = rows_of(conversion, unit)
    large = unit.size > UNIT_BYTES
    for batch in rows if large else islice(rows, GLANCE_BATCHES):
        numbers = batch.column("record_id").drop_null()
        if len(numbers):
            weight = len(numbers) if large else max(1, unit.size // ROW_BYTES // GLANCE_BATCHES)
            yield RowSpan(rows=weight, lowest=pc.min(numbers).as_py(), highest=pc.max(numbers).as_py())
