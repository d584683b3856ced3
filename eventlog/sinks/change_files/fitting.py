"""Whether the cells of a row fit the Arrow types of their columns: asked of Arrow, but only where it could say no."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from eventlog.core.errors import ExpressionError
from eventlog.core.sql_types import Category, category
from eventlog.qlik.change_tables.rows import ChangeColumn, ChangeRow
from eventlog.sinks.change_files.row_files import NUMBERS, arrow_schema, misfits, too_large

if TYPE_CHECKING:
    import pyarrow as pa

SET_ASIDE: Final = 'Mend the table or the row; or set output.on_refused = "set-aside", which marks such rows as errors.'
_HARMLESS: Final = ("bool", "double", "binary", "date32", "timestamp")


class Fitting:
    """Looks at the rows of one change table before they are put together column by column."""

    def __init__(self, columns: Sequence[ChangeColumn]) -> None:
        present = [
            column
            for column in columns
            if not (column.header and column.name.endswith(("change_seq", "partition_name")))
        ]
        self._columns = present
        self._doubts = [
            (place, _doubt(column, field.type))
            for place, (column, field) in enumerate(zip(present, arrow_schema(present), strict=True))
            if category(column.type) is not Category.TIME and _can_refuse(field.type)
        ]

    def check(self, rows: Sequence[ChangeRow]) -> None:
        """ExpressionError names the column that cannot hold its value."""
        for row in rows:
            for place, doubtful in self._doubts:
                cell = row[place]
                if cell is not None and doubtful(cell):
                    self._ask(row)
                    break

    def _ask(self, row: ChangeRow) -> None:
        found = misfits(self._columns, [row])
        if found:
            raise ExpressionError(found[0])


def _can_refuse(kind: pa.DataType) -> bool:
    return not str(kind).startswith(_HARMLESS)


def _doubt(column: ChangeColumn, kind: pa.DataType) -> Callable[[Any], bool]:
    """What tells the cells of a column of which Arrow must be asked from those that it is sure to take."""
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return partial(_no_decimal, digits=kind.precision - kind.scale, scale=kind.scale)
    if pa.types.is_integer(kind):
        return partial(_no_whole_number, beyond=2 ** (kind.bit_width - 1))
    if pa.types.is_float32(kind):
        return too_large
    return _no_number if category(column.type) in NUMBERS else _no_text


def _no_decimal(cell: Any, *, digits: int, scale: int) -> bool:
    if type(cell) is int:
        cell = Decimal(cell)
    if type(cell) is not Decimal or not cell.is_finite():
        return True
    return cell.adjusted() >= digits or -int(cell.as_tuple().exponent) > scale


def _no_whole_number(cell: Any, *, beyond: int) -> bool:
    return type(cell) is not int or not -beyond <= cell < beyond


def _no_number(cell: Any) -> bool:
    """Exact numbers of any precision are text for Arrow."""
    return type(cell) not in (Decimal, int) and _no_text(cell)


def _no_text(cell: Any) -> bool:
    return not isinstance(cell, str) or (not cell.isascii() and not _encodable(cell))


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a character that is written as two
        return False
    return True
