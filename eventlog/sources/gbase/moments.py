"""DATETIME and INTERVAL: packed pairs, each at the place of its field, become values, and back.

Places count from the pair left of the point, which holds the second whatever a type ends with. A datetime that is a
whole date, a whole timestamp or a time of day becomes one; any other, and every interval, becomes the text that the
database writes for it.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Final

from eventlog.sources.gbase.packed import Packed, pack, unpack
from eventlog.sources.gbase.types import PLACES, ColumnType

Moment = dt.datetime | dt.date | dt.time | str
_AFTER: Final = {"year": "-", "month": "-", "day": " ", "hour": ":", "minute": ":", "second": ".", "fraction": ""}
"""What stands behind a field when another one follows."""


def unpack_moment(data: bytes, kind: ColumnType) -> Moment | None:
    """The value of a datetime; None is NULL, ValueError what is none of its type."""
    packed = unpack(data)
    if packed is None:
        return None
    if packed.negative:
        raise ValueError("it is negative")
    fields = _fields(packed, kind)
    if fields[0] > (9999 if kind.first == "year" else 99):
        raise ValueError(f"its first field is {fields[0]}")
    if kind.first not in ("year", "hour") or kind.last in ("year", "month"):
        return _text(fields, kind, width=4 if kind.first == "year" else 2)
    micros = fields.pop() * 10 ** (6 - kind.fraction) if kind.last == "fraction" else 0
    year, month, day = (fields.pop(0), fields.pop(0), fields.pop(0)) if kind.first == "year" else (0, 0, 0)
    hour, minute, second = (*fields, 0, 0, 0)[:3]
    if kind.first == "hour":
        return dt.time(hour, minute, second, micros)
    if kind.last == "day":
        return dt.date(year, month, day)
    return dt.datetime(year, month, day, hour, minute, second, micros)


def unpack_span(data: bytes, kind: ColumnType) -> str | None:
    """The text of an interval; None is NULL, ValueError what is none of its type."""
    packed = unpack(data)
    if packed is None:
        return None
    fields = _fields(packed, kind)
    if fields[0] >= 10 ** max(kind.precision, kind.fraction * (kind.first == "fraction")):
        raise ValueError(f"its first field is {fields[0]} and has more digits than its type")
    return ("-" if packed.negative and any(fields) else "") + _text(fields, kind, width=1)


def pack_moment(value: Moment, kind: ColumnType) -> bytes:
    """A datetime's bytes."""
    match value:
        case dt.datetime():
            fields = [value.year, value.month, value.day, value.hour, value.minute, value.second]
        case dt.date():
            fields = [value.year, value.month, value.day]
        case dt.time():
            fields = [value.hour, value.minute, value.second]
        case str():
            return pack_span(value, kind)
    if kind.last == "fraction":
        micros = value.microsecond if isinstance(value, dt.datetime | dt.time) else 0
        return _packed(False, [*fields, micros // 10 ** (6 - kind.fraction)], kind)
    return _packed(False, fields[: len(kind.fields)], kind)


def pack_span(text: str, kind: ColumnType) -> bytes:
    """The bytes of an interval, or of a datetime that is text."""
    fields = [int(number) for number in re.findall(r"\d+", text)]
    return _packed(text.startswith("-"), fields, kind)


def _fields(packed: Packed, kind: ColumnType) -> list[int]:
    """The numbers of the fields; ValueError where a pair stands at a place that the type does not have."""
    places = {packed.exponent - 1 - at: pair for at, pair in enumerate(packed.pairs) if pair}
    found = [places.pop(PLACES[name], 0) for name in kind.fields if name != "fraction"]
    if kind.last == "fraction":
        fraction = 0
        for place in (-1, -2, -3)[: (kind.fraction + 1) // 2]:
            fraction = fraction * 100 + places.pop(place, 0)
        if kind.fraction % 2:
            fraction, rest = divmod(fraction, 10)
            if rest:
                raise ValueError("its fraction has more digits than its type")
        found.append(fraction)
    top = PLACES[kind.first]
    for higher in range(1, 5):  # a first field of more than two digits goes on upwards
        found[0] += places.pop(top + higher, 0) * 100**higher
    if places:
        raise ValueError(f"its exponent {packed.exponent} is outside the type")
    return found


def _packed(negative: bool, fields: Sequence[int], kind: ColumnType) -> bytes:
    """The fields at their places."""
    if len(fields) != len(kind.fields):
        raise ValueError(f"{kind.form} {kind.first} to {kind.last} has {len(kind.fields)} fields, not {len(fields)}")
    places: dict[int, int] = {}
    for name, number in zip(kind.fields, fields, strict=True):
        if name == "fraction":
            digits = f"{number:0{kind.fraction}d}".ljust(6, "0")
            places |= {-1: int(digits[:2]), -2: int(digits[2:4]), -3: int(digits[4:6])}
            continue
        rest, place = number, PLACES[name]
        while rest:
            rest, places[place] = divmod(rest, 100)
            place += 1
    top = max((place for place, pair in places.items() if pair), default=0)
    pairs = bytes(places.get(place, 0) for place in range(top, -4, -1))
    return pack(Packed(negative, top + 1, pairs), kind.size or 0)


def _text(fields: Sequence[int], kind: ColumnType, *, width: int) -> str:
    """The fields as the database writes them; an interval's first one without zeros before it."""
    written: list[str] = []
    for at, (name, number) in enumerate(zip(kind.fields, fields, strict=True)):
        digits = kind.fraction if name == "fraction" else 2 if at else width
        lead = "." if name == "fraction" and not at else ""
        written.append(f"{lead}{number:0{digits}d}" + (_AFTER[name] if name != kind.last else ""))
    return "".join(written)
