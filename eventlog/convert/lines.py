"""CSV and JSON lines as columns, with the file and the line where one is damaged.

CSV is RFC 4180 with a header line, NULL written `\\N` without quotes, so that the empty string
stays a value. JSON lines are one object a line, numbers as numbers or strings; an absent key is
NULL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import IO, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Raw

from eventlog.convert.inputs import Unit, end_line, line_number, places_of, too_long
from eventlog.convert.rows import NUMBERS, json_number, text_of
from eventlog.core.errors import DataError
from eventlog.sql.names import CONTEXT, STANDARD, TRANSACTION

BLOCK_BYTES: Final = 1 << 20
NULL: Final = "\\N"

# Possessive: a group that can give back what it took keeps a hundred bytes for each letter.
_field = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"(?=,|\Z)|([^",]*)(?=,|\Z)').match

Record = Sequence[str | None]


def csv_columns(
    blocks: Iterable[bytes], origin: str, limit: int, header: Sequence[str] | None = None
) -> Iterator[dict[str, pa.Array]]:
    """Yield the columns of CSV, block by block. The header is the first line, unless it is known from elsewhere."""
    records = Records(blocks, origin, limit)
    names = header or records.header()
    places = places_of(names, origin)
    for rows in records.blocks(len(names)):
        # Turned around at once: a loop over rows and names would take several times as long.
        columns = list(zip(*rows, strict=True))
        yield {name: pa.array(columns[index], pa.string()) for name, index in places.items()}


def no_header(origin: str) -> DataError:
    """Make the error for a CSV file without a first line."""
    return DataError(f"{origin} has no header line.", hint="Its first line names the ten columns.")


class Records:
    """The records of a CSV file, and in which line they stand; its blocks end where lines end."""

    def __init__(self, blocks: Iterable[bytes], origin: str, limit: int) -> None:
        self._blocks = iter(blocks)
        self._origin = origin
        self._limit = limit
        self._line = 0
        # The lines of a record whose quote is still open, how long they are, and where it begins.
        self._open: list[str] = []
        self._held = 0
        self._opened = 0

    def header(self) -> list[str]:
        first, _, rest = next(self._blocks, b"").partition(b"\n")
        # Programs on Windows end lines with \r\n.
        line = self._text(first).removesuffix("\r")
        if not line:
            raise no_header(self._origin)
        self._line = 1
        self._blocks = chain([rest], self._blocks)
        return [name or "" for name in self._fields(line)]

    def blocks(self, width: int) -> Iterator[list[Record]]:
        """Yield the records after the header, block by block, each with so many fields."""
        for read in filter(None, self._blocks):
            text = self._text(read)
            has_quotes = self._open or '"' in text
            records = self._split(text, width) if has_quotes else self._plain(text, width)
            if records:
                yield records
        if self._open:
            raise self._describe_damage("a quote that opens here is never closed", self._opened)

    def _plain(self, text: str, width: int) -> list[Record]:
        """Split a block without quotes, as nearly all are, into records."""
        lines = text.replace("\r\n", "\n").split("\n")
        records: list[Record] = [line.split(",") for line in lines if line]
        if any(len(record) != width for record in records):
            # Line by line, to say which one is wrong.
            return self._split(text, width)
        self._line += len(lines) - 1
        if NULL in text:
            return [self._with_nulls(record) for record in records]
        return records

    def _split(self, text: str, width: int) -> list[Record]:
        """Split a block into records, line by line."""
        records: list[Record] = []
        # Not `splitlines`, which also cuts at other characters than \n that a value may have.
        for line in text.removesuffix("\n").split("\n"):
            self._line += 1
            if not self._open:
                self._opened = self._line
            # A doubled quote counts twice, so with an odd number the text in quotes begins or ends.
            goes_on = line.count('"') % 2 != bool(self._open)
            if self._open or goes_on:
                self._hold(line)
            if goes_on:
                continue
            record = line
            if self._open:
                record = "\n".join(self._open)
                self._open, self._held = [], 0
            record = record.removesuffix("\r")
            if record:
                records.append(self._check_width(self._fields(record), width))
        return records

    def _hold(self, line: str) -> None:
        """Keep a line of an unfinished record; an unclosed quote makes it the rest of the file."""
        self._open.append(line)
        self._held += len(line) + 1
        if self._held > self._limit:
            raise too_long(self._origin, self._opened, self._limit)

    def _fields(self, record: str) -> list[str | None]:
        if '"' not in record:
            return self._with_nulls(record.split(","))
        fields: list[str | None] = []
        at = -1
        while at < len(record):
            match = _field(record, at + 1)
            if match is None:
                right = 'a value with quotes is written "a ""b"" c"'
                raise self._describe_damage(f"a quote is where none can be; {right}")
            quoted, plain = match.groups()
            # NULL in quotes is these two characters.
            if quoted is not None:
                fields.append(quoted.replace('""', '"'))
            elif plain == NULL:
                fields.append(None)
            else:
                fields.append(plain)
            at = match.end()
        return fields

    def _with_nulls(self, record: Record) -> list[str | None]:
        return [None if field == NULL else field for field in record]

    def _check_width(self, record: Record, width: int) -> Record:
        if len(record) != width:
            problem = f"there are {len(record)} fields, and the header line names {width}"
            raise self._describe_damage(problem, self._opened)
        return record

    def _text(self, read: bytes) -> str:
        try:
            return read.decode()
        except UnicodeDecodeError as error:
            line = self._line + 1 + read[: error.start].count(b"\n")
            raise self._describe_damage("the text is not UTF-8", line) from None

    def _describe_damage(self, problem: str, line: int | None = None) -> DataError:
        line_number = self._line if line is None else line
        return DataError(
            f"{self._origin}, line {max(line_number, 1)}: {problem}.",
            hint="Correct it and begin again; nothing was published.",
        )


COLUMNS: Final = (*STANDARD, TRANSACTION, CONTEXT)
JsonLine: Any = msgspec.defstruct("JsonLine", [(name, Any, None) for name in COLUMNS], frozen=True)
"""One line; what other keys it has is nobody's business here."""

