"""Joins the rows of one operation and cuts its two parts out of DATA. Does no I/O.

Whether the lengths of a continued operation are its totals or those of each row is not documented; the two can always
be told apart, because totals exceed what one row holds.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.sources.linter.rows import CAPACITY, QueueRow

MOST_TOTAL = 1 << 24
"""More bytes than any operation can have; a length beyond it is damage, however many rows there are."""


class Operation(Struct, frozen=True, gc=False):
    """One operation of one row: the queue row that begins it, and its parts or why they cannot be told."""

    row: QueueRow
    first: bytes
    second: bytes
    fault: str | None = None


def operation(rows: Sequence[QueueRow], *, pad: bool) -> Operation:
    """The operation whose rows share one address, with a fault where they do not make one; the raw bytes are kept.

    Rows for further destinations say the same once more. `pad` puts back the zeros that a driver took off DATA.
    """
    row = rows[0]
    if len(rows) == 1 and not row.extdata and row.len1 >= 0 and row.len2 >= 0:
        end = row.len1 + row.len2
        if end <= len(row.data) <= CAPACITY:  # nearly all there are
            return Operation(row, row.data[: row.len1], row.data[row.len1 : end])
    try:
        joined = continued(rows) if len(rows) > 1 or rows[0].extdata else rows
        first, second = parts(joined, pad=pad)
    except DataError as error:
        ordered = sorted(rows, key=lambda row: row.extdata)
        return Operation(ordered[0], b"".join([row.data for row in ordered]), b"", str(error))
    return Operation(joined[0], first, second)


def continued(rows: Sequence[QueueRow]) -> list[QueueRow]:
    """The rows of one destination in the order of EXTDATA, each once; DataError where they contradict each other."""
    by_destination: dict[tuple[str, str, str], list[QueueRow]] = {}
    for row in sorted(rows, key=lambda row: row.extdata):
        by_destination.setdefault(row.destination, []).append(row)
    failure: DataError | None = None
    for candidates in by_destination.values():
        try:
            return _checked(candidates)
        except DataError as error:
            failure = failure or error
    assert failure is not None
    raise failure


def parts(rows: Sequence[QueueRow], *, pad: bool) -> tuple[bytes, bytes]:
    """The two parts of an operation whose rows are all there."""
    if min([min(row.len1, row.len2) for row in rows]) < 0:
        raise DataError("LEN1 or LEN2 is negative.")
    if max([row.len1 + row.len2 for row in rows]) > CAPACITY:
        return _by_totals(rows, pad=pad)
    cut = [_by_row(row, pad=pad) for row in rows]
    if len(cut) == 1:
        return cut[0]
    return b"".join([first for first, _ in cut]), b"".join([second for _, second in cut])


def _checked(rows: list[QueueRow]) -> list[QueueRow]:
    found: list[QueueRow] = []
    for row in rows:
        if found and row.extdata == found[-1].extdata:
            if _meaning(row) != _meaning(found[-1]):
                raise DataError(f"Two rows with EXTDATA {row.extdata} say different things.")
            continue
        if row.extdata != len(found):
            raise DataError(f"The row with EXTDATA {len(found)} is missing.")
        found.append(row)
    head = found[0]
    for row in found[1:]:
        if (row.typ, row.rowid_src, row.tabnum_src) != (head.typ, head.rowid_src, head.tabnum_src):
            raise DataError(
                f"TYP, TABNUM_SRC or ROWID_SRC of the row with EXTDATA {row.extdata} differ from the first."
            )
    return found


def _meaning(row: QueueRow) -> tuple[object, ...]:
    own = min(max(row.len1, 0) + max(row.len2, 0), CAPACITY)
    return row.typ, row.rowid_src, row.tabnum_src, row.blobatr, row.len1, row.len2, row.data[:own]


def _by_totals(rows: Sequence[QueueRow], *, pad: bool) -> tuple[bytes, bytes]:
    head = rows[0]
    if any((row.len1, row.len2) != (head.len1, head.len2) for row in rows):
        raise DataError("LEN1 and LEN2 are totals, and differ between the operation's rows.")
    total = head.len1 + head.len2
    if total > min(CAPACITY * len(rows), MOST_TOTAL):
        raise DataError(f"LEN1 + LEN2 is {total}, and {len(rows)} row(s) hold {CAPACITY * len(rows)} bytes at most.")
    needed = [min(CAPACITY, max(total - CAPACITY * place, 0)) for place in range(len(rows))]
    joined = b"".join([_filled(row.data, size, pad=pad) for row, size in zip(rows, needed, strict=True)])
    return joined[: head.len1], joined[head.len1 : total]


def _by_row(row: QueueRow, *, pad: bool) -> tuple[bytes, bytes]:
    data = row.data if len(row.data) >= row.len1 + row.len2 else _filled(row.data, row.len1 + row.len2, pad=pad)
    return data[: row.len1], data[row.len1 : row.len1 + row.len2]


def _filled(data: bytes, size: int, *, pad: bool) -> bytes:
    """As many bytes of DATA as count."""
    if len(data) < size and not pad:
        hint = "If the driver takes zero bytes off, set pad_data."
        raise DataError(f"DATA is truncated: it has {len(data)} bytes and the lengths say {size}.", hint=hint)
    return data[:size].ljust(size, b"\0")
