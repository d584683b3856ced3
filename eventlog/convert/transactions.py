"""Whole transactions in a conversion: what is refused because it cannot have them, and which one
of its transaction's each message is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from eventlog.convert.forms import COUNTED, PART, TOGETHER
from eventlog.convert.settings import Conversion, LogInput
from eventlog.core.errors import DataError, UsageError
from eventlog.core.model import Position
from eventlog.core.plural import count_words as plural
from eventlog.sql.names import TRANSACTION

if TYPE_CHECKING:
    from eventlog.convert.taken import ConvertedRows
    from eventlog.convert.tasks import UnitNumbers
    from eventlog.core.counting import TransactionCounts

PLACE: Final = "place"
LAST: Final = "last"
MIXED: Final = 'Name an output or a configuration with transactions = "mixed".'
UNKNOWN: Final = "so its transactions are unknown"


def refuse_unknown_transactions(conversion: Conversion) -> None:
    """Refuse a log without transactions, before anything is read."""
    source = conversion.input
    if not conversion.gathers or not isinstance(source, LogInput):
        return
    from eventlog.sql.connect import connect
    from eventlog.sql.findlog import log_columns

    engine = connect(source.url)
    try:
        names = log_columns(engine, source.names, source.columns)
    finally:
        engine.dispose()
    if names.transaction is None:
        raise UsageError(f"The event log {names.table} has no column {TRANSACTION}, {UNKNOWN}.", hint=MIXED)


def refuse_left_rows(conversion: Conversion, taken: ConvertedRows) -> None:
    """Refuse whole transactions if rows are left in the log; nothing is read yet."""
    source = conversion.input
    if conversion.gathers and taken.left and isinstance(source, LogInput):
        cause = f"Rows of the event log {source.log} are held, or an output lacks them"
        raise UsageError(
            f"{cause}, so transactions are not whole.",
            hint='Release them, or name an output or a configuration with transactions = "mixed".',
        )


def unknown_transactions(units: Sequence[UnitNumbers]) -> tuple[str, ...]:
    """Make the note on rows without a transaction; refuse an input with none at all."""
    rows, alone = sum(unit.rows for unit in units), sum(unit.alone for unit in units)
    if not alone:
        return ()
    if alone == rows:
        raise DataError(f"No row of the input has a number in {TRANSACTION}, {UNKNOWN}.", hint=MIXED)
    # Rows of a table that was tracked before the log had the column may stand beside others.
    count = f"{plural(alone, 'row')} of {rows:,}"
    return (f"{count} have no {TRANSACTION}; each of their changes is a transaction of its own.",)


class _Row(NamedTuple):
    """A message that is counted."""

    transaction: int | None
    ordinal: int | None = None
    last: bool | None = None
    positions: tuple[Position, ...] = ()

    def counted(self, ordinal: int, last: bool) -> _Row:
        return _Row(self.transaction, ordinal, last)


def count_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Number the messages of whole transactions within their own, and flag the last of each.

    Those of a full load, without a `tail`, are not counted.
    """
    from eventlog.core.counting import count_written

    so_far: TransactionCounts = {}
    for batch in batches:
        marks, counts = batch.column(TRANSACTION).to_pylist(), batch.column(COUNTED).to_pylist()
        is_change = batch.column("tail").is_valid().to_pylist()
        rows = [_Row(mark if counts_here else None) for mark, counts_here in zip(marks, is_change, strict=True)]
        numbered, so_far = count_written(rows, so_far, _going_on(rows, counts, so_far))
        places = pa.array([row.ordinal for row in numbered], pa.int64())
        lasts = pa.array([row.last for row in numbered], pa.bool_())
        yield batch.append_column(PLACE, places).append_column(LAST, lasts)


def _going_on(rows: Sequence[_Row], counts: Sequence[int | None], so_far: TransactionCounts) -> set[int]:
    """Find the transaction not over with these rows: only that of the last can be."""
    for row, count in zip(reversed(rows), reversed(counts), strict=True):
        if row.transaction is not None and count is not None:
            here = sum(other.transaction == row.transaction for other in rows)
            former = so_far.get(row.transaction, 0)
            assert isinstance(former, int)
            if former + here < count:
                return {row.transaction}
            break
    return set()


def in_whole_parts(
    batches: Iterable[pa.RecordBatch],
    before: int,
    part_events: int,
) -> Iterator[pa.RecordBatch]:
    """Give each change the part in which its transaction begins, behind `before` changes.

    A transaction of more changes than a part is cut where parts are full.
    """
    number, ordinal, current = before, 0, None
    for batch in batches:
        parts = []
        marks, counts = batch.column(TRANSACTION).to_pylist(), batch.column(TOGETHER).to_pylist()
        for mark, count in zip(marks, counts, strict=True):
            ordinal = ordinal + 1 if mark is not None and mark == current else 0
            current = mark
            # The number of the first change of its transaction, unless that fills a part itself.
            counted_as = number - ordinal if count <= part_events else number
            parts.append(counted_as // part_events)
            number += 1
        yield batch.append_column(PART, pa.array(parts, pa.int64()))
