"""Finds the objects that a query is about, by their keys: one statement, bound values, a limit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, text

from eventlog.core.errors import DataError, KeySyntaxError, shorten
from eventlog.core.schema import Attribute, Table
from eventlog.core.tablekey import parse
from eventlog.refresh.key_order import KeyOrder
from eventlog.refresh.loads import Load, fill_holes
from eventlog.sql.access import fetch, in_text
from eventlog.sql.dialect import Dialect, offers, statement
from eventlog.sql.names import LogNames

_value = r'(?:"(?:[^"\\]|\\.)*"|[^",]*)'
_association = re.compile(
    rf'(?P<key>(?:[^",]|"(?:[^"\\]|\\.)*")+),table=(?P<table>{_value})(?:,schema=(?P<schema>{_value}))?'
)


class Named(Struct, frozen=True, kw_only=True):
    """An object as an association names it."""

    schema: str | None
    table: str
    key: tuple[tuple[str, str], ...]


def read_association(association: str) -> Named:
    """Read who is meant; DataError where it is none of ours."""
    match = _association.fullmatch(association)
    problem = f"{shorten(association)!r} is no association, such as idu=1,table=usr,schema=app."
    if match is None:
        raise DataError(problem)
    try:
        parts = parse(match["key"]).parts
        table, schema = (_unquote(match[name]) for name in ("table", "schema"))
    except KeySyntaxError:
        raise DataError(problem) from None
    return Named(schema=schema, table=table or "", key=tuple(parts))


def _unquote(written: str | None) -> str | None:
    if not written:
        return None
    return parse(f"name={written}").parts[0][1]


class Finder:
    """Finds keys of one class; `most` are asked for, and one more, by which it shows that there are
    others.
    """

    def __init__(self, dialect: Dialect, names: LogNames, load: Load, most: int) -> None:
        self._dialect, self._load, self._most = dialect, load, most
        self._row = in_text(dialect.quote(load.table.name))
        self._order = order = KeyOrder(dialect, load.table, self._row)
        # With the condition of its triggers: rows of which no change is told are not told here.
        self._holes = fill_holes(dialect, names, load, order)

    def find_by_key(self, connection: Connection, key: Sequence[tuple[str, str]]) -> list[str]:
        """Return the object's key as the log writes it; empty if there is none."""
        columns = {column.name.casefold(): column for column in self._load.table.key_columns}
        if {name.casefold() for name, _ in key} != set(columns):
            return []
        attributes = [Attribute(name=name, column=columns[name.casefold()]) for name, _ in key]
        return self.find_by_values(connection, list(zip(attributes, [value for _, value in key], strict=True)))

    def find_by_values(
        self, connection: Connection, searched: Sequence[tuple[Attribute, str]], after: str | None = None
    ) -> list[str]:
        """Find keys of objects with all these values, in their order; of those behind the key `after`, where it is given."""
        conditions, parameters = [], dict[str, Any]()
        for index, (attribute, value) in enumerate(searched):
            form = self._dialect.lookup.compare_column(self._dialect, attribute.column)
            bound = form.read(value)
            if bound is None:
                return []  # no value of the column's type
            parameters[f"s{index}"] = bound
            conditions.append(self._condition(attribute, form.value.format(key=f":s{index}")))
        if offers(self._dialect, "refresh_session"):
            connection.exec_driver_sql(statement(self._dialect, "refresh_session"))
        chosen = " AND ".join([self._holes["chosen"], *conditions])
        begin = "(1 = 1)"
        if after is not None:
            begin = self._order.after
            if len(parse(after).parts) != len(self._load.table.key):
                problem = f"{shorten(after)} is no key of {self._load.table.name}"
                raise DataError(f"{problem}; ask without the <query-token> again.")
            parameters |= self._order.parameters(after)
        anywhere = {"after": begin, "upto": "(1 = 1)"}
        query = statement(self._dialect, "refresh_keys", **self._holes | {"chosen": chosen} | anywhere)
        rows = fetch(connection, text(query), {"limit": self._most + 1, **parameters})
        return [str(key) for (key,) in rows]

    def _condition(self, attribute: Attribute, value: str) -> str:
        table, dialect = self._load.table, self._dialect
        compared = dialect.lookup.compare_column(dialect, attribute.column).column
        name = in_text(dialect.quote(attribute.column.name))
        if attribute.child is None:
            return f"{compared.format(column=f'{self._row}.{name}')} = {value}"
        child = next(child for child in table.children if child.name == attribute.child)
        pairs = zip(table.key or child.parent_key, child.parent_key, strict=True)
        joined = [
            f"part.{in_text(dialect.quote(own))} = {self._row}.{in_text(dialect.quote(parent))}"
            for parent, own in pairs
        ]
        where = " AND ".join([*joined, f"{compared.format(column=f'part.{name}')} = {value}"])
        place = in_text(dialect.qualify(table.schema, child.name))
        return f"EXISTS (SELECT 1 FROM {place} part WHERE {where})"


def class_among(tables: Sequence[Table], named: Named) -> Table | None:
    """Return the table of an association; None if there is none or several."""
    meant = [table for table in tables if table.name.casefold() == named.table.casefold()]
    if named.schema is not None and len(meant) > 1:
        meant = [table for table in meant if (table.schema or "").casefold() == named.schema.casefold()]
    return meant[0] if len(meant) == 1 else None
