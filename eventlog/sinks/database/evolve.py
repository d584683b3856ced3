"""Makes and alters change tables as their source tables change; never takes a column or a row away.

Law: the bits of a mask are the places of the columns in the change table as it stands. Where that
has another order than the source, because columns came in the middle or went, masks are put into
the target's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, Table

from eventlog.core.errors import ExpressionError, shorten
from eventlog.qlik.change_seq import START
from eventlog.qlik.change_tables.rows import ChangeColumn, RowBlock
from eventlog.sinks.change_files.dfm import describe_column
from eventlog.sinks.database.control import Control, Record, add_columns, change_types
from eventlog.sinks.database.types import target_type
from eventlog.sinks.database.widening import wider
from eventlog.sql.dialect import dialect_of


class BlockShape(Struct, frozen=True, kw_only=True):
    """How blocks get into a change table: which of their columns, and where each stands in the
    target.
    """

    table: Any
    columns: tuple[ChangeColumn, ...]
    taken: tuple[int, ...]
    """Places in the block of the columns that the target has."""
    places: dict[int, int]
    """The place in the target of each place in the block; a mask's bits follow it."""

    @property
    def ordered(self) -> bool:
        """Return True if column numbers are the same in block and table, so masks need no change."""
        if len(self.places) != len(self.columns):
            return False
        return all(own == there for own, there in self.places.items())


