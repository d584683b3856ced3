"""A side in a table of the state's database: the rows of one table as they were published."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import islice
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, tuple_
from sqlalchemy.exc import IntegrityError

from eventlog.compare.ranges import Digests, Range, digests
from eventlog.compare.row_texts import RowTexts
from eventlog.compare.sides import Compared, Hashes, Key, Rows, Totals, batches
from eventlog.compare.texts import HALF_BITS
from eventlog.sources.compare.tables import KeptTables
from eventlog.sources.compare.transactions import StateTransactions

WRITTEN_ROWS: Final = 5000
"""Rows that are written in one transaction where nobody sees them yet."""

ASKED_KEYS: Final = 400
ID_CHARACTERS: Final = 300
"""A longer key is found by its hash, for an index has no room for it."""

_NOWHERE: Final = -(2**63)
"""The place of a row without a whole number as its key, or with one that is too large: it belongs to the first range."""


class HeldSide:
    """The rows of one table."""

    native = ""

    def __init__(self, compared: Compared, transactions: StateTransactions, tables: KeptTables, name: str) -> None:
        self._compared = compared
        self._transactions = transactions
        self._table = tables.define_held(name)
        self._row = RowTexts(compared)

    @property
    def ordered(self) -> bool:
        return self._compared.counted

    @contextmanager
    def snapshot(self) -> Iterator[HeldSnapshot]:
        """Yield the rows as they are: nobody else changes them."""
        yield HeldSnapshot(self)

    def write(self, rows: Iterable[Sequence[Any]]) -> None:
        """Writes rows into a table that is empty and that nobody sees yet, the key's values first."""
        left = iter(rows)
        while batch := [self._keep(row) for row in islice(left, WRITTEN_ROWS)]:
            latest = {(row["place"], row["id"]): row for row in batch}
            with self._transactions.step() as connection:
                try:
                    # A savepoint, for in PostgreSQL a statement that fails spoils its transaction.
                    with connection.begin_nested():
                        self._insert(connection, list(latest.values()))
                # Several rows have one key, parts of which are NULL: the last one counts.
                except IntegrityError:
                    self._put_rows(connection, latest)

    def change(self, rows: Mapping[Key, Sequence[Any] | None]) -> None:
        """Change rows in the transaction of a step; None removes one."""
        with self._transactions.step() as connection:
            self._put_rows(
                connection,
                {self._at(key): None if row is None else self._keep([*key, *row]) for key, row in rows.items()},
            )

    def rows(self, keys: Sequence[Key]) -> Rows:
        table, values = self._table, Rows()
        for batch in batches(keys, ASKED_KEYS):
            asked = {self._at(key): key for key in batch}
            query = sa.select(table.c.place, table.c.id, table.c.cells).where(self._among(list(asked)))
            for place, mine, cells in self.ask(query):
                values[asked[int(place), str(mine)]] = self._row.values(cells)
        return values

    def every(self) -> Iterator[tuple[list[str | None], list[str | None]]]:
        """Yield the keys and values of all rows as text."""
        table = self._table
        wanted = sa.select(table.c.place, table.c.id, table.c.long_key, table.c.cells)
        query = wanted.order_by(table.c.place, table.c.id).limit(WRITTEN_ROWS)
        rows = self.ask(query)
        while rows:
            for _, mine, whole, cells in rows:
                yield json.loads(whole or mine), self._row.cells(cells)
            place, last = rows[-1][:2]
            # By the last key: an offset would have the database count all rows before it.
            beyond = sa.or_(table.c.place > place, sa.and_(table.c.place == place, table.c.id > last))
            rows = self.ask(query.where(beyond))

    def ask(self, query: sa.Select[Any]) -> list[Any]:
        """Run a query on the rows."""
        with self._transactions.look() as connection:
            return list(connection.execute(query))

    def _keep(self, row: Sequence[Any]) -> dict[str, Any]:
        kept = self._row.keep_row(row)
        place, mine = self._find_place(kept.key, kept.first)
        whole = kept.key if mine != kept.key else None
        return {
            "place": place,
            "id": mine,
            "spot": kept.spot,
            "hash": kept.hash,
            "long_key": whole,
            "cells": kept.cells,
        }

    def _at(self, key: Key) -> tuple[int, str]:
        return self._find_place(json.dumps(key), self._row.first(key))

    def _find_place(self, text: str, first: int | None) -> tuple[int, str]:
        """Return the place and id to find a row by: place in the order of keys, if any, and key."""
        place = (_NOWHERE if first is None else first) if self._compared.counted else 0
        return place, text if len(text) <= ID_CHARACTERS else f"#{sha256(text.encode()).hexdigest()}"

    def _put_rows(self, connection: Connection, rows: Mapping[tuple[int, str], dict[str, Any] | None]) -> None:
        """Replace the rows with these keys."""
        places = list(rows)
        for start in range(0, len(places), ASKED_KEYS):
            connection.execute(self._table.delete().where(self._among(places[start : start + ASKED_KEYS])))
        values = [row for row in rows.values() if row is not None]
        if values:
            self._insert(connection, values)

    def _insert(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
        """Hands rows to the driver as they are: to have each looked at costs a third of all the writing."""
        homes = connection.get_execution_options().get("schema_translate_map")
        placed = {"schema_translate_map": homes, "render_schema_translate": True} if homes else {}
        compiled: Any = self._table.insert().compile(dialect=connection.dialect, **placed)
        # None where the driver takes parameters by their names.
        order = compiled.positiontup
        given: Any = rows if order is None else [tuple([row[name] for name in order]) for row in rows]
        connection.exec_driver_sql(str(compiled), given)

    def _among(self, places: Sequence[tuple[int, str]]) -> sa.ColumnElement[bool]:
        table = self._table
        if len({place for place, _ in places}) == len(places):  # as with keys of one whole number
            alone = [place for place, _ in places]
            return sa.and_(table.c.place.in_(alone), table.c.id.in_([mine for _, mine in places]))
        return tuple_(table.c.place, table.c.id).in_(places)

    def within(self, part: Range, buckets: Sequence[int] | None = None) -> sa.Select[Any]:
        """Select the rows of a range, each with its bucket."""
        table = self._table
        number = _literal(part.buckets)
        bucket: Any = table.c.spot % number
        if part.counted:
            # In SQL the remainder of a negative number is negative.
            remainder = (table.c.place % number + number) % number
            bucket = sa.case((table.c.place == _NOWHERE, 0), else_=remainder)
        query = sa.select(bucket.label("bucket"), table.c.id, table.c.long_key, table.c.hash)
        if part.after is not None:
            query = query.where(table.c.place > _literal(part.after))
        if part.upto is not None:
            query = query.where(table.c.place <= _literal(part.upto))
        if part.last is not None:
            query = query.where(bucket.between(part.first, part.last))
        return query if buckets is None else query.where(bucket.in_(buckets))

    def order_places(self, after: int | None) -> sa.Select[Any]:
        """Select the places of rows in order."""
        place = self._table.c.place
        query = sa.select(place).order_by(place)
        return query if after is None else query.where(place > _literal(after))


class HeldSnapshot:
    """The rows as they are."""

    def __init__(self, side: HeldSide) -> None:
        self._side = side
        self.rows = side.rows

    def count(self) -> int:
        return self.totals(Range(buckets=1)).rows

    def find_bound(self, after: int | None, rows: int) -> int | None:
        places = self._side.ask(self._side.order_places(after).limit(1).offset(rows - 1))
        return int(places[0][0]) if places else None

    def digests(self, part: Range) -> Digests:
        rows = self._side.within(part).subquery()
        return digests(self._side.ask(sa.select(rows.c.bucket, *_sums(rows)).group_by(rows.c.bucket)))

    def totals(self, part: Range) -> Totals:
        [(rows, high, low)] = self._side.ask(sa.select(*_sums(self._side.within(part).subquery())))
        return Totals(rows=int(rows), total=(int(high or 0) << HALF_BITS) + int(low or 0))

    def hashes(self, part: Range, buckets: Sequence[int] | None) -> Hashes:
        rows = self._side.ask(self._side.within(part, buckets))
        return {tuple(json.loads(whole or mine)): (1, int(hashed)) for _, mine, whole, hashed in rows}


def _literal(number: int) -> sa.ColumnElement[int]:
    """Write a number into the query's text.

    It may be too large for a parameter, or part of a GROUP BY.
    """
    return sa.literal_column(str(number))


def _sums(rows: sa.Subquery) -> tuple[sa.ColumnElement[Any], ...]:
    """Count the rows and sum their hashes, in two halves that cannot overflow."""
    half = _literal(1 << HALF_BITS)
    low = rows.c.hash % half
    return sa.func.count(), sa.func.sum((rows.c.hash - low) // half), sa.func.sum(low)
