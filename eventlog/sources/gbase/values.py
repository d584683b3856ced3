"""One column's value: its bytes in the stream become a Python value, and back. Knows no framing and does no I/O.

`codec` is the plain and exact way, one call a value; `rows` compiles the same for whole rows and falls back to this.
"""

from __future__ import annotations

import codecs
import datetime as dt
import math
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.model import Value
from eventlog.sources.gbase.moments import pack_moment, pack_span, unpack_moment, unpack_span
from eventlog.sources.gbase.packed import pack_decimal, unpack_decimal
from eventlog.sources.gbase.types import ColumnType, Form

DAY_ZERO: Final = dt.date(1899, 12, 31).toordinal()
_LOCALES: Final = {"57372": "utf-8", "819": "iso8859-1", "1252": "cp1252", "5488": "gb18030"}


class TextRules(Struct, frozen=True, kw_only=True):
    """How the texts of a database are read: its code set, what becomes of bytes that are none of it, trailing blanks.

    The code set is a name such as `gb18030`, or the number that the server has for it. With `invalid` bytes that are
    no text end the row as an error, are replaced, or are given as bytes.
    """

    encoding: str = "utf-8"
    invalid: Literal["strict", "replace", "bytes"] = "strict"
    trim: bool = False

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.codec)
        except LookupError:
            raise ConfigError(f"There is no code set {self.encoding}; GBase databases have utf-8 or gb18030.") from None

    @property
    def codec(self) -> str:
        """The name of the code set in Python."""
        return _LOCALES.get(self.encoding, self.encoding)

    def read(self, data: bytes) -> str | bytes:
        """The text of bytes; ValueError where they are none and that is to be told."""
        try:
            return str(data, self.codec)
        except UnicodeDecodeError:
            if self.invalid == "strict":
                raise
            return str(data, self.codec, "replace") if self.invalid == "replace" else data


class Codec(Struct, frozen=True):
    """Both ways of one column: ValueError where bytes are no value, or OverflowError where a value has no bytes."""

    decode: Callable[[bytes], Value]
    encode: Callable[[Any], bytes]


def codec(kind: ColumnType, texts: TextRules, *, wide: bool = True) -> Codec:
    """The codec of a column; `wide` says that a varchar's length is written in two bytes."""
    match kind.form:
        case Form.SMALLINT | Form.INTEGER | Form.BIGINT:
            return _whole(kind.size or 0)
        case Form.INT8:
            return Codec(_read_int8, _write_int8)
        case Form.FLOAT | Form.SMALLFLOAT:
            form = ">d" if kind.form is Form.FLOAT else ">f"
            return Codec(partial(_read_float, form), partial(_write_float, form))
        case Form.DECIMAL:
            size = kind.size or 0
            return Codec(
                lambda data: unpack_decimal(data, kind.precision, kind.scale),
                lambda value: bytes(size) if value is None else pack_decimal(value, size),
            )
        case Form.DATE:
            return Codec(_read_date, _write_date)
        case Form.DATETIME | Form.INTERVAL:
            return _timely(kind)
        case Form.BOOLEAN:
            return Codec(_read_boolean, _write_boolean)
        case Form.CHAR:
            return Codec(partial(_read_char, texts), partial(_write_char, texts, kind.size or 0))
        case Form.VARCHAR:
            return Codec(partial(_read_varchar, texts), partial(_write_varchar, texts, wide))
        case Form.LVARCHAR:
            return Codec(partial(_read_lvarchar, texts), partial(_write_lvarchar, texts))
        case Form.LOCATOR:
            return Codec(lambda data: data if any(data) else None, lambda value: bytes(76) if value is None else value)


def _whole(size: int) -> Codec:
    null = -(1 << (8 * size - 1))

    def decode(data: bytes) -> Value:
        number = int.from_bytes(data, "big", signed=True)
        return None if number == null else number

    def encode(value: int | None) -> bytes:
        if value == null:
            raise OverflowError(f"{value} is how NULL is written")
        return (null if value is None else value).to_bytes(size, "big", signed=True)

    return Codec(decode, encode)


