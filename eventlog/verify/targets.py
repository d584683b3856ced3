"""What an output holds of each table: tables and mirrors of a database, change tables there or in
files, associations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, Protocol

import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared, ComparedSide, Key
from eventlog.compare.streamed import StreamedSide
from eventlog.compare.tables import Selection, TableSide
from eventlog.compare.texts import are_blanks_equal
from eventlog.core.errors import DataError, KeySyntaxError, SourceError
from eventlog.core.schema import Table
from eventlog.core.tablekey import parse
from eventlog.sinks.database.control import Control, Record
from eventlog.sinks.database.mirror import BEGINNING, Origin, Watermarks, origin
from eventlog.sql.access import transaction, words_of
from eventlog.sql.dialect import dialect_of
from eventlog.sql.reflect import Classes
from eventlog.verify.history import FoldedChanges
from eventlog.xds.values import association_end

PIECE_ROWS: Final = 5000
"""Rows of a change table that are folded at once."""

WHAT: Final = "The database of the output"


class Target(Protocol):
    """What one output holds. One that `selects` has the tables that a mapping names, and no others. One that
    `names_objects` has the objects that values refer to, as these are called in their own rows.
    """

    selects: bool
    names_objects: bool

    def columns(self, table: Table) -> frozenset[str] | None:
        """Name its columns of a table, in small letters; None where it has nothing of the table."""

    def several(self, table: Table) -> frozenset[str]:
        """Name the attributes from child tables that it has, in small letters."""

    def filled(self, table: Table) -> frozenset[str]:
        """Name its columns that may have any value where ours has none, in small letters."""

    def padded(self, table: Table) -> frozenset[str]:
        """Name its columns that keep no blanks at the end of a text, in small letters."""

    def side(self, table: Table, compared: Compared) -> ComparedSide:
        """Open its rows of a table."""

    def behind(self, table: Table, compared: Compared, keys: Sequence[Key]) -> frozenset[Key]:
        """Find keys with changes known but not yet in their rows."""


class PlainTarget:
    """What may have every table, and has nothing of child tables."""

    selects = False
    names_objects = False

    def several(self, table: Table) -> frozenset[str]:
        return frozenset()

    def filled(self, table: Table) -> frozenset[str]:
        return frozenset()

    def padded(self, table: Table) -> frozenset[str]:
        return frozenset()


class NamedTables(PlainTarget):
    """Tables of a database that are called as the source's are, with a suffix."""

    def __init__(self, engine: Engine, schema: str | None = None, suffix: str = "") -> None:
        self._engine = engine
        self._schema = schema
        self._suffix = suffix

    def columns(self, table: Table) -> frozenset[str] | None:
        target = self._find(table)
        if target is None:
            return None
        return frozenset(column.name.casefold() for column in target.columns)

    def padded(self, table: Table) -> frozenset[str]:
        columns = self._find(table).columns
        return frozenset(column.name.casefold() for column in columns if are_blanks_equal(str(column.type)))

    def behind(self, table: Table, compared: Compared, keys: Sequence[Key]) -> frozenset[Key]:
        return frozenset()

    def name(self, table: Table) -> str:
        return f"{table.name}{self._suffix}"

    def _find(self, table: Table) -> Any:
        """Find the target's table, with its `columns`; None if there is none."""
        raise NotImplementedError

    def _find_compared(self, table: Table, compared: Compared) -> tuple[Any, list[Any]]:
        """Return the table of the target, and its columns in the order of comparison."""
        target = self._find(table)
        # `columns` was asked before.
        assert target is not None
        by_name = {column.name.casefold(): column for column in target.columns}
        return target, [by_name[name.casefold()] for name in (*compared.key, *compared.names)]


class TableTarget(NamedTables):
    """Tables of a database that eventlog knows."""

    def padded(self, table: Table) -> frozenset[str]:
        # Where a column does not say what its values are, it keeps any.
        return super().padded(table) if dialect_of(self._engine).typed_columns else frozenset()

    def side(self, table: Table, compared: Compared) -> ComparedSide:
        target, columns = self._find_compared(table, compared)
        side = TableSide(self._engine, Selection(table=target, columns=tuple(columns)), compared)
        # Where the database cannot hash some column's type, rows are read and hashed here.
        if not side.hashable:
            return StreamedSide(compared, lambda _: side.every())
        return side

    def _find(self, table: Table) -> Table | None:
        with transaction(self._engine, WHAT) as connection:
            schema = Classes(connection, self._schema).schema(self._schema)
            name = schema.find(self.name(table))
            if name is None:
                return None
            shape = schema.shape(name)
        return Table(name=shape.name, schema=shape.schema, columns=shape.columns, view=shape.view)


class ChangeTableTarget(PlainTarget):
    """The change tables of a database: what their rows add up to."""

    def __init__(self, engine: Engine, schema: str | None = None) -> None:
        self._engine = engine
        self._schema = schema
        self._control = Control("", schema)

    def columns(self, table: Table) -> frozenset[str] | None:
        record = self.record(table)
        if record is None:
            return None
        return frozenset(column.name.casefold() for column in record.columns if not column.header)

    def side(self, table: Table, compared: Compared) -> ComparedSide:
        record = self.record(table)
        # `columns` was asked before.
        assert record is not None
        with transaction(self._engine, WHAT) as connection:
            history = origin(connection, record, self._schema)
            folded = FoldedChanges(compared, history.names)
            query, sequence_index = _in_order(history)
            # Without this drivers bring the whole table into memory before the first row.
            streaming = connection.execution_options(stream_results=True, max_row_buffer=1000)
            for piece in pieces(streaming.execute(query), itemgetter(sequence_index)):
                folded.take([history.change_row(row) for row in piece])
        return folded.side

    def behind(self, table: Table, compared: Compared, keys: Sequence[Key]) -> frozenset[Key]:
        return frozenset()

    def record(self, table: Table) -> Record | None:
        """Find the change table of a table."""
        with transaction(self._engine, WHAT) as connection:
            if not sa.inspect(connection).has_table(self._control.records.name, self._schema):
                return None
            records = self._control.all_records(connection)
        for record in records:
            if (record.owner, record.table) == (table.schema or "", table.name):
                return record
        return None


