"""Reads rows back: what stands in the tables now, one statement for all keys of a table and one for each child table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from eventlog.errors import KeySyntaxError
from eventlog.model import Cell, Row, RowId
from eventlog.schema import Attribute, Catalog, Child, Column, Table
from eventlog.sql.access import transaction
from eventlog.sql.dialect import dialect_of
from eventlog.sql.lookup import Answer, Key, Question, lookup_of
from eventlog.tablekey import parse, simple

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

Wanted = Mapping[RowId, frozenset[str]]
_Rows = dict[RowId, dict[str, Cell]]


class Asked(Struct, frozen=True, kw_only=True):
    """The objects of one table that are asked for, their keys in the same order, and the columns that hold the keys."""

    table: Table
    columns: tuple[Column, ...]
    rows: list[RowId]
    keys: list[Key]


class SqlRowReader:
    """Answers read-backs from the tables of a catalog. A key that is no value of its column's type finds nothing."""

    def __init__(self, engine: Engine, catalog: Catalog) -> None:
        self._engine = engine
        self._catalog = catalog
        self._dialect = dialect_of(engine)
        self._lookup = lookup_of(self._dialect)
        self._tables = {(table.schema, table.name): table for table in catalog}

    def rows(self, wanted: Wanted) -> Mapping[RowId, Row]:
        """The wanted attributes of the objects that exist."""
        found: _Rows = {}
        asked = self._by_table(wanted)
        if asked:
            with transaction(self._engine, "What the changes ask for", lone=True) as connection:
                for group in asked:
                    found |= self._read(connection, group, wanted)
        return found

    def _by_table(self, wanted: Wanted) -> list[Asked]:
        groups: dict[tuple[str | None, str, tuple[str, ...]], Asked] = {}
        for row in wanted:
            parts = _parts(row.key)
            if parts is None:
                continue
            names, key = parts
            group = groups.get((row.schema, row.table, names))
            if group is None:
                table = self._tables.get((row.schema, row.table))
                if table is None:
                    continue
                columns = self._key_columns(table, names)
                group = Asked(table=table, columns=columns, rows=[], keys=[])
                groups[row.schema, row.table, names] = group
            group.rows.append(row)
            group.keys.append(key)
        return [group for group in groups.values() if group.columns]

    def _key_columns(self, table: Table, names: Sequence[str]) -> tuple[Column, ...]:
        """The columns that the key names; none when it does not name the table's key, or columns that are not there."""
        fold = self._catalog.fold
        by_name = {fold(column.name): column for column in table.columns}
        columns = [by_name.get(fold(name)) for name in names]
        known = tuple(column for column in columns if column is not None)
        if len(known) < len(columns) or (table.key and {column.name for column in known} != set(table.key)):
            return ()
        return known

    def _read(self, connection: Connection, asked: Asked, wanted: Wanted) -> _Rows:
        wishes = {wanted[row] for row in asked.rows}
        attributes = _asked_for(asked, wishes)
        own = [attribute for attribute in attributes if attribute.child is None]
        found = self._own(connection, asked, own)
        for child in asked.table.children:
            of_child = [attribute for attribute in attributes if attribute.child == child.name]
            if of_child and found:
                self._children(connection, asked, child, of_child, found)
        return found if len(wishes) == 1 else _restricted(found, wanted, len(attributes))

    def _own(self, connection: Connection, asked: Asked, attributes: Sequence[Attribute]) -> _Rows:
        several = any(attribute.multiple for attribute in attributes)
        question = Question(
            schema=asked.table.schema,
            table=asked.table.name,
            matched=asked.columns,
            selected=tuple(attribute.column for attribute in attributes),
            several=several,
        )
        answers = self._lookup.ask(connection, self._dialect, question, asked.keys)
        names = [attribute.name for attribute in attributes]
        if several:
            return {asked.rows[number]: _gathered(rows, attributes) for number, rows in _by_number(answers)}
        found: _Rows = {}
        for answer in answers:
            row = asked.rows[answer[0]]
            if row not in found:
                found[row] = dict(zip(names, answer[1:], strict=True))
        return found

    def _children(
        self, connection: Connection, asked: Asked, child: Child, attributes: Sequence[Attribute], found: _Rows
    ) -> None:
        """Adds a child table's values to the objects that were found."""
        question = Question(
            schema=asked.table.schema,
            table=child.name,
            matched=_child_columns(asked, child),
            selected=tuple(attribute.column for attribute in attributes),
            several=True,
        )
        places = [place for place, row in enumerate(asked.rows) if row in found]
        answers = self._lookup.ask(connection, self._dialect, question, [asked.keys[place] for place in places])
        for place in places:
            found[asked.rows[place]].update(dict.fromkeys([attribute.name for attribute in attributes], ()))
        for number, rows in _by_number(answers):
            columns = zip(*(values for _, *values in rows), strict=True)
            for attribute, column in zip(attributes, columns, strict=True):
                values = tuple(value for value in column if value is not None)
                found[asked.rows[places[number]]][attribute.name] = values


def _parts(key: str) -> tuple[tuple[str, ...], Key] | None:
    """Column names and values of a key; None when it is not written by the grammar."""
    if simple(key):  # by far the most
        name, _, value = key.partition("=")
        return (name,), (value,)
    try:
        parts = parse(key).parts
    except KeySyntaxError:
        return None
    return tuple(name for name, _ in parts), tuple(value for _, value in parts)


def _asked_for(asked: Asked, wishes: set[frozenset[str]]) -> list[Attribute]:
    """The attributes that any of the objects wants, in the order of the table."""
    names = frozenset[str]().union(*wishes)
    return [attribute for name, attribute in asked.table.loggable.items() if name in names]


def _child_columns(asked: Asked, child: Child) -> tuple[Column, ...]:
    """The child's columns that hold the key, in the order in which the key names its columns."""
    described = {column.name: column for column in child.columns}
    parents = dict(zip(asked.table.key or child.parent_key, child.parent_key, strict=True))
    held = [(parents.get(column.name, column.name), column) for column in asked.columns]
    return tuple(described.get(name) or Column(name=name, type=column.type) for name, column in held)


def _by_number(answers: Sequence[Answer]) -> Iterator[tuple[int, list[Answer]]]:
    from itertools import groupby

    for number, rows in groupby(answers, key=lambda answer: answer[0]):
        yield number, list(rows)


def _gathered(rows: Sequence[Answer], attributes: Sequence[Attribute]) -> dict[str, Cell]:
    """One object from the several rows of a view: its distinct values where several are meant, else the first."""
    found: dict[str, Cell] = {}
    for place, attribute in enumerate(attributes, start=1):
        values = [row[place] for row in rows]
        if attribute.multiple:
            found[attribute.name] = tuple(dict.fromkeys(value for value in values if value is not None))
        else:
            found[attribute.name] = values[0]
    return found


def _restricted(found: _Rows, wanted: Wanted, count: int) -> _Rows:
    """Each object with what was wanted of it, where its neighbours wanted more."""
    for row, values in found.items():
        names = wanted[row]
        if len(values) != count or len(names) < count:
            found[row] = {name: value for name, value in values.items() if name in names}
    return found
