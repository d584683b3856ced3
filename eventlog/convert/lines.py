"""CSV and JSON lines as columns, with the file and the line where one is damaged.

CSV is RFC 4180 with a header line, NULL written `\\N` without quotes, so that the empty string
stays a value. JSON lines are one object a line, numbers as numbers or strings; an absent key is
NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Struct

from eventlog.convert.inputs import Unit, opened, places_of
from eventlog.convert.rows import NUMBERS, json_number, text_of
from eventlog.core.errors import DataError
from eventlog.sql.names import STANDARD, TRANSACTION

BLOCK_BYTES: Final = 1 << 20
NULL: Final = "\\N"
VALUE_BYTES: Final = 1 << 28
"""Characters of a record; a quote that is never closed would make one of the rest of the file."""

_field = re.compile(r'"((?:[^"]|"")*)"(?=,|\Z)|([^",]*)(?=,|\Z)').match

Record = Sequence[str | None]


def csv_columns(file: IO[bytes], origin: str) -> Iterator[dict[str, pa.Array]]:
    """The ten columns of the rows, block by block."""
    records = Records(file, origin)
    header = records.header()
    places = places_of(header, origin)
    for rows in records.blocks(len(header)):
        # Turned around at once: a loop over rows and names would take several times as long.
        columns = list(zip(*rows, strict=True))
        yield {name: pa.array(columns[index], pa.string()) for name, index in places.items()}


def no_header(origin: str) -> DataError:
    """What to tell of a CSV file without a first line."""
    return DataError(f"{origin} has no header line.", hint="Its first line names the ten columns.")


class Records:
    """The records of a CSV file, and in which line they stand."""

    def __init__(self, file: IO[bytes], origin: str) -> None:
        self._file = file
        self._origin = origin
        self._line = 0
        # The lines of a record whose quote is still open, and the line where it begins.
        self._open = ""
        self._opened = 0

    def header(self) -> list[str]:
        # Programs on Windows begin a file with a byte order mark, and end lines with \r\n.
        line = self._text(self._file.readline()).removeprefix("\ufeff")
        line = line.removesuffix("\n").removesuffix("\r")
        if not line:
            raise no_header(self._origin)
        self._line = 1
        return [name or "" for name in self._fields(line)]

    def blocks(self, width: int) -> Iterator[list[Record]]:
        """The records after the header, all of them with so many fields."""
        while read := self._file.read(BLOCK_BYTES):
            # A block ends with a line: no letter of several bytes is cut in two.
            if not read.endswith(b"\n"):
                read += self._file.readline()
            text = self._text(read)
            has_quotes = self._open or '"' in text
            records = self._split(text, width) if has_quotes else self._plain(text, width)
            if records:
                yield records
        if self._open:
            raise self._damaged("a quote that opens here is never closed", self._opened)

    def _plain(self, text: str, width: int) -> list[Record]:
        """The records of a block without quotes: nearly all there are."""
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
        """The records of a block, line by line."""
        records: list[Record] = []
        # Not `splitlines`, which also cuts at other characters than \n that a value may have.
        for line in text.removesuffix("\n").split("\n"):
            self._line += 1
            if not self._open:
                self._opened = self._line
            self._open += line
            # A doubled quote counts twice, so an odd number says that the last one is still open.
            if self._open.count('"') % 2:
                self._open += "\n"
                if len(self._open) > VALUE_BYTES:
                    raise self._damaged("a quote that opens here is never closed", self._opened)
                continue
            record, self._open = self._open.removesuffix("\r"), ""
            if record:
                records.append(self._checked(self._fields(record), width))
        return records

    def _fields(self, record: str) -> list[str | None]:
        if '"' not in record:
            return self._with_nulls(record.split(","))
        fields: list[str | None] = []
        at = -1
        while at < len(record):
            match = _field(record, at + 1)
            if match is None:
                right = 'a value with quotes is written "a ""b"" c"'
                raise self._damaged(f"a quote is where none can be; {right}")
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

    def _checked(self, record: Record, width: int) -> Record:
        if len(record) != width:
            problem = f"there are {len(record)} fields, and the header line names {width}"
            raise self._damaged(problem, self._opened)
        return record

    def _text(self, read: bytes) -> str:
        try:
            return read.decode()
        except UnicodeDecodeError as error:
            line = self._line + 1 + read[: error.start].count(b"\n")
            raise self._damaged("the text is not UTF-8", line) from None

    def _damaged(self, problem: str, line: int | None = None) -> DataError:
        line_number = self._line if line is None else line
        return DataError(
            f"{self._origin}, line {max(line_number, 1)}: {problem}.",
            hint="Correct it and begin again; nothing was published.",
        )


class JsonLine(Struct, frozen=True, kw_only=True):
    """One line; what other keys it has is nobody's business here."""

    record_id: Any = None
    status: Any = None
    event_type: Any = None
    event_time: Any = None
    perpetrator: Any = None
    table_name: Any = None
    table_key: Any = None
    column_name: Any = None
    old_value: Any = None
    new_value: Any = None
    eventlog_transaction: Any = None


