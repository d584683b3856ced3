"""Applies change tables to mirrors: a piece at a time, the rows and the watermark in one transaction.

Of a piece deletes come first, then inserts, then updates, each for many rows at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, Engine, Table
from sqlalchemy.sql.elements import ColumnElement

from eventlog.admin.mirror.fold import Key, Moved, Nets, Step, Values, fold
from eventlog.admin.mirror.tables import BEGINNING, Origin, Watermarks, mirror_table, origin
from eventlog.core.errors import DataError, UsageError
from eventlog.sinks.database.control import Control, Record
from eventlog.sql.access import in_our_words
from eventlog.sql.dialect import dialect_of

PIECE_ROWS: Final = 10_000
"""Rows of a change table that are applied in one transaction."""


class Applied(Struct, frozen=True, kw_only=True):
    """What was done for one mirror, and how far it is."""

    change_table: str
    mirror: str
    rows: int
    change_seq: str


class Mirrors:
    """The mirrors of a database's change tables. Mirrors in the same schema have names that end with `suffix`."""

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
        self._piece = max(piece, 2)
        self._begin = dialect_of(engine).begin_ddl
        self._metadata = sa.MetaData(schema=into)
        self._watermarks = Watermarks(self._metadata)
        self._control = Control("", schema)

    def apply(self, tables: Sequence[str] = ()) -> list[Applied]:
        """Applies everything that came since the last time; `tables` are source tables, by default all."""
        with in_our_words(self._engine, "The database of the change tables"):
            return [self._applied(record) for record in self._records(tables)]

    def _records(self, tables: Sequence[str]) -> list[Record]:
        with self._engine.connect() as connection:
            if not sa.inspect(connection).has_table(self._control.records.name, self._schema):
                raise DataError('There are no change tables here; an output with sink = "database" makes them.')
            targets = connection.scalars(sa.select(self._control.records.c.target)).all()
            records = [
                found for name in sorted(targets) if (found := self._control.record(connection, name)) is not None
            ]
        unknown = set(tables) - {record.table for record in records} - {record.target for record in records}
        if unknown:
            known = ", ".join(sorted({record.table for record in records}))
            raise UsageError(f"There is no change table of {min(unknown)}; there are those of {known or 'no table'}.")
        return [record for record in records if not tables or record.table in tables or record.target in tables]

    def _applied(self, record: Record) -> Applied:
        with self._engine.begin() as connection:
            self._metadata.create_all(connection)
            source = origin(connection, record, self._schema)
            name = record.table + (self._suffix if self._into == self._schema else "")
            self._check_ours(connection, name)
            mirror = mirror_table(connection, source, name, self._into)
        rows = 0
        while True:
            with self._engine.begin() as connection:
                if self._begin is not None:
                    connection.exec_driver_sql(self._begin)
                done, mark = self._piece_of(connection, source, mirror)
            rows += done
            if not done:
                return Applied(change_table=record.target, mirror=name, rows=rows, change_seq=mark)

    def _check_ours(self, connection: Connection, name: str) -> None:
        """Refuses a table with rows that no mirror has put there: it may be the source itself."""
        begun = self._watermarks.of(connection, name) != BEGINNING
        if self._adopt or begun or not sa.inspect(connection).has_table(name, self._into):
            return
        query = sa.select(sa.literal(1)).select_from(sa.table(name, schema=self._into)).limit(1)
        if connection.execute(query).first() is not None:
            whole = f"{self._into}.{name}" if self._into else name
            raise DataError(
                f"{whole} is there already and holds rows, and is no mirror yet.",
                hint="Use --adopt if it holds a copy of the source that is to be kept equal from now on.",
            )

    def _piece_of(self, connection: Connection, source: Origin, mirror: Table) -> tuple[int, str]:
        """Applies the next rows, and says how many they were and how far the mirror is now."""
        mark = self._watermarks.of(connection, mirror.name)
        rows = self._next(connection, source, mark)
        if not rows:
            return 0, mark
        carrier = Carrier(connection, mirror, source.key)
        for step in fold([source.told(row) for row in rows], source.key):
            carrier.do(step)
        place = source.names.index(source.headers["change_seq"])
        last = str(rows[-1][place])
        self._watermarks.advance(connection, mirror.name, mark, last)
        return len(rows), last

    def _next(self, connection: Connection, source: Origin, mark: str) -> Sequence[Any]:
        """The rows after the watermark; a change is never cut in two."""
        sequence = source.table.c[source.headers["change_seq"]]
        oper = source.table.c[source.headers["change_oper"]]
        query = sa.select(source.table).where(sequence > mark).order_by(sequence, oper).limit(self._piece)
        rows = connection.execute(query).all()
        place = source.names.index(source.headers["change_seq"])
        if len(rows) == self._piece and rows[0][place] != rows[-1][place]:
            return [row for row in rows if row[place] != rows[-1][place]]
        return rows


