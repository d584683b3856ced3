"""The records of the stream: what they say and what their headers hold, and how bytes in any cut
become records.

Records are cut by the sizes in their headers alone: this knows no layouts, and does no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct as Binary
from typing import Final

from msgspec import Struct

from eventlog.core.errors import DamageError
from eventlog.core.plural import count_words

SCHEME: Final = 66
"""The only packet scheme there is."""
COMMON_BYTES: Final = 16
"""Bytes that every header begins with."""


class CdcRecord(IntEnum):
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


ROWS: Final = frozenset((CdcRecord.INSERT, CdcRecord.DELETE, CdcRecord.UPDBEF, CdcRecord.UPDAFT))
"""The records that carry a row, and behind the fields of their header the sizes of its variable
columns.
"""


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
    CdcRecord.BEGINTX: _fields("seq:Q", "txid:I", "time:q", "user:I"),
    CdcRecord.COMMTX: _fields("seq:Q", "txid:I", "time:q"),
    CdcRecord.RBTX: _fields("seq:Q", "txid:I"),
    **dict.fromkeys(ROWS, _row),
    CdcRecord.DISCARD: _fields("seq:Q", "txid:I"),
    CdcRecord.TRUNCATE: _fields("seq:Q", "txid:I", "userdata:i"),
    CdcRecord.TABSCHEM: _fields("userdata:i", "flags:I", "fixed_bytes:I", "nfixed:I", "nvar:I"),
    CdcRecord.TIMEOUT: _fields("seq:Q"),
    CdcRecord.ERROR: _fields("flags:I", "code:i"),
}
"""What stands in a header behind its common part."""

LEAST: Final[dict[int, int]] = {
    number: COMMON_BYTES + sum(field.size for field in fields) for number, fields in FIELDS.items()
}
"""How long the header of a known record is at least."""


def name_of(number: int) -> str:
    """Return a record's documented name."""
    try:
        return f"CDC_REC_{CdcRecord(number).name}"
    except ValueError:
        return f"unknown record {number}"


def place_of(seq: int) -> str:
    """Write a sequence number as the server does: logical log and position."""
    return f"{seq >> 32}:0x{seq & 0xFFFFFFFF:X}"


RECORD_BYTES: Final = 16 * 1024 * 1024
"""Bytes that a record may have unless somebody says otherwise; a row has 32,767 at most."""
MOST_LEAST: Final = max(LEAST.values())
# Sizes of header and payload, packet scheme, record number (gbase-cdc.md 1).
_common = Binary(">4I").unpack_from


class RecordFrame(Struct, frozen=True, gc=False):
    """One record: where it begins in the stream, its number, how long its header is, and all its
    bytes.
    """

    offset: int
    number: int
    header_size: int
    data: bytes

    @property
    def payload(self) -> bytes:
        return self.data[self.header_size :]


class Framer:
    """Cuts what it is fed into records and keeps the beginning of the next one.

    Damage is raised once everything before it was handed out: by the call that finds nothing else
    to give. A record of another packet scheme is damage too, unless it is to be skipped by its
    length.
    """

    def __init__(self, *, largest: int = RECORD_BYTES, skip_schemes: bool = False) -> None:
        self.offset = 0
        """Where the first byte is that was not handed out."""
        self.skipped = 0
        """How many records of other schemes were skipped."""
        self._largest = largest
        self._skip_schemes = skip_schemes
        self._pieces: list[bytes] = []
        self._kept = 0
        self._needed = COMMON_BYTES
        self.damage: DamageError | None = None
        """What is wrong with what comes next; set before anybody hears of it."""

    @property
    def kept(self) -> int:
        """Count the bytes of an incomplete record."""
        return self._kept

    @property
    def rest(self) -> bytes:
        """Return the bytes not yet consumed."""
        return b"".join(self._pieces)

    def feed(self, chunk: bytes) -> list[RecordFrame]:
        """Return the records complete now; raise DamageError if the next bytes are none."""
        self._raise_damage()
        self._pieces.append(chunk)
        self._kept += len(chunk)
        # Nothing is joined before it pays: a record may come byte by byte.
        if self._kept < self._needed:
            return []
        buffer = chunk
        if len(self._pieces) > 1:
            buffer = b"".join(self._pieces)
        records = self._cut_records(buffer)
        if not records:  # everything before the damage was handed out
            self._raise_damage()
        return records

    def drop(self) -> int:
        """Forgets what was kept, as at the end of a read whose buffer had rubbish behind it.

        Says how much it was.
        """
        dropped, self._kept = self._kept, 0
        self.offset += dropped
        self._pieces.clear()
        self._needed = COMMON_BYTES
        self.damage = None
        return dropped

    def close(self) -> None:
        """Raise DamageError if there was unreported damage, or if the last record is incomplete."""
        self._raise_damage()
        if self._kept:
            missing = self._needed - self._kept
            what = "header" if self._kept < COMMON_BYTES else "record"
            raise DamageError(
                f"the stream ends inside a {what}: after its first {self._kept},"
                f" {count_words(missing, 'byte')} more should follow",
                offset=self.offset,
            )

    def _cut_records(self, buffer: bytes) -> list[RecordFrame]:
        records: list[RecordFrame] = []
        at, end, base, largest = 0, len(buffer), self.offset, self._largest
        needed = COMMON_BYTES
        while end - at >= COMMON_BYTES:
            header, payload, scheme, number = _common(buffer, at)
            size = header + payload
            # One look at what nearly every record passes; only what does not is asked for the reason.
            if scheme != SCHEME or size > largest or (header < MOST_LEAST and header < LEAST.get(number, COMMON_BYTES)):
                problem = self._problem(header, payload, scheme, number)
                if problem is not None:
                    self.damage = DamageError(problem, offset=base + at)
                    break
            if at + size > end:
                needed = size
                break
            if scheme == SCHEME:
                records.append(RecordFrame(base + at, number, header, buffer[at : at + size]))
            else:
                self.skipped += 1
            at += size
        self.offset = base + at
        self._kept = end - at
        self._pieces = [buffer[at:]] if at < end else []
        self._needed = needed
        return records

    def _problem(self, header: int, payload: int, scheme: int, number: int) -> str | None:
        """Return the problem of a common header; None if its record can be skipped."""
        if header < COMMON_BYTES:
            return f"the record says that its header has {header} bytes, and every header has {COMMON_BYTES} or more"
        if scheme != SCHEME and not self._skip_schemes:
            return f"the record has packet scheme {scheme}, and only {SCHEME} is defined"
        if header + payload > self._largest:
            return f"the record says that it has {header + payload} bytes, and the limit is {self._largest}"
        if scheme == SCHEME:
            return f"the header of record number {number} has {header} bytes and needs {LEAST[number]}"
        return None

    def _raise_damage(self) -> None:
        if self.damage is not None:
            raise self.damage


def frames(chunks: Iterable[bytes], framer: Framer | None = None) -> Iterator[list[RecordFrame]]:
    """Yield the records of a whole stream; DamageError after the last good one."""
    framer = framer or Framer()
    for chunk in chunks:
        if records := framer.feed(chunk):
            yield records
    framer.close()
