"""Applies change tables to mirrors: a piece at a time, the rows and the watermark in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import Connection, Engine, Table

from eventlog.admin.mirror.carry import Carrier
from eventlog.admin.mirror.fold import fold
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
