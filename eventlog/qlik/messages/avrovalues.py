"""Values as Avro's bytes: variable-length numbers, and one writer for each type of column.

A column is a union of null and its type, so each piece begins with the branch it takes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Context, Decimal, Inexact, InvalidOperation
from struct import Struct as Packing
from typing import Any, Final

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.qlik.messages.jsonvalues import to_json
from eventlog.qlik.typemap import LogicalWord, QlikType

ToAvro = Callable[[Any], bytes]
NULL: Final = b"\x00"
SOME: Final = b"\x02"
"""The branch of a union that is not null."""
_TABLED_NUMBERS = 8192
_EPOCH = dt.date(1970, 1, 1).toordinal()
_START = dt.datetime(1970, 1, 1)
_MICRO = dt.timedelta(microseconds=1)
_single, _double = Packing("<f").pack, Packing("<d").pack
# Without traps a value of too many digits would be rounded, and nobody would hear of it.
_EXACT = Context(prec=10_000, traps=[Inexact, InvalidOperation])


def _variable(rest: int) -> bytes:
    digits = bytearray()
    # Seven bits a byte, the lowest first; the eighth says that more follow.
    while rest > 127:
        digits.append(rest & 127 | 128)
        rest >>= 7
    digits.append(rest)
    return bytes(digits)


_SHORT = [_variable(number) for number in range(2 * _TABLED_NUMBERS)]
SIZES = [SOME + _SHORT[2 * size] for size in range(_TABLED_NUMBERS)]
"""What stands before so many bytes in a union that is not null."""


def number(value: int) -> bytes:
    """Write an int or a long."""
    rest = value << 1
    if value < 0:
        rest = ~rest  # zigzag: numbers near zero are short, whatever their sign
    if rest < 2 * _TABLED_NUMBERS:
        return _SHORT[rest]
    return _variable(rest)


def prefix_size(content: bytes) -> bytes:
    """Write a string or bytes behind its length."""
    return number(len(content)) + content


def some(content: bytes) -> bytes:
    """Write a string or bytes in a union with null."""
    size = len(content)
    if size < _TABLED_NUMBERS:
        return SIZES[size] + content
    return SOME + number(size) + content


def to_avro(kind: QlikType, *, logical: bool) -> ToAvro:
    """Choose the writer of a column's values in Avro, which are never None."""
    word = None
    if logical:
        word = _logical(kind)
    if word == "decimal":
        return _decimal(*_digits(kind))
    if word is not None:
        return _LOGICAL[word]
    if kind.forms.avro != "string":
        return _WAYS[kind.forms.avro]
    write = to_json(kind)
    if write is None:
        return text
    return lambda value: text(write(value))


def avro_type(kind: QlikType, *, logical: bool) -> str | dict[str, str | int]:
    """Write the type for a schema."""
    word = None
    if logical:
        word = _logical(kind)
    if word is None:
        return kind.forms.avro
    described: dict[str, str | int] = {"type": LOGICAL_TYPES[word], "logicalType": word}
    if word == "decimal":
        described["precision"], described["scale"] = _digits(kind)
    return described


def _logical(kind: QlikType) -> LogicalWord | None:
    """Choose the logical type; a decimal needs its digits."""
    word = kind.forms.logical
    if word == "decimal" and kind.digits is None:
        return None
    return word


def _digits(kind: QlikType) -> tuple[int, int]:
    assert kind.digits is not None
    return kind.digits


def text(value: str) -> bytes:
    try:
        content = value.encode()
    except UnicodeEncodeError:
        raise ExpressionError(
            f"{value_shown(value)} holds half a character, which UTF-8 cannot carry; correct the value"
        ) from None
    size = len(content)
    if size < _TABLED_NUMBERS:  # as `some` does, without another call for every text
        return SIZES[size] + content
    return some(content)


def _between(low: int, high: int) -> ToAvro:
    def write(value: int) -> bytes:
        if low <= value <= high:
            return SOME + number(value)
        raise ExpressionError(
            f"{value_shown(value)} is outside {low} to {high}; correct the column's type in the schema"
        )

    return write


def _decimal(precision: int, scale: int) -> ToAvro:
    most = 10**precision

    def write(value: Decimal | int) -> bytes:
        try:
            whole = int(Decimal(value).scaleb(scale, _EXACT).to_integral_exact(context=_EXACT))
        except (Inexact, InvalidOperation, OverflowError, ValueError):
            # NaN, infinity, or more digits than the scale has: refused with what is too large.
            whole = most
        if not -most < whole < most:
            hint = "correct the value or the column's type, or write without logical types"
            raise ExpressionError(f"{value_shown(value)} does not fit into decimal({precision},{scale}); {hint}")
        # One bit more than the number has, for the sign: a decimal is in two's complement.
        return some(whole.to_bytes((whole.bit_length() + 8) // 8, "big", signed=True))

    return write


def _real(value: float) -> bytes:
    try:
        return SOME + _single(value)
    except OverflowError:
        raise ExpressionError(
            f"{value_shown(value)} is too large for a float; correct the column's type in the schema"
        ) from None


def _millis(value: dt.time) -> bytes:
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    # A time-millis is in milliseconds; what is finer has no place in it.
    return SOME + number(seconds * 1000 + value.microsecond // 1000)


def _micros(value: dt.datetime) -> bytes:
    # The zone was made UTC before, and numbers are counted from a time without one.
    return SOME + number((value.replace(tzinfo=None) - _START) // _MICRO)


_INT, _LONG = _between(-(1 << 31), (1 << 31) - 1), _between(-(1 << 63), (1 << 63) - 1)
_WAYS: dict[str, ToAvro] = {
    "boolean": lambda value: b"\x02\x01" if value else b"\x02\x00",
    "int": _INT,
    "long": _LONG,
    "float": _real,
    "double": lambda value: SOME + _double(value),
    "bytes": some,
}
_LOGICAL: dict[str, ToAvro] = {
    "date": lambda value: SOME + number(value.toordinal() - _EPOCH),
    "time-millis": _millis,
    "timestamp-micros": _micros,
}
LOGICAL_TYPES: Final = {"decimal": "bytes", "date": "int", "time-millis": "int", "timestamp-micros": "long"}