COLUMNS: Final = (*STANDARD, TRANSACTION)
_decoder = msgspec.json.Decoder(JsonLine, float_hook=json_number)


def line_columns(file: IO[bytes], unit: Unit) -> Iterator[dict[str, pa.Array]]:
    """The columns of the lines that begin in the unit, block by block."""
    for block, start in blocks_of_lines(file, unit.start, unit.end):
        try:
            lines = _decoder.decode_lines(block)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            lines = list(_one_by_one(block, start, unit))
        if lines:
            yield {name: column_of([getattr(line, name) for line in lines], name in NUMBERS) for name in COLUMNS}


def blocks_of_lines(file: IO[bytes], start: int = 0, end: int | None = None) -> Iterator[tuple[bytes, int]]:
    """Whole lines that begin between two places, in blocks, each with its own place in the file."""
    at = start
    if start > 0:
        # A line that begins exactly at `start` is ours: the byte before it, its neighbour's last,
        # is read with it.
        file.seek(start - 1)
        at = start - 1 + len(file.readline())
    while end is None or at < end:
        read = file.read(BLOCK_BYTES if end is None else min(BLOCK_BYTES, end - at))
        if not read:
            break
        if not read.endswith(b"\n"):
            # The line that begins here is of this stretch, however far it goes into the next one.
            read += file.readline()
        block = read
        if at == 0:
            # Without the byte order mark that programs on Windows begin a file with.
            block = read.removeprefix(b"\xef\xbb\xbf")
        yield block, at
        at += len(read)


def _one_by_one(block: bytes, start: int, unit: Unit) -> Iterator[JsonLine]:
    """The lines again, to name the one that is damaged."""
    for number, line in enumerate(block.splitlines()):
        try:
            if line.strip():
                yield _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # Nobody counts lines until one is wrong; then those before this stretch are read once
            # more.
            lines_before = 0
            if start:
                with opened(unit) as file_again:
                    lines_before = file_again.read(start).count(b"\n")
            line_number = lines_before + number + 1
            cause = str(error).rstrip(".")
            message = f"{unit.path}, line {line_number}: {cause}."
            hint = "Each line holds one JSON object; nothing was published."
            raise DataError(message, hint=hint) from error


def column_of(values: list[Any], number: bool = False) -> pa.Array:
    """The values as a column of integers, or of texts where they are not."""
    try:
        return pa.array(values, pa.int64() if number else pa.string())
    except (pa.ArrowException, OverflowError):
        # Some value is of another type: all become texts, and each row says what is wrong with it.
        texts = [value if value is None or isinstance(value, str) else _text(value) for value in values]
        return pa.array(texts, pa.string())


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    return text_of(value)
