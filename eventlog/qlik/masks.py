"""Masks: which columns changed, as an integer inside and as two codecs outside.

Law: the two codecs have opposite byte orders. A binary mask is little-endian, and trailing zero
bytes are left out; a mask as hex text has its most significant byte first, and leading zero bytes
are left out.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from eventlog.core.errors import DataError, shorten

MOST_COLUMNS: Final = 1024
"""What 128 bytes can say something of, header columns among them."""

Written = TypeVar("Written")

_hexadecimal = re.compile(r"(0[xX])?[0-9a-fA-F]+").fullmatch


def bits_to_bytes(bits: int) -> bytes:
    """Write the binary mask; no byte at all where no bit is set."""
    return bits.to_bytes((bits.bit_length() + 7) >> 3, "little")


def bits_to_hex(bits: int) -> str:
    """Write the mask as text: whole bytes, upper case; empty where no bit is set."""
    return bits.to_bytes((bits.bit_length() + 7) >> 3, "big").hex().upper()


def bits_of_bytes(mask: bytes | None) -> int:
    """Reads a binary mask; bytes that are missing at its end are zero, and so is a mask that is
    missing.
    """
    if not mask:
        return 0
    return int.from_bytes(mask, "little")


def bits_of_hex(mask: str | None) -> int:
    """Reads a mask that is text, with or without 0x and leading zeros; nothing is no bit."""
    # Databases give a mask back with the blanks that its column's width wants.
    text = mask.strip() if mask else ""
    if not text:
        return 0
    if _hexadecimal(text) is None:  # int() would take a sign too, and a negative mask has no end
        raise DataError(f"{shorten(text)!r} is no mask; it is written in hexadecimal digits.")
    return int(text, 16)


def bits_of(mask: str | bytes | memoryview | None) -> int:
    """Reads a mask of either form, as databases give it back."""
    if isinstance(mask, str):
        return bits_of_hex(mask)
    return bits_of_bytes(bytes(mask or b""))


def pad_bytes(bits: int, columns: int) -> bytes:
    """Write the binary mask in the width of messages: one byte more than whole bytes of columns."""
    return bits.to_bytes(columns // 8 + 1, "little")


def pad_hex(bits: int, columns: int) -> str:
    """Write the mask as text in the width of messages."""
    return binascii.hexlify(bits.to_bytes(columns // 8 + 1, "big")).decode("ascii").upper()


KEPT_NUMBERS: Final = 4096
"""Masks that are kept of a table; its changes have few different ones."""


class KeptMasks(dict[int | None, Written]):
    """Masks as they are written, each made once; `nothing` stands for none."""

    def __init__(self, nothing: Written, write: Callable[[int], Written]) -> None:
        super().__init__()
        self[None] = nothing
        self._write = write

    def __missing__(self, bits: int | None) -> Written:
        assert bits is not None
        made = self._write(bits)
        # No more are kept: a table with thousands of columns could have a mask for each of its
        # changes.
        if len(self) < KEPT_NUMBERS:
            self[bits] = made
        return made


class MovedMasks(dict[str | bytes | None, str | bytes]):
    """Masks whose bits are put to other places, `places` by those that they had.

    Each is worked out once.
    """

    def __init__(self, places: Mapping[int, int]) -> None:
        super().__init__()
        self._places = places

    def __call__(self, mask: str | bytes | None) -> str | bytes:
        return self[mask]

    def __missing__(self, mask: str | bytes | None) -> str | bytes:
        bits = bits_of(mask)
        moved = sum(1 << new for old, new in self._places.items() if bits >> old & 1)
        made: str | bytes = bits_to_hex(moved) if isinstance(mask, str) else bits_to_bytes(moved)
        if len(self) < KEPT_NUMBERS:
            self[mask] = made
        return made


def places_of(bits: int, offset: int = 0) -> list[int]:
    """List the indexes of the columns whose bit is set, in order."""
    rest = bits >> offset
    # The lowest bit alone, again and again: a wide table's mask has few bits set.
    places = []
    while rest:
        lowest = rest & -rest
        places.append(lowest.bit_length() - 1)
        rest ^= lowest
    return places
