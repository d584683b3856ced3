"""The wider of two types: what a change table's column is, so that no value in it is ever rounded
or cut, in whatever order rows of a former and of a later definition come.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, inf, log10
from typing import Final

from eventlog.qlik.typemap import DECIMAL_DIGITS, qlik_type
from eventlog.sinks.database.types import find_bytes_limit, find_text_limit

FLOAT_DIGITS: Final = {"real": 6, "double": 15}
"""A decimal number of no more digits is the same again when it was a binary fraction."""

_Room = tuple[str, tuple[float, ...]]
"""A kind of values, and how much of it a type holds."""


@lru_cache(maxsize=4096)
def wider(former: str, later: str) -> str | None:
    """Return a type holding every value of both: the former if possible, else the later or a third.

    None if there is none.
    """
    kind, size = _room(former)
    later_kind, later_size = _room(later)
    if kind == later_kind == "exact":
        return _exact(former, size, later, later_size)
    if kind == later_kind:
        return former if size >= later_size else later
    if {kind, later_kind} == {"date", "timestamp"}:
        return former if kind == "timestamp" else "timestamp"
    if {kind, later_kind} == {"exact", "float"}:
        whole, scale = size if kind == "exact" else later_size
        digits = inf if whole == inf else ceil(whole) + scale
        if kind == "float" and (digits,) <= size:
            return former
        return "double precision" if digits <= FLOAT_DIGITS["double"] else None
    # As text everything is what it was, but for bytes.
    if "text" in (kind, later_kind) and "binary" not in (kind, later_kind):
        return former if (kind, size) == ("text", (inf,)) else "text"
    return None


def _exact(former: str, size: tuple[float, ...], later: str, later_size: tuple[float, ...]) -> str:
    whole, scale = (max(pair) for pair in zip(size, later_size, strict=True))
    if size == (whole, scale):
        return former
    if later_size == (whole, scale):
        return later
    digits = ceil(whole) + int(scale)
    return f"numeric({digits},{int(scale)})" if digits <= DECIMAL_DIGITS else "numeric"


def _room(sql_type: str) -> _Room:
    kind = qlik_type(sql_type)
    word = kind.forms.sql
    if word == "text":
        return word, (find_text_limit(sql_type) or inf,)
    if word == "binary":
        return word, (find_bytes_limit(sql_type) or inf,)
    if word in FLOAT_DIGITS:
        return "float", (FLOAT_DIGITS[word],)
    # With a zone or without, a column holds all moments: as UTC.
    if word in ("date", "time", "timestamp"):
        return word, ()
    return "exact", _digits(kind.name, kind.digits)


def _digits(name: str, digits: tuple[int, int] | None) -> tuple[float, float]:
    """Return the most digits a number has before and after its point."""
    if name == "NUMERIC":
        return (inf, inf) if digits is None else (digits[0] - digits[1], digits[1])
    bits = 1 if name == "BOOLEAN" else 8 * int(name[-1])
    # A part of a digit: ten digits are more than an INT4 has room for, and nine are less.
    return (bits - (name.startswith("INT"))) * log10(2), 0
