"""The packed base-100 form of DECIMAL, DATETIME and INTERVAL: a sign, an exponent, pairs of digits.

The first byte holds the sign in its highest bit (1 is positive) and the exponent + 64 below; the
point stands left of the first pair. Of negative numbers the first byte is complemented, and the
pairs are what is missing to 100.

The pairs of a DATETIME or INTERVAL stand at the places of its fields. Places count from the pair
left of the point, which holds the second whatever a type ends with. A datetime that is a whole
date, a whole timestamp or a time of day becomes one; any other, and every interval, becomes the
text that the database writes for it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from functools import partial
from typing import Final

from eventlog.sources.gbase.layout import PLACES, ColumnType

_exact = Context(prec=200, Emax=999_999, Emin=-999_999)
_DIGITS: Final = bytes(pair // 10 << 4 | pair % 10 if pair < 100 else 0xFF for pair in range(256))
"""Turns a pair into the byte whose hexadecimal digits are its decimal ones, and what is no pair
into one without.
"""


Packed = tuple[bool, int, bytes]
"""A packed number taken apart: whether it is negative, the exponent that moves the point by as many
pairs, and the pairs.
"""


def unpack(data: bytes) -> Packed | None:
    """Takes a packed number apart; None is NULL, ValueError a byte that is no pair of digits."""
    first, pairs = data[0], data[1:]
    if first == 0:
        # NULL: no number begins with a zero byte, for a positive one has the highest bit set, and
        # the exponent of a negative one is limited for this (see pack).
        return None
    if pairs and max(pairs) > 99:
        raise ValueError(f"the byte {max(pairs):02X} is no pair of decimal digits")
    if first & 0x80:
        return False, (first & 0x7F) - 64, pairs
    return True, (~first & 0x7F) - 64, _complement(pairs)


def pack(packed: Packed, size: int) -> bytes:
    """Puts a packed number together in `size` bytes.

    OverflowError when it has more pairs or too great an exponent.
    """
    negative, exponent, given = packed
    pairs = given.lstrip(b"\0")
    exponent -= len(given) - len(pairs)
    # Pairs are aligned on the point; zeros before and behind them say nothing.
    pairs = pairs.rstrip(b"\0")
    if not pairs:
        return b"\x80" + bytes(size - 1)
    # The complement of the other one would be the first byte of NULL.
    highest = 62 if negative else 63
    if len(pairs) > size - 1 or not -64 <= exponent <= highest:
        raise OverflowError(f"{len(pairs)} pairs of digits with the exponent {exponent} do not fit into {size} bytes")
    if negative:
        return bytes([~(0x80 | (exponent + 64)) & 0xFF]) + _complement(pairs.ljust(size - 1, b"\0"))
    return bytes([0x80 | (exponent + 64)]) + pairs.ljust(size - 1, b"\0")


def _complement(pairs: bytes) -> bytes:
    # Trailing zeros stay zeros; the last pair before them is what is missing to 100, all others to
    # 99 (gbase-cdc.md 5.1).
    kept = pairs.rstrip(b"\0")
    if not kept:
        return pairs
    turned = bytes([99 - pair for pair in kept[:-1]]) + bytes([100 - kept[-1]])
    return turned.ljust(len(pairs), b"\0")


def unpack_decimal(data: bytes, precision: int, scale: int | None) -> Decimal | None:
    """Decode a DECIMAL with its type's scale; None as `scale` for a floating one.

    ValueError if it cannot be of its type. Pairs are read as text; a negative number has the
    complements of 100.
    """
    first, pairs = data[0], data[1:]
    if first == 0:
        return None
    digits = pairs.translate(_DIGITS).hex()
    if not digits.isdecimal():
        raise ValueError(f"the byte {max(pairs):02X} is no pair of decimal digits")
    number = int(digits)
    if first & 0x80:
        places = (first & 0x7F) - 64
    else:
        places = (~first & 0x7F) - 64
        if number:  # zero has no sign
            number -= 10 ** len(digits)
    if scale is None:
        value = Decimal(number).scaleb(2 * places - len(digits), _exact).normalize(_exact)
        _, _, exponent = value.as_tuple()
        if isinstance(exponent, int) and exponent > 0:  # 1E+3 is written as 1000
            value = value.quantize(Decimal(1), context=_exact)
        return value
    # More pairs before the point than the type has digits for.
    if number and places > (precision - scale + 1) // 2:
        raise ValueError(f"its exponent {places} is outside decimal({precision},{scale})")
    # How many digits stand behind the type's last one; the pairs of an odd scale have one too many.
    surplus = len(digits) - 2 * places - scale
    if surplus < 0:
        number *= 10**-surplus
    elif surplus > 0:
        whole, rest = divmod(number, 10**surplus)
        if rest:  # more digits than the type has: all of them are kept
            return Decimal(number).scaleb(-scale - surplus, _exact)
        number = whole
    return Decimal(number).scaleb(-scale, _exact)


def pack_decimal(value: Decimal, size: int) -> bytes:
    """Encode a DECIMAL; raise OverflowError if it needs more bytes."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise OverflowError(f"{value} is no number")
    # A pair must not lie across the point, so an odd exponent takes one zero more.
    text = "".join(map(str, digits)) + "0" * (exponent % 2)
    text = text.rjust(len(text) + len(text) % 2, "0")
    pairs = bytes(int(text[at : at + 2]) for at in range(0, len(text), 2))
    return pack((bool(sign), len(pairs) + (exponent - exponent % 2) // 2, pairs), size)


Moment = dt.datetime | dt.date | dt.time | str
_AFTER: Final = {"year": "-", "month": "-", "day": " ", "hour": ":", "minute": ":", "second": ".", "fraction": ""}
"""What stands behind a field when another one follows."""
FIRST_PAIRS: Final = 5
"""Pairs that the first field may have, which is the only one of more than two digits."""


def moment_reader(kind: ColumnType) -> Callable[[bytes], Moment | None]:
    """Reads datetimes of a type; None is NULL, ValueError what is none of its type."""
    fields_of, made_of = _fields_reader(kind), _moment_maker(kind)
    most = 9999 if kind.first == "year" else 99

    def read(data: bytes) -> Moment | None:
        packed = unpack(data)
        if packed is None:
            return None
        negative, exponent, pairs = packed
        if negative:
            raise ValueError("it is negative")
        fields = fields_of(exponent, pairs)
        if fields[0] > most:
            raise ValueError(f"its first field is {fields[0]}")
        return made_of(fields)

    return read


def _moment_maker(kind: ColumnType) -> Callable[[list[int]], Moment]:
    """Makes the value of the fields."""
    if kind.first not in ("year", "hour") or kind.last in ("year", "month"):
        width = 4 if kind.first == "year" else 2
        return partial(_text, kind=kind, width=width)
    if kind.last == "day":
        return lambda fields: dt.date(*fields)
    made: Callable[..., Moment] = dt.datetime if kind.first == "year" else dt.time
    if kind.last != "fraction":
        return lambda fields: made(*fields)
    tick_micros = 10 ** (6 - kind.fraction)
    return lambda fields: made(*fields[:-1], fields[-1] * tick_micros)


def span_reader(kind: ColumnType) -> Callable[[bytes], str | None]:
    """Reads intervals of a type as text; None is NULL, ValueError what is none of its type."""
    fields_of = _fields_reader(kind)
    limit = 10 ** max(kind.precision, kind.fraction * (kind.first == "fraction"))

    def read(data: bytes) -> str | None:
        packed = unpack(data)
        if packed is None:
            return None
        negative, exponent, pairs = packed
        fields = fields_of(exponent, pairs)
        if fields[0] >= limit:
            raise ValueError(f"its first field is {fields[0]} and has more digits than its type")
        text = _text(fields, kind=kind, width=1)
        if negative and any(fields):  # nothing is not less than nothing
            return f"-{text}"
        return text

    return read


def pack_moment(value: Moment, kind: ColumnType) -> bytes:
    match value:
        case str():
            return pack_span(value, kind)
        case dt.datetime():
            fields = [value.year, value.month, value.day, value.hour, value.minute, value.second]
        case dt.date():
            fields = [value.year, value.month, value.day]
        case _:
            fields = [value.hour, value.minute, value.second]
    if kind.last == "fraction":
        micros = value.microsecond if isinstance(value, dt.datetime | dt.time) else 0
        return _pack(False, [*fields, micros // 10 ** (6 - kind.fraction)], kind)
    return _pack(False, fields[: len(kind.fields)], kind)


def pack_span(text: str, kind: ColumnType) -> bytes:
    """Encode an interval, or a datetime given as text."""
    numbers = re.findall(r"\d+", text)
    if kind.last == "fraction" and numbers:
        # Behind a point zeros at the end mean nothing: 1.5 seconds are 1.500.
        numbers[-1] = numbers[-1].ljust(kind.fraction, "0")
        if len(numbers[-1]) > kind.fraction:
            raise ValueError(f"its fraction has more digits than the {kind.fraction} of its type")
    return _pack(text.startswith("-"), list(map(int, numbers)), kind)


def _fields_reader(kind: ColumnType) -> Callable[[int, bytes], list[int]]:
    """Reads the numbers of the fields.

    ValueError where a pair stands at a place that the type does not have.
    """
    # All types are read as if their first field had five pairs, which an interval's may have.
    top = PLACES[kind.first] + FIRST_PAIRS
    last = count = top - PLACES[kind.last]
    if kind.last == "fraction" and kind.fraction:
        # The pairs of the fraction are one field, not one each.
        last, count = top, top + (kind.fraction + 1) // 2

    def read(exponent: int, pairs: bytes) -> list[int]:
        # Pairs are brought to the places of the type, where they then stand for good.
        missing = top - exponent
        if missing >= 0:
            aligned, above = bytes(missing) + pairs, b""
        else:
            aligned, above = pairs[-missing:], pairs[:-missing]
        aligned = aligned.ljust(count, b"\0")
        if any(above) or any(aligned[count:]):
            raise ValueError(f"its exponent {exponent} is outside the type")
        fields = [*aligned[FIRST_PAIRS - 1 : last]]
        if last < count:
            fields.append(_fraction(aligned[last:count], kind))
        # A first field of more than two digits goes on upwards.
        fields[0] += 100 * int(aligned[: FIRST_PAIRS - 1].translate(_DIGITS).hex())
        return fields

    return read


def _fraction(pairs: bytes, kind: ColumnType) -> int:
    fraction = 0
    for pair in pairs:
        fraction = fraction * 100 + pair
    # An odd number of digits leaves the last pair half empty.
    if kind.fraction % 2:
        fraction, rest = divmod(fraction, 10)
        if rest:
            raise ValueError("its fraction has more digits than its type")
    return fraction


def _pack(negative: bool, fields: Sequence[int], kind: ColumnType) -> bytes:
    if len(fields) != len(kind.fields):
        raise ValueError(f"{kind.form} {kind.first} to {kind.last} has {len(kind.fields)} fields, not {len(fields)}")
    places: dict[int, int] = {}
    # A fraction has its pairs behind the point; every other field goes on upwards from its place.
    for name, number in zip(kind.fields, fields, strict=True):
        if name == "fraction":
            digits = f"{number:0{kind.fraction}d}".ljust(6, "0")
            places |= {-1: int(digits[:2]), -2: int(digits[2:4]), -3: int(digits[4:6])}
            continue
        rest, place = number, PLACES[name]
        while rest:
            rest, places[place] = divmod(rest, 100)
            place += 1
    # Leading pairs of zeros are not written: the exponent says where the first pair stands.
    top = max((place for place, pair in places.items() if pair), default=0)
    pairs = bytes(places.get(place, 0) for place in range(top, -4, -1))
    return pack((negative, top + 1, pairs), kind.size or 0)


def _text(fields: Sequence[int], *, kind: ColumnType, width: int) -> str:
    """Write the fields as the database does; an interval's first one has no leading zeros."""
    written: list[str] = []
    for at, (name, number) in enumerate(zip(kind.fields, fields, strict=True)):
        digits = width if at == 0 else 2
        if name == "fraction":
            digits = kind.fraction
            if at == 0:  # else the point stands behind the second
                written.append(".")
        written.append(f"{number:0{digits}d}")
        if name != kind.last:
            written.append(_AFTER[name])
    return "".join(written)
