"""Rows of change tables: finished cells in blocks of one table each, as sinks take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from eventlog.model import Document, Position, Value
from eventlog.qlik.partitions import Partition
from eventlog.schema import Table

ChangeRow = tuple[Value, ...]


class ChangeColumn(Struct, frozen=True, kw_only=True):
    """One column of a change table: its type as the source calls it; `key` is its place in the key, 0 for none."""

    name: str
    type: str
    header: bool = False
    key: int = 0


class RowBlock(Struct, frozen=True, kw_only=True):
    """Rows of one change table in one partition, in order of change_seq, and the events behind each of them."""

    table: Table
    target: str
    columns: tuple[ChangeColumn, ...]
    rows: list[ChangeRow]
    positions: list[tuple[Position, ...]]
    partition: Partition | None = None

    @property
    def headers(self) -> int:
        """How many header columns there are."""
        return sum(column.header for column in self.columns)


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
