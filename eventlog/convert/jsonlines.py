"""JSON lines as columns: one object a line, numbers as numbers or strings, an absent key is NULL."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import IO, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Struct

from eventlog.convert.columns import NUMBERS
from eventlog.convert.inputs import Unit, opened
from eventlog.convert.shape import text_of
from eventlog.core.errors import DataError
from eventlog.sql.names import STANDARD

BLOCK_BYTES: Final = 1 << 20


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


_decoder = msgspec.json.Decoder(JsonLine, float_hook=Decimal)


def line_columns(file: IO[bytes], unit: Unit) -> Iterator[dict[str, pa.Array]]:
    """The columns of the lines that begin in the unit, block by block."""
    for block, start in blocks_of_lines(file, unit.start, unit.end):
        lines = _decoded(block, start, unit)
        if lines:
            yield {name: column_of([getattr(line, name) for line in lines], name in NUMBERS) for name in STANDARD}


def blocks_of_lines(file: IO[bytes], start: int = 0, end: int | None = None) -> Iterator[tuple[bytes, int]]:
    """Whole lines that begin between two places, in blocks, each with its own place in the file."""
    at = _line_start(file, start)
    while end is None or at < end:
        read = file.read(BLOCK_BYTES if end is None else min(BLOCK_BYTES, end - at))
        if not read:
            break
        if not read.endswith(b"\n"):
            read += file.readline()  # the line that begins here, however long it is
        yield read.removeprefix(b"\xef\xbb\xbf") if at == 0 else read, at
        at += len(read)


def _line_start(file: IO[bytes], start: int) -> int:
    """Where the first line begins that does not begin before `start`; the file stands there then."""
    if start == 0:
        return 0
    file.seek(start - 1)
    return start - 1 + len(file.readline())


def _decoded(block: bytes, start: int, unit: Unit) -> list[JsonLine]:
    try:
        return _decoder.decode_lines(block)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return list(_one_by_one(block, start, unit))


def _one_by_one(block: bytes, start: int, unit: Unit) -> Iterator[JsonLine]:
    """The lines again, to name the one that is damaged."""
    for number, line in enumerate(block.splitlines()):
        try:
            if line.strip():
                yield _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            place = _lines_before(unit, start) + number + 1
            said = str(error).rstrip(".")
            message = f"{unit.path}, line {place}: {said}."
            raise DataError(message, hint="Each line holds one JSON object; nothing was published.") from error


def _lines_before(unit: Unit, start: int) -> int:
    if not start:
        return 0
    with opened(unit) as file:
        return file.read(start).count(b"\n")


def column_of(values: list[Any], number: bool = False) -> pa.Array:
    """The values as a column of integers, or of texts where they are not."""
    try:
        return pa.array(values, pa.int64() if number else pa.string())
    except (pa.ArrowException, OverflowError):
        return pa.array(
            [value if value is None or isinstance(value, str) else _text(value) for value in values], pa.string()
        )


def _text(value: Any) -> str:
    if isinstance(value, dict | list):
        return msgspec.json.encode(value).decode()
    return text_of(value)
