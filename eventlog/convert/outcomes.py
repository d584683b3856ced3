"""The outcomes of a conversion, read in the order of their numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.model import SEVERITY, Outcome, Reason, Status
from eventlog.sources.marks import RowRanges

BATCH_ROWS: Final = 10_000


def find_numbers(arrays: Iterable[pa.Array]) -> RowRanges:
    """Join the numbers of arrays into ranges; they may be in any order and repeated."""
    numbers = pa.chunked_array(list(arrays), pa.int64()).drop_null().unique()
    if not len(numbers):
        return RowRanges()
    ordered = numbers.take(pc.array_sort_indices(numbers))
    # A range ends where the next number is not one more; the last one ends with the last number.
    steps = pc.subtract(ordered.slice(1), ordered.slice(0, len(ordered) - 1))
    ends = pc.indices_nonzero(pc.not_equal(steps, 1))
    lasts = [*ordered.take(ends).to_pylist(), ordered[-1].as_py()]
    firsts = [ordered[0].as_py(), *ordered.take(pc.add(ends, 1)).to_pylist()]
    return RowRanges(zip(firsts, lasts, strict=True))


class OutcomesInOrder:
    """What became of the rows of a conversion."""

    def __init__(self, files: Sequence[Path]) -> None:
        from pyarrow import parquet

        self._files = [parquet.ParquetFile(file) for file in files]
        self._batches = self._read()
        self._rows: pa.RecordBatch | None = next(self._batches, None)

    def close(self) -> None:
        for file in self._files:
            file.close()

    def numbers(self) -> RowRanges:
        """Read all numbers, also those already passed."""
        columns: list[Any] = [file.read(columns=["position"]).column(0) for file in self._files]
        return find_numbers(chunk for column in columns for chunk in column.chunks)

    def read_to(self, last: int) -> tuple[RowRanges, dict[int, Outcome]]:
        """Read the next numbers, up to this one, and their outcomes other than published."""
        numbers: list[pa.Array] = []
        others: dict[int, Outcome] = {}
        while self._rows is not None:
            positions = self._rows.column("position").to_pylist()
            end = bisect_right(positions, last)
            part = self._rows.slice(0, end)
            numbers.append(part.column("position"))
            # Nearly all rows are as they should be, and no Python object is made for them.
            is_published = pc.equal(part.column("reason"), Reason.PUBLISHED)
            is_success = pc.equal(part.column("status"), Status.SUCCESS)
            plain = pc.and_(pc.and_(is_success, is_published), part.column("note").is_null())
            for row in part.filter(pc.invert(plain)).to_pylist():
                outcome = Outcome(
                    position=(row["position"],),
                    status=Status(row["status"]),
                    reason=Reason(row["reason"]),
                    note=row["note"],
                )
                # A number may have several outcomes; the row's status is the gravest.
                former = others.get(outcome.position[0])
                if former is None or SEVERITY[outcome.status] > SEVERITY[former.status]:
                    others[outcome.position[0]] = outcome
            if end < len(positions):
                # The rest of this batch belongs to the next ones of the journal.
                self._rows = self._rows.slice(end)
                break
            self._rows = next(self._batches, None)
        return find_numbers(numbers), others

    def _read(self) -> Iterator[pa.RecordBatch]:
        for file in self._files:
            for batch in file.iter_batches(BATCH_ROWS):
                # Without a position an outcome is of no row that could be marked.
                rows = batch.filter(batch.column("position").is_valid())
                if len(rows):
                    yield rows
