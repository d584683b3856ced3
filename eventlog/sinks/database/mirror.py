"""Mirrors: tables that are kept equal to source tables by what change tables tell, as far as a
watermark says.

Change tables are applied a piece at a time, the rows and the watermark in one transaction. Many
rows are folded into the least that a mirror has to do; doing the steps in their order gives the
rows that the changes one by one would give. Of a piece deletes come first, then inserts, then
updates, each for many rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, Engine, MetaData, Table
from sqlalchemy.sql.elements import ColumnElement

from eventlog.core.errors import DataError, SourceError, UsageError
from eventlog.core.schema import WHOLE_ROW
from eventlog.qlik.change_tables.folding import (
    ChangeRow,
    Key,
    Moved,
    Nets,
    RowCounts,
    Step,
    Values,
    count,
    fold,
)
from eventlog.qlik.masks import bits_of
from eventlog.sinks.database.control import Control, Record, add_columns, change_types
from eventlog.sinks.database.mirror_keys import refuse_loose_key
from eventlog.sinks.database.mirror_rows import one_nan, read_rows
from eventlog.sinks.database.types import target_type
from eventlog.sinks.database.widening import wider
from eventlog.sql.access import transaction
from eventlog.sql.column_types import KeyText
from eventlog.sql.dialect import dialect_of
from eventlog.sql.homes import find_home

BEGINNING: Final = "0"
"""The watermark before every change.

