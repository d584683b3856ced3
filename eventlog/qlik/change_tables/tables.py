"""Change tables: their columns, and how the changes of their source tables become rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from eventlog.core.errors import DataError, ExpressionError, value_shown
from eventlog.core.limits import ColumnLimits
from eventlog.core.model import Change, Op, Refusal
from eventlog.core.schema import Catalog, Table
from eventlog.on_value import refuse, write_otherwise
from eventlog.qlik.change_seq import utc
from eventlog.qlik.change_tables.columnwise import Codec, LaidRows, Layout
from eventlog.qlik.change_tables.partitions import Partition, Partitions
from eventlog.qlik.change_tables.rows import (
    BEFORE,
    OPERATIONS,
    ChangeColumn,
    ChangeRow,
    header_columns,
    stream_position,
    transaction_id,
    who_cells,
)
from eventlog.qlik.change_tables.settings import HEADERS, ChangeTableSettings
from eventlog.qlik.limits import limit_of, reading_within
from eventlog.qlik.masks import MOST_COLUMNS, KeptMasks, bits_to_bytes, bits_to_hex
from eventlog.qlik.nearest import ColumnSayer
from eventlog.qlik.values import NEVER, RowBuilder, TableValues

_NO_SEQUENCE = HEADERS[1:]


def picker(settings: ChangeTableSettings) -> Callable[[tuple[Any, ...]], tuple[Any, ...]] | None:
    """Make what takes the cells of the header columns that are there; None where that is all of them."""
    indexes = [_NO_SEQUENCE.index(name) for name in settings.present if name != "change_seq"]
    if not indexes:
        return lambda _: ()
    if len(indexes) == 1:  # itemgetter would give the cell and not a tuple of it
        only = indexes[0]
        return lambda cells: (cells[only],)
    return itemgetter(*indexes) if len(indexes) < len(_NO_SEQUENCE) else None


class ChangeTable:
    """One change table: its columns, and how the changes of its source table become rows."""

    def __init__(
        self,
        table: Table,
        settings: ChangeTableSettings,
        *,
        load: bool = False,
        route: str = "",
        limits: ColumnLimits | None = None,
        who: bool = False,
    ) -> None:
        """Make a change table; with `load` it has the rows of a full load: the table's own columns, under its
        own name.

        A `route` is its name. With `who` header columns say who is behind a change.
        """
        self._who = who and not load
        self.source, self.route = table, route
        if route:
            table = replace(table, name=route)
        self.target = f"{table.name}{settings.suffix}"
        if load:
            # Rows of a full load are what a target loads as they are, so nothing stands before
            # them.
            settings = replace(settings, headers=(), partition_every=0)
            self.target = table.name
        self.load = load
        self.table = table
        self.values = TableValues(table)
        headers = header_columns(settings, who=self._who)
        columns = [ChangeColumn(name=name, type=kind, header=True) for name, kind in headers]
        for index, column in enumerate(self.values.columns):
            key = self.values.key.index(index) + 1 if index in self.values.key else 0
            columns.append(ChangeColumn(name=column.name, type=column.type, key=key))
        self.columns = tuple(columns)
        self.offset = len(headers)
        self.sequenced = "change_seq" in settings.headers
        self._check(settings, [name for name, _ in headers])
        codec: Codec = bits_to_hex if settings.mask == "hex" else bits_to_bytes
        # Header columns have bits too, and stand before the table's own.
        self._masks = KeptMasks(codec(0), lambda bits: codec(bits << self.offset))
        self._before_image = settings.before_image
        self._pick = picker(settings)
        self._seen: tuple[object, str] = (None, "")
        """The last transaction and its 32 digits, which neighbours mostly share."""
        bounds = [limit_of(column.type, limits) if limits else None for column in self.values.columns]
        readings = [reading_within(column.type, limits) for column in self.values.columns]
        self._builder = RowBuilder(self.values, [(NEVER, read) for read in readings], None)
        self._layout = Layout(
            self.values,
            self._builder,
            self._masks.__getitem__,
            self._pick,
            before_image=settings.before_image,
            bounds=bounds,
            who=self._who,
        )
        self.sayer = ColumnSayer(self.values.columns, readings)

    def rows(self, change: Change) -> tuple[ChangeRow, ...]:
        """Write the finished cells of the change's rows, without change_seq and partition_name.

        Return None where nothing changed.
        """
        # A row of a full load is one that came, and so is one that was read back after it came.
        if change.refresh or change.created:
            change = replace(change, op=Op.ADD)
        before, after, bits, had, _ = self._builder.images(change)
        op = change.op
        modified = op is Op.MODIFY
        # An update that changes nothing has no row; a consumer would see an empty mask.
        if modified and not bits:
            return ()
        transaction = change.transaction
        if transaction is not self._seen[0]:
            self._seen = (transaction, transaction_id(transaction))
        identity = self._seen[1]
        oper, operation = OPERATIONS[op]
        stream = change.stream or stream_position(change)
        time = change.time
        # `utc`, in line for the usual case: this is done for every change.
        if time.__class__ is not dt.datetime or time.tzinfo is not None:
            time = utc(time)
        pick, masks, key_bits = self._pick, self._masks, self.values.key_bits
        header: tuple[Any, ...] = (oper, masks[bits], stream, operation, identity, time)
        if pick is not None:
            header = pick(header)
        if self._who:
            header = (*header, *who_cells(change))
        # A deletion has no row after it, and a truncation has none at all.
        own = after or before or [None] * len(self.values.columns)
        row = (*header, *own)
        # A row before that has nothing but the key that it still has would tell nothing.
        if not (modified and self._before_image and had & ~key_bits | bits & key_bits):
            return (row,)
        header = (BEFORE[0], masks[None], stream, BEFORE[1], identity, time)
        if pick is not None:
            header = pick(header)
        if self._who:
            header = (*header, *who_cells(change))
        return (*header, *(before or ())), row

    def lay_out(self, changes: Sequence[Change]) -> LaidRows | None:
        """Lay out the rows of many changes, column by column, as `rows` writes them.

        Return None where each must be asked by itself.
        """
        return self._layout.lay_out(changes)

    def _check(self, settings: ChangeTableSettings, headers: Sequence[str]) -> None:
        """Refuses a table that no change table can be made for."""
        # Without regard to case: most databases that load these tables do not tell them apart.
        taken = {name.casefold() for name in headers}
        doubled = [column.name for column in self.values.columns if column.name.casefold() in taken]
        if doubled:
            raise ExpressionError(
                f"its column {value_shown(doubled[0])} is called as a header column is;"
                " choose another change_tables.prefix"
            )
        if "change_mask" in settings.headers and len(self.columns) > MOST_COLUMNS:
            raise ExpressionError(
                f"it would have {len(self.columns)} columns, and a mask has bits for {MOST_COLUMNS};"
                " leave change_mask out of change_tables.headers"
            )


class ChangeTables:
    """The change tables of a catalog, each made when it is first met."""

    def __init__(
        self,
        settings: ChangeTableSettings,
        catalog: Catalog | None,
        *,
        loads: bool = False,
        limits: ColumnLimits | None = None,
        who: bool = False,
    ) -> None:
        """Make the tables. With `loads`, rows of a full load go into tables of their own; with `who` header
        columns say who is behind a change.
        """
        self._who = who
        self._limits = limits
        self.settings = settings
        self._loads = loads
        self.partitions: Partitions | None = None
        if settings.partition_every:
            self.partitions = Partitions(settings.partition_every, settings.base())
        self._tables = {(table.schema, table.name): table for table in catalog or ()}
        self._chosen = frozenset(settings.tables)
        self._made: dict[tuple[str | None, str, bool, str], ChangeTable | ExpressionError | None] = {}

    def of(self, change: Change) -> ChangeTable | None:
        """Find the table of a change.

        Return None where its table was not chosen; raise ExpressionError where it has none.
        """
        name = change.row.schema, change.row.table, self._loads and change.refresh, change.route
        if name not in self._made:
            self._made[name] = self._look_up(*name)
        table_or_error = self._made[name]
        # The reason is kept too: each change of such a table is refused, and none looks it up again.
        if isinstance(table_or_error, ExpressionError):
            raise table_or_error
        return table_or_error

    def otherwise(
        self, change: Change, error: DataError, table: ChangeTable | None
    ) -> tuple[Refusal, tuple[ChangeRow, ...]]:
        """Refuse a change or some of its values; return also its rows without them."""
        if table is None:
            return refuse(change, error), ()
        if change.created:  # also one of which no value can be written is there
            change = replace(change, op=Op.ADD)
        refusal, rows = write_otherwise(change, error, table.sayer, self.settings.on_value, table.rows)
        return refusal, rows or ()

    def apart(self, changes: Sequence[Change]) -> bool:
        """Return True if rows of a full load are among them, which go another way than the others of their
        table.
        """
        return self._loads and any(change.refresh for change in changes)

    def _look_up(
        self,
        schema: str | None,
        name: str,
        load: bool,
        route: str,
    ) -> ChangeTable | ExpressionError | None:
        if self._chosen and not self._chosen & {name, f"{schema}.{name}"}:
            return None
        table = self._tables.get((schema, name))
        if table is None:
            return ExpressionError("its columns are not known, and a change table needs them; give a schema file")
        try:
            return ChangeTable(table, self.settings, load=load, route=route, limits=self._limits, who=self._who)
        except ExpressionError as error:
            return error


def finish_row(
    row: ChangeRow,
    change_seq: str,
    table: ChangeTable,
    partition: Partition | None,
) -> ChangeRow:
    """Add change_seq and the name of its partition to a row, where these are among the columns."""
    if partition is not None:
        # The last of the headers, in a row without its change_seq.
        index = table.offset - 1 - table.sequenced
        row = (*row[:index], partition.name, *row[index:])
    if table.sequenced:
        return (change_seq, *row)
    return row
