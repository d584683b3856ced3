"""The record codec `packed-v1`: columns laid end to end behind a mask of NULLs. The project's own, not LINTER's.

LINTER's bytes are not documented; this is what is deduced from the nearest thing that is. A decoder is made once for
a table: runs of fixed columns are unpacked at once, together with the length of the variable column behind them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import methodcaller
from typing import Any, Final

from eventlog.errors import DataError
from eventlog.model import Row, Value
from eventlog.sources.linter.layouts import Field, RecordLayout, Type
from eventlog.sources.linter.numbers import SIZE, date, date_bytes, decimal, decimal_bytes

BLOB_SIZE: Final = 24
MOST_MASKS: Final = 4096
"""How many masks of NULLs are remembered for a table; most tables have few."""

_FIXED: Final = {
    Type.SMALLINT: "h",
    Type.INTEGER: "i",
    Type.BIGINT: "q",
    Type.REAL: "f",
    Type.DOUBLE: "d",
    Type.DECIMAL: f"{SIZE}s",
    Type.DATE: f"{SIZE}s",
    Type.BOOLEAN: "B",
    Type.BLOB: f"{BLOB_SIZE}s",
    Type.CHAR: "{length}s",
    Type.BYTE: "{length}s",
    Type.NCHAR: "{double}s",
}
TEXTS: Final = 1024
"""How many texts are remembered for a column."""

TEXT: Final = frozenset({Type.CHAR, Type.VARCHAR, Type.NCHAR, Type.NVARCHAR, Type.EXTFILE})
WIDE: Final = frozenset({Type.NCHAR, Type.NVARCHAR})
_PADDING: Final = b" \0"
_Segment = tuple[Callable[[bytes, int], tuple[Any, ...]], int, bool]


class PackedCodec:
    """Reads and writes the records of one table."""

    def __init__(self, layout: RecordLayout) -> None:
        self.layout = layout
        self._names = [field.name for field in layout.fields]
        self._order = "<" if layout.byte_order == "little" else ">"
        self._mask_size = -(-len(layout.fields) // 8) if layout.null_mask else 0
        self._segments = list(_segments(layout.fields, self._order))
        readers = [remembering(field, layout.byte_order) for field in layout.fields]
        self._readers = [(place, read) for place, read in enumerate(readers) if read is not None]
        self._nulls: dict[bytes, tuple[int, ...]] = {bytes(self._mask_size): ()}

    def decode(self, data: bytes) -> Row:
        """The values of a record; DataError names the column that cannot be read. What follows it is dropped if not strict."""
        found: list[Any] = []
        at = self._mask_size
        try:
            for unpack, size, variable in self._segments:
                found += unpack(data, at)
                at += size
                if variable:
                    start = at
                    at += found[-1]
                    found[-1] = data[start:at]
            if at != len(data):
                self._check_end(len(data), at)
            nulls = self._nulls.get(data[: self._mask_size])
            if nulls is None:
                nulls = self._null_places(data)
            if nulls:
                for place in nulls:
                    found[place] = None
                for place, read in self._readers:
                    if (value := found[place]) is not None:
                        found[place] = read(value)
            else:
                for place, read in self._readers:
                    found[place] = read(found[place])
        except struct.error:
            raise DataError(f"The record has {len(data)} byte(s), too few for its columns.") from None
        except (ValueError, DataError) as error:
            raise self._named(data, error) from None
        return dict(zip(self._names, found, strict=False))

    def rest(self, data: bytes) -> bytes:
        """What follows the last column of a record."""
        _, end = self._unpacked(data)
        return data[end:]

    def encode(self, row: Row) -> bytes:
        """The record of values; a column that is missing is NULL."""
        nulls = sum(1 << place for place, name in enumerate(self._names) if row.get(name) is None)
        mask = nulls.to_bytes(-(-len(self._names) // 8), "little") if self._mask_size else b""
        return mask + b"".join([self._written(field, row.get(field.name)) for field in self.layout.fields])

    def _unpacked(self, data: bytes) -> tuple[list[Any], int]:
        """The columns as they lie there, and where the last one ends."""
        at = self._mask_size
        found: list[Any] = []
        for unpack, size, variable in self._segments:
            found += unpack(data, at)
            at += size
            if variable:
                start = at
                at += found[-1]
                found[-1] = data[start:at]
        return found, at

    def _check_end(self, size: int, end: int) -> None:
        if end > size:
            raise DataError(f"The record ends after {size} byte(s), before its last column does.")
        if self.layout.strict:
            raise DataError(f"{size - end} byte(s) follow the last column.")

    def _null_places(self, data: bytes) -> tuple[int, ...]:
        """The columns that are NULL, by a mask that was not met yet."""
        mask = data[: self._mask_size]
        bits = int.from_bytes(mask, "little")
        if bits >> len(self._names):
            raise DataError(f"The mask of NULLs {mask.hex()} has bits behind the last column.")
        places = tuple(place for place in range(len(self._names)) if bits >> place & 1)
        if len(self._nulls) < MOST_MASKS:
            self._nulls[mask] = places
        return places

    def _named(self, data: bytes, error: Exception) -> DataError:
        """The error with the name of the first column that cannot be read, if it was one."""
        found, _ = self._unpacked(data)
        bits = int.from_bytes(data[: self._mask_size], "little")
        for place, read in self._readers:
            try:
                if not bits >> place & 1:
                    read(found[place])
            except (ValueError, DataError) as reason:
                return DataError(f"Column {self._names[place]}: {_said(reason, self.layout.fields[place])}.")
        return DataError(f"{str(error).rstrip('.')}.")

    def _written(self, field: Field, value: Any) -> bytes:
        try:
            return written(field, value, self._order, self.layout.byte_order)
        except (ValueError, TypeError, struct.error, DataError) as error:
            raise DataError(f"Column {field.name}: {_said(error, field)}.") from None


def remembering(field: Field, byte_order: str) -> Callable[[Any], Value] | None:
    """The reader of a column; texts are remembered, for the images of an update mostly hold the same ones."""
    read = reader(field, byte_order)
    return lru_cache(TEXTS)(read) if read is not None and field.type in TEXT else read


def reader(field: Field, byte_order: str) -> Callable[[Any], Value] | None:
    """What makes a column's value of what lies in the record; None where that is the value."""
    page = field.code_page
    match field.type:
        case Type.CHAR:
            return partial(_narrow, code_page=page)
        case Type.VARCHAR | Type.EXTFILE:
            return methodcaller("decode", page)
        case Type.NCHAR:
            return partial(_wide, code_page=f"utf-16-{byte_order[0]}e", padding=" \0")
        case Type.NVARCHAR:
            return partial(_wide, code_page=f"utf-16-{byte_order[0]}e", padding="")
        case Type.DECIMAL:
            return decimal
        case Type.DATE:
            return date
        case Type.BOOLEAN:
            return _truth
    return None


