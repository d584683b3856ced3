"""What compiled code calls for single values: quick where the bytes are as they nearly always are, else the exact way."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from eventlog.core.model import Value
from eventlog.sources.gbase.moments import unpack_moment, unpack_span
from eventlog.sources.gbase.packed import unpack_decimal
from eventlog.sources.gbase.types import ColumnType, Form
from eventlog.sources.gbase.values import DAY_ZERO

DIGITS: Final = bytes(pair // 10 << 4 | pair % 10 if pair < 100 else 0xFF for pair in range(256))
"""Turns a pair into the byte whose hexadecimal digits are its decimal ones, and what is no pair into one without."""

PAIRS: Final = tuple([f"{pair:02d}" for pair in range(100)])
"""How a pair is written."""
MOST_DAYS: Final = 10_000


class Days(dict[int, dt.date | None]):
    """The dates of a table by their numbers; it has so few that each is made once, and forgotten when they are many."""

    def __missing__(self, number: int) -> dt.date | None:
        if len(self) >= MOST_DAYS:
            self.clear()
        made = self[number] = None if number == -0x80000000 else dt.date.fromordinal(number + DAY_ZERO)
        return made


def reading(kind: ColumnType) -> Callable[[Any], Value]:
    """Reads one value for which a function is called."""
    match kind.form:
        case Form.DECIMAL:
            return _decimals(kind)
        case Form.DATETIME:
            return _moments(kind)
        case Form.INTERVAL:
            return lambda data: unpack_span(data, kind)
    return lambda data: data if any(data) else None


def read_int8(sign: int, low: int, high: int) -> int | None:
    """An INT8 that is not positive."""
    if sign not in (-1, 0):
        raise ValueError(sign)
    return -(high << 32 | low) if sign else None


def _decimals(kind: ColumnType) -> Callable[[bytes], Decimal | None]:
    """Reads decimals that compiled code does not: of negative ones the pairs are what is missing to a power of 100."""
    precision, scale = kind.precision, kind.scale
    if scale is None:
        return lambda data: unpack_decimal(data, precision, None)
    places = _places(kind)

    def read(data: bytes) -> Decimal | None:
        first, pairs = data[0], data[1:]
        place = places.get(first)
        if place is None or not pairs.endswith(place[1]):
            return unpack_decimal(data, precision, scale)
        count = place[0]
        digits = pairs.translate(DIGITS).hex()
        if digits[count : count + 1].strip("0"):  # the half of a pair that the type has not
            return unpack_decimal(data, precision, scale)
        number = int(digits[:count]) if first >= 0x80 else int(digits[:count]) - 10**count
        if number == -(10**count):  # no number is written so
            return unpack_decimal(data, precision, scale)
        return Decimal(f"{number}E-{scale}")

    return read


def _places(kind: ColumnType) -> Mapping[int, tuple[int, bytes]]:
    """By the first byte of a decimal: how many digits its scale leaves of the pairs, and the zeros that must follow.

    Numbers below one are not among them.
    """
    scale = kind.scale or 0
    size, taken = (kind.size or 1) - 1, (scale + 1) // 2
    found: dict[int, tuple[int, bytes]] = {}
    for whole in range(1, (kind.precision - scale + 1) // 2 + 1):
        found[0xC0 + whole] = found[0x3F - whole] = (2 * whole + scale, bytes(size - whole - taken))
    return found


def _moments(kind: ColumnType) -> Callable[[bytes], Value]:
    """Timestamps with all their leading pairs, which every date of the last thousand years has."""
    if kind.first != "year" or kind.last != "fraction":
        return lambda data: unpack_moment(data, kind)
    form = struct.Struct("8B").unpack_from

    def read(data: bytes) -> Value:
        first, century, year, month, day, hour, minute, second = form(data)
        if first != 0xC7 or century > 99 or year > 99 or any(data[8:]):
            return unpack_moment(data, kind)
        return dt.datetime(century * 100 + year, month, day, hour, minute, second)

    return read
