"""The operations of a queue: which one a TYP is, and its rows joined and cut into two parts.

Does no I/O.

The document gives two codings of TYP that contradict each other; `auto` decides row by row. Whether
the lengths of a continued operation are its totals or those of each row is not documented; the two
can always be told apart, because totals exceed what one row holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.plural import count_words
from eventlog.sources.linter.rows import DATA_BYTES, QueueRow

Coding = Literal["table", "list", "auto"]


class Action(StrEnum):
    """What a queue row says was done."""

    DELETE = "DELETE"
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    END = "COMMIT or ROLLBACK"
    CREATE_BLOB = "CREATE BLOB"
    INSERT_BLOB = "INSERT BLOB"
    CLEAR_BLOB = "CLEAR BLOB"
    DELETE_BLOB = "DELETE BLOB"


_ROWS: Final = {1: Action.DELETE, 2: Action.INSERT, 3: Action.UPDATE}
_LATER: Final = {7: Action.CREATE_BLOB, 8: Action.INSERT_BLOB, 9: Action.CLEAR_BLOB, 10: Action.ROLLBACK}
TABLE: Final = {**_ROWS, 4: Action.COMMIT, **_LATER}
"""The coding of the column's description, which is taken to be the real one: it tells COMMIT from
ROLLBACK.
"""

LIST: Final = {**_ROWS, 4: Action.DELETE_BLOB, 5: Action.END}
"""The coding of the list at the document's end."""

ROW_ACTIONS: Final = frozenset(_ROWS.values())
BLOB_ACTIONS: Final = frozenset({Action.CREATE_BLOB, Action.INSERT_BLOB, Action.CLEAR_BLOB, Action.DELETE_BLOB})


def reading(coding: Coding, report: Callable[[str], None]) -> Callable[[QueueRow], Action | None]:
    """Gives the action of a row, or None for a TYP that the coding does not have; `auto` reports
    each kind of choice.
    """
    if coding == "table":
        return lambda row: TABLE.get(row.typ)
    if coding == "list":
        return lambda row: LIST.get(row.typ)
    reported: set[Action] = set()

    def choose(row: QueueRow) -> Action | None:
        action = choose_action(row)
        # Only 4 and 5 mean something else in the other coding (linter-dispatch-queue.md 2).
        if row.typ in (4, 5) and action is not None and action not in reported:
            reported.add(action)
            coding = "table" if action is Action.COMMIT else "list"
            report(
                f"TYP {row.typ} with parts of {row.len1} and {row.len2} bytes is read as {action} (coding {coding})."
            )
        return action

    return choose


def choose_action(row: QueueRow) -> Action | None:
    """Choose the action for coding `auto`: TYP 4 with a row or BLOB column is DELETE BLOB, else
    COMMIT.
    """
    if row.typ == 4:
        has_parts = row.len1 != 0 or row.len2 != 0
        if has_parts or row.blobatr != 0:  # a COMMIT has neither
            return Action.DELETE_BLOB
        return Action.COMMIT
    return TABLE.get(row.typ) or LIST.get(row.typ)


def typ_of(action: Action, coding: Coding) -> int:
    """Return the TYP of an action; by the table if the coding differs row by row."""
    codes = TABLE
    if coding == "list" or (coding == "auto" and action is Action.DELETE_BLOB):
        codes = LIST
    elif action is Action.END:
        codes = TABLE | {5: Action.END}  # the table has no code for an end without an outcome
    return {known: typ for typ, known in codes.items()}[action]


TOTAL_BYTES = 1 << 24
"""More bytes than any operation can have.

A length beyond it is damage, however many rows there are.
"""


class Operation(Struct, frozen=True, gc=False):
    """One operation of one row: the queue row that begins it, its parts or why it has none."""

    row: QueueRow
    first: bytes
    second: bytes
    fault: str | None = None


