"""The records of the stream: their numbers, their names, and the fields that their headers hold."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from msgspec import Struct

SCHEME: Final = 66
"""The only packet scheme there is."""
COMMON_SIZE: Final = 16
"""Bytes that every header begins with."""


class Record(IntEnum):
    """What a record says, by its number."""

    BEGINTX = 1
    COMMTX = 2
    RBTX = 3
    INSERT = 40
    DELETE = 41
    UPDBEF = 42
    UPDAFT = 43
    DISCARD = 62
    TRUNCATE = 119
    TABSCHEM = 200
    TIMEOUT = 201
    ERROR = 202


ROWS: Final = frozenset((Record.INSERT, Record.DELETE, Record.UPDBEF, Record.UPDAFT))
"""The records that carry a row, and behind the fields of their header the sizes of its variable columns."""


class HeaderField(Struct, frozen=True):
    """A field of a header: its name, and its form in the notation of `struct`, big-endian."""

    name: str
    form: str

    @property
    def size(self) -> int:
        return 8 if self.form in "Qq" else 4


def _fields(*named: str) -> tuple[HeaderField, ...]:
    return tuple(HeaderField(name, form) for name, _, form in (text.partition(":") for text in named))


COMMON: Final = _fields("header_size:I", "payload_size:I", "packet_scheme:I", "record_number:I")
_row = _fields("seq:Q", "txid:I", "userdata:i", "flags:I")
FIELDS: Final[dict[int, tuple[HeaderField, ...]]] = {
    Record.BEGINTX: _fields("seq:Q", "txid:I", "time:q", "user:I"),
    Record.COMMTX: _fields("seq:Q", "txid:I", "time:q"),
    Record.RBTX: _fields("seq:Q", "txid:I"),
    **dict.fromkeys(ROWS, _row),
    Record.DISCARD: _fields("seq:Q", "txid:I"),
    Record.TRUNCATE: _fields("seq:Q", "txid:I", "userdata:i"),
    Record.TABSCHEM: _fields("userdata:i", "flags:I", "fixed_bytes:I", "nfixed:I", "nvar:I"),
    Record.TIMEOUT: _fields("seq:Q"),
    Record.ERROR: _fields("flags:I", "code:i"),
}
"""What stands in a header behind its common part."""

LEAST: Final[dict[int, int]] = {
    number: COMMON_SIZE + sum(field.size for field in fields) for number, fields in FIELDS.items()
}
"""How long the header of a known record is at least."""


def name_of(number: int) -> str:
    """A record's name, as people know it."""
    try:
        return f"CDC_REC_{Record(number).name}"
    except ValueError:
        return f"unknown record {number}"


def place_of(seq: int) -> str:
    """A sequence number as the server prints it: the logical log and the position in it."""
    return f"{seq >> 32}:0x{seq & 0xFFFFFFFF:X}"
