"""Finds record_ids that stand at several objects; only needed where the units of the input do not rule it out.

Rows of one object meet in their bucket anyway, so two rows with one record_id are found there. Different objects do not
meet, hence this: the numbers alone are brought together by ranges, and what contradicts goes back to the buckets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.columns import OBJECT
from eventlog.convert.order import by_range
from eventlog.convert.place import bucket_of
from eventlog.convert.scatter import Scattered, gathered, write_by
from eventlog.convert.sheaf import Sheaf, read_label, sheaf

NUMBERS = pa.schema([("record_id", pa.int64()), (OBJECT, pa.int64())])


class SortNumbers(Struct, frozen=True, kw_only=True):
    """The numbers of one unit, to be written by ranges."""

    name: str
    rows: Sheaf
    boundaries: tuple[int, ...]
    folder: str


class FindConflicts(Struct, frozen=True, kw_only=True):
    """The numbers of all units in one range, to be compared; what is found is written by buckets."""

    name: str
    numbers: tuple[Sheaf, ...]
    range: int
    buckets: int
    folder: str


def may_conflict(units: Sequence[Scattered]) -> bool:
    """Whether a record_id may stand in the input twice: not when units ascend and their ranges lie side by side."""
    if not all(unit.ascending for unit in units):
        return True
    spans = sorted(
        (unit.lowest, unit.highest) for unit in units if unit.lowest is not None and unit.highest is not None
    )
    return any(one[1] >= following[0] for one, following in pairwise(spans))


def sort_numbers(task: SortNumbers) -> Sheaf:
    """Writes the record_ids and objects of a unit by ranges."""
    path = Path(task.folder) / f"{task.name}.arrow"
    with sheaf(path, NUMBERS) as writer:
        for rows in gathered(task.rows.read(columns=NUMBERS.names), NUMBERS):
            for label, part in by_range(rows.filter(rows.column("record_id").is_valid()), task.boundaries):
                writer.write(label, part)
    return writer.finished()


def find_conflicts(task: FindConflicts) -> Sheaf:
    """Writes the pairs of a range whose record_id has several objects."""
    pairs = NUMBERS.empty_table()
    for rows in gathered(read_label(task.numbers, task.range), NUMBERS):
        pairs = _distinct(pa.concat_tables([pairs, pa.Table.from_batches([rows])]))
    path = Path(task.folder) / f"{task.name}.arrow"
    with sheaf(path, NUMBERS) as writer:
        for batch in conflicting(pairs).combine_chunks().to_batches():
            write_by(writer, batch, bucket_of(batch.column(OBJECT), task.buckets))
    return writer.finished()


def conflicting(pairs: pa.Table) -> pa.Table:
    """Of pairs of record_id and object, those whose record_id has several objects."""
    distinct = _distinct(pairs)
    counted = distinct.group_by("record_id").aggregate([([], "count_all")])
    several = counted.filter(pc.greater(counted.column("count_all"), 1)).column("record_id")
    return distinct.filter(pc.is_in(distinct.column("record_id"), value_set=several.combine_chunks()))


def conflicts_of(found: Iterable[Sheaf], bucket: int) -> frozenset[int]:
    """The record_ids of a bucket that stand at objects of other buckets too, or at several of its own."""
    return frozenset(
        number for batch in read_label(list(found), bucket) for number in batch.column("record_id").to_pylist()
    )


def _distinct(pairs: pa.Table) -> pa.Table:
    return pairs.group_by(NUMBERS.names).aggregate([])
