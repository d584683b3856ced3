"""Rows of change tables: finished cells in blocks of one table each, as sinks take them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from eventlog.core.model import Document, Position, Value
from eventlog.core.schema import Table
from eventlog.qlik.change_tables.partitions import Partition

ChangeRow = tuple[Value, ...]


class ChangeColumn(Struct, frozen=True, kw_only=True):
    """One column of a change table: its type as the source calls it; `key` is its place in the key, 0 for none."""

    name: str
    type: str
    header: bool = False
    key: int = 0


class RowBlock(Struct, frozen=True, kw_only=True, dict=True):
    """Rows of one change table in one partition, in order of change_seq, and the events behind each of them.

    They are held column by column, as files take them; whoever asks for `rows` gets them put together once.
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

    @cached_property
    def rows(self) -> list[ChangeRow]:
        return list(zip(*self.cells, strict=True))

    @property
    def headers(self) -> int:
        """How many header columns there are."""
        return sum(column.header for column in self.columns)


class Growing:
    """A block that rows still come into, one by one or column by column."""

    __slots__ = ("_block", "_rows", "append", "stand")

    def __init__(self, block: RowBlock) -> None:
        self._block = block
        self._rows: list[ChangeRow] = []
        self.append = self._rows.append
        self.stand = block.positions.append

    def extend(self, cells: Sequence[Sequence[Any]], positions: Sequence[tuple[Position, ...]]) -> None:
        self._transpose()
        for column, more in zip(self._block.cells, cells, strict=True):
            column.extend(more)
        self._block.positions.extend(positions)

    def block(self) -> RowBlock:
        self._transpose()
        return self._block

    def _transpose(self) -> None:
        """Puts the rows that came one by one into the columns."""
        for column, more in zip(self._block.cells, by_column(self._rows, len(self._block.cells)), strict=True):
            column.extend(more)
        self._rows.clear()


class RowsDocument(Document, frozen=True, kw_only=True):
    """A document whose content is rows; its body is empty."""

    blocks: tuple[RowBlock, ...] = ()


def by_column(rows: Sequence[ChangeRow], columns: int) -> list[tuple[Any, ...]]:
    """The cells of each column, for what is written column by column."""
    return list(zip(*rows, strict=True)) if rows else [()] * columns


def folder_of(table: Table, target: str) -> str:
    """The folder of a change table; what could lead out of it is no part of a name."""
    whole = f"{table.schema}.{target}" if table.schema else target
    return whole.replace("/", "%2f").replace("\0", "%00")
