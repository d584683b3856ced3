"""Readings: from the log's text, or a database's value, to the one Python value that a column of
its type holds.

Numbers with a fraction become Decimal or float by the column's type, times lose what is finer than
a microsecond, and a time with a zone is turned to UTC. What the column's type cannot hold is
refused in words, never altered.
"""

from __future__ import annotations

import binascii
import datetime as dt
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.model import Cell, Value
from eventlog.core.schema import Column
from eventlog.core.sql_types import Category, bare_type, is_zoned, truth_of
from eventlog.core.times import read_clock
from eventlog.qlik.change_seq import read_time

Reading = Callable[[Cell], Value]

# Python refuses to read a number of more than 4,300 digits.
_whole = re.compile(r" *([+-]?\d{1,4300})(?:\.0*)? *", re.ASCII).fullmatch
_clock = re.compile(r" *(\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,12}))? ?(Z|[+-]\d\d(?::?\d\d)?)? *", re.ASCII).fullmatch
_base64 = re.compile(r"[A-Za-z0-9+/]*+={0,2}").fullmatch
_FLOATS = frozenset(
    ("float", "real", "double", "double precision", "smallfloat", "float4", "float8")
    + ("binary_float", "binary_double")
)


def reading(column: Column) -> Reading:
    return reading_of(column.type)


@lru_cache(maxsize=4096)
def reading_of(sql_type: str) -> Reading:
    category = Column(name="", type=sql_type).category
    if category is Category.NUMBER and is_float(sql_type):
        return _float
    if category is Category.TIMESTAMP and is_zoned(sql_type):
        return _read_zoned
    return _READINGS[category]


def is_float(sql_type: str) -> bool:
    """Return True if a number of the type is a binary fraction."""
    return bare_type(sql_type) in _FLOATS


def is_whole_text(text: str) -> bool:
    """Return True if UTF-8 can carry the text: not half of a character that is written as two."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_column(column: Column, cells: Sequence[Any]) -> Sequence[Any]:
    """Read the texts among the cells of one column; all others stay. ExpressionError as for one of them."""
    texts = [cell for cell in cells if type(cell) is str]
    if not texts or column.category is Category.STRING:
        return cells
    read: Iterable[Value] | None = None
    if column.category is Category.INT:
        digits = "".join(texts)
        # Short ones of digits alone, which is what nearly all are; `isdigit` takes ² too.
        if max(map(len, texts)) < 20 and min(map(len, texts)) and digits.isdigit() and digits.isascii():
            read = map(int, texts)
    elif column.category is Category.DATE and {(len(text), text[4::3]) for text in texts} == {(10, "--")}:
        with suppress(ValueError):
            read = [*map(dt.date.fromisoformat, texts)]
    values = iter(map(reading(column), texts) if read is None else read)
    if len(texts) == len(cells):
        return [*values]
    return [next(values) if type(cell) is str else cell for cell in cells]


def _string(cell: Cell) -> Value:
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        if cell:
            return "true"
        return "false"
    if isinstance(cell, Decimal):
        # Not `str`, which writes small and large ones with an exponent.
        return format(cell, "f")
    if isinstance(cell, bytes | tuple):
        raise _misfit(cell, "text")
    return str(cell)


def _int(cell: Cell) -> Value:
    if type(cell) is int:
        return cell
    if isinstance(cell, str):
        match = _whole(cell)
        if match is not None:
            return int(match[1])
    elif isinstance(cell, int) or (isinstance(cell, float | Decimal) and _is_whole(cell)):
        return int(cell)
    raise _misfit(cell, "a whole number")


def _number(cell: Cell) -> Value:
    number = cell
    if isinstance(cell, float):
        # The digits that people see, and not all of the binary fraction.
        number = Decimal(repr(cell))
    elif isinstance(cell, str | int) and not isinstance(cell, bool):
        try:  # what is no number is refused below; `suppress` costs as much as to read one
            number = Decimal(cell)
        except (InvalidOperation, ValueError):
            number = cell
    if type(number) is Decimal and not number.is_snan():  # one that signals cannot even be compared
        return number or _read_zero(number)
    raise _misfit(cell, "a number")


def _read_zero(number: Decimal) -> Decimal:
    """Read a zero without digits before the point, such as 0E+3: Parquet would want room for all of them."""
    return number if int(number.as_tuple().exponent) <= 0 else Decimal(0)


def _float(cell: Cell) -> Value:
    if type(cell) is float:
        return cell
    # A truth value is an int, and "true" is no number.
    if isinstance(cell, str | int | Decimal) and not isinstance(cell, bool):
        try:
            return float(cell)
        except (ValueError, OverflowError):
            pass
    raise _misfit(cell, "a number")


def _state(cell: Cell) -> Value:
    state = truth_of(cell)
    if state is None:
        raise _misfit(cell, "a truth value (1, t, true, y, yes or 0, f, false, n, no)")
    return state


def _octet(cell: Cell) -> Value:
    if type(cell) is bytes:
        return cell
    if isinstance(cell, str):
        # Base64 of mail is cut into lines.
        text = cell.translate({10: None, 13: None})
        if len(text) % 4 == 0 and _base64(text) is not None:
            return binascii.a2b_base64(text)
    raise _misfit(cell, "binary data in Base64")


def _timestamp(cell: Cell) -> Value:
    """Read a time without a zone; a value's own zone is converted to UTC."""
    moment = cell
    if type(moment) is not dt.datetime:
        moment = _moment(cell)
    if moment.tzinfo is None:
        return moment
    return _utc(moment).replace(tzinfo=None)


