"""Changes with the types of their tables: a frame for each table, with the row before and the row after each change.

What nobody noted is NULL there, too: `known` names the columns of `after` that have a value or NULL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from msgspec.structs import replace

from eventlog.convert.settings import TableFiles
from eventlog.convert.to_changes import changes_of
from eventlog.core.errors import DataError
from eventlog.core.model import Change, Op
from eventlog.core.schema import Catalog, Table
from eventlog.qlik.change_seq import utc
from eventlog.qlik.change_tables.rows import ChangeColumn, folder_of
from eventlog.qlik.limits import reading_within
from eventlog.qlik.values import NEVER, RowBuilder, TableValues
from eventlog.sinks.change_files.arrow import arrow_columns, arrow_schema
from eventlog_spark.types import ddl, name_function

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BLOCK_CHANGES: Final = 4_096


def typed_changes(changes: DataFrame, catalog: Catalog) -> dict[str, DataFrame]:
    """Return a frame for each table, by its name: `position`, `op`, `event_time`, `table_key`, the rows `before` and
    `after` with the types of the table, the columns that are `changed` and those `known` of `after`, and a `note`
    where a value cannot be written.
    """
    from pyspark.sql import functions as F  # noqa: N812  # as everybody calls it

    frames = {}
    for table in catalog:
        is_own = (F.col("table_name") == table.name) & F.col("table_schema").eqNullSafe(F.lit(table.schema))
        rows = changes.where(is_own)
        schema = ddl(TypedTable(table).schema)
        frames[folder_of(table, table.name)] = rows.mapInArrow(name_function(_type_changes, table), schema)
    return frames


def _type_changes(table: Table, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    typed = TypedTable(table)
    for batch in batches:
        for start in range(0, len(batch), BLOCK_CHANGES):
            some = batch.slice(start, BLOCK_CHANGES)
            yield typed.batch(some.column("position").to_pylist(), list(changes_of(some)))


class TypedTable:
    """The changes of one table as typed rows."""

    def __init__(self, table: Table) -> None:
        values = TableValues(table)
        limits = TableFiles().files.limits
        ways = [(NEVER, reading_within(column.type, limits)) for column in values.columns]
        self._names = values.names
        self._columns = [ChangeColumn(name=column.name, type=column.type) for column in values.columns]
        self._builder = RowBuilder(values, ways, None)
        self._row = pa.struct(list(arrow_schema(self._columns)))
        names = pa.list_(pa.string())
        self.schema = pa.schema(
            [
                ("position", pa.int64()),
                ("op", pa.string()),
                ("event_time", pa.timestamp("us", "UTC")),
                ("table_key", pa.string()),
                ("before", self._row),
                ("after", self._row),
                ("changed", names),
                ("known", names),
                ("note", pa.string()),
            ]
        )

    def batch(self, positions: Sequence[int], changes: Sequence[Change]) -> pa.RecordBatch:
        """Make a row of each change."""
        rows = [self._cells(change) for change in changes]
        op, time, key, before, after, changed, known, note = zip(*rows, strict=True) if rows else [()] * 8
        cells = [positions, op, time, key, self._structs(before), self._structs(after), changed, known, note]
        columns = [
            cell if isinstance(cell, pa.Array) else pa.array(cell, field.type)
            for cell, field in zip(cells, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _cells(self, change: Change) -> tuple[Any, ...]:
        # A row that was read back after it came is one that came, and so is one of a full load.
        if change.refresh or change.created:
            change = replace(change, op=Op.ADD)
        time = None if change.time is None else utc(change.time)
        told = change.op.value, time, change.row.key
        try:
            before, after, changed, _, known = self._builder.images(change)
        except DataError as error:
            return *told, None, None, None, None, str(error)
        return *told, before, after, self._named(changed), self._named(known), None

    def _named(self, bits: int) -> list[str]:
        return [name for index, name in enumerate(self._names) if bits >> index & 1]

    def _structs(self, rows: Sequence[list[Any] | None]) -> pa.Array:
        """Make a column of rows, NULL where there is none."""
        nothing = [None] * len(self._columns)
        cells = [list(column) for column in zip(*[row or nothing for row in rows], strict=True)]
        table = arrow_columns(self._columns, cells or [[] for _ in self._columns])
        arrays = [column.combine_chunks() for column in table.columns]
        return pa.StructArray.from_arrays(
            arrays, fields=list(self._row), mask=pa.array([row is None for row in rows], pa.bool_())
        )
