"""An annotated dump of queue rows: every row, also a damaged one, what it is read as, and where a
restart begins behind them.

Does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError, shorten
from eventlog.core.model import Value
from eventlog.core.plural import count_words
from eventlog.sources.linter.operations import BLOB_ACTIONS, ROW_ACTIONS, Action, operation, reading
from eventlog.sources.linter.rows import QueueRow, address, oper_time
from eventlog.sources.linter.settings import ReadingSettings
from eventlog.sources.linter.tables import SourceTable, SourceTables
from eventlog.sources.linter.telling import group_rows

SHOWN_BYTES: Final = 64
"""Hexadecimal digits of a part, and characters of a value, that a dump shows."""


class DumpedPart(Struct, frozen=True, kw_only=True):
    """One part of an operation: its bytes, and its values or why it has none."""

    number: int
    size: int
    bytes: str
    values: dict[str, str | None] | None = None
    fault: str | None = None


class Dumped(Struct, frozen=True, kw_only=True):
    """One operation and the queue rows it came in."""

    address: str
    transaction: int
    action: str
    time: str
    table: str
    row: int
    rows: tuple[str, ...]
    parts: tuple[DumpedPart, ...] = ()
    fault: str | None = None

    @property
    def damaged(self) -> bool:
        """Return True if a part of it is unreadable."""
        return self.fault is not None or self.time.startswith("!") or any(part.fault for part in self.parts)


def dump_operations(
    rows: Iterable[QueueRow],
    tables: SourceTables,
    settings: ReadingSettings,
    follow: Callable[[QueueRow, Action | None], None] = lambda _row, _action: None,
) -> Iterator[Dumped]:
    """Yield each operation in the order of rows, however its transaction ends; calls `follow` with
    each.
    """
    action_of = reading(settings.coding, lambda _: None)
    for group in group_rows(rows):
        # Before the operation is read: where a restart begins does not hang on whether it can be.
        follow(group[0], action_of(group[0]))
        yield _operation(group, action_of, tables, settings)


def text_of(operation: Dumped) -> Iterator[str]:
    line = f"{operation.address}  transaction {operation.transaction}"
    line += f"  {operation.action}  {operation.time}"
    if operation.table:
        line += f"  {operation.table}, row {operation.row}"
    yield line
    for row in operation.rows:
        yield f"  {row}"
    for part in operation.parts:
        yield f"  part {part.number}  {part.size} bytes  {part.bytes}"
        if part.values is not None:
            values = {name: "NULL" if value is None else value for name, value in part.values.items()}
            yield "          " + " ".join(f"{name}={value}" for name, value in values.items())
        if part.fault is not None:
            yield f"        ! {part.fault}"
    if operation.fault is not None:
        yield f"  ! {operation.fault}"


def _operation(
    group: Sequence[QueueRow],
    action_of: Callable[[QueueRow], Action | None],
    tables: SourceTables,
    settings: ReadingSettings,
) -> Dumped:
    done = operation(group, pad=settings.pad_data)
    row = done.row
    action = action_of(row)
    table = None
    # The end of a transaction belongs to no table, whatever its TABNUM_SRC says.
    if action in ROW_ACTIONS or action in BLOB_ACTIONS:
        table = tables[row.tabnum_src]
    parts = [(1, done.first), (2, done.second)]
    return Dumped(
        address=address(row.syslog_addr),
        transaction=row.transact_id,
        action=_action(row, action),
        time=_time(row),
        table=table.name if table is not None else "",
        row=row.rowid_src,
        rows=tuple(map(_row, group)),
        parts=tuple(_part(number, data, table, done.fault, action) for number, data in parts if data),
        fault=done.fault or _oddity(action, done.first, done.second),
    )


def _row(row: QueueRow) -> str:
    to = ""
    if row.dst_server or row.dst_table:
        to = f" to {row.dst_server} {row.dst_owner}.{row.dst_table}"
    lengths = f"LEN1 {row.len1} LEN2 {row.len2} DATA {len(row.data)}"
    return f"EXTDATA {row.extdata}  {lengths}  TABNUM_SRC {row.tabnum_src}  CHANNEL {row.channel}{to}"


def _action(row: QueueRow, action: Action | None) -> str:
    if action is None:
        return f"TYP {row.typ} is not known"
    if action in BLOB_ACTIONS:
        column, kind = row.blob
        return f"{action} (column {column}, type {kind})"
    return str(action)


def _time(row: QueueRow) -> str:
    try:
        return oper_time(row.oper_date).isoformat(" ")
    except DataError as error:
        return f"! {error}"


def _oddity(action: Action | None, first: bytes, second: bytes) -> str | None:
    if action in ROW_ACTIONS and (not first or (action is Action.UPDATE and not second)):
        return "An image is empty, and an empty image is not a row."
    if action is not None and action not in ROW_ACTIONS and action not in BLOB_ACTIONS and (first or second):
        if action is Action.COMMIT:
            return "A COMMIT has no bytes: another coding may be the right one."
        return "The end of a transaction comes with bytes, which are ignored."
    return None


def _part(
    number: int,
    data: bytes,
    table: SourceTable | None,
    fault: str | None,
    action: Action | None,
) -> DumpedPart:
    part = DumpedPart(number=number, size=len(data), bytes=shorten(data.hex(), SHOWN_BYTES))
    # What the second part of a BLOB operation is, nobody has documented (linter-dispatch-queue.md
    # 3).
    is_piece_of_blob = number == 2 and action in BLOB_ACTIONS
    if table is None or table.layout is None or fault is not None or is_piece_of_blob:
        return part
    try:
        row = table.codec.decode(data)
        return replace(part, values={name: _show_value(value) for name, value in row.items()})
    except Exception as error:  # noqa: BLE001  a site's codec may raise anything, and the dump goes on
        reason = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
        return replace(part, fault=reason)


def _show_value(value: Value | tuple[Value, ...]) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return shorten(f"0x{value.hex()}", SHOWN_BYTES)
    text = repr(value) if isinstance(value, str) else str(value)
    return shorten(text, SHOWN_BYTES)


ENDS: Final = frozenset({Action.COMMIT, Action.ROLLBACK, Action.END})


class QueueRestart(Struct, frozen=True, kw_only=True):
    """Transactions that end at `begin` or later come.

    The rows of those that are open stand from `first` on.
    """

    begin: int
    open: int
    first: int | None

    @property
    def text(self) -> str:
        if self.begin == 0:
            begin = "A restart begins at the beginning: no transaction has ended"
        else:
            last = self.begin - 1
            begin = f"A restart begins behind {address(last)} ({last}), where the last transaction ended"
        if self.first is None:
            return f"{begin}; none is open."
        still_open = count_words(self.open, "open transaction")
        needed = f"the rows from {address(self.first)} ({self.first}) on are needed"
        return f"{begin}; {still_open} may continue, so {needed}."


class FollowedQueue:
    """Follows the transactions of a queue by the rules of its reader."""

    # By node too: two of them may give one number to their transactions.
    def __init__(self) -> None:
        self._open: dict[tuple[str, int], int] = {}
        self._begin = 0

    def take(self, row: QueueRow, action: Action | None) -> None:
        """Takes the next row; one whose action nobody knows says nothing."""
        tx = row.dbnode, row.transact_id
        if action in ENDS:
            self._open.pop(tx, None)
            # Behind the end itself, so that it does not come once more.
            self._begin = max(self._begin, row.syslog_addr + 1)
        elif action is not None:
            self._open[tx] = min(row.syslog_addr, self._open.get(tx, row.syslog_addr))

    @property
    def point(self) -> QueueRestart | None:
        """Return the place of a restart; None without rows to tell it."""
        if not self._begin and not self._open:
            return None
        first = min(self._open.values(), default=None)
        return QueueRestart(begin=self._begin, open=len(self._open), first=first)
