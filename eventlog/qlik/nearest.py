"""Which values the columns of a row or of a message cannot hold, and which of those that they can
is the nearest.
"""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.model import Value
from eventlog.core.schema import Column
from eventlog.core.sql_types import Category
from eventlog.on_value import BeyondSide, side_of
from eventlog.qlik.readings import is_whole_text
from eventlog.qlik.values import name_column

_ENDS: Final[dict[Category, tuple[Value, Value]]] = {
    Category.DATE: (dt.date.min, dt.date.max),
    Category.TIME: (dt.time.min, dt.time.max),
    Category.TIMESTAMP: (dt.datetime.min, dt.datetime.max),
}


class ColumnSayer:
    """What is known about the values of one table, whose columns are written in these ways."""

    def __init__(self, columns: Sequence[Column], ways: Sequence[Callable[[Any], object]]) -> None:
        named_columns = zip(columns, ways, strict=True)
        self._columns = {column.name: (column, way) for column, way in named_columns}

    def check(self, column: str, value: Value) -> None:
        """Raise ExpressionError if the column cannot hold the value."""
        column_and_way = self._columns.get(column)
        if column_and_way is None:  # a child table's values are left out of rows anyway
            return
        if isinstance(value, str) and not is_whole_text(value):
            # Ways do not see it: it shows only when the whole message is encoded.
            problem = f"{value_shown(value)} holds half a character"
            hint = "which UTF-8 cannot carry; correct the value"
            raise name_column(ExpressionError(f"{problem}, {hint}"), column)
        try:
            column_and_way[1](value)
        except ExpressionError as error:
            raise name_column(error, column) from None

    def nearest(self, column: str, value: Value) -> Value:
        """Find the nearest value that the column can hold; None where there is none."""
        category = self._columns[column][0].category
        if category in _ENDS:
            side = side_of(value)
            if side is None:
                return None
            return _ENDS[category][side is BeyondSide.LATE]
        if category is Category.STRING and isinstance(value, str):
            # UTF-16 is where halves come from, and its decoder replaces just those that have no
            # partner.
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        number = _number(value)
        if category is Category.STATE:
            # Every number but 0 and 1, which a truth value holds, comes nearer to true.
            return True if number is not None and number.is_finite() else None
        if category is Category.NUMBER and number is not None and number.is_infinite():
            return math.copysign(sys.float_info.max, number)
        return None

    def holds_several(self, _column: str) -> bool:
        """Return False: a child table's values are left out of a row."""
        return False


def _number(value: Value) -> Decimal | None:
    with suppress(InvalidOperation):
        return Decimal(str(value))
    return None
