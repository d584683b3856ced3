"""Whether the cells of a row fit the Arrow types of their columns: asked of Arrow, but only where it could say no."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from eventlog.errors import ExpressionError
from eventlog.qlik.rows import ChangeColumn, ChangeRow
from eventlog.sinks.rowfiles import arrow_schema, misfits

if TYPE_CHECKING:
    import pyarrow as pa

SET_ASIDE: Final = 'Mend the table or the row; or set output.on_refused = "set-aside", which marks such rows as errors.'
LEAST, MOST = -(2**63), 2**63 - 1
_HARMLESS: Final = ("bool", "double", "binary", "date32", "time64", "timestamp")


class Fitting:
    """Looks at the rows of one change table before they are put together column by column."""

    def __init__(self, columns: Sequence[ChangeColumn]) -> None:
        present = [
            column
            for column in columns
            if not (column.header and column.name.endswith(("change_seq", "partition_name")))
        ]
        self._columns = present
        self._doubtful = [
            (place, str(field.type)) for place, field in enumerate(arrow_schema(present)) if _can_refuse(field.type)
        ]

    def check(self, rows: Sequence[ChangeRow]) -> None:
        """ExpressionError names the column that cannot hold its value."""
        for row in rows:
            for place, kind in self._doubtful:
                cell = row[place]
                if cell is not None and _doubtful(cell, kind):
                    self._ask(row)
                    break

    def _ask(self, row: ChangeRow) -> None:
        found = misfits(self._columns, [row])
        if found:
            raise ExpressionError(found[0])


def _can_refuse(kind: pa.DataType) -> bool:
    return not str(kind).startswith(_HARMLESS)


def _doubtful(cell: Any, kind: str) -> bool:
    if isinstance(cell, str):
        return not cell.isascii()
    if isinstance(cell, Decimal):
        return kind != "string"
    return not isinstance(cell, int) or kind != "int64" or not LEAST <= cell <= MOST