It stands outside the data, because a delete may take the last row with it.
"""


class Origin(Struct, frozen=True, kw_only=True):
    """A change table as it is read: its header columns by their names without the prefix, and the
    key.
    """

    table: Any
    headers: dict[str, str]
    key: tuple[str, ...]
    names: tuple[str, ...]
    """All columns in the order in which they stand, which is what the bits of masks count."""

    def change_row(self, row: Sequence[Any]) -> ChangeRow:
        """Convert a row of the change table to a change."""
        cells = dict(zip(self.names, row, strict=True))
        headers = set(self.headers.values())
        values = {name: cell for name, cell in cells.items() if name not in headers}
        for name in self.key:
            values[name] = one_nan(values[name])
        oper = cells[self.headers["change_oper"]]
        return ChangeRow(oper=oper, values=values, changed=self._find_changed(cells, values, oper))

    def refuse_lost_key(self, changes: Sequence[ChangeRow], sequences: Sequence[str]) -> None:
        """Refuses an update of the key without the row before it, under whose key a row would
        stay.
        """
        if "change_mask" not in self.headers:  # every update tells its key there
            return
        former = ""
        for change, sequence in zip(changes, sequences, strict=True):
            alone = change.oper == "U" and former != "B"
            if alone and not change.changed.isdisjoint(self.key):
                table = self.table.name
                raise DataError(
                    f"{table} does not say whose key the update {sequence} changed: it has no row before it.",
                    hint="Set change_tables.before_image = true, drop the mirror, delete its row in"
                    f" eventlog_applied and the rows of {table}, and run `eventlog refresh` and"
                    " `eventlog apply`.",
                )
            former = change.oper

    def _find_changed(self, cells: dict[str, Any], values: dict[str, Any], oper: str) -> frozenset[str]:
        """Find the columns the row sets; without a mask, those not NULL."""
        mask = self.headers.get("change_mask")
        # A before image has no mask: it has all that was captured.
        if mask is None or oper == "B":
            return frozenset([name for name, value in values.items() if value is not None])
        bits = bits_of(cells[mask])
        changed = [name for index, name in enumerate(self.names) if bits >> index & 1]
        return frozenset([name for name in changed if name in values])


def origin(connection: Connection, record: Record, schema: str | None) -> Origin:
    """Describe a change table as a source of a mirror; raise DataError if it cannot be one."""
    types = {column.name.casefold(): column.type for column in (*record.gone, *record.columns)}
    heads = {column.name.casefold() for column in record.columns if column.header}
    present = sa.inspect(connection).get_columns(record.target, schema)
    names = [dialect_of(connection).column_name(column["name"]) for column in present]
    headers = {
        ending: name
        for ending in HEADER_ENDINGS
        for name in names
        if name.casefold() in heads and name.endswith(ending)
    }
    for needed in ("change_seq", "change_oper"):
        if needed not in headers:
            raise DataError(
                f"{record.target} has no {needed}, without which nothing can be applied;"
                " add it to change_tables.headers."
            )
    actual = {name.casefold(): name for name in names}
    # By the names that the database has for them, in the order of the key.
    keyed = sorted((column.key, actual[column.name.casefold()]) for column in record.columns if column.key)
    if not keyed:
        hint = "Give the source table a primary key, then publish a change of it."
        raise DataError(f"{record.target}: nobody knows the key of {record.table}.", hint=hint)
    there = dialect_of(connection).types
    made: list[sa.Column[Any]] = []
    for name in names:
        sql_type = types.get(name.casefold(), "text")  # a column that somebody added by hand
        made.append(sa.Column(name, target_type(sql_type, there)))
    table = sa.Table(record.target, sa.MetaData(schema=schema), *made)
    return Origin(table=table, headers=headers, key=tuple(name for _, name in keyed), names=tuple(names))


HEADER_ENDINGS: Final = (
    *("change_seq", "change_oper", "change_mask", "stream_position", "operation"),
    *("transaction_id", "timestamp", "partition_name"),
)


def mirror_table(connection: Connection, of: Origin, name: str, schema: str | None) -> Table:
    headers, types = set(of.headers.values()), dialect_of(connection).types
    counted = of.key == (WHOLE_ROW,)  # equal rows have one key
    made = []
    for column in of.table.columns:
        if column.name in headers:
            continue
        keyed = column.name in of.key
        # Not every database takes a long text as a key.
        kind = types.keyed(column.type) if keyed else column.type
        own = sa.Column(column.name, kind, primary_key=keyed and not counted, index=keyed and counted)
        # The values are the source's; a key of one whole number would number itself otherwise.
        own.autoincrement = False
        made.append(own)
    table = sa.Table(name, sa.MetaData(schema=schema), *made)
    inspector = sa.inspect(connection)
    if not inspector.has_table(name, schema):
        table.create(connection)
        return table
    reported = inspector.get_columns(name, schema)
    there = {dialect_of(connection).column_name(column["name"]).casefold(): column for column in reported}
    if counted and WHOLE_ROW not in there:
        raise DataError(
            f"{name} has no column {WHOLE_ROW}, so no row of it can be found.",
            hint="Let `eventlog apply` make the mirror, or choose another --suffix.",
        )
    new = {column.name: column.type for column in made if column.name.casefold() not in there}
    if new:
        add_columns(connection, name, schema, new)
    _widen(connection, of, table, there)
    return table


def _widen(connection: Connection, of: Origin, mirror: Table, there: Mapping[str, Any]) -> None:
    """Gives columns that are `there`, as the database reports them, types that hold what the change
    table's columns hold now.
    """
    changed = sa.inspect(connection).get_columns(of.table.name, of.table.schema)
    changed_types = {dialect_of(connection).column_name(column["name"]): column["type"] for column in changed}
    types, new = dialect_of(connection).types, {}
    for column in mirror.columns:
        own = there.get(column.name.casefold())
        if own is None:
            continue  # it was added just now
        present = of.table.c[column.name].type
        # As the database tells it, which may have made more of a type; a key has a type of its own.
        later_type = changed_types[column.name] if column.type is present else column.type
        # Whoever added a column by hand may have chosen a type that nobody knows here.
        if any(isinstance(kind, sa.types.NullType) for kind in (own["type"], later_type)):
            continue
        later = later_type.compile(connection.dialect)
        former = own["type"].compile(connection.dialect)
        kind = wider(former, later)
        if kind not in (None, former):
            grown = present if kind == later else target_type(kind, types)
            new[column.name] = types.keyed(grown) if column.primary_key else grown
    change_types(connection, mirror.name, mirror.schema, new)


class Watermarks:
    """How far each mirror is, in a table beside the mirrors."""

    def __init__(self, metadata: MetaData) -> None:
        self.table = sa.Table(
            "eventlog_applied",
            metadata,
            sa.Column("mirror", KeyText(128), primary_key=True),
            sa.Column("change_seq", sa.String(35), nullable=False),
        )

    def of(self, connection: Connection, mirror: str) -> str:
        """Return the change_seq of the last change in the mirror."""
        query = sa.select(self.table.c.change_seq).where(self.table.c.mirror == mirror)
        # Locked, so that two who apply at once do it one after the other.
        return connection.scalar(query.with_for_update()) or BEGINNING

    def advance(self, connection: Connection, mirror: str, former: str, change_seq: str) -> None:
        if former == BEGINNING:
            connection.execute(self.table.insert().values(mirror=mirror, change_seq=change_seq))
        else:
            changed = self.table.update().where(self.table.c.mirror == mirror)
            connection.execute(changed.values(change_seq=change_seq))


PIECE_ROWS: Final = 10_000
"""Rows of a change table that are applied in one transaction."""


class Applied(Struct, frozen=True, kw_only=True):
    """What was done for one mirror, and how far it is."""

    change_table: str
    mirror: str
    rows: int
    change_seq: str


class Mirrors:
    """The mirrors of a database's change tables.

    Mirrors in the same schema have names that end with `suffix`.
    """

    def __init__(
        self,
        engine: Engine,
        schema: str | None = None,
        into: str | None = None,
        suffix: str = "__mirror",
        *,
        adopt: bool = False,
        piece: int = PIECE_ROWS,
    ) -> None:
        if into == schema and not suffix:
            raise UsageError("Mirrors must never be the source tables; use --into SCHEMA or --suffix TEXT.")
        self._engine = engine
        self._schema = schema
        self._into = into
        self._suffix = suffix
        self._adopt = adopt
        # An update has two rows, and is never cut in two.
        self._piece = max(piece, 2)
        self._begin = dialect_of(engine).ddl.begin_ddl
        self._metadata = sa.MetaData(schema=into)
        self._watermarks = Watermarks(self._metadata)
        self._control = Control("", schema)

    def apply(self, tables: Sequence[str] = (), leave: Callable[[str], None] | None = None) -> list[Applied]:
        """Applies everything that came since the last time; `tables` are source tables, by default
        all.

        `leave` hears which of them cannot have a mirror, and why; without it, that is an error.
        """
        applied: list[Applied] = []
        chosen, known = self._records(tables)
        for record in chosen:
            try:
                refuse_shared_mirror(record, known)
                applied.append(self._apply_to(record))
            except (DataError, SourceError) as error:
                if leave is None or (isinstance(error, SourceError) and error.may_pass):
                    raise
                leave(f"{record.table} is left out: {error}")
        return applied

    def _apply_to(self, record: Record) -> Applied:
        """Apply the changes of one table."""
        with self._transaction() as connection:
            self._metadata.create_all(connection)
            source = origin(connection, record, self._schema)
            name = record.table
            if self._into == self._schema:  # the change table may have that name itself
                name += self._suffix
            begun = self._adopt or self._watermarks.of(connection, name) != BEGINNING
            # A table with rows that no mirror has put there: it may be the source itself.
            if not begun and sa.inspect(connection).has_table(name, self._into):
                place = sa.table(name, schema=self._into or find_home(connection))
                query = sa.select(sa.literal(1)).select_from(place).limit(1)
                if connection.execute(query).first() is not None:
                    whole = f"{self._into}.{name}" if self._into else name
                    raise DataError(
                        f"{whole} is there already and holds rows, and is no mirror yet.",
                        hint="Use --adopt if it holds a copy of the source that is to be kept equal from now on.",
                    )
            refuse_loose_key(connection, name, self._into, record)
            mirror = mirror_table(connection, source, name, self._into)
        rows, done = 0, 1
        while done:
            with self._transaction() as connection:
                # SQLite would take its lock in the middle, and find it taken.
                if self._begin is not None:
                    connection.exec_driver_sql(self._begin)
                done, mark = self._piece_of(connection, source, mirror)
            rows += done
        return Applied(change_table=record.target, mirror=name, rows=rows, change_seq=mark)

    def _records(self, tables: Sequence[str]) -> tuple[list[Record], list[Record]]:
        """Find the change tables of these source tables, and all."""
        with self._transaction() as connection:
            if not sa.inspect(connection).has_table(self._control.records.name, self._schema):
                problem = "There are no change tables here"
                raise DataError(f'{problem}; an output with sink = "database" makes them.')
            records = self._control.all_records(connection)
        asked = set(tables)
        unknown = asked.difference(*((record.table, record.target) for record in records))
        if unknown:
            known = ", ".join(sorted({record.table for record in records})) or "no table"
            raise UsageError(f"There is no change table of {min(unknown)}; there are those of {known}.")
        return [record for record in records if not asked or {record.table, record.target} & asked], records

    def _transaction(self) -> AbstractContextManager[Connection]:
        """Begin a transaction comparing text as the columns say, whatever the client's settings."""
        return transaction(self._engine, "The database of the change tables")

    def _piece_of(self, connection: Connection, source: Origin, mirror: Table) -> tuple[int, str]:
        """Applies the next rows, and returns how many they were and how far the mirror is now."""
        mark = self._watermarks.of(connection, mirror.name)
        rows = self._next(connection, source, mark)
        if not rows:
            return 0, mark
        carrier = Carrier(connection, mirror, source.key)
        changes = [source.change_row(row) for row in rows]
        index = source.names.index(source.headers["change_seq"])
        source.refuse_lost_key(changes, [row[index] for row in rows])
        # Rows without a key have no order that matters: how often each stands there does.
        steps: Iterable[Step | RowCounts]
        if source.key == (WHOLE_ROW,):
            steps = [count(changes)]
        else:
            steps = fold(changes, source.key)
        for step in steps:
            carrier.do(step)
        last = str(rows[-1][index])
        self._watermarks.advance(connection, mirror.name, mark, last)
        return len(rows), last

    def _next(self, connection: Connection, source: Origin, mark: str) -> Sequence[Any]:
        """Read the rows after the watermark, whole changes only."""
        sequence = source.table.c[source.headers["change_seq"]]
        oper = source.table.c[source.headers["change_oper"]]
        # Both rows of an update have one change_seq, and B comes before U by its letter.
        query = sa.select(source.table).where(sequence > mark).order_by(sequence, oper)
        query = query.limit(self._piece)
        rows = read_rows(connection, query)
        index = source.names.index(source.headers["change_seq"])
        last = rows[-1][index] if rows else None
        # The last one may go on behind the piece; alone it is a change of many rows, taken as it is.
        if len(rows) == self._piece and rows[0][index] != last:
            return [row for row in rows if row[index] != last]
        return rows


