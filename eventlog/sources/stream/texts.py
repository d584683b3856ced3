"""Values of a stream's rows as the canonical texts that field rows of a log have."""

from __future__ import annotations

import binascii
import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from eventlog.core.model import Cell


def _write_float(value: float) -> str:
    if math.isfinite(value):
        return repr(value).removesuffix(".0")
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _write_decimal(value: Decimal) -> str:
    if value.is_finite():
        # `str` may write an exponent, which no database writes.
        return format(value, "f")
    return _write_float(float(value)) if not value.is_snan() else "NaN"


def _write_bytes(value: bytes) -> str:
    return binascii.b2a_base64(value, newline=False).decode()


WRITERS: Final[Mapping[type, Callable[[Any], str]]] = {
    bool: lambda value: "true" if value else "false",
    int: str,
    float: _write_float,
    Decimal: _write_decimal,
    dt.datetime: str,
    dt.date: dt.date.isoformat,
    dt.time: dt.time.isoformat,
    bytes: _write_bytes,
}
"""What writes the values of each type that are no texts."""

_NO_CHANGE: Final = frozenset({str, type(None)})


def write_text(value: Cell) -> str | None:
    """Write a value as the text that a log has for it."""
    if type(value) in _NO_CHANGE:
        return value  # type: ignore[return-value]  # a text, or NULL
    return WRITERS[type(value)](value)


class TextWriter:
    """Writes rows whose values mostly have the types of the row before."""

    def __init__(self) -> None:
        self._types: tuple[type, ...] = ()
        self._writers: list[tuple[int, Callable[[Any], str]]] = []

    def write(self, values: list[Any]) -> list[str | None]:
        """Turn the values of a row into texts, in their own list."""
        types = tuple(map(type, values))
        if types != self._types:
            placed = [(index, WRITERS[kind]) for index, kind in enumerate(types) if kind not in _NO_CHANGE]
            self._types, self._writers = types, placed
        for index, write in self._writers:
            values[index] = write(values[index])
        return values
