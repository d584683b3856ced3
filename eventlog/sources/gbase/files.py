"""Files of captured bytes: binary ones as they are, texts of hexadecimal digits, and splits of a
big file.

A split ends at a place where no transaction is open, so that each can be read by itself.
"""

from __future__ import annotations

import binascii
import mmap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from struct import Struct as Binary
from typing import Final

from msgspec import Struct

from eventlog.core.errors import DataError, shorten
from eventlog.core.packages import missing_tools
from eventlog.core.registry import load_offer, offers
from eventlog.sources.gbase.records import (
    COMMON_BYTES,
    LEAST,
    RECORD_BYTES,
    ROWS,
    SCHEME,
    CdcRecord,
    Framer,
    RecordFrame,
)

CHUNK_BYTES: Final = 1 << 18
"""Bytes of a binary file that are read at once."""
_MARKS: Final = ("valid", "tail")

DirtyFraming = Callable[[Iterable[bytes], Framer, int], Iterator[list[RecordFrame]]]
"""Cuts reads into records, given the size of the largest."""


def chunks_of(path: Path, *, grows: bool = False) -> Iterator[bytes]:
    """Yield the bytes of a file, or of a folder's files by name; `.hex` files are text.

    `grows`: the last file may be incomplete.
    """
    files = files_of(path)
    for file in files:
        if file.suffix.lower() == ".hex":
            yield from _hex_file(file, grows=grows and file is files[-1])
        else:
            yield from _binary(file)


def files_of(path: Path) -> list[Path]:
    """List the file, or those of the folder except hidden ones."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))


def load_dirty_framing() -> DirtyFraming:
    """Load the framing of reads with bytes of earlier reads behind them."""
    offered = {offer.name: offer for offer in offers("gbase_framings")}
    if "dirty" not in offered:
        raise missing_tools("The reading of dirty buffers")
    framing: DirtyFraming = load_offer(offered["dirty"])
    return framing


def refuse_dirty(files: Iterable[Path]) -> None:
    """Reads with rubbish behind them can only be told apart line by line.

    DataError names a file that has no lines; ConfigError says what is not installed.
    """
    load_dirty_framing()
    for file in files:
        if file.suffix.lower() != ".hex":
            hint = "Write one read a line, in hexadecimal, into a file whose name ends in .hex."
            raise DataError(
                f"{file} does not say where a read ends, which reads with other bytes behind them need.",
                hint=hint,
            )


def read_hex(lines: Iterable[str], *, origin: str = "the text", grows: bool = False) -> Iterator[bytes]:
    """Yield the bytes of each line; `#` begins a comment, blanks do not count.

    A line may begin with a label and `valid` or `tail`, as `R1 valid 0000…`: a tail is output
    beyond the bytes read, and is left out. If the text `grows`, an unreadable last line is left out
    too.
    """
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if len(words) > 2 and words[1] in _MARKS:
            if words[1] == "tail":
                continue
            words = words[2:]
        if not words:  # a blank line, or nothing but a comment
            continue
        try:
            yield binascii.unhexlify("".join(words))
        except (ValueError, binascii.Error):
            if grows and not line.endswith("\n"):
                return
            shown = shorten(line.strip(), 40)
            raise DataError(f"{origin}, line {number}: {shown!r} is no row of hexadecimal digits.") from None


def _binary(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as opened:
            while chunk := opened.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from error


def _hex_file(file: Path, *, grows: bool) -> Iterator[bytes]:
    try:
        # Editors on Windows begin a text with a mark.
        with file.open(encoding="utf-8-sig") as opened:
            yield from read_hex(_up_to_its_end(opened), origin=str(file), grows=grows)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError:
        raise DataError(f"{file} is no text of hexadecimal digits; give binary files another name.") from None


def _up_to_its_end(lines: Iterable[str]) -> Iterator[str]:
    """Yield complete lines; leave out a half-written last one."""
    for line in lines:
        yield line
        if not line.endswith("\n"):
            return


_common = Binary(">4I").unpack_from
_txid = Binary(">I").unpack_from
HELD_BYTES: Final = 64 << 20
"""Bytes of a split, about: the next place where no transaction is open ends it."""
_ENDS: Final = (CdcRecord.COMMTX, CdcRecord.RBTX)
_INSIDE: Final = frozenset((*ROWS, CdcRecord.TRUNCATE, CdcRecord.DISCARD))


class Split(Struct, frozen=True, kw_only=True):
    """A range of a file that can be read by itself: `before` are the descriptions of tables that
    count in it.
    """

    path: str
    start: int
    end: int
    before: bytes = b""

    def in_file(self, offset: int) -> int:
        """Convert an offset of `read_split` to one in the whole file."""
        return offset - len(self.before) + self.start


def splits(path: Path, *, size: int = HELD_BYTES, largest: int = RECORD_BYTES) -> list[Split]:
    """Split a binary file; the splits cover all of it. Nothing is split after damage."""
    try:
        length = path.stat().st_size
        if length == 0:  # which cannot be mapped
            return []
        with path.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _splits(str(path), data, size, largest)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error


def read_split(split: Split) -> Iterator[bytes]:
    """Yield the bytes of a split after its table descriptions, for `stream.images`."""
    if split.before:
        yield split.before
    with Path(split.path).open("rb") as opened:
        opened.seek(split.start)
        rest = split.end - split.start
        while rest > 0 and (chunk := opened.read(min(rest, CHUNK_BYTES))):
            rest -= len(chunk)
            yield chunk


def _splits(path: str, data: mmap.mmap, size: int, largest: int) -> list[Split]:
    cuts: list[Split] = []
    tables: dict[int, bytes] = {}
    described: list[bytes] = []
    before, start, at, end = b"", 0, 0, len(data)
    open_ones: set[int] = set()
    while end - at >= COMMON_BYTES:
        header, payload, scheme, number = _common(data, at)
        least = LEAST.get(number, COMMON_BYTES)
        # Damage is not judged here: whoever reads the last split meets it, and says where it is.
        if scheme != SCHEME or header < least or header + payload > min(largest, end - at):
            break
        # A row opens its transaction too: a file may begin behind the BEGINTX.
        if number in _INSIDE or number == CdcRecord.BEGINTX:
            # In all of these the number of the transaction stands at 24 (gbase-cdc.md 2).
            open_ones.add(_txid(data, at + 24)[0])
        elif number in _ENDS:
            open_ones.discard(_txid(data, at + 24)[0])
        elif number == CdcRecord.TABSCHEM:
            label, record = _txid(data, at + 16)[0], data[at : at + header + payload]
            # A session that begins anew describes its tables again, which changes nothing.
            if tables.get(label) != record:
                tables[label] = record
                # All of them: a row's layout is known by how many came before.
                described.append(record)
        at += header + payload
        # Only between transactions, so that no row of one split waits for a commit in another.
        if at - start >= size and not open_ones:
            cuts.append(Split(path=path, start=start, end=at, before=before))
            before, start = b"".join(described), at
    if start < end:
        cuts.append(Split(path=path, start=start, end=end, before=before))
    return cuts
