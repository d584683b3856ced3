"""Values as Avro's bytes: variable-length numbers, and one writer for each type of column.

A column is a union of null and its type, so each piece begins with the branch it takes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from struct import Struct as Packing
from typing import Any, Final

from eventlog.core.errors import ExpressionError
from eventlog.qlik.messages.jsonvalues import clock, instant, plain, to_json
from eventlog.qlik.readings import shown
from eventlog.qlik.typemap import QlikType

ToAvro = Callable[[Any], bytes]
NULL: Final = b"\x00"
SOME: Final = b"\x02"
"""The branch of a union that is not null."""
_TABLED_NUMBERS = 8192
_EPOCH = dt.date(1970, 1, 1).toordinal()
_START = dt.datetime(1970, 1, 1)
_MICRO = dt.timedelta(microseconds=1)
_single, _double = Packing("<f").pack, Packing("<d").pack
_EXACT = Context(prec=10_000, traps=[Inexact, InvalidOperation])


def _variable(rest: int) -> bytes:
    found = bytearray()
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    found.append(rest)
    return bytes(found)


_SHORT = [_variable(number) for number in range(2 * _TABLED_NUMBERS)]
SIZES = [SOME + _SHORT[2 * size] for size in range(_TABLED_NUMBERS)]
"""What stands before so many bytes in a union that is not null."""


def number(value: int) -> bytes:
    """An int or a long."""
    rest = value << 1 if value >= 0 else ~(value << 1)
    return _SHORT[rest] if rest < 2 * _TABLED_NUMBERS else _variable(rest)


def sized(content: bytes) -> bytes:
    """A string or bytes: the length, and then they."""
    return number(len(content)) + content


def some(content: bytes) -> bytes:
    """A string or bytes in a union with null."""
    size = len(content)
    return (SIZES[size] if size < _TABLED_NUMBERS else SOME + number(size)) + content


def to_avro(kind: QlikType, *, logical: bool) -> ToAvro:
    """What makes a piece of Avro of a column's values, which are never None."""
    if logical and kind.name == "UINT8":
        return _decimal(20, 0)
    if logical and kind.name == "NUMERIC" and kind.precision:
        return _decimal(kind.precision, kind.scale)
    if logical and kind.name in _LOGICAL:
        return _LOGICAL[kind.name]
    if kind.name == "NUMERIC":
        return _numeric(kind)
    return _WAYS[kind.name]


def avro_type(kind: QlikType, *, logical: bool) -> str | dict[str, str | int]:
    """How a schema says the type."""
    if logical and kind.name == "UINT8":
        return {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
    if logical and kind.name == "NUMERIC" and kind.precision:
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if logical and kind.name in _LOGICAL_TYPES:
        return _LOGICAL_TYPES[kind.name]
    return _TYPES.get(kind.name, "string")


def text(value: str) -> bytes:
    """A string of a column."""
    try:
        content = value.encode()
    except UnicodeEncodeError:
        raise ExpressionError(
            f"{shown(value)} holds half a character, which UTF-8 cannot carry; correct the value"
        ) from None
    size = len(content)
    return SIZES[size] + content if size < _TABLED_NUMBERS else some(content)


def _between(low: int, high: int) -> ToAvro:
    def write(value: int) -> bytes:
        if low <= value <= high:
            return SOME + number(value)
        raise ExpressionError(f"{shown(value)} is outside {low} to {high}; correct the column's type in the schema")

    return write


def _numeric(kind: QlikType) -> ToAvro:
    """Numbers as the text that JSON has for them."""
    write = to_json(kind) or plain
    return lambda value: text(write(value))


def _decimal(precision: int, scale: int) -> ToAvro:
    most = 10**precision

    def write(value: Decimal | int) -> bytes:
        try:
            whole = int(Decimal(value).scaleb(scale, _EXACT).to_integral_exact(context=_EXACT))
        except (Inexact, InvalidOperation, OverflowError, ValueError):
            whole = most
        if not -most < whole < most:
            hint = "correct the value or the column's type, or write without logical types"
            raise ExpressionError(f"{shown(value)} does not fit into decimal({precision},{scale}); {hint}")
        return some(whole.to_bytes((whole.bit_length() + 8) // 8, "big", signed=True))

    return write


def _real(value: float) -> bytes:
    try:
        return SOME + _single(value)
    except OverflowError:
        raise ExpressionError(
            f"{shown(value)} is too large for a float; correct the column's type in the schema"
        ) from None


def _millis(value: dt.time) -> bytes:
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return SOME + number(seconds * 1000 + value.microsecond // 1000)


def _micros(value: dt.datetime) -> bytes:
    return SOME + number((value.replace(tzinfo=None) - _START) // _MICRO)


_INT, _LONG = _between(-(1 << 31), (1 << 31) - 1), _between(-(1 << 63), (1 << 63) - 1)
_WAYS: dict[str, ToAvro] = {
    "BOOLEAN": lambda value: b"\x02\x01" if value else b"\x02\x00",
    **dict.fromkeys(("INT1", "INT2", "INT4", "UINT1", "UINT2"), _INT),
    **dict.fromkeys(("INT8", "UINT4"), _LONG),
    "UINT8": lambda value: text(str(value)),
    "REAL4": _real,
    "REAL8": lambda value: SOME + _double(value),
    **dict.fromkeys(("STRING", "CLOB", "NCLOB"), text),
    **dict.fromkeys(("BYTES", "BLOB"), some),
    "DATE": lambda value: text(value.isoformat()),
    "TIME": lambda value: text(clock(value)),
    "DATETIME": lambda value: text(instant(value)),
}
_LOGICAL: dict[str, ToAvro] = {
    "DATE": lambda value: SOME + number(value.toordinal() - _EPOCH),
    "TIME": _millis,
    "DATETIME": _micros,
}
_TYPES = {
    "BOOLEAN": "boolean",
    **dict.fromkeys(("INT1", "INT2", "INT4", "UINT1", "UINT2"), "int"),
    **dict.fromkeys(("INT8", "UINT4"), "long"),
    "REAL4": "float",
    "REAL8": "double",
    **dict.fromkeys(("BYTES", "BLOB"), "bytes"),
}
_LOGICAL_TYPES: dict[str, dict[str, str | int]] = {
    "DATE": {"type": "int", "logicalType": "date"},
    "TIME": {"type": "int", "logicalType": "time-millis"},
    "DATETIME": {"type": "long", "logicalType": "timestamp-micros"},
}
