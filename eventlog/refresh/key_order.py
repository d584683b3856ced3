"""The rows of a table in the order of its key: what to order by, which rows come after a key, and
which up to one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eventlog.core.errors import DataError, shorten
from eventlog.core.schema import Table
from eventlog.core.tablekey import parse
from eventlog.sql.access import in_text
from eventlog.sql.dialect import Dialect, statement

Parameters = dict[str, Any]


class KeyOrder:
    """The order of a table's rows, which SQL calls `row`."""

    def __init__(self, dialect: Dialect, table: Table, row: str) -> None:
        self._dialect = dialect
        self._table = table
        self._forms = [dialect.lookup.compare_column(dialect, column) for column in table.key_columns]
        called = [f"{row}.{in_text(dialect.quote(column.name))}" for column in table.key_columns]
        pairs = zip(self._forms, called, strict=True)
        self._columns = [form.column.format(column=name) for form, name in pairs]
        self.filled = " AND ".join(f"{name} IS NOT NULL" for name in called)
        """The condition that the row has a key at all."""

    @property
    def columns(self) -> str:
        """Write the columns to order by."""
        return ", ".join(self._columns)

    @property
    def after(self) -> str:
        """Write the condition that a row comes after the key given by `parameters`."""
        return self._compare("refresh_after", "k", ">")

    @property
    def upto(self) -> str:
        """Write the condition that a row does not come after the key whose parameters begin with `u`."""
        return self._compare("refresh_upto", "u", "<=")

    def parameters(self, key: str, called: str = "k") -> Parameters:
        """Return the parameters of `after` or `upto`; raise DataError when no value of a column's type can be
        read from the key's text.
        """
        texts = [text for _, text in parse(key).parts]
        values = [form.read(text) for form, text in zip(self._forms, texts, strict=True)]
        if None in values:
            # Without a condition the rows would begin anew, and with NULL none would come.
            which = f"the row {shorten(key)} of {self._table.name}"
            problem = f"Rows after {which} cannot be asked for."
            raise DataError(problem, hint="Leave that row out with --where.")
        return {f"{called}{index}": value for index, value in enumerate(values)}

    def _compare(self, query: str, called: str, sign: str) -> str:
        values = []
        for index, form in enumerate(self._forms):
            values.append(form.value.format(key=f":{called}{index}"))
        tree = _tree(self._columns, values, sign)
        listed = ", ".join(values)
        return statement(self._dialect, query, columns=self.columns, values=listed, tree=tree)


def _tree(columns: Sequence[str], values: Sequence[str], sign: str) -> str:
    """Write the condition column by column, for databases that would not use an index otherwise."""
    column, value = columns[0], values[0]
    if len(columns) == 1:
        return f"({column} {sign} {value})"
    rest = _tree(columns[1:], values[1:], sign)
    # The last column has the whole sign: of rows with equal ones before it, the key itself may count.
    return f"({column} {sign[0]} {value} OR ({column} = {value} AND {rest}))"
