"""What the text of a key says: numbers, bytes and truth values in the ways in which databases write them. Pure.

Text that cannot be a value of the type finds no row; it must never reach the database, where it would be an error
that takes the other keys with it. Which reader a column has, and what SQL compares, is for the database's room to say.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

_number = re.compile(r"[+-]?[0-9]{0,300}(?:\.[0-9]{0,300})?(?:[eE][+-]?[0-9]{1,3})?").fullmatch
_true = frozenset({"1", "t", "true", "y", "yes", "on"})
_false = frozenset({"0", "f", "false", "n", "no", "off"})


def text(written: str) -> str | None:
    """The text itself, where Unicode can carry it."""
    try:
        written.encode()
    except UnicodeEncodeError:
        return None
    return written


def state(written: str) -> bool | None:
    """A truth value in one of the ways in which databases write it."""
    folded = written.strip().lower()
    return True if folded in _true else False if folded in _false else None


def octets(written: str) -> bytes | None:
    """Bytes from Base64, with or without line breaks."""
    try:
        return binascii.a2b_base64("".join(written.split()), strict_mode=True)
    except ValueError:
        return None


def number(written: str) -> Decimal | None:
    """A number exactly as it is written."""
    return Decimal(written.strip()) if _number(written.strip()) and any(map(str.isdigit, written)) else None


def reader(reading: Callable[[str], Any]) -> Callable[[str], Any]:
    """A reader of text without the blanks round it that answers None where the standard library raises."""

    def read(written: str) -> Any:
        try:
            return reading(written.strip())
        except (ValueError, OverflowError, InvalidOperation):
            return None

    return read