def _timely(kind: ColumnType) -> Codec:
    size = kind.size or 0
    read: Callable[[bytes, ColumnType], Value] = unpack_moment if kind.form is Form.DATETIME else unpack_span
    write: Callable[[Any, ColumnType], bytes] = pack_moment if kind.form is Form.DATETIME else pack_span
    return Codec(lambda data: read(data, kind), lambda value: bytes(size) if value is None else write(value, kind))


def _read_int8(data: bytes) -> Value:
    sign, low, high = struct.unpack(">hII", data)
    if sign not in (-1, 0, 1):
        raise ValueError(f"its sign is {sign}")
    return sign * (high << 32 | low) if sign else None


def _write_int8(value: int | None) -> bytes:
    if value is None:
        return bytes(10)
    if abs(value) >= 1 << 63:
        raise OverflowError(f"{value} has more than 63 bits")
    return struct.pack(">hII", -1 if value < 0 else 1, abs(value) & 0xFFFFFFFF, abs(value) >> 32)


def _read_float(form: str, data: bytes) -> Value:
    (number,) = struct.unpack(form, data)
    if math.isnan(number) and data == b"\xff" * len(data):
        return None
    return float(number)


def _write_float(form: str, value: float | None) -> bytes:
    return b"\xff" * struct.calcsize(form) if value is None else struct.pack(form, value)


def _read_date(data: bytes) -> Value:
    (days,) = struct.unpack(">i", data)
    return None if days == -0x80000000 else dt.date.fromordinal(DAY_ZERO + days)


def _write_date(value: dt.date | None) -> bytes:
    return struct.pack(">i", -0x80000000 if value is None else value.toordinal() - DAY_ZERO)


def _read_boolean(data: bytes) -> Value:
    """NULL by the flag before it, or by a value of FF, which is all that IBM's client in Java looks at."""
    if data[0] > 1:
        raise ValueError(f"its null flag is {data[0]}")
    return None if data[0] or data[1] == 0xFF else data[1] != 0


def _write_boolean(value: bool | None) -> bytes:
    return b"\1\0" if value is None else bytes([0, value])


def _read_char(texts: TextRules, data: bytes) -> Value:
    if data[0] == 0:
        return None
    return texts.read(data.rstrip(b" ") if texts.trim else data)


def _write_char(texts: TextRules, size: int, value: str | None) -> bytes:
    data = b"\0" if value is None else value.encode(texts.codec)
    if len(data) > size:
        raise OverflowError(f"{len(data)} bytes do not fit into char({size})")
    return data.ljust(size, b" ")


def _read_varchar(texts: TextRules, data: bytes) -> Value:
    """Of both widths of the length only one can fit the number of bytes."""
    size = len(data)
    if data[0] + 1 == size:
        content = data[1:]
    elif size > 1 and (data[0] << 8 | data[1]) + 2 == size:
        content = data[2:]
    else:
        raise ValueError(f"its length {data[:2].hex()} fits no {size} bytes")
    return None if content == b"\0" else texts.read(content)


def _write_varchar(texts: TextRules, wide: bool, value: str | None) -> bytes:
    content = b"\0" if value is None else value.encode(texts.codec)
    return len(content).to_bytes(2 if wide else 1, "big") + content


def _read_lvarchar(texts: TextRules, data: bytes) -> Value:
    if len(data) < 3 or (data[0] << 8 | data[1]) + 2 != len(data):
        raise ValueError(f"its length {data[:2].hex()} fits no {len(data)} bytes")
    if data[2] > 1:
        raise ValueError(f"its null flag is {data[2]}")
    return None if data[2] else texts.read(data[3:])


def _write_lvarchar(texts: TextRules, value: str | None) -> bytes:
    content = b"" if value is None else value.encode(texts.codec)
    return (len(content) + 1).to_bytes(2, "big") + bytes([value is None]) + content
