"""The rows of a table in the order of its key: what to order by, which rows come after a key, and which up to one. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct

from eventlog.core.errors import DataError, shortened
from eventlog.core.schema import Column, Made, Table
from eventlog.core.sql_types import Category
from eventlog.core.tablekey import parse
from eventlog.sql import keyforms
from eventlog.sql.access import in_text
from eventlog.sql.dialect import POSTGRESQL, Dialect
from eventlog.sql.mysqlkeys import mysql_form
from eventlog.sql.oracletypes import oracle_form
from eventlog.sql.queries import statement

Parameters = dict[str, Any]


class Form(Struct, frozen=True, kw_only=True):
    """How values of one key column are compared: SQL for the column and for a parameter, and what a text is bound as."""

    column: str = "{column}"
    value: str = "{key}"
    read: Callable[[str], Any]


class KeyOrder:
    """The order of a table's rows, which SQL calls `row`."""

    def __init__(self, dialect: Dialect, table: Table, row: str) -> None:
        self._dialect = dialect
        self._table = table
        self._forms = [_FORMS[dialect.name](column) for column in table.key_columns]
        called = [f"{row}.{in_text(dialect.quoted(column.name))}" for column in table.key_columns]
        self._columns = [form.column.format(column=name) for form, name in zip(self._forms, called, strict=True)]
        self.filled = " AND ".join(f"{name} IS NOT NULL" for name in called)
        """The condition that the row has a key at all."""

    @property
    def columns(self) -> str:
        """What to order by."""
        return ", ".join(self._columns)

    @property
    def after(self) -> str:
        """The condition that a row comes after the key that `parameters` gives."""
        return self._compared("refresh_after", "k", ">")

    @property
    def upto(self) -> str:
        """The condition that a row does not come after the key whose `parameters` are called `u`."""
        return self._compared("refresh_upto", "u", "<=")

    def parameters(self, key: str, called: str = "k") -> Parameters:
        """What `after` or `upto` asks for; DataError when no value of a column's type can be read from the key's text."""
        texts = [text for _, text in parse(key).parts]
        values = [form.read(text) for form, text in zip(self._forms, texts, strict=True)]
        if None in values:
            where = f"the row {shortened(key)} of {self._table.name}"
            raise DataError(f"Rows after {where} cannot be asked for.", hint="Leave that row out with --where.")
        return {f"{called}{place}": value for place, value in enumerate(values)}

    def _compared(self, query: str, called: str, sign: str) -> str:
        values = [form.value.format(key=f":{called}{place}") for place, form in enumerate(self._forms)]
        tree = _tree(self._columns, values, sign)
        return statement(self._dialect, query, columns=self.columns, values=", ".join(values), tree=tree)


def _tree(columns: Sequence[str], values: Sequence[str], sign: str) -> str:
    """The condition column by column, for databases that would not use an index otherwise."""
    column, value = columns[0], values[0]
    if len(columns) == 1:
        return f"({column} {sign} {value})"
    return f"({column} {sign[0]} {value} OR ({column} = {value} AND {_tree(columns[1:], values[1:], sign)}))"


def _postgresql(column: Column) -> Form:
    made = column.made is Made.TYPE  # whose casts and operators may be functions of somebody's
    form = keyforms.postgresql_form("" if made else column.type)
    as_text = statement(POSTGRESQL, "made_type", value="{column}") if made else "CAST({column} AS text)"
    return Form(
        column=as_text if form.as_text else "{column}",
        value=f"CAST({{key}} AS {form.bound})",
        read=form.read,
    )


def _sqlite(column: Column) -> Form:
    # A text is converted to what its column prefers; without a declared type it would be compared with text only.
    untyped = column.type.strip().lower() in ("", "null")
    return Form(
        column="CAST({column} AS text)" if untyped else "{column}", read=_READ.get(column.category, keyforms.text)
    )


def _mysql(column: Column) -> Form:
    form = mysql_form(column.type)
    left, _, right = form.match.partition(" = ")
    if form.bound.startswith(("DECIMAL", "DATE", "TIME")):
        right = right.replace("{key}", f"CAST({{key}} AS {form.bound})")
    elif form.bound == "DOUBLE":
        right = right.replace("{key}", "({key} + 0E0)")
    return Form(column=left, value=right, read=form.read)


def _oracle(column: Column) -> Form:
    form = oracle_form(column.type)
    left, _, right = form.match.partition(" = ")
    return Form(column=left, value=right, read=form.read)


_READ: Final = {Category.OCTET: keyforms.octets, Category.STATE: keyforms.state}
_FORMS: Final[dict[str, Callable[[Column], Form]]] = {
    "postgresql": _postgresql,
    "sqlite": _sqlite,
    "mysql": _mysql,
    "oracle": _oracle,
}
