"""Packs rows of change tables as MessagePack, in which data can only be data, and takes them out again.

Texts, exact numbers and times look alike there. So a letter says of each cell which of
them it may be; numbers, truth values and NULL say so themselves.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, cast

import msgspec

from eventlog.core.errors import MachineError
from eventlog.qlik.change_tables.rows import ChangeRow

KINDS: Final = {"s": str, "b": bytes, "n": Decimal, "t": dt.datetime, "d": dt.date, "c": dt.time}
LONG: Final = "i"
"""A whole number of more than 64 bits, in hexadecimal digits."""
BETWEEN_ROWS: Final = "/"
MOST_SPELLINGS: Final = 1_000

_letters: Final = {kind: letter for letter, kind in KINDS.items()}
_encode: Final = msgspec.msgpack.Encoder().encode

Rows = tuple[ChangeRow, ...]


class RowPacker:
    """Packs the rows of one table."""

    def __init__(self) -> None:
        # What a column had last also stands for its NULLs, so that few shapes need a decoder.
        self._last: list[str] = []
        self._known: dict[tuple[tuple[type, ...], ...], str] = {}

    def pack(self, rows: Sequence[ChangeRow]) -> tuple[str, bytes]:
        """Pack the rows of a change: the letters of their cells, and the cells."""
        types = tuple([tuple(map(type, row)) for row in rows])
        letters = self._known.get(types)
        if letters is None:
            letters = self._find_letters(types)
        try:
            return letters, _encode(rows)
        except OverflowError:
            return self._pack_long(rows, letters)

    def _find_letters(self, types: tuple[tuple[type, ...], ...]) -> str:
        if len(self._known) >= MOST_SPELLINGS:
            self._known.clear()
        last, words = self._last, []
        for row in types:
            last += "s" * (len(row) - len(last))
            for index, kind in enumerate(row):
                last[index] = _letters.get(kind, last[index])
            words.append("".join(last[: len(row)]))
        letters = self._known[types] = BETWEEN_ROWS.join(words)
        return letters

    def _pack_long(self, rows: Sequence[ChangeRow], letters: str) -> tuple[str, bytes]:
        """Pack rows with integers too large for MessagePack."""
        words, packed = [], []
        for row, word in zip(rows, letters.split(BETWEEN_ROWS), strict=True):
            is_long = [isinstance(cell, int) and cell.bit_length() > 63 for cell in row]
            cells = zip(row, word, is_long, strict=True)
            words.append("".join([LONG if long else letter for _, letter, long in cells]))
            packed.append([hex(cast("int", cell)) if long else cell for cell, long in zip(row, is_long, strict=True)])
        return BETWEEN_ROWS.join(words), _encode(packed)


def unpack_rows(letters: str | None, packed: bytes) -> Rows:
    """Unpack the rows; MachineError if they were changed on the disk."""
    try:
        return _unpacker(str(letters))(packed)
    except (msgspec.DecodeError, LookupError, ValueError) as error:
        message = "Rows in the work folder of the conversion are damaged"
        raise MachineError(f"{message}: {error}.", hint="Convert again with --overwrite.") from error


@lru_cache(maxsize=1024)
def _unpacker(letters: str) -> Callable[[bytes], Rows]:
    words = letters.split(BETWEEN_ROWS)
    kinds: dict[str, Any] = {**KINDS, LONG: str}
    rows = [tuple[tuple([kinds[letter] | int | float | bool | None for letter in word])] for word in words]  # type: ignore[misc]  # made from data
    decode: Callable[[bytes], Rows] = msgspec.msgpack.Decoder(tuple[tuple(rows)]).decode  # type: ignore[misc]  # the same
    if LONG not in letters:
        return decode

    def decode_long(packed: bytes) -> Rows:
        return tuple([tuple(map(_read_cell, row, word)) for row, word in zip(decode(packed), words, strict=True)])

    return decode_long


def _read_cell(cell: Any, letter: str) -> Any:
    return int(cell, 16) if letter == LONG else cell
