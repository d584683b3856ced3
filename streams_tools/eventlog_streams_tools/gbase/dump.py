"""An annotated dump: every record, field by field, with its bytes.

Where a damaged stream breaks, and where a restart begins.
"""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Callable, Iterable, Iterator
from struct import Struct as Binary
from typing import Final

from msgspec import Struct

from eventlog.core.errors import DamageError, DataError, shorten
from eventlog.core.plural import count_words
from eventlog.sources.gbase.codes import in_words
from eventlog.sources.gbase.layout import CapturedColumn, CapturedLayout, read_layout
from eventlog.sources.gbase.records import (
    COMMON,
    COMMON_BYTES,
    FIELDS,
    ROWS,
    CdcRecord,
    Framer,
    RecordFrame,
    name_of,
    place_of,
)
from eventlog.sources.gbase.rows import FIXED_HEADER_BYTES, GBaseRowReader
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.gbase.values import codec
from eventlog.sources.stream.transactions import Transactions
from eventlog_streams_tools.gbase.dirty import DirtyReads, LeftOver, next_header

SHOWN_BYTES: Final = 64
"""Bytes that are shown of a piece; of more, the number."""


class DumpLine(Struct, frozen=True, kw_only=True):
    """A piece of a record: where it is, its bytes, what it is, and what it says."""

    offset: int
    data: bytes
    name: str
    value: str = ""

    @property
    def text(self) -> str:
        # In words of four bytes, as the manuals print it.
        shown = self.data[:SHOWN_BYTES].hex(" ", -4)
        more = f" … {len(self.data)} bytes" if len(self.data) > SHOWN_BYTES else ""
        description = f"{self.name} {self.value}".rstrip()
        return f"  {self.offset:>8}  {shown + more:<36}  {description}"


class Entry(Struct, frozen=True, kw_only=True):
    """A record with its lines; or what is no record, with the problem that makes it none."""

    offset: int
    title: str
    lines: tuple[DumpLine, ...] = ()
    problem: str | None = None

    @property
    def damaged(self) -> bool:
        """Return True if a part of it is unreadable."""
        return self.problem is not None or any(line.value.startswith("!") for line in self.lines)

    @property
    def text(self) -> str:
        wrong = [f"  {'!':>8}  {self.problem}"] if self.problem else []
        return "\n".join([f"@{self.offset} {self.title}", *(line.text for line in self.lines), *wrong])


def entries(
    chunks: Iterable[bytes],
    settings: GBaseSettings,
    seen: Callable[[RecordFrame], None] = lambda _: None,
) -> Iterator[Entry]:
    """Yield each record of a stream, after calling `seen` with it.

    Bytes that are no record are shown as such, up to the next header.
    """
    framer = Framer(largest=settings.largest_record)
    layouts: dict[int, CapturedLayout | str] = {}
    reads = DirtyReads(framer, settings.largest_record)

    def show(frame: RecordFrame) -> Entry:
        # Seen before it is shown: who takes no more entries has still counted this one.
        seen(frame)
        return entry(frame, layouts, settings)

    for chunk in chunks:
        if settings.dirty:
            yield from _read_entries(reads, framer, chunk, show)
        else:
            yield from _chunk_entries(framer, chunk, show, settings.largest_record)
    yield from _show_pieces(reads.last(), show)
    if not framer.kept:
        return
    if settings.dirty and not reads.record_is_kept():
        yield _describe_left_over(framer.offset, framer.rest)
        return
    offset, rest = framer.offset, framer.rest
    try:
        framer.close()
    except DamageError as error:  # as it does whenever something is kept
        yield _no_record(offset, rest, "incomplete record", str(error))


def _chunk_entries(
    framer: Framer,
    chunk: bytes,
    shown: Callable[[RecordFrame], Entry],
    largest: int,
) -> Iterator[Entry]:
    while True:
        try:
            whole_frames = framer.feed(chunk)
        # The damage stays in the framer, with its offset; what stood before it is shown first.
        except DamageError:
            whole_frames = []
        yield from map(shown, whole_frames)
        if framer.damage is None:
            return
        rest, offset, problem = framer.rest, framer.offset, str(framer.damage)
        # The first byte is left out, for there stands what the framer refused. Without a header the
        # last 15 bytes are kept: the next chunk may complete one.
        header = next_header(rest[1:], largest)
        if header is None:
            at = max(1, len(rest) - COMMON_BYTES + 1)
        else:
            at = header + 1
        yield _no_record(offset, rest[:at], "no record", problem)
        framer.drop()
        framer.offset = offset + at
        chunk = rest[at:]


