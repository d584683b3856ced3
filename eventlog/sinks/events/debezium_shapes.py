"""Bits, arrays, points and other values of parts, from the texts that databases write to what Debezium
makes of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from struct import pack
from typing import Any, Final

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.qlik.readings import reading_of

_item = re.compile(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)|([{},])', re.DOTALL)
_escaped = re.compile(r"\\(.)", re.DOTALL)
_pair = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)', re.DOTALL)
_word = re.compile(r"[A-Za-z]+|[-+0-9.eE]+|[(),]")
_read_text = reading_of("text")
_KINDS: Final = {
    name: number
    for number, name in enumerate(
        ("POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"), 1
    )
}
_EWKB_SRID: Final = 0x20000000


def read_array(element: Callable[[Any], Any], cell: Any) -> list[Any]:
    """Read an array as PostgreSQL writes it; ExpressionError for one of several dimensions."""
    text = str(_read_text(cell))
    # Bounds stand before one that does not begin at 1.
    begin = text.find("{")
    depth, values = 0, list[Any]()
    if begin < 0:
        raise ExpressionError(f"{value_shown(text)} is not an array")
    for quoted, bare, mark in _item.findall(text[begin:]):
        if mark == "{":
            depth += 1
            if depth > 1:
                problem = f"{value_shown(text)} has several dimensions"
                raise ExpressionError(f"{problem}, of which Debezium's schema has one")
        elif mark:
            continue
        elif bare:
            values.append(None if bare == "NULL" else element(bare))
        else:
            values.append(element(_escaped.sub(r"\1", quoted)))
    return values


def read_bits(cell: Any) -> bytes:
    """Read zeros and ones as bytes, the lowest first, as few as it takes."""
    text = str(_read_text(cell))
    try:
        number = int(text or "0", 2)
    except ValueError:
        raise ExpressionError(f"{value_shown(text)} is not a string of bits") from None
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def read_bit_number(bits: int, cell: Any) -> bytes:
    """Read the number that bits of MariaDB's are, as all of their bytes, the lowest first."""
    number = reading_of("bigint")(cell)
    assert isinstance(number, int)
    try:
        return number.to_bytes((bits + 7) // 8, "little")
    except OverflowError:
        raise ExpressionError(f"{value_shown(cell)} is not a number of {bits} bits") from None


def read_truth(cell: Any) -> bool:
    """Read a truth value, or bits of which one is set."""
    text = str(_read_text(cell))
    if text.strip("01"):
        return bool(reading_of("boolean")(cell))
    return "1" in text


def read_hstore(cell: Any) -> str:
    """Write PostgreSQL's pairs of keys and values as JSON."""
    pairs = {}
    for match in _pair.finditer(str(_read_text(cell))):
        key, value = (None if part is None else _escaped.sub(r"\1", part) for part in match.groups())
        pairs[key] = value
    return json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))


def read_point(cell: Any) -> dict[str, Any]:
    """Read a point of PostgreSQL's, as (1,2)."""
    text = str(_read_text(cell))
    try:
        x, y = (float(part) for part in text.strip("() ").split(","))
    except ValueError:
        raise ExpressionError(f"{value_shown(text)} is not a point") from None
    return {"x": x, "y": y, "wkb": pack("<BIdd", 1, 1, x, y), "srid": None}


def read_geometry(cell: Any) -> dict[str, Any]:
    """Read a shape in words, as MariaDB writes it, or PostGIS' bytes in hexadecimal digits."""
    text = str(_read_text(cell))
    srid: int | None = None
    if text[:2] in ("00", "01"):
        return _read_extended(text)
    if text.startswith("SRID="):
        number, _, text = text.partition(";")
        srid = int(number[5:]) or None
    words = iter(_word.findall(text))
    try:
        return {"wkb": _shape(next(words), words), "srid": srid}
    except (StopIteration, ValueError, KeyError):
        raise ExpressionError(f"{value_shown(text)} is not a shape in words") from None


def read_shape_point(cell: Any) -> dict[str, Any]:
    """Read a point in words."""
    shape = read_geometry(cell)
    x, y = (float(part) for part in _word.findall(str(cell))[-3:-1])
    return {"x": x, "y": y, **shape}


def _read_extended(text: str) -> dict[str, Any]:
    try:
        content = bytes.fromhex(text)
    except ValueError:
        raise ExpressionError(f"{value_shown(text)} is not a shape") from None
    order: Any = "little" if content[:1] == b"\1" else "big"
    has_srid = int.from_bytes(content[1:5], order) & _EWKB_SRID
    return {"wkb": content, "srid": int.from_bytes(content[5:9], order) if has_srid else None}


def _shape(name: str, words: Iterator[str]) -> bytes:
    """Write a shape in its well-known bytes, least significant ones first."""
    kind = _KINDS[name.upper()]
    head = pack("<BI", 1, kind)
    opened = next(words)
    if opened.upper() == "EMPTY":
        return head + pack("<I", 0)
    if kind == 1:
        return head + _numbers(words)[0]
    if kind == 2:
        return head + _line(words)
    if kind == 4:
        points = _loose_points(words)
        return head + pack("<I", len(points)) + b"".join(points)
    parts = []
    while True:
        parts.append(_part(kind, words))
        if next(words) == ")":
            return head + pack("<I", len(parts)) + b"".join(parts)


def _part(kind: int, words: Iterator[str]) -> bytes:
    """Write one part of a shape that has several."""
    if kind == 7:
        return _shape(next(words), words)
    next(words)  # the parenthesis
    if kind == 6:
        rings = []
        while True:
            next(words)
            rings.append(_line(words))
            if next(words) == ")":
                return pack("<BII", 1, 3, len(rings)) + b"".join(rings)
    line = _line(words)
    return line if kind == 3 else pack("<BI", 1, 2) + line


def _loose_points(words: Iterator[str]) -> list[bytes]:
    """Read points that stand in parentheses of their own, as MySQL writes them, or in none."""
    depth, numbers = 1, list[float]()
    while depth:
        word = next(words)
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word not in "(),":
            numbers.append(float(word))
    return [pack("<BIdd", 1, 1, x, y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]


def _line(words: Iterator[str]) -> bytes:
    points = _points(words)
    return pack("<I", len(points)) + b"".join(points)


def _points(words: Iterator[str]) -> list[bytes]:
    points = []
    while True:
        point, ended = _numbers(words)
        points.append(point)
        if ended:
            return points


def _numbers(words: Iterator[str]) -> tuple[bytes, bool]:
    """Read the two numbers of a point, and whether it is the last."""
    x, y = float(next(words)), float(next(words))
    return pack("<dd", x, y), next(words) == ")"
