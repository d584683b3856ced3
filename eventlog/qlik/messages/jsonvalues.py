"""Values as JSON holds them: numbers beyond 53 bits and decimals as strings, bytes in hexadecimal,
times as the source has them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.times import read_moment
from eventlog.qlik.typemap import QlikType

# Wide enough for any number that `_scale` fills up with zeros.
_WIDE = Context(prec=400)
ToJson = Callable[[Any], Any]
"""Takes what a reading gives for the column, never None."""


def to_json(kind: QlikType) -> ToJson | None:
    """Choose the writer of a column's values in JSON; None where they are JSON already."""
    if kind.name == "NUMERIC" and kind.scale:
        return _scale(kind.scale)
    return _WAYS.get(kind.name)


def plain(value: Decimal | int) -> str:
    """Write a number without an exponent."""
    if isinstance(value, int):
        return str(value)
    return format(value, "f")


def instant(value: dt.datetime) -> str:
    """Write date and time with a blank between them and six digits of the second."""
    # Without the zone, which only ever is UTC here.
    return value.isoformat(" ", "microseconds")[:26]


def clock(value: dt.time) -> str:
    """Write a time of day, with its fraction where it has one."""
    return value.replace(tzinfo=None).isoformat()


def _scale(scale: int) -> ToJson:
    """Make a function writing decimals with the column's digits after the point; longer ones
    unchanged.
    """
    unit = Decimal(1).scaleb(-scale)

    def write(value: Decimal) -> str:
        exponent = value.as_tuple().exponent
        # An exponent is text of NaN and infinity; and 1e999999 would get a million zeros.
        if isinstance(exponent, int) and -scale < exponent < 100 and value.adjusted() < 100:
            value = value.quantize(unit, context=_WIDE)
        return format(value, "f")

    return write


def ready_text(kind: QlikType) -> Callable[[str], str | None] | None:
    """Choose the reading of log texts that are JSON's as they stand: it gives None for texts to be parsed."""
    if kind.name == "DATE":
        return _ready_date
    if kind.name == "DATETIME":
        return _ready_instant
    if kind.name == "NUMERIC" and kind.scale:
        return _ready_number(kind.scale)
    return None


def _ready_date(text: str) -> str | None:
    if len(text) != 10 or text[4::3] != "--":
        return None
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return None
    return text


def _ready_instant(text: str) -> str | None:
    if len(text) != 19 or text[4::3] != "-- ::":
        return None
    try:
        read_moment(text)
    except ValueError:
        return None
    return f"{text}.000000"


def _ready_number(scale: int) -> Callable[[str], str | None]:
    point = -1 - scale

    def ready(text: str) -> str | None:
        whole, digits = text[:point], text[-scale:]
        if text[point : point + 1] != "." or not (whole + digits).isdigit() or not text.isascii():
            return None
        return text if whole[:1] > "0" or whole == "0" else None

    return ready


def _finite(value: float) -> float:
    if math.isfinite(value):
        return value
    problem = f"{value_shown(value)} is a number that JSON cannot hold"
    raise ExpressionError(f"{problem}; correct the value, or write Avro")


_WAYS: dict[str, ToJson] = {
    "UINT8": str,
    "NUMERIC": plain,
    "REAL4": _finite,
    "REAL8": _finite,
    "BYTES": lambda value: value.hex().upper(),
    "BLOB": lambda value: value.hex().upper(),
    "DATE": dt.date.isoformat,
    "TIME": clock,
    "DATETIME": instant,
}
