"""An annotated dump of queue rows: every row, also a damaged one, what it is read as, and where a restart begins behind them.

Does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from eventlog.core.errors import DataError, shortened
from eventlog.core.model import Row, Value
from eventlog.core.plural import counted
from eventlog.sources.linter.operations import BLOB_ACTIONS, ROW_ACTIONS, Action, operation, reading
from eventlog.sources.linter.rows import QueueRow, address, oper_time
from eventlog.sources.linter.settings import ReadingSettings
from eventlog.sources.linter.tables import SourceTable, SourceTables
from eventlog.sources.linter.telling import grouped

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
        """Whether something of it cannot be read."""
        return self.fault is not None or self.time.startswith("!") or any(part.fault for part in self.parts)


def dumped(
    rows: Iterable[QueueRow],
    tables: SourceTables,
    settings: ReadingSettings,
    follow: Callable[[QueueRow, Action | None], None] = lambda _row, _action: None,
) -> Iterator[Dumped]:
    """Every operation in the order of the rows, without regard to how its transaction ends; `follow` is told of each."""
    action_of = reading(settings.coding, lambda _: None)
    for group in grouped(rows):
        follow(group[0], action_of(group[0]))
        yield _operation(group, action_of, tables, settings)


def text_of(one: Dumped) -> Iterator[str]:
    where = f"  {one.table}, row {one.row}" if one.table else ""
    yield f"{one.address}  transaction {one.transaction}  {one.action}  {one.time}{where}"
    yield from (f"  {row}" for row in one.rows)
    for part in one.parts:
        yield f"  part {part.number}  {part.size} bytes  {part.bytes}"
        if part.values is not None:
            told = " ".join(f"{name}={'NULL' if value is None else value}" for name, value in part.values.items())
            yield f"          {told}"
        if part.fault is not None:
            yield f"        ! {part.fault}"
    if one.fault is not None:
        yield f"  ! {one.fault}"


def _operation(
    group: Sequence[QueueRow],
    action_of: Callable[[QueueRow], Action | None],
    tables: SourceTables,
    settings: ReadingSettings,
) -> Dumped:
    done = operation(group, pad=settings.pad_data)
    row = done.row
    action = action_of(row)
    table = tables[row.tabnum_src] if action in ROW_ACTIONS or action in BLOB_ACTIONS else None
    parts = [(1, done.first), (2, done.second)] if done.first or done.second else []
    return Dumped(
        address=address(row.syslog_addr),
        transaction=row.transact_id,
        action=_action(row, action),
        time=_time(row),
        table=table.name if table is not None else "",
        row=row.rowid_src,
        rows=tuple(_row(one) for one in group),
        parts=tuple(_part(number, data, table, done.fault, action) for number, data in parts if data),
        fault=done.fault or _oddity(action, done.first, done.second),
    )


def _row(row: QueueRow) -> str:
    to = f" to {row.dst_server} {row.dst_owner}.{row.dst_table}" if row.dst_server or row.dst_table else ""
    lengths = f"LEN1 {row.len1} LEN2 {row.len2} DATA {len(row.data)}"
    return f"EXTDATA {row.extdata}  {lengths}  TABNUM_SRC {row.tabnum_src}  CHANNEL {row.channel}{to}"


def _action(row: QueueRow, action: Action | None) -> str:
    if action is None:
        return f"TYP {row.typ} is not known"
    column, kind = row.blob
    return f"{action} (column {column}, type {kind})" if action in BLOB_ACTIONS else str(action)


def _time(row: QueueRow) -> str:
    try:
        return oper_time(row.oper_date).isoformat(" ")
    except DataError as error:
        return f"! {error}"


def _oddity(action: Action | None, first: bytes, second: bytes) -> str | None:
    if action in ROW_ACTIONS and (not first or (action is Action.UPDATE and not second)):
        return "An image is empty, and an empty image is not a row."
    if action is not None and action not in ROW_ACTIONS and action not in BLOB_ACTIONS and (first or second):
        return "The end of a transaction comes with bytes, which are ignored."
    return None


def _part(number: int, data: bytes, table: SourceTable | None, fault: str | None, action: Action | None) -> DumpedPart:
    shown = shortened(data.hex(), SHOWN_BYTES)
    piece = number == 2 and action in BLOB_ACTIONS
    if table is None or table.layout is None or fault is not None or piece:
        return DumpedPart(number=number, size=len(data), bytes=shown)
    try:
        values = _shown(table.codec.decode(data))
    except Exception as error:  # noqa: BLE001  a site's codec may raise anything, and the dump goes on
        said = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
        return DumpedPart(number=number, size=len(data), bytes=shown, fault=said)
    return DumpedPart(number=number, size=len(data), bytes=shown, values=values)


def _shown(row: Row) -> dict[str, str | None]:
    return {name: None if value is None else shortened(_text(value), SHOWN_BYTES) for name, value in row.items()}


def _text(value: Value | tuple[Value, ...]) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    return repr(value) if isinstance(value, str) else str(value)


ENDS: Final = frozenset({Action.COMMIT, Action.ROLLBACK, Action.END})


class QueueRestart(Struct, frozen=True, kw_only=True):
    """Transactions that end at `begin` or later come; the rows of those that are open stand from `first` on."""

    begin: int
    open: int
    first: int | None

    @property
    def text(self) -> str:
        told = f"A restart begins behind {address(self.begin - 1)} ({self.begin - 1}), where the last transaction ended"
        if self.begin == 0:
            told = "A restart begins at the beginning: no transaction has ended"
        if self.first is None:
            return f"{told}; none is open."
        return f"{told}; {counted(self.open, 'open transaction')} may continue, so the rows from {address(self.first)} ({self.first}) on are needed."


class FollowedQueue:
    """Follows the transactions of a queue by the rules of its reader."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], int] = {}
        self._begin = 0

    def take(self, row: QueueRow, action: Action | None) -> None:
        """Takes the next row; one whose action nobody knows says nothing."""
        tx = row.dbnode, row.transact_id
        if action in ENDS:
            self._open.pop(tx, None)
            self._begin = max(self._begin, row.syslog_addr + 1)
        elif action is not None:
            self._open[tx] = min(row.syslog_addr, self._open.get(tx, row.syslog_addr))

    @property
    def point(self) -> QueueRestart | None:
        """Where a restart begins; None when there were no rows that say it."""
        if not self._begin and not self._open:
            return None
        return QueueRestart(begin=self._begin, open=len(self._open), first=min(self._open.values(), default=None))