LongLine: Any = msgspec.defstruct("LongLine", [(name, Raw, Raw()) for name in COLUMNS], frozen=True)
"""The same where nothing is read yet: lists and objects would take thirty times as much memory."""

_decoder = msgspec.json.Decoder(JsonLine, float_hook=json_number)
_long_decoder = msgspec.json.Decoder(LongLine)
_value_decoder = msgspec.json.Decoder(Any, float_hook=json_number)
_encoder = msgspec.json.Encoder(decimal_format="number")


Blocks = Iterable[tuple[bytes, int]]
"""Whole lines, each time with their place in the file."""


def line_columns(blocks: Blocks, origin: str, line_of: Callable[[int], int]) -> Iterator[dict[str, pa.Array]]:
    """Yield the columns of JSON lines, block by block; `line_of` finds the number of the line at a place."""
    for block, start in blocks:
        try:
            lines = [_read_line(block)] if is_long(block) else _decoder.decode_lines(block)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            lines = list(_one_by_one(block, start, origin, line_of))
        if lines:
            yield {name: column_of(list(map(attrgetter(name), lines)), name in NUMBERS) for name in COLUMNS}


def blocks_of_lines(file: IO[bytes], unit: Unit) -> Iterator[tuple[bytes, int]]:
    """Yield blocks of whole lines that begin in the unit, each with its place in the file.

    A long line is a block by itself.
    """
    at = unit.start
    if at > 0:
        # A line that begins exactly there is ours: the byte before it, its neighbour's last, is
        # read with it.
        file.seek(at - 1)
        at = at - 1 + _pass_line(file)
    while unit.end is None or at < unit.end:
        read = file.read(BLOCK_BYTES if unit.end is None else min(BLOCK_BYTES, unit.end - at))
        if not read:
            break
        if not read.endswith(b"\n"):
            # The line that begins here is of this range, however far it goes into the next one.
            whole = end_line(file, read, unit.line_limit)
            if whole is None:
                raise too_long(unit.path, line_number(unit, at + len(read)), unit.line_limit)
            last = read.rfind(b"\n") + 1
            read = whole
            if last and is_long(read):
                yield _without_mark(read[:last], at), at
                read, at = read[last:], at + last
        yield _without_mark(read, at), at
        at += len(read)


def _without_mark(block: bytes, at: int) -> bytes:
    """Remove the byte order mark programs on Windows begin a file with."""
    return block if at else block.removeprefix(b"\xef\xbb\xbf")


def _pass_line(file: IO[bytes]) -> int:
    """Skip the rest of a line, which may be long, and return its bytes."""
    passed = 0
    while read := file.readline(BLOCK_BYTES):
        passed += len(read)
        if read.endswith(b"\n"):
            break
    return passed


def is_long(text: bytes) -> bool:
    """Return True for a block of one long line."""
    return len(text) > 2 * BLOCK_BYTES


def _read_line(line: bytes) -> Any:
    if not is_long(line):
        return _decoder.decode(line)
    raw = _long_decoder.decode(line)
    return JsonLine(**{name: read_value(getattr(raw, name)) for name in COLUMNS})


def read_value(raw: Raw) -> Any:
    """Read a value of a long line; turn lists and objects into text at once."""
    text = bytes(raw)
    if not text:
        return None
    return (
        msgspec.json.format(text, indent=-1).decode() if text.startswith((b"[", b"{")) else _value_decoder.decode(text)
    )


def _one_by_one(block: bytes, start: int, origin: str, line_of: Callable[[int], int]) -> Iterator[Any]:
    """Read the lines again one by one, to name a damaged one."""
    for number, line in enumerate(block.splitlines()):
        try:
            if line.strip():
                yield _read_line(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            cause = str(error).rstrip(".")
            message = f"{origin}, line {line_of(start) + number}: {cause}."
            hint = "Each line holds one JSON object; nothing was published."
            raise DataError(message, hint=hint) from error


def column_of(values: list[Any], number: bool = False) -> pa.Array:
    """Make a column of integers, or of texts if a value does not fit."""
    try:
        return pa.array(values, pa.int64() if number else pa.string())
    except (pa.ArrowException, OverflowError):
        # Some value is of another type: all become texts, and each row says what is wrong with it.
        if any(isinstance(value, bytes) for value in values):
            return pa.array([None if value is None else _bytes(value) for value in values], pa.binary())
        texts = [value if value is None or isinstance(value, str) else _text(value) for value in values]
        return pa.array(texts, pa.string())


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else _text(value)).encode()


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return _encoder.encode(value).decode()
    return text_of(value)