def written(field: Field, value: Any, order: str, byte_order: str) -> bytes:
    """A column's bytes; NULL keeps the size of a fixed column, as zeros, and is empty in a variable one."""
    fixed = _format(field)
    if fixed is not None and value is None:
        return bytes(struct.calcsize(order + fixed))
    content = b"" if value is None else _content(field, value, byte_order)
    if fixed is None:
        most = field.length * (2 if field.type is Type.NVARCHAR else 1)
        if len(content) > most and field.type is not Type.EXTFILE:
            raise DataError(f"{len(content)} bytes do not fit into {most}")
        return struct.pack(f"{order}H", len(content)) + content
    if isinstance(content, bytes):
        return _padded(field, content, struct.calcsize(order + fixed), byte_order)
    return struct.pack(order + fixed, content)


def _content(field: Field, value: Any, byte_order: str) -> Any:
    match field.type:
        case Type.CHAR | Type.VARCHAR | Type.EXTFILE:
            return value.encode(field.code_page)
        case Type.NCHAR | Type.NVARCHAR:
            return value.encode(f"utf-16-{byte_order[0]}e")
        case Type.DECIMAL:
            return decimal_bytes(value)
        case Type.DATE:
            return date_bytes(value)
    return value


def _padded(field: Field, content: bytes, size: int, byte_order: str) -> bytes:
    if len(content) > size:
        raise DataError(f"{len(content)} bytes do not fit into {size}")
    if field.type is Type.NCHAR:
        return content + " ".encode(f"utf-16-{byte_order[0]}e") * ((size - len(content)) // 2)
    return content.ljust(size, b" " if field.type is Type.CHAR else b"\0")


def _segments(fields: Sequence[Field], order: str) -> Sequence[_Segment]:
    """Runs of fixed columns, each with the length of the variable column that ends it."""
    found: list[_Segment] = []
    run = order
    for field in fields:
        fixed = _format(field)
        run += fixed or "H"
        if fixed is None:
            found.append((struct.Struct(run).unpack_from, struct.calcsize(run), True))
            run = order
    if run != order:
        found.append((struct.Struct(run).unpack_from, struct.calcsize(run), False))
    return found


def _format(field: Field) -> str | None:
    fixed = _FIXED.get(field.type)
    return None if fixed is None else fixed.format(length=field.length, double=2 * field.length)


def _narrow(raw: bytes, code_page: str) -> str:
    return raw.rstrip(_PADDING).decode(code_page)


def _wide(raw: bytes, code_page: str, padding: str) -> str:
    return raw.decode(code_page).rstrip(padding) if padding else raw.decode(code_page)


def _truth(stored: int) -> bool:
    if stored > 1:
        raise DataError(f"{stored} is neither 0 nor 1")
    return stored == 1


def _said(error: Exception, field: Field) -> str:
    if isinstance(error, UnicodeDecodeError):
        page = error.encoding if field.type in WIDE else field.code_page
        return f"{error.object.hex()} is no text in {page}; set the code page"
    return str(error).rstrip(".")