def _read_zoned(cell: Cell) -> Value:
    moment = _moment(cell)
    if moment.tzinfo is None:
        return moment.replace(tzinfo=dt.UTC)
    return _utc(moment)


def _date(cell: Cell) -> Value:
    if type(cell) is dt.date:
        return cell
    if type(cell) is str and len(cell) == 10 and cell[4::3] == "--":
        try:
            return dt.date.fromisoformat(cell)
        except ValueError:
            raise _misfit(cell, "a time; write it as yyyy-mm-dd hh:mm:ss.ffffff") from None
    # Oracle's DATE has a time of day, which a day cannot hold.
    moment = _moment(cell)
    if moment.time() == dt.time.min:
        return moment.date()
    raise _misfit(cell, "a day without a time; call the column's type timestamp in the schema")


def _time(cell: Cell) -> Value:
    if isinstance(cell, dt.time):
        return cell
    match = None
    if isinstance(cell, str):
        match = _clock(cell)
    if match is not None:
        clock, fraction, zone = match.groups()
        text = f"{clock}:00"[:8]  # seconds may be missing
        if fraction:
            text += f".{(fraction + '00000')[:6]}"
        try:
            return read_clock(text + (zone or ""))
        except ValueError:  # 25 o'clock, which the message below explains better
            pass
    raise _misfit(cell, "a time of day, as hh:mm:ss")


def _moment(cell: Cell) -> dt.datetime:
    if isinstance(cell, dt.datetime):
        return cell
    # After datetime, which is a date too.
    if isinstance(cell, dt.date):
        return dt.datetime.combine(cell, dt.time.min)
    moment = None
    if isinstance(cell, str):
        moment = read_time(cell)
    if moment is None:
        raise _misfit(cell, "a time; write it as yyyy-mm-dd hh:mm:ss.ffffff")
    return moment


def _utc(at: dt.datetime) -> dt.datetime:
    try:
        return at.astimezone(dt.UTC)
    except OverflowError:
        raise _misfit(at, "a time whose zone stays within the calendar") from None


def _is_whole(value: float | Decimal) -> bool:
    number = value if isinstance(value, Decimal) else Decimal(value)
    # Of 1e999999 no whole number is made: its digits would fill the memory.
    if not number.is_finite() or abs(number.adjusted()) > 4300:
        return False
    return number == number.to_integral_value()


def _misfit(cell: object, expected: str) -> ExpressionError:
    return ExpressionError(f"{value_shown(cell)} is not {expected}")


_READINGS: dict[Category, Reading] = {
    Category.STRING: _string,
    Category.OCTET: _octet,
    Category.INT: _int,
    Category.STATE: _state,
    Category.NUMBER: _number,
    Category.DATE: _date,
    Category.TIME: _time,
    Category.TIMESTAMP: _timestamp,
}
