"""Places in a big file where no transaction is open, so that each stretch between them can be read by itself."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path
from struct import Struct as Binary
from typing import Final

from msgspec import Struct

from eventlog.core.errors import SourceError
from eventlog.sources.gbase.files import CHUNK
from eventlog.sources.gbase.frames import LARGEST
from eventlog.sources.gbase.records import COMMON_SIZE, LEAST, ROWS, SCHEME, Record

_common = Binary(">4I").unpack_from
_txid = Binary(">I").unpack_from
SIZE: Final = 64 << 20
"""Bytes of a split, about: the next place where no transaction is open ends it."""
_ENDS: Final = (Record.COMMTX, Record.RBTX)
_INSIDE: Final = frozenset((*ROWS, Record.TRUNCATE, Record.DISCARD))


class Split(Struct, frozen=True, kw_only=True):
    """A stretch of a file that can be read by itself: `before` are the descriptions of tables that count in it."""

    path: str
    start: int
    end: int
    before: bytes = b""

    def in_file(self, offset: int) -> int:
        """Where in the whole file an offset of `read_split` lies."""
        return offset - len(self.before) + self.start


def splits(path: Path, *, size: int = SIZE, largest: int = LARGEST) -> list[Split]:
    """The splits of a binary file, together the whole file. Behind damage nothing is split: the last one has it."""
    try:
        length = path.stat().st_size
        if length == 0:
            return []
        with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _splits(str(path), data, size, largest)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.", may_pass=False) from error


def read_split(split: Split) -> Iterator[bytes]:
    """The bytes of a split with the descriptions before it, for `stream.images`."""
    if split.before:
        yield split.before
    with Path(split.path).open("rb") as opened:
        opened.seek(split.start)
        rest = split.end - split.start
        while rest > 0 and (chunk := opened.read(min(rest, CHUNK))):
            rest -= len(chunk)
            yield chunk


def _splits(path: str, data: mmap.mmap, size: int, largest: int) -> list[Split]:
    found: list[Split] = []
    tables: dict[int, bytes] = {}
    before, start, at, end = b"", 0, 0, len(data)
    open_ones: set[int] = set()
    while end - at >= COMMON_SIZE:
        header, payload, scheme, number = _common(data, at)
        least = LEAST.get(number, COMMON_SIZE)
        if scheme != SCHEME or header < least or header + payload > min(largest, end - at):
            break
        if number in _INSIDE or number == Record.BEGINTX:
            open_ones.add(_txid(data, at + 24)[0])
        elif number in _ENDS:
            open_ones.discard(_txid(data, at + 24)[0])
        elif number == Record.TABSCHEM:
            tables[_txid(data, at + 16)[0]] = data[at : at + header + payload]
        at += header + payload
        if at - start >= size and not open_ones:
            found.append(Split(path=path, start=start, end=at, before=before))
            before, start = b"".join(tables.values()), at
    if start < end:
        found.append(Split(path=path, start=start, end=end, before=before))
    return found