def _read_entries(
    reads: DirtyReads, framer: Framer, chunk: bytes, shown: Callable[[RecordFrame], Entry]
) -> Iterator[Entry]:
    """Yield the entries of one read; after damage, only bytes."""
    begin = framer.offset + framer.kept
    while True:
        yield from _show_pieces(reads.take(chunk), shown)
        if framer.damage is None:
            return
        yield _no_record(framer.offset, framer.rest, "no record", str(framer.damage))
        framer.drop()
        # Damage of the read before goes first, and this one is looked at again.
        if framer.offset > begin:
            return


def _show_pieces(pieces: Iterable[RecordFrame | LeftOver], shown: Callable[[RecordFrame], Entry]) -> Iterator[Entry]:
    for piece in pieces:
        yield _describe_left_over(piece.offset, piece.data) if isinstance(piece, LeftOver) else shown(piece)


def _describe_left_over(offset: int, data: bytes) -> Entry:
    return _no_record(offset, data, "left over in the buffer", None)


def _no_record(offset: int, data: bytes, title: str, problem: str | None) -> Entry:
    lines = (DumpLine(offset=offset, data=data, name="bytes"),)
    return Entry(offset=offset, title=title, lines=lines, problem=problem)


def entry(
    frame: RecordFrame,
    layouts: dict[int, CapturedLayout | str],
    settings: GBaseSettings,
) -> Entry:
    """Describe a record field by field.

    `layouts` are the tables described so far; a description is added to them.
    """
    lines: list[DumpLine] = []
    at = 0
    values: dict[str, int] = {}
    for field in (*COMMON, *FIELDS.get(frame.number, ())):
        data = frame.data[at : at + field.size]
        (values[field.name],) = struct.unpack(f">{field.form}", data)
        meaning = _in_words(field.name, values[field.name])
        lines.append(DumpLine(offset=frame.offset + at, data=data, name=field.name, value=meaning))
        at += field.size
    problem = None
    try:
        if frame.number in ROWS:
            lines += _row(frame, values["userdata"], layouts, settings)
        else:
            lines += _rest(frame, at)
        if frame.number == CdcRecord.TABSCHEM:
            layouts[values["userdata"]] = read_layout(frame.data, frame.header_size)
    except DataError as error:
        problem = str(error)
        # Its rows are shown as bytes, and this is why.
        if frame.number == CdcRecord.TABSCHEM:
            layouts[values["userdata"]] = problem
        else:
            lines += _rest(frame, at)
    if frame.number not in FIELDS:
        problem = f"Record number {frame.number} is not known."
    title = f"{frame.number} {name_of(frame.number)}, {len(frame.data)} bytes"
    return Entry(offset=frame.offset, title=title, lines=tuple(lines), problem=problem)


def _in_words(name: str, value: int) -> str:
    match name:
        case "seq":
            return place_of(value)
        case "time":
            try:
                return f"{value} = {dt.datetime.fromtimestamp(value, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
            except (ValueError, OverflowError, OSError):
                return f"{value}, which is no time"
        case "record_number":
            return f"{value} {name_of(value)}"
        case "code":
            return in_words(value).rstrip(".")
    return str(value)


def _rest(frame: RecordFrame, at: int) -> Iterator[DumpLine]:
    """Yield unknown header fields and the payload."""
    if at < frame.header_size:
        yield DumpLine(offset=frame.offset + at, data=frame.data[at : frame.header_size], name="more header")
    if frame.payload:
        text = ""
        if frame.number in (CdcRecord.TABSCHEM, CdcRecord.ERROR):
            decoded = frame.payload.rstrip(b"\0").decode("utf-8", "replace")
            text = repr(shorten(decoded, 2000))
        at = frame.offset + frame.header_size
        yield DumpLine(offset=at, data=frame.payload, name="payload", value=text)


