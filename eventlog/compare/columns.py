"""Which columns of a table are compared: those that have one value, the key's first, under their
names as attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

from eventlog.compare.sides import Compared
from eventlog.compare.tables import Selection
from eventlog.core.errors import DataError
from eventlog.core.schema import Column, Table
from eventlog.core.sql_types import PADDED_TYPES, Category, bare_type
from eventlog.qlik.values import TableValues


def columns_of(
    table: Table, there: frozenset[str] | None = None, padded: frozenset[str] = frozenset()
) -> tuple[TableValues, list[Column], Compared]:
    """List the columns to compare, of which the target has those that are `there`, in small letters; None
    means all. It keeps no blanks at the end of `padded` ones.
    """
    values = TableValues(table)
    others = [index for index in range(len(values.names)) if index not in values.key]
    # All of the key is compared: without a part of it nobody could tell rows apart.
    kept = [index for index in others if there is None or values.names[index].casefold() in there]
    columns = [values.columns[index] for index in (*values.key, *kept)]
    width = len(values.key)
    compared = Compared(
        key=tuple([column.name for column in columns[:width]]),
        names=tuple([column.name for column in columns[width:]]),
        types=tuple(
            [
                _compared_type(column, number < width and not table.untyped, padded)
                for number, column in enumerate(columns)
            ]
        ),
    )
    return values, columns, compared


def _compared_type(column: Column, is_typed_key: bool, padded: frozenset[str]) -> str:
    """Find the type as which values are compared: CHAR where blanks at their end do not count."""
    if column.category is Category.STRING and column.name.casefold() in padded:
        return "char"
    if bare_type(column.type) in PADDED_TYPES and not is_typed_key:
        return "varchar"
    return column.type


def selection_of(
    table: Table,
    there: frozenset[str] | None = None,
    padded: frozenset[str] = frozenset(),
    when: Sequence[str] = (),
    query: str | None = None,
) -> tuple[Selection, Compared]:
    """Select those columns from the table itself; raise DataError where nothing tells its rows apart."""
    if not table.key:
        problem = f"{table.whole} has no key, so nobody can say which of its rows differ."
        raise DataError(problem, hint="Give it a primary key or a unique index.")
    values, columns, compared = columns_of(table, there, padded)
    natives = {name: native for native, name in values.natives.items()}
    stored = {column.name: column for column in table.columns}
    own_columns = tuple([stored[natives[column.name]] for column in columns])
    return Selection(table=table, columns=own_columns, when=tuple(when), query=query), compared
