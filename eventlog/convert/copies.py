"""Rows that stand in the input several times: copies that say the same, and rows that contradict
each other. They end before the rules see them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.rows import OBJECT, PROBLEM, integers
from eventlog.sql.names import CONTEXT, TRANSACTION

BOOKKEEPING: Final = frozenset({"status", TRANSACTION, CONTEXT})
"""What may differ between two copies of a row: one was written before it was published, or without
its transaction, or without who is behind it.
"""


class UniqueRows(Struct, frozen=True, kw_only=True):
    """`rows` are for the rules. `invalid` are the positions and notes of others; `duplicates` say
    the same again.
    """

    rows: pa.RecordBatch
    invalid: Sequence[tuple[int | None, str]] = ()
    duplicates: Sequence[int] = ()


def deduplicate(rows: pa.RecordBatch, conflicts: Sequence[int] = ()) -> UniqueRows:
    """Take out repeated and unreadable rows; rows are in the order of object and record_id."""
    invalid: list[tuple[int | None, str]] = []
    rows, unnumbered = _part_rows(rows, "record_id")
    keep, contradicted, duplicates = _find_doubled(rows, conflicts)
    if keep is not None:
        rows = rows.take(pa.array(keep, pa.int64()))
    invalid += [(number, f"record_id {number} is in several different rows.") for number in contradicted]
    if rows.column(PROBLEM).null_count < len(rows):
        bad = rows.filter(rows.column(PROBLEM).is_valid())
        rows = rows.filter(rows.column(PROBLEM).is_null())
        invalid += zip(bad.column("record_id").to_pylist(), bad.column(PROBLEM).to_pylist(), strict=True)
    invalid += [(None, problem) for problem in unnumbered.column(PROBLEM).to_pylist()]
    return UniqueRows(rows=rows, invalid=invalid, duplicates=duplicates)


def _part_rows(rows: pa.RecordBatch, column: str) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Part rows into those with a value in the column and those without."""
    if not rows.column(column).null_count:
        return rows, rows.slice(0, 0)
    return rows.filter(rows.column(column).is_valid()), rows.filter(rows.column(column).is_null())


def _find_doubled(
    rows: pa.RecordBatch,
    conflicts: Sequence[int],
) -> tuple[list[int] | None, list[int], list[int]]:
    """Find the places to keep (None: all), and record_ids of contradictory and repeated rows."""
    contested = _among(integers(rows.column("record_id")), conflicts)
    numbers = rows.column("record_id")
    # Rows are ordered by number: the same one twice stands side by side.
    previous = numbers.slice(0, max(0, len(numbers) - 1))
    doubled = pc.any(pc.equal(numbers.slice(1), previous)).as_py()
    if not contested and not doubled:
        return None, [], []
    keep: list[int] = []
    contradicted: list[int] = []
    duplicates: list[int] = []
    for number, places in _by_number(rows):
        distinct = places
        if len(places) > 1:
            # Copies stand together; of those that say the same one place is kept, and that is one
            # that tells the transaction and the context, whatever the order of the files.
            copies = list(zip(places, rows.slice(places[0], len(places)).to_pylist(), strict=True))
            copies.sort(key=lambda copy: (copy[1][TRANSACTION] is not None, copy[1][CONTEXT] is not None))
            place_of = {_content(copy): at for at, copy in copies}
            distinct = list(place_of.values())
        duplicates += [number] * (len(places) - len(distinct))
        if len(distinct) > 1 or number in contested:
            contradicted += [number] * len(distinct)
        else:
            keep += distinct
    return keep, contradicted, duplicates


def _among(numbers: Iterable[int], conflicts: Sequence[int]) -> frozenset[int]:
    """Find the numbers among the conflicts."""
    among = set[int]()
    if len(conflicts):
        for number in numbers:
            # Conflicts may be an array on the disk, in order; so it is no set.
            at = bisect_left(conflicts, number)
            if at < len(conflicts) and conflicts[at] == number:
                among.add(number)
    return frozenset(among)


def _by_number(rows: pa.RecordBatch) -> Iterable[tuple[int, list[int]]]:
    numbers, objects = integers(rows.column("record_id")), integers(rows.column(OBJECT))
    for (_, number), places in groupby(range(len(rows)), key=lambda index: (objects[index], numbers[index])):
        yield number, list(places)


def _content(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value for name, value in row.items() if name not in BOOKKEEPING)
