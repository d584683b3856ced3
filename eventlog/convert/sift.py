"""Sifts the rows of whole objects: what the rules get, and what ends before them (doubled or unreadable record_ids)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.convert.columns import OUTCOMES, PROBLEM
from eventlog.convert.events import integers
from eventlog.core.model import Reason
from eventlog.core.rules.meaning import STATUS

INVALID = (STATUS[Reason.INVALID].value, Reason.INVALID.value)
BOOKKEEPING = frozenset({"status"})
"""What may differ between two copies of a row: one was written before it was published, the other after."""


class Sifted(Struct, frozen=True, kw_only=True):
    """`rows` are for the rules; `outcomes` are of the others; `duplicates` were dropped, for they say the same again."""

    rows: pa.RecordBatch
    outcomes: pa.RecordBatch
    duplicates: int = 0


def sift(rows: pa.RecordBatch, conflicts: frozenset[int] = frozenset()) -> Sifted:
    """Sifts rows in the order of object and record_id; `conflicts` are record_ids that stand at several objects."""
    ended: list[tuple[int | None, str]] = []
    rows, unnumbered = _parted(rows, "record_id")
    keep, contradicted, duplicates = _doubled(rows, conflicts)
    if keep is not None:
        rows = rows.take(pa.array(keep, pa.int64()))
    ended += [(number, f"record_id {number} stands in several different rows.") for number in contradicted]
    if rows.column(PROBLEM).null_count < len(rows):
        bad = rows.filter(rows.column(PROBLEM).is_valid())
        rows = rows.filter(rows.column(PROBLEM).is_null())
        ended += zip(bad.column("record_id").to_pylist(), bad.column(PROBLEM).to_pylist(), strict=True)
    ended += [(None, problem) for problem in unnumbered.column(PROBLEM).to_pylist()]
    return Sifted(rows=rows, outcomes=_invalid(ended), duplicates=duplicates)


def _parted(rows: pa.RecordBatch, column: str) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """The rows that have a value in the column, and those that have none."""
    if not rows.column(column).null_count:
        return rows, rows.slice(0, 0)
    return rows.filter(rows.column(column).is_valid()), rows.filter(rows.column(column).is_null())


def _doubled(rows: pa.RecordBatch, conflicts: frozenset[int]) -> tuple[list[int] | None, list[int], int]:
    """The places to keep (None: all), the record_ids of rows that contradict another, and how many repeat another."""
    numbers = integers(rows.column("record_id"))
    if not _has_doubles(rows) and (not conflicts or conflicts.isdisjoint(numbers)):
        return None, [], 0
    keep: list[int] = []
    contradicted: list[int] = []
    duplicates = 0
    for number, places in _by_number(rows):
        distinct = _distinct(rows, places) if len(places) > 1 else places
        duplicates += len(places) - len(distinct)
        if len(distinct) > 1 or number in conflicts:
            contradicted += [number] * len(distinct)
        else:
            keep += distinct
    return keep, contradicted, duplicates


def _has_doubles(rows: pa.RecordBatch) -> bool:
    numbers = rows.column("record_id")
    return bool(pc.any(pc.equal(numbers.slice(1), numbers.slice(0, max(0, len(numbers) - 1)))).as_py())


def _by_number(rows: pa.RecordBatch) -> Iterable[tuple[int, list[int]]]:
    numbers, objects = integers(rows.column("record_id")), integers(rows.column("object"))
    for (_, number), places in groupby(range(len(rows)), key=lambda place: (objects[place], numbers[place])):
        yield number, list(places)


def _distinct(rows: pa.RecordBatch, places: list[int]) -> list[int]:
    """One place for each of the different rows among those at the places, which stand together."""
    copies = rows.slice(places[0], len(places)).to_pylist()
    return list({_said(copy): place for place, copy in zip(places, copies, strict=True)}.values())


def _said(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(value for name, value in row.items() if name not in BOOKKEEPING)


def _invalid(ended: list[tuple[int | None, str]]) -> pa.RecordBatch:
    positions = pa.array([position for position, _ in ended], pa.int64())
    notes = pa.array([note for _, note in ended], pa.string())
    status, reason = (pa.repeat(pa.scalar(word, pa.string()), len(ended)) for word in INVALID)
    return pa.RecordBatch.from_arrays([positions, status, reason, notes], schema=OUTCOMES)