def _row(
    frame: RecordFrame, label: int, layouts: dict[int, CapturedLayout | str], settings: GBaseSettings
) -> Iterator[DumpLine]:
    layout = layouts.get(label, f"nothing has described the columns of label {label}.")
    if isinstance(layout, str):
        raise DataError(layout)
    sizes = GBaseRowReader(layout, settings.texts, settings.sizes).sizes(frame.data, frame.header_size)
    # The reader tries both byte orders (gbase-cdc.md 4); which one it took is seen by comparing.
    little = sizes != struct.unpack_from(f">{len(sizes)}I", frame.data, FIXED_HEADER_BYTES)
    lines: list[DumpLine] = []
    order = "little-endian" if little else "big-endian"
    for number, (column, size) in enumerate(zip(layout.varying, sizes, strict=True)):
        at = FIXED_HEADER_BYTES + 4 * number
        data = frame.data[at : at + 4]
        name, value = f"size of {column.name}", f"{size} ({order})"
        lines.append(DumpLine(offset=frame.offset + at, data=data, name=name, value=value))
    at = frame.header_size
    fixed = [column.type.size or 0 for column in layout.fixed]
    for column, size in zip((*layout.fixed, *layout.varying), (*fixed, *sizes), strict=True):
        data = frame.data[at : at + size]
        name, value = f"{column.name} {column.written}", _value(column, data, settings)
        lines.append(DumpLine(offset=frame.offset + at, data=data, name=name, value=value))
        at += size
    return iter(lines)


def _value(column: CapturedColumn, data: bytes, settings: GBaseSettings) -> str:
    try:
        value = codec(column.type, settings.texts).decode(data)
    except (ValueError, OverflowError, IndexError) as error:
        return f"! is none: {error}"  # the mark by which an entry knows that it is damaged
    if value is None:
        return "= NULL"
    if isinstance(value, str | bytes):
        return f"= {shorten(repr(value), 200)}"
    return f"= {value}"


# All records of transactions begin with these two (gbase-cdc.md 2).
_transaction = Binary(">QI").unpack_from


class RestartPoint(Struct, frozen=True, kw_only=True):
    """What a session is activated with so that nothing is lost.

    What was committed up to `done` comes once more.
    """

    begin: int
    done: int | None
    open: int

    @property
    def text(self) -> str:
        begins = f"A restart begins at {place_of(self.begin)} ({self.begin})"
        if not self.open:
            return f"{begins}, the last commit: no transaction is open."
        earliest = f"where the earliest of {count_words(self.open, 'open transaction')} began"
        if not self.done:
            return f"{begins}, {earliest}."
        return f"{begins}, {earliest}; what was committed up to {place_of(self.done)} is done."


class Restart:
    """Follows the transactions of a stream by the rules of its reader."""

    def __init__(self, settings: GBaseSettings) -> None:
        self._orphans = settings.orphans == "open"
        self._open: Transactions[None] = Transactions(None, 0)
        self._done: int | None = None

    def take(self, frame: RecordFrame) -> None:
        number = frame.number
        known = number in ROWS or number in (CdcRecord.BEGINTX, CdcRecord.COMMTX, CdcRecord.RBTX, CdcRecord.TRUNCATE)
        if not known:
            return
        seq, tx = _transaction(frame.data, COMMON_BYTES)
        if number == CdcRecord.BEGINTX:
            self._open.begin(tx, seq)
        elif number == CdcRecord.COMMTX:
            self._open.commit(tx, seq)
            self._done = seq
        elif number == CdcRecord.RBTX:
            self._open.rollback(tx)
        # Data of a transaction whose beginning was not seen; the reader opens one for it too.
        elif self._orphans and tx not in self._open:
            self._open.begin(tx, seq)

    @property
    def point(self) -> RestartPoint | None:
        """Return the place of a restart; None without an open transaction or a commit."""
        # The log is read from where the earliest open transaction began; what was committed since
        # then comes again and is left out by its COMMTX (gbase-cdc.md 8).
        begin = self._open.open or self._done
        if begin is None:
            return None
        return RestartPoint(begin=begin, done=self._done, open=len(self._open))
