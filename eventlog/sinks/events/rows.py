"""The rows before and after a change as objects of JSON, each value in the form that its format has
for the type.

Law: what was not captured is not in the object; a null is the database's NULL.
"""

from __future__ import annotations

import binascii
import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec
from msgspec import Struct

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.model import Change, Op
from eventlog.core.schema import Column, Table
from eventlog.qlik.nearest import ColumnSayer
from eventlog.qlik.readings import is_whole_text, reading
from eventlog.qlik.typemap import QlikType, qlik_type
from eventlog.qlik.values import NEVER, RowBuilder, TableValues

Write = Callable[[Any], Any]
"""Makes what JSON holds of what a reading gives, never of None."""

JsonRow = Mapping[str, Any]
encode: Final = msgspec.json.Encoder().encode


class FieldType(Struct, frozen=True, kw_only=True):
    """How a column's values are written: what `write` makes of a reading, or `way` of a cell itself.

    The others describe it in a schema of Kafka Connect; `empty` stands for a value that must be there
    and that nobody knows.
    """

    type: str
    write: Write = lambda value: value
    way: Write | None = None
    name: str | None = None
    parameters: Mapping[str, str] | None = None
    fields: tuple[Mapping[str, Any], ...] = ()
    items: FieldType | None = None
    required: bool = False
    doc: str | None = None
    empty: Any = None


class RowEvent(Struct, frozen=True, kw_only=True):
    """A change as events tell it. `op` is insert, update, delete, truncate or refresh."""

    op: str
    key: JsonRow | None
    before: JsonRow | None
    after: JsonRow | None


class TableRows:
    """Reads the changes of one table; `field_of` says how the values of a column are written."""

    def __init__(self, table: Table, field_of: Callable[[Column, QlikType], FieldType]) -> None:
        self.table = table
        self.values = values = TableValues(table)
        for name in values.names:
            if not is_whole_text(name):
                problem = f"the name of a column, {value_shown(name)}, holds half a character"
                raise ExpressionError(f"{problem}; rename it")
        self.fields = [field_of(column, qlik_type(column.type)) for column in values.columns]
        both = zip(values.columns, self.fields, strict=True)
        ways = [field.way or _both(reading(column), field.write) for column, field in both]
        self._builder = RowBuilder(values, [(NEVER, way) for way in ways], None)
        self.sayer = ColumnSayer(values.columns, ways)
        self._beside_key = ~values.key_bits

    def event_of(self, change: Change) -> RowEvent | None:
        """Convert a change to an event; None if no column of the table is in it."""
        if change.op is Op.TRUNCATE:
            return RowEvent(op="truncate", key=None, before=None, after=None)
        key = self._key(change)
        # A created object comes as its first change, with all that was read back.
        if change.refresh or change.created or change.op is Op.ADD:
            row, _, has, *_ = self._builder.row(change, new=True)
            op = "refresh" if change.refresh else "insert"
            return RowEvent(op=op, key=key, before=None, after=self._object(row, has))
        if change.op is Op.DELETE:
            row, _, had, *_ = self._builder.row(change, new=False)
            return RowEvent(op="delete", key=key, before=self._object(row, had), after=None)
        former, after, _, had, has, _ = self._builder.read_modified(change)
        if not change.whole and change.edits and not (had | has) & self._beside_key:
            return None  # only child tables changed
        # The key alone says nothing of what was there before.
        before = None
        if change.whole or had & self._beside_key:
            before = self._object(former, had)
        return RowEvent(op="update", key=key, before=before, after=self._object(after, has))

    def _key(self, change: Change) -> JsonRow | None:
        """Return the key's columns in order; None for a table without a key."""
        indexes = self.values.key
        if not indexes:
            return None
        row, _, _ = self._builder.read_key_pieces(change.row.key)
        return {self.values.names[index]: row[index] for index in indexes}

    def _object(self, row: Sequence[Any], bits: int) -> JsonRow:
        names = self.values.names
        return {name: row[index] for index, name in enumerate(names) if bits >> index & 1}


def json_field(_column: Column, kind: QlikType) -> FieldType:
    """Choose plain JSON: exact fractions as text, bytes in Base64, times in ISO 8601."""
    return FieldType(type=kind.name, write=_PLAIN.get(kind.name, as_it_is))


def as_it_is(value: Any) -> Any:
    return value


def base64(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()


def digits(value: Decimal | int) -> str:
    """Write an exact number without an exponent."""
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)


def finite(value: float) -> float:
    """Return the number; raise ExpressionError if JSON cannot hold it."""
    if math.isfinite(value):
        return value
    problem = f"{value_shown(value)} is a number that JSON cannot hold"
    raise ExpressionError(f"{problem}; correct the value")


def iso_time(value: dt.datetime) -> str:
    """Write a moment in ISO 8601, with `Z` if it has a zone."""
    return value.isoformat().replace("+00:00", "Z")


_PLAIN: Final[Mapping[str, Write]] = {
    "NUMERIC": digits,
    "REAL4": finite,
    "REAL8": finite,
    "BYTES": base64,
    "BLOB": base64,
    "DATE": dt.date.isoformat,
    "TIME": dt.time.isoformat,
    "DATETIME": iso_time,
}


def _both(read: Callable[[Any], Any], write: Write) -> Write:
    return lambda cell: write(read(cell))