ASKED_KEYS: Final = 200
"""Keys that one query asks for; Oracle's and SQLite's limits for bound values are above it for keys of five columns."""


class Carrier:
    """Does what steps say to one mirror, in the transaction of the connection."""

    def __init__(self, connection: Connection, table: Table, key: tuple[str, ...]) -> None:
        self._connection = connection
        self._table = table
        self._key = key

    def do(self, step: Step) -> None:
        if isinstance(step, Nets):
            self._nets(step)
        elif isinstance(step, Moved):
            self._move(step)
        else:
            self._connection.execute(self._table.delete())

    def _move(self, step: Moved) -> None:
        """Gives a row its new key; what stands under that goes, because the source cannot have had both."""
        key = tuple(step.values.get(name, former) for name, former in zip(self._key, step.former, strict=True))
        self._delete([key], but=step.former)
        if self._existing([step.former]):
            self._update(sorted(step.values), [(step.former, step.values)])
        else:
            self._connection.execute(self._table.insert(), [dict(zip(self._key, key, strict=True)) | step.values])

    def _nets(self, step: Nets) -> None:
        gone = [key for key, net in step.rows.items() if net.values is None or net.whole]
        patched = {key: net.values for key, net in step.rows.items() if net.values is not None and not net.whole}
        there = self._existing(list(patched))
        inserts = [net.values for net in step.rows.values() if net.values is not None and net.whole]
        inserts += [values for key, values in patched.items() if key not in there]
        self._delete(gone)
        if inserts:
            names = [column.name for column in self._table.columns]
            self._connection.execute(self._table.insert(), [{name: row.get(name) for name in names} for row in inserts])
        groups: dict[tuple[str, ...], list[tuple[Key, Values]]] = {}
        for key, values in patched.items():
            names = [name for name in values if name not in self._key]
            if key in there and names:
                groups.setdefault(tuple(names), []).append((key, values))
        for columns, rows in groups.items():
            self._update(columns, rows)

    def _delete(self, keys: Iterable[Key], but: Key | None = None) -> None:
        rows = [self._bound(key) for key in keys if key != but]
        if rows:
            self._connection.execute(self._table.delete().where(*self._matched()), rows)

    def _update(self, columns: Sequence[str], rows: Iterable[tuple[Key, Values]]) -> None:
        changed = self._table.update().where(*self._matched())
        changed = changed.values({name: sa.bindparam(f"new_{place}") for place, name in enumerate(columns)})
        bound = [
            self._bound(key) | {f"new_{place}": values[name] for place, name in enumerate(columns)}
            for key, values in rows
        ]
        self._connection.execute(changed, bound)

    def _existing(self, keys: Sequence[Key]) -> set[Key]:
        """Which of the keys the mirror has."""
        columns = [self._table.c[name] for name in self._key]
        found: set[Key] = set()
        for start in range(0, len(keys), ASKED_KEYS):
            asked = keys[start : start + ASKED_KEYS]
            if len(columns) == 1:
                condition: ColumnElement[bool] = columns[0].in_([key[0] for key in asked])
            else:
                pairs = [sa.and_(*[c == cell for c, cell in zip(columns, key, strict=True)]) for key in asked]
                condition = sa.or_(*pairs)
            found |= {tuple(row) for row in self._connection.execute(sa.select(*columns).where(condition))}
        return found

    def _matched(self) -> list[Any]:
        return [self._table.c[name] == sa.bindparam(f"key_{place}") for place, name in enumerate(self._key)]

    def _bound(self, key: Key) -> dict[str, Any]:
        return {f"key_{place}": cell for place, cell in enumerate(key)}
