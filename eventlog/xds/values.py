"""Values: what a column's value is called in XDS, and its text; or the refusal of one that its column cannot hold.

Text comes from the log, Python values from reading back; both end in the same text. Numbers with a fraction are
strings in XDS and pass as the database wrote them, for money and locales have forms of their own.
"""

from __future__ import annotations

import binascii
import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial

from eventlog.core.errors import ExpressionError
from eventlog.core.sql_types import Category
from eventlog.xds.text import shown
from eventlog.xds.times import TimeSyntax, time_text

ValueText = tuple[str, str]
"""The XDS type and the text, not yet escaped. A tuple, because one is made for every value."""
Reading = Callable[[object], ValueText]

MAX_EXPONENT = 200_000
"""More digits than any database holds; writing out a larger exponent would only fill the memory."""
_whole = re.compile(r" *([+-]?\d+)(?:\.0*)? *", re.ASCII).fullmatch
_base64 = re.compile(r"[A-Za-z0-9+/]*+={0,2}").fullmatch
_BREAKS = str.maketrans("", "", "\r\n")
_STATES = {
    **dict.fromkeys(("1", "t", "true", "y", "yes"), "true"),
    **dict.fromkeys(("0", "f", "false", "n", "no"), "false"),
}


def reading(category: Category | None, syntax: TimeSyntax) -> Reading:
    """How values of such a column are read."""
    if category in (Category.DATE, Category.TIME, Category.TIMESTAMP):
        return partial(_time, category=category, syntax=syntax)
    return _undescribed if category is None else _READINGS[category]


def _undescribed(value: object) -> ValueText:
    return _octet(value) if isinstance(value, bytes | bytearray | memoryview) else _string(value)


def _string(value: object) -> ValueText:
    if isinstance(value, str):
        return "string", value
    if isinstance(value, bool):
        return "string", "true" if value else "false"
    return "string", _plain_text(value)


def _plain_text(value: object) -> str:
    """Numbers and times where text is expected, as the databases themselves write them in text."""
    match value:
        case int():
            return _digits(value)
        case Decimal():
            return _decimal(value)
        case float():
            return repr(value) if math.isfinite(value) else _decimal(Decimal(value))
        case dt.datetime():
            return time_text(value, Category.TIMESTAMP, 3)
        case dt.date():
            return time_text(value, Category.DATE, 3)
        case dt.time():
            return time_text(value, Category.TIME, 3)
    raise _misfit(value, "text")


def _int(value: object) -> ValueText:
    if isinstance(value, str):
        found = _whole(value)
        if found is not None:
            return "int", found[1]
    elif isinstance(value, int):
        return "int", _digits(int(value))
    elif isinstance(value, float | Decimal) and _is_whole(value):
        return "int", _decimal(Decimal(value).to_integral_value())
    raise _misfit(value, "a whole number")


def _state(value: object) -> ValueText:
    state = None
    if isinstance(value, str):
        state = _STATES.get(value.strip(" ").lower())
    elif isinstance(value, bytes | bytearray | memoryview):
        state = {b"\0": "false", b"\1": "true"}.get(bytes(value))  # BIT(1), as MySQL's drivers hand it over
    elif isinstance(value, int) or (isinstance(value, float | Decimal) and _is_whole(value)):
        state = {0: "false", 1: "true"}.get(int(value))
    if state is None:
        raise _misfit(value, "a truth value (1, t, true, y, yes or 0, f, false, n, no)")
    return "state", state


def _octet(value: object) -> ValueText:
    if isinstance(value, bytes | bytearray | memoryview):
        return "octet", binascii.b2a_base64(value, newline=False).decode("ascii")
    if isinstance(value, str):
        text = value.translate(_BREAKS) if "\n" in value or "\r" in value else value
        if len(text) % 4 == 0 and _base64(text) is not None:
            return "octet", text
    raise _misfit(value, "binary data in Base64")


def _time(value: object, *, category: Category, syntax: TimeSyntax) -> ValueText:
    return "time" if syntax == 1 else "string", time_text(value, category, syntax)


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError as error:  # Python does not write integers of more than 4300 digits
        raise _misfit(value, "a number that a database can hold") from error


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        return "NaN" if value.is_nan() else "-Infinity" if value.is_signed() else "Infinity"
    if abs(value.adjusted()) > MAX_EXPONENT:
        raise _misfit(value, "a number that a database can hold")
    return format(value, "f")


def _is_whole(value: float | Decimal) -> bool:
    number = Decimal(value)
    return number.is_finite() and abs(number.adjusted()) <= MAX_EXPONENT and number == number.to_integral_value()


def _misfit(value: object, expected: str) -> ExpressionError:
    return ExpressionError(f"{shown(value)} is not {expected}; correct the value, or the column's type in the schema")


_READINGS: dict[Category, Reading] = {
    Category.STRING: _string,
    Category.NUMBER: _string,
    Category.OCTET: _octet,
    Category.INT: _int,
    Category.STATE: _state,
}
