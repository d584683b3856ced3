"""The rows of a conversion as the journal takes them: their numbers as stretches, in batches, and
what became of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.model import SEVERITY, Outcome, Reason, Status
from eventlog.sources.marks import Stretches

if TYPE_CHECKING:
    from eventlog.publisher.memory import Sealed

BATCH_ROWS: Final = 10_000
"""Rows that are marked in one transaction."""

USUAL_BYTES: Final = 500
"""What a row is taken to have where nobody has read it."""


def numbers_in(arrays: Iterable[pa.Array]) -> Stretches:
    """The numbers that stand in arrays, in whatever order and however often."""
    numbers = pa.chunked_array(list(arrays), pa.int64()).drop_null().unique()
    if not len(numbers):
        return Stretches()
    ordered = numbers.take(pc.array_sort_indices(numbers))
    # A stretch ends where the next number is not one more; the last one ends with the last number.
    steps = pc.subtract(ordered.slice(1), ordered.slice(0, len(ordered) - 1))
    ends = pc.indices_nonzero(pc.not_equal(steps, 1))
    lasts = [*ordered.take(ends).to_pylist(), ordered[-1].as_py()]
    firsts = [ordered[0].as_py(), *ordered.take(pc.add(ends, 1)).to_pylist()]
    return Stretches(zip(firsts, lasts, strict=True))


def batches_of(numbers: Stretches, row_bytes: int) -> list[Sealed]:
    """The numbers in batches of the journal, in their order."""
    from eventlog.publisher.memory import Sealed

    batches: list[Sealed] = []
    parts: list[tuple[int, int]] = []
    rows = 0

    def end() -> None:
        nonlocal parts, rows
        if parts:
            batches.append(Sealed(Stretches(parts), rows * row_bytes))
        parts, rows = [], 0

    for run_first, run_last in numbers.parts:
        # A stretch may be longer than a batch, so it is cut where the batch is full.
        first = run_first
        while first <= run_last:
            last = min(run_last, first + BATCH_ROWS - rows - 1)
            parts.append((first, last))
            rows += last - first + 1
            first = last + 1
            if rows == BATCH_ROWS:
                end()
    end()
    return batches


class OutcomesInOrder:
    """What became of the rows of a conversion, read from its outcomes in the order of their
    numbers.
    """

    def __init__(self, files: Sequence[Path]) -> None:
        from pyarrow import parquet

        self._files = [parquet.ParquetFile(file) for file in files]
        self._batches = self._read()
        self._rows: pa.RecordBatch | None = next(self._batches, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for file in self._files:
            file.close()

    def numbers(self) -> Stretches:
        """All numbers; what was read before counts as well."""
        columns: list[Any] = [file.read(columns=["position"]).column(0) for file in self._files]
        return numbers_in(chunk for column in columns for chunk in column.chunks)

    @property
    def row_bytes(self) -> int:
        """What a row may have: nobody knows any more."""
        return USUAL_BYTES

    def upto(self, last: int) -> tuple[Stretches, dict[int, Outcome]]:
        """The next numbers, up to this one, and the outcomes of those that did not simply end as
        published.
        """
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
                # A number may have several outcomes; the row's letter is the gravest.
                former = others.get(outcome.position[0])
                if former is None or SEVERITY[outcome.status] > SEVERITY[former.status]:
                    others[outcome.position[0]] = outcome
            if end < len(positions):
                # The rest of this batch belongs to the next ones of the journal.
                self._rows = self._rows.slice(end)
                break
            self._rows = next(self._batches, None)
        return numbers_in(numbers), others

    def _read(self) -> Iterator[pa.RecordBatch]:
        for file in self._files:
            for batch in file.iter_batches(BATCH_ROWS):
                # Without a position an outcome is of no row that could be marked.
                rows = batch.filter(batch.column("position").is_valid())
                if len(rows):
                    yield rows