def refuse_shared_mirror(record: Record, records: Iterable[Record]) -> None:
    """Refuses a change table whose mirror would be that of another one too: one would pass over
    rows that the other's watermark is behind.
    """
    for other in records:
        if other.table == record.table and other.target != record.target:
            raise DataError(
                f"{record.target} and {other.target} are both change tables of a table"
                f" {record.table}, and would have one mirror.",
                hint="Let their outputs write into different schemas; if one of the two gets no"
                " more rows, delete its row in eventlog_change_table.",
            )


ASKED_KEYS: Final = 200
"""Keys that one query asks for.

Oracle's and SQLite's limits for bound values are above it for keys of five columns.
"""


class Carrier:
    """Does what steps say to one mirror, in the transaction of the connection."""

    def __init__(self, connection: Connection, table: Table, key: tuple[str, ...]) -> None:
        self._connection = connection
        self._table = table
        self._key = key

    def do(self, step: Step | RowCounts) -> None:
        if isinstance(step, Nets):
            self._nets(step)
        elif isinstance(step, Moved):
            self._move(step)
        elif isinstance(step, RowCounts):
            self._count(step)
        else:
            # Emptied, as by TRUNCATE.
            self._connection.execute(self._table.delete())

    def _move(self, step: Moved) -> None:
        """Gives a row its new key.

        What stands under that goes, because the source cannot have had both.
        """
        both = zip(self._key, step.former, strict=True)
        key = tuple(step.values.get(name, former) for name, former in both)
        # First, or two rows would have the new key for a moment.
        self._delete([key], but=step.former)
        if self._existing([step.former]):
            self._update(sorted(step.values), [(step.former, step.values)])
        else:
            row = dict(zip(self._key, key, strict=True)) | step.values
            self._connection.execute(self._table.insert(), [row])

    def _nets(self, step: Nets) -> None:
        gone, patched, inserts = [], {}, []
        for key, net in step.rows.items():
            if net.values is None or net.whole:
                gone.append(key)  # a whole row takes the place of whatever is there
            if net.values is not None and net.whole:
                inserts.append(net.values)
            elif net.values is not None:
                patched[key] = net.values
        there = self._existing(list(patched))
        # Of a row that is not there, because the mirror began later, comes what is known.
        inserts += [values for key, values in patched.items() if key not in there]
        self._delete(gone)
        if inserts:
            names = [column.name for column in self._table.columns]
            rows_added = [{name: row.get(name) for name in names} for row in inserts]
            self._connection.execute(self._table.insert(), rows_added)
        # One statement for all rows that change the same columns.
        groups: dict[tuple[str, ...], list[tuple[Key, Values]]] = {}
        for key, values in patched.items():
            names = [name for name in values if name not in self._key]
            if key in there and names:
                groups.setdefault(tuple(names), []).append((key, values))
        for columns, rows in groups.items():
            self._update(columns, rows)

    def _count(self, step: RowCounts) -> None:
        """Makes each text stand there as often as it must: all its rows go, and so many come."""
        changed = {key: counted for key, counted in step.rows.items() if counted.more}
        there = self._times([key[0] for key in changed])
        self._delete(changed)
        names = [column.name for column in self._table.columns]
        rows: list[dict[str, Any]] = []
        for key, counted in changed.items():
            times = there.get(key[0], 0) + counted.more
            # One dict several times, which is only read.
            rows += [{name: counted.values.get(name) for name in names}] * times
        if rows:
            self._connection.execute(self._table.insert(), rows)

    def _times(self, keys: Sequence[Any]) -> dict[Any, int]:
        """Count the rows of each key."""
        column = self._table.c[WHOLE_ROW]
        times: dict[Any, int] = {}
        for start in range(0, len(keys), ASKED_KEYS):
            asked = column.in_(keys[start : start + ASKED_KEYS])
            query = sa.select(column, sa.func.count()).where(asked).group_by(column)
            times |= dict(map(tuple, self._connection.execute(query)))
        return times

    def _delete(self, keys: Iterable[Key], but: Key | None = None) -> None:
        rows = [self._bind_key(key) for key in keys if key != but]
        if rows:
            self._connection.execute(self._table.delete().where(*self._match_key()), rows)

    def _update(self, columns: Sequence[str], rows: Iterable[tuple[Key, Values]]) -> None:
        changed = self._table.update().where(*self._match_key())
        new: dict[str, Any] = {name: sa.bindparam(f"new_{index}") for index, name in enumerate(columns)}
        changed = changed.values(new)
        bound = []
        for key, values in rows:
            cells = {f"new_{index}": values[name] for index, name in enumerate(columns)}
            bound.append(self._bind_key(key) | cells)
        self._connection.execute(changed, bound)

    def _existing(self, keys: Sequence[Key]) -> set[Key]:
        """Return those of the keys present in the mirror."""
        columns = [self._table.c[name] for name in self._key]
        existing: set[Key] = set()
        for start in range(0, len(keys), ASKED_KEYS):
            asked = keys[start : start + ASKED_KEYS]
            if len(columns) == 1:
                condition: ColumnElement[bool] = columns[0].in_([key[0] for key in asked])
            else:
                same = []
                for key in asked:
                    parts = [column == cell for column, cell in zip(columns, key, strict=True)]
                    same.append(sa.and_(*parts))
                condition = sa.or_(*same)
            query = sa.select(*columns).where(condition)
            existing |= {tuple(map(one_nan, row)) for row in read_rows(self._connection, query)}
        return existing

    def _match_key(self) -> list[Any]:
        return [self._table.c[name] == sa.bindparam(f"key_{index}") for index, name in enumerate(self._key)]

    def _bind_key(self, key: Key) -> dict[str, Any]:
        return {f"key_{index}": cell for index, cell in enumerate(key)}
