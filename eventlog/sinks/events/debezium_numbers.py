"""Exact numbers as Debezium writes them: as the bytes of their digits, as text, or as the nearest binary fraction."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.qlik.typemap import UNSIGNED_DIGITS, QlikType
from eventlog.sinks.events.connect_avro import CONNECT_DECIMAL, CONNECT_DIGITS
from eventlog.sinks.events.rows import FieldType
from eventlog.sinks.events.rows import digits as plain_digits
from eventlog.sinks.events.settings import DebeziumSettings

DECIMAL_MOST_DIGITS: Final = 400
"""Zeros that a number may begin or end with."""


def make_number(settings: DebeziumSettings, kind: QlikType) -> FieldType:
    """Choose the type of an exact number: bytes of digits, text or a double."""
    if settings.decimal_handling_mode == "string":
        return FieldType(type="string", write=plain_digits, empty="0")
    if settings.decimal_handling_mode == "double":
        return FieldType(type="double", write=float, empty=0.0)
    stated = kind.digits
    if stated is None:  # each value brings its own scale
        return replace(_VARIABLE, write=_variable)
    precision, scale = stated
    parameters = {"scale": str(scale), CONNECT_DIGITS: str(precision or UNSIGNED_DIGITS)}
    write = partial(_write_scaled, scale)
    return FieldType(type="bytes", write=write, name=CONNECT_DECIMAL, parameters=parameters, empty=b"\0")


def _write_scaled(scale: int, value: Decimal | int) -> bytes:
    """Write a number of fixed scale as bytes."""
    return big_endian(_digits(Decimal(value), scale))


def _variable(value: Decimal | int) -> dict[str, Any]:
    """Write a number together with its own scale."""
    number = Decimal(value)
    if not number:
        return {"scale": 0, "value": b"\0"}
    exponent = number.as_tuple().exponent
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    digits = _digits(number, scale)
    while scale and digits % 10 == 0:
        digits, scale = digits // 10, scale - 1
    return {"scale": scale, "value": big_endian(digits)}


def _digits(number: Decimal, scale: int) -> int:
    """Return the number times 10**scale; raise ExpressionError if it has more decimals."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        problem = f"{value_shown(number)} is no number that a decimal can hold"
        raise ExpressionError(f'{problem}; set output.debezium.decimal_handling_mode = "string"')
    # Not by text, which Python reads and writes up to 4,300 digits only.
    whole = int(Decimal((0, digits, 0)))
    # A number with an exponent of millions would be written out before its size is known.
    shift = exponent + scale
    if abs(shift) > DECIMAL_MOST_DIGITS:
        problem = f"{value_shown(number)} has more digits than a decimal can hold"
        raise ExpressionError(f"{problem}; correct the value")
    power: int = 10 ** abs(shift)
    if shift >= 0:
        magnitude = whole * power
    elif whole % power == 0:
        magnitude = whole // power
    else:
        problem = f"{value_shown(number)} has more than {scale} digits behind the point"
        raise ExpressionError(f"{problem}; correct the value")
    return -magnitude if sign else magnitude


def big_endian(number: int) -> bytes:
    """Write an integer in two's complement, in as few bytes as possible."""
    magnitude = number
    if number < 0:
        magnitude = ~number  # so that -128 fits into one byte, as 127 does
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


_VARIABLE: Final = FieldType(
    type="struct",
    fields=(
        {"type": "int32", "optional": False, "field": "scale"},
        {"type": "bytes", "optional": False, "field": "value"},
    ),
    name="io.debezium.data.VariableScaleDecimal",
    doc="Variable scaled decimal",
    empty={"scale": 0, "value": b"\0"},
)
