"""Rows of change tables: their header columns, and finished cells in blocks of one table each, as
sinks take them.

Numbers of transactions are written as the little-endian bytes of 128 bits in hex, as change tables
have them; messages write the same bytes from the other end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import compress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import Change, Document, Op, Position, Transaction, Value, format_position
from eventlog.core.schema import Table
from eventlog.core.who import MOST_CHARACTERS
from eventlog.qlik.change_tables.partitions import Partition
from eventlog.qlik.change_tables.settings import WHO_HEADERS, ChangeTableSettings

WHO_TYPE: Final = f"varchar({MOST_CHARACTERS})"
TYPES: Final = {
    "change_seq": "varchar(35)",
    "change_oper": "varchar(1)",
    "change_mask": "varbinary(128)",
    "stream_position": "varchar(128)",
    "operation": "varchar(12)",
    "transaction_id": "varchar(32)",
    "timestamp": "timestamp",
}
HEX_MASK: Final = "varchar(256)"
PARTITION_NAME: Final = "partition_name"
PARTITION_TYPE: Final = "varchar(31)"
BEFORE: Final = ("B", "BEFOREIMAGE")
OPERATIONS: Final = {
    Op.ADD: ("I", "INSERT"),
    Op.MODIFY: ("U", "UPDATE"),
    Op.DELETE: ("D", "DELETE"),
    Op.TRUNCATE: ("T", "TRUNCATE"),
}
"""change_oper and operation.

That of a TRUNCATE is documented nowhere; T is a letter that no reader takes for a row.
"""
POSITION_LIMIT: Final = 128
_ALL_BITS: Final = (1 << 128) - 1


def header_columns(settings: ChangeTableSettings, *, who: bool = False) -> list[tuple[str, str]]:
    """List the names and types of the present header columns, in order."""
    types = TYPES | dict.fromkeys(WHO_HEADERS, WHO_TYPE)
    if settings.mask == "hex":
        types["change_mask"] = HEX_MASK
    columns = [(f"{settings.prefix}{name}", types[name]) for name in (*settings.present, *(WHO_HEADERS if who else ()))]
    if settings.partition_every:
        columns.append((f"{settings.prefix}{PARTITION_NAME}", PARTITION_TYPE))
    return columns


def who_cells(change: Change) -> tuple[str | None, str | None]:
    """Return the user and context of a change, in the order of the header columns."""
    return (None, None) if change.who is None else (change.who.user, change.who.context)


def transaction_id(transaction: Transaction | None) -> str:
    """32 hexadecimal digits; empty where nobody knows the transaction."""
    if transaction is None:
        return ""
    # A transaction's number can be longer in a source; only its last 128 bits are written.
    return (transaction.id & _ALL_BITS).to_bytes(16, "little").hex().upper()


def stream_position(change: Change) -> str:
    """Write the change's position in the source's own log, in its own form; never to be compared."""
    return (change.stream or format_position(change.positions[-1]))[:POSITION_LIMIT]


ChangeRow = tuple[Value, ...]


class ChangeColumn(Struct, frozen=True, kw_only=True):
    """One column of a change table: its type as the source calls it; `key` is its place in the key,
    0 for none.
    """

    name: str
    type: str
    header: bool = False
    key: int = 0

    def is_called(self, header: str) -> bool:
        """Return True for this header column, whatever prefix it has."""
        return self.header and self.name.endswith(header)


class RowBlock(Struct, frozen=True, kw_only=True, dict=True):
    """Rows of one change table in one partition, in order of change_seq, and the events behind each
    of them.

    They are held column by column, as files take them; whoever asks for `rows` gets them put
    together once.
    """

    table: Table
    target: str
    columns: tuple[ChangeColumn, ...]
    cells: tuple[list[Any], ...]
    positions: list[tuple[Position, ...]]
    partition: Partition | None = None
    load: bool = False
    """Rows of a full load as they are, without header columns, in files of their own."""
    route: str = ""
    """What sent them to this table, if that is not their own."""

    # A cached property needs a dictionary, which `dict=True` above gives this struct.
    @cached_property
    def rows(self) -> list[ChangeRow]:
        return list(zip(*self.cells, strict=True))

    def without(self, left_out: Collection[tuple[Position, ...]]) -> RowBlock:
        """Copy the block without the rows of these changes."""
        rest = [positions not in left_out for positions in self.positions]
        cells = tuple([list(compress(column, rest)) for column in self.cells])
        return replace(self, cells=cells, positions=list(compress(self.positions, rest)))

    @property
    def folder(self) -> str:
        """Name the folder of its change table."""
        return folder_of(self.table, self.target)

    @property
    def place(self) -> str:
        """Name the folder of its files: its partition's, where there are such."""
        if self.partition is None:
            return self.folder
        return f"{self.folder}/{self.partition.name}"


class Growing:
    """A block that rows still come into, one by one or column by column."""

    __slots__ = ("_block", "_rows", "append", "stand")

    def __init__(self, block: RowBlock) -> None:
        self._block = block
        # Rows that came one by one before these must stand before them.
        self._rows: list[ChangeRow] = []
        self.append = self._rows.append
        self.stand = block.positions.append

    def extend(
        self,
        cells: Sequence[Sequence[Any]],
        positions: Sequence[tuple[Position, ...]],
    ) -> None:
        self._transpose()
        for column, more in zip(self._block.cells, cells, strict=True):
            column.extend(more)
        self._block.positions.extend(positions)

    def block(self) -> RowBlock:
        self._transpose()
        return self._block

    def _transpose(self) -> None:
        """Puts the rows that came one by one into the columns."""
        columns = by_column(self._rows, len(self._block.cells))
        for column, more in zip(self._block.cells, columns, strict=True):
            column.extend(more)
        self._rows.clear()


class RowsDocument(Document, frozen=True, kw_only=True):
    """A document whose content is rows; its body is empty."""

    blocks: tuple[RowBlock, ...] = ()


def by_column(rows: Sequence[ChangeRow], columns: int) -> list[tuple[Any, ...]]:
    """Turn rows into columns, for writers that go column by column."""
    # Without a row, `zip` would give no columns at all.
    if not rows:
        return [()] * columns
    return list(zip(*rows, strict=True))


def folder_of(table: Table, target: str) -> str:
    """Name the folder of a change table; nothing in the name can lead out of it."""
    whole = f"{table.schema}.{target}" if table.schema else target
    return whole.replace("/", "%2f").replace("\0", "%00")