class Evolution:
    """Brings the change tables of a task to what blocks need.

    `log` is whose rows they are, where that is known.
    """

    def __init__(self, control: Control, schema: str | None, *, apply: bool, index: bool) -> None:
        self._control = control
        self._schema = schema
        self._apply = apply
        self._index = index
        self.log = ""
        self._shapes: dict[tuple[str, str | None, str], BlockShape] = {}

    def forget(self) -> None:
        """Looks at every table anew; what a transaction did that was rolled back is not there."""
        self._shapes.clear()

    def shape(self, connection: Connection, block: RowBlock, change_seq: str) -> BlockShape:
        """Create or alter the change table as needed; return how the block fits into it.

        Raises ExpressionError if it cannot fit.
        """
        # Two tables must not share a change table.
        whose = (block.target, block.table.schema, block.table.name)
        known = self._shapes.get(whose)
        if known is None or known.columns != block.columns:
            # Before the first document there is no change_seq, and the history wants one.
            known = self._shapes[whose] = self._evolve(connection, block, change_seq or START.text)
        return known

    def _evolve(self, connection: Connection, block: RowBlock, change_seq: str) -> BlockShape:
        # A name that the database would cut is refused before anything is made.
        self._check_names(connection, block)
        former = self._control.record(connection, block.target)
        there = self._columns_there(connection, block.target)
        known = former
        if former is None and there is not None:
            known = self._alike(connection, block.target)
        if known is not None:
            self._check_owner(block, known)
        made = block
        if former is not None and there is not None:
            made = replace(block, columns=self._widen(block, former))
        record = Record(
            target=block.target,
            owner=block.table.schema or "",
            table=block.table.name,
            version=former.version if former is not None else 1,
            columns=made.columns,
            log=self.log or (former.log if former is not None else ""),
            task=self._control.task,
        )
        if there is None:
            self._create(connection, block)
            added = {}
            for index, column in enumerate(block.columns):
                added[column.name] = _detail(column, "ADD", index)
            self._note(connection, record, former, change_seq, "CREATE_TABLE", added)
        else:
            self._alter(connection, made, record, former, there, change_seq)
        return replace(self._shape(connection, made), columns=block.columns)

    def _alike(self, connection: Connection, target: str) -> Record | None:
        """Find a change table whose name differs only in case."""
        records = self._control.all_records(connection)
        alike = [record for record in records if record.target.casefold() == target.casefold()]
        return alike[0] if alike else None

    def _check_owner(self, block: RowBlock, former: Record) -> None:
        """Refuses what is the change table of something else."""
        if (former.owner, former.table) != (block.table.schema or "", block.table.name):
            whose = f"{former.owner}.{former.table}" if former.owner else former.table
            problem = f"{block.target} is the change table of {whose} already"
            raise ExpressionError(f"{problem}; choose another suffix or schema")
        if former.log and self.log and former.log != self.log:
            problem = f"{block.target} is a change table of another event log already"
            raise ExpressionError(f"{problem}; choose another suffix or schema")
        # Its change_seq would run backwards, where one of the two is behind.
        if former.task != self._control.task:
            problem = f"{block.target} is a change table of the task {former.task} already"
            way_out = "if the task has another name now, write that into eventlog_change_table.task"
            raise ExpressionError(f"{problem}; choose another suffix or schema, or, {way_out}")

    def _widen(self, block: RowBlock, former: Record) -> tuple[ChangeColumn, ...]:
        """Widen the block's columns to types that also hold the values already in the change table."""
        known = _name_known_columns(former)
        columns = []
        for column in block.columns:
            # Known by what was noted, not by the database, which may call the type otherwise.
            there = known.get(column.name.casefold(), column).type
            kind = wider(there, column.type)
            if kind is None and self._apply:
                raise ExpressionError(
                    f"its column {column.name} is {there} there and {column.type} now, and neither"
                    " holds the values of the other; drop that table when its rows are read, or"
                    " choose another suffix or schema"
                )
            columns.append(replace(column, type=kind or column.type))
        return tuple(columns)

    def _check_names(self, connection: Connection, block: RowBlock) -> None:
        """Refuses names that the target would cut or not take."""
        limit = connection.dialect.max_identifier_length
        for name in (block.target, *[column.name for column in block.columns]):
            if len(name.encode()) > limit or not name or "\0" in name:
                problem = f"the target cannot hold the name {shorten(name)!r}"
                raise ExpressionError(f"{problem}; it takes {limit} bytes")
        folded = [column.name.casefold() for column in block.columns]
        doubled = [name for name in folded if folded.count(name) > 1]
        if doubled:
            problem = f"two of its columns are called {doubled[0]!r}"
            raise ExpressionError(f"{problem} but for upper and lower case")

    def _columns_there(self, connection: Connection, target: str) -> list[str] | None:
        inspector = sa.inspect(connection)
        if not inspector.has_table(target, self._schema):
            return None
        dialect = dialect_of(connection)
        return [dialect.column_name(column["name"]) for column in inspector.get_columns(target, self._schema)]

    def _create(self, connection: Connection, block: RowBlock) -> None:
        table = self._table(connection, block.target, block.columns)
        table.create(connection)
        sequences = [column.name for column in block.columns if column.is_called("change_seq")]
        if self._index and sequences:
            # Cut at its beginning, so that the ending says what it is.
            name = f"{block.target}_seq"[-connection.dialect.max_identifier_length :]
            sa.Index(name, table.c[sequences[0]]).create(connection)

    def _alter(
        self,
        connection: Connection,
        block: RowBlock,
        record: Record,
        former: Record | None,
        there: Sequence[str],
        change_seq: str,
    ) -> None:
        have = {name.casefold() for name in there}
        missing = [column for column in block.columns if column.name.casefold() not in have]
        if former is None and any(column.header for column in missing):
            problem = f"{block.target} is there and is no change table"
            raise ExpressionError(f"{problem}: it has no column {missing[0].name}")
        known = _name_known_columns(former)
        noted = [] if former is None else [column.name.casefold() for column in former.columns]
        own = {column.name.casefold() for column in block.columns}
        record = replace(record, gone=tuple([known[name] for name in known if name not in own]))
        retyped = []
        news: dict[str, dict[str, Any]] = {}
        for index, column in enumerate(block.columns):
            name = column.name.casefold()
            if name in known and name in have and known[name].type != column.type:
                retyped.append(column)
                news[column.name] = _detail(column, "ALTER", 0)
            # Also one that the table has kept since it went.
            if name not in have or (former is not None and name not in noted):
                news[column.name] = _detail(column, "ADD", index)
        # Noted, and no more: a column with its values is never taken away.
        gone = [known[name] for name in noted if name not in own]
        news |= {column.name: _detail(column, "DROP", 0) for column in gone}
        if former is not None and not news:
            # Such as another key, of which a reader of the history wants to know nothing.
            if replace(record, partition=former.partition) != former:
                self._control.keep(connection, record, former=former)
            return
        if self._apply:
            types = dialect_of(connection).types
            added = {column.name: target_type(column.type, types) for column in missing}
            add_columns(connection, block.target, self._schema, added)
            wider_types = {column.name: target_type(column.type, types) for column in retyped}
            change_types(connection, block.target, self._schema, wider_types)
        if former is not None:
            record = replace(record, version=former.version + 1)
        self._note(connection, record, former, change_seq, "ALTER_TABLE", news)

    def _note(
        self,
        connection: Connection,
        record: Record,
        former: Record | None,
        change_seq: str,
        kind: str,
        columns: dict[str, Any],
    ) -> None:
        self._control.keep(connection, record, former=former)
        self._control.announce_ddl(connection, record, change_seq, kind, columns)

    def _shape(self, connection: Connection, block: RowBlock) -> BlockShape:
        # A database may have made the names upper or lower case.
        there = self._columns_there(connection, block.target) or []
        present = {name.casefold(): (index, name) for index, name in enumerate(there)}
        places: dict[int, int] = {}
        columns, names = [], {}
        for own_index, column in enumerate(block.columns):
            if column.name.casefold() in present:
                places[own_index], names[column.name] = present[column.name.casefold()]
                columns.append(column)
        table = self._table(connection, block.target, columns, names)
        return BlockShape(table=table, columns=block.columns, taken=tuple(places), places=places)

    def _table(
        self,
        connection: Connection,
        target: str,
        columns: Sequence[ChangeColumn],
        names: dict[str, str] | None = None,
    ) -> Table:
        names = names or {}
        types = dialect_of(connection).types
        made: list[sa.Column[Any]] = []
        for column in columns:
            name = names.get(column.name, column.name)
            made.append(sa.Column(name, target_type(column.type, types)))
        return sa.Table(target, sa.MetaData(schema=self._schema), *made)


def _name_known_columns(former: Record | None) -> dict[str, ChangeColumn]:
    """Map the columns of a change table by their names in lower case."""
    columns = () if former is None else (*former.gone, *former.columns)
    return {column.name.casefold(): column for column in columns}


def _detail(column: ChangeColumn, action: str, index: int) -> dict[str, Any]:
    """Describe a column for the DDL history."""
    facts = describe_column(column, index + 1)
    return {
        "columnNewName": None,
        "action": action,
        **{fact: facts[fact] for fact in ("type", "length", "precision", "scale")},
        "primaryKeyPosition": facts["primaryKeyPos"],
        "nullable": True,
        "ordinal": facts["ordinal"],
    }