class MirrorTarget(TableTarget):
    """The mirrors that `eventlog apply` keeps of a database's change tables."""

    def __init__(self, engine: Engine, schema: str | None, into: str | None, suffix: str) -> None:
        super().__init__(engine, into, suffix if into == schema else "")
        self._changes = ChangeTableTarget(engine, schema)
        self._change_schema = schema

    def behind(self, table: Table, compared: Compared, keys: Sequence[Key]) -> frozenset[Key]:
        """Find keys with a row in the change table not yet in the mirror."""
        record = self._changes.record(table)
        if record is None:
            return frozenset()
        with transaction(self._engine, WHAT) as connection:
            history = origin(connection, record, self._change_schema)
            watermarks = Watermarks(sa.MetaData(schema=self._schema)).table
            if not sa.inspect(connection).has_table(watermarks.name, self._schema):
                return frozenset()
            own_mark = watermarks.c.mirror == self.name(table)
            mark = connection.scalar(sa.select(watermarks.c.change_seq).where(own_mark)) or BEGINNING
            columns = [history.table.c[name] for name in history.key]
            sequence = history.table.c[history.headers["change_seq"]]
            rows = connection.execute(sa.select(*columns).where(sequence > mark).distinct()).all()
        # It writes keys as they are compared, whatever a driver makes of them.
        scratch = ScratchSide(compared)
        try:
            return frozenset(keys) & {scratch.key(row) for row in rows}
        finally:
            scratch.close()


class StreamedTarget(NamedTables):
    """Tables of a database that eventlog does not know otherwise: every row is read, as SQLAlchemy
    does it.
    """

    def side(self, table: Table, compared: Compared) -> ComparedSide:
        return StreamedSide(compared, lambda _: self._rows(table, compared))

    def _rows(self, table: Table, compared: Compared) -> Iterator[tuple[Any, ...]]:
        _, columns = self._find_compared(table, compared)
        with self._engine.connect() as connection:
            # Else drivers bring the whole table into memory here too.
            streaming = connection.execution_options(stream_results=True, max_row_buffer=1000)
            for row in streaming.execute(sa.select(*columns)):
                yield tuple(row)

    def _find(self, table: Table) -> sa.Table | None:
        try:
            return sa.Table(self.name(table), sa.MetaData(schema=self._schema), autoload_with=self._engine)
        except sa.exc.NoSuchTableError:
            return None
        except sa.exc.SQLAlchemyError as error:
            raise SourceError(f"{WHAT} cannot be read: {words_of(error)}.") from error


class AssociationTarget(PlainTarget):
    """The associations that a vault has, one in a line of a file: only whether each object is there
    can be compared.
    """

    def __init__(self, file: Path, schema: str | None = None) -> None:
        self._file = file
        self._schema = schema

    def columns(self, table: Table) -> frozenset[str] | None:
        return frozenset(name.casefold() for name in table.key)

    def side(self, table: Table, compared: Compared) -> ComparedSide:
        scratch = ScratchSide(compared)
        scratch.write(self._keys(table, compared))
        return scratch

    def behind(self, table: Table, compared: Compared, keys: Sequence[Key]) -> frozenset[Key]:
        return frozenset()

    def _keys(self, table: Table, compared: Compared) -> Iterator[tuple[Any, ...]]:
        # A vault may have them with the schema or without.
        schemas = (table.schema, self._schema, None)
        ends = [association_end(table.name, schema) for schema in schemas]
        wanted = [name.casefold() for name in compared.key]
        for number, line in enumerate(self._lines(), 1):
            end = next(filter(line.endswith, ends), None)
            # Those of other tables stand in the same file.
            if end is None:
                continue
            try:
                parts = {name.casefold(): text for name, text in parse(line.removesuffix(end)).parts}
            except KeySyntaxError as error:
                raise DataError(f"{self._file}, line {number}: {error.message}") from None
            if sorted(parts) == sorted(wanted):
                yield tuple([parts[name] for name in wanted])

    def _lines(self) -> Iterator[str]:
        try:
            # A byte order mark at the beginning is no part of the first key.
            with self._file.open(encoding="utf-8-sig") as lines:
                yield from (line.strip() for line in lines)
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is no UTF-8 text"
            message = f"{self._file} cannot be read: {why}."
            raise DataError(message, hint="Write one association in each line.") from None


def pieces(rows: Iterable[Any], sequence: Callable[[Any], Any]) -> Iterator[list[Any]]:
    """Yield rows in pieces for work at once; those of one change stay together."""
    remaining = iter(rows)
    piece: list[Any] = []
    while more := list(islice(remaining, PIECE_ROWS)):
        piece += more
        # The last change may go on in the next rows, so it stays for the next piece.
        last = sequence(piece[-1])
        cut = len(piece)
        while cut and sequence(piece[cut - 1]) == last:
            cut -= 1
        if cut:
            yield piece[:cut]
            piece = piece[cut:]
    if piece:
        yield piece


def _in_order(history: Origin) -> tuple[Any, int]:
    sequence = history.table.c[history.headers["change_seq"]]
    oper = history.table.c[history.headers["change_oper"]]
    query = sa.select(history.table).order_by(sequence, oper)
    return query, history.names.index(history.headers["change_seq"])
