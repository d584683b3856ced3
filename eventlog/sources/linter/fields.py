"""One column of a record in `packed-v1`: how its bytes are read, and how they are written. Does no I/O."""

from __future__ import annotations

import struct
from codecs import charmap_decode
from collections.abc import Callable
from functools import partial
from importlib import import_module
from operator import methodcaller
from typing import Any, Final

from eventlog.core.errors import DataError
from eventlog.core.model import Value
from eventlog.sources.linter.layouts import Field, Type
from eventlog.sources.linter.numbers import SIZE, date, date_bytes, decimal, decimal_bytes

BLOB_SIZE: Final = 24
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
WIDE: Final = frozenset({Type.NCHAR, Type.NVARCHAR})
_PADDING: Final = b" \0"


def reader(field: Field, byte_order: str) -> Callable[[Any], Value] | None:
    """What makes a column's value of what lies in the record; None where that is the value."""
    page = field.code_page
    match field.type:
        case Type.CHAR:
            return partial(_narrow, code_page=page)
        case Type.VARCHAR | Type.EXTFILE:
            return _by_table(page) or methodcaller("decode", page)
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
    fixed = format_of(field)
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


def format_of(field: Field) -> str | None:
    fixed = _FIXED.get(field.type)
    return None if fixed is None else fixed.format(length=field.length, double=2 * field.length)


def _by_table(page: str) -> Callable[[Any], str] | None:
    """Reads text of a code page that has a table: a third of what its codec costs."""
    table = getattr(import_module(f"encodings.{page.replace('-', '_')}"), "decoding_table", None)
    return None if table is None else lambda raw: charmap_decode(raw, "strict", table)[0]


def _narrow(raw: bytes, code_page: str) -> str:
    return raw.rstrip(_PADDING).decode(code_page)


def _wide(raw: bytes, code_page: str, padding: str) -> str:
    return raw.decode(code_page).rstrip(padding) if padding else raw.decode(code_page)


def _truth(stored: int) -> bool:
    if stored > 1:
        raise DataError(f"{stored} is neither 0 nor 1")
    return stored == 1


def said(error: Exception, field: Field) -> str:
    if isinstance(error, UnicodeDecodeError):
        page = error.encoding if field.type in WIDE else field.code_page
        return f"{error.object.hex()} is no text in {page}; set the code page"
    return str(error).rstrip(".")