def operation(rows: Sequence[QueueRow], *, pad: bool) -> Operation:
    """Join rows of one address to an operation, with a fault if they do not fit.

    The raw bytes are kept. Rows for further destinations are repeats. `pad` restores the zeros a
    driver took off DATA.
    """
    row = rows[0]
    if len(rows) == 1 and not row.extdata and row.len1 >= 0 and row.len2 >= 0:
        end = row.len1 + row.len2
        if end <= len(row.data) <= DATA_BYTES:  # nearly all there are
            return Operation(row, row.data[: row.len1], row.data[row.len1 : end])
    try:
        joined = rows
        if len(rows) > 1 or row.extdata:
            joined = order_continuation(rows)
        first, second = parts(joined, pad=pad)
    except DataError as error:
        ordered = sorted(rows, key=lambda row: row.extdata)
        return Operation(ordered[0], b"".join([row.data for row in ordered]), b"", str(error))
    return Operation(joined[0], first, second)


def order_continuation(rows: Sequence[QueueRow]) -> list[QueueRow]:
    """Sort the rows of one destination by EXTDATA, without repeats.

    DataError if they contradict each other.
    """
    by_destination: dict[tuple[str, str, str], list[QueueRow]] = {}
    for row in sorted(rows, key=lambda row: row.extdata):
        by_destination.setdefault(row.destination, []).append(row)
    failure: DataError | None = None
    # The first destination whose rows are all there and agree is enough: all of them say the same.
    for candidates in by_destination.values():
        try:
            return _check_rows(candidates)
        except DataError as error:
            failure = failure or error
    assert failure is not None
    raise failure


def parts(rows: Sequence[QueueRow], *, pad: bool) -> tuple[bytes, bytes]:
    """Return the two parts of an operation whose rows are complete."""
    if min([min(row.len1, row.len2) for row in rows]) < 0:
        raise DataError("LEN1 or LEN2 is negative.")
    # A row cannot hold as much, so the lengths are totals; else they are each row's own (linter-
    # dispatch-queue.md 3).
    if max([row.len1 + row.len2 for row in rows]) > DATA_BYTES:
        head = rows[0]
        if any((row.len1, row.len2) != (head.len1, head.len2) for row in rows):
            raise DataError("LEN1 and LEN2 are totals, and differ between the operation's rows.")
        total = head.len1 + head.len2
        if total > min(DATA_BYTES * len(rows), TOTAL_BYTES):
            held = f"{count_words(len(rows), 'row')} can hold {DATA_BYTES * len(rows)} bytes at most"
            raise DataError(f"LEN1 + LEN2 is {total}, and {held}.")
        needed = [min(DATA_BYTES, max(total - DATA_BYTES * number, 0)) for number in range(len(rows))]
        sized = zip(rows, needed, strict=True)
        joined = b"".join([_cut_data(row.data, size, pad=pad) for row, size in sized])
        return joined[: head.len1], joined[head.len1 : total]
    firsts, seconds = [], []
    for row in rows:
        end = row.len1 + row.len2
        data = row.data
        if len(data) < end:
            data = _cut_data(data, end, pad=pad)
        firsts.append(data[: row.len1])
        seconds.append(data[row.len1 : end])
    return b"".join(firsts), b"".join(seconds)


def _check_rows(rows: list[QueueRow]) -> list[QueueRow]:
    checked: list[QueueRow] = []
    for row in rows:
        if checked and row.extdata == checked[-1].extdata:
            if _meaning(row) != _meaning(checked[-1]):
                raise DataError(f"Two rows with EXTDATA {row.extdata} say different things.")
            continue
        if row.extdata != len(checked):
            raise DataError(f"The row with EXTDATA {len(checked)} is missing.")
        checked.append(row)
    head = checked[0]
    for row in checked[1:]:
        if (row.typ, row.rowid_src, row.tabnum_src) != (head.typ, head.rowid_src, head.tabnum_src):
            raise DataError(
                f"TYP, TABNUM_SRC or ROWID_SRC of the row with EXTDATA {row.extdata} differ from the first."
            )
    return checked


def _meaning(row: QueueRow) -> tuple[object, ...]:
    own = min(max(row.len1, 0) + max(row.len2, 0), DATA_BYTES)  # what lies behind may differ
    return row.typ, row.rowid_src, row.tabnum_src, row.blobatr, row.len1, row.len2, row.data[:own]


def _cut_data(data: bytes, size: int, *, pad: bool) -> bytes:
    """Cut DATA to its stated size."""
    if len(data) < size and not pad:
        hint = "If the driver takes zero bytes off, set pad_data."
        raise DataError(
            f"DATA is truncated: it has {len(data)} bytes and the lengths say {size}.",
            hint=hint,
        )
    return data[:size].ljust(size, b"\0")
