"""One column's value: its bytes in the stream become a Python value, and back.

Knows no framing and does no I/O.
"""

from __future__ import annotations

import codecs
import datetime as dt
import struct
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal

from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.model import Value
from eventlog.sources.gbase.layout import ColumnType, ValueForm
from eventlog.sources.gbase.packed import (
    moment_reader,
    pack_decimal,
    pack_moment,
    pack_span,
    span_reader,
    unpack_decimal,
)

DAY_ZERO: Final = dt.date(1899, 12, 31).toordinal()
_NULL_DATE: Final = -0x80000000
"""The number of days that stands for NULL."""
_LOCALES: Final = {"57372": "utf-8", "819": "iso8859-1", "1252": "cp1252", "5488": "gb18030"}


class TextRules(Struct, frozen=True, kw_only=True):
    """How the texts of a database are read: its code set, what becomes of bytes that are none of
    it, trailing blanks.

    The code set is a name such as `gb18030`, or the number that the server has for it. With
    `invalid` bytes that are no text end the row as an error, are replaced, or are given as bytes.
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
        return _LOCALES.get(self.encoding, self.encoding)

    @property
    def reader(self) -> Callable[[bytes], Value]:
        """Reads the text of bytes; ValueError where they are none and that is to be noticed."""
        codec = self.codec
        if self.invalid == "strict":
            if codec == "utf-8":
                return bytes.decode  # without a call of Python for each text
            return lambda data: str(data, codec)
        if self.invalid == "replace":
            return lambda data: str(data, codec, "replace")

        def text_or_bytes(data: bytes) -> str | bytes:
            try:
                return str(data, codec)
            except UnicodeDecodeError:
                return data

        return text_or_bytes


class Codec(Struct, frozen=True):
    """Both ways of one column: ValueError where bytes are no value, or OverflowError where a value
    has no bytes.

    `form` is what `struct` takes out of a row for it, big-endian, and `read` what makes a value of
    that; a column of varying length is read from its bytes.
    """

    form: str
    read: Callable[[Any], Value]
    encode: Callable[[Any], bytes]

    def decode(self, data: bytes) -> Value:
        if self.form in _NUMBERS:
            (number,) = struct.unpack(f">{self.form}", data)
            return self.read(number)
        return self.read(data)


_NUMBERS: Final = {"h": 2, "i": 4, "q": 8}
"""The forms that are numbers to `struct`, and how many bytes they have; all others are bytes."""


def codec(kind: ColumnType, texts: TextRules, *, wide: bool = True) -> Codec:
    """Return the codec of a column; `wide`: two bytes for a varchar's length."""
    size = kind.size or 0
    form = f"{size}s"
    match kind.form:
        case ValueForm.SMALLINT | ValueForm.INTEGER | ValueForm.BIGINT:
            return _whole(size)
        case ValueForm.INT8:
            return Codec(form, _read_int8, _write_int8)
        case ValueForm.FLOAT | ValueForm.SMALLFLOAT:
            number = struct.Struct(">d" if kind.form is ValueForm.FLOAT else ">f")
            return Codec(form, partial(_read_float, number.unpack), partial(_write_float, number))
        case ValueForm.DECIMAL:
            read = partial(unpack_decimal, precision=kind.precision, scale=kind.scale)
            return Codec(form, read, partial(_write_decimal, size))
        case ValueForm.DATE:
            return Codec("i", _read_date, _write_date)
        case ValueForm.DATETIME:
            return Codec(form, moment_reader(kind), partial(_write_packed, kind, pack_moment))
        case ValueForm.INTERVAL:
            return Codec(form, span_reader(kind), partial(_write_packed, kind, pack_span))
        case ValueForm.BOOLEAN:
            return Codec(form, _read_boolean, _write_boolean)
        case ValueForm.CHAR:
            return Codec(form, _char_reader(texts), partial(_write_char, texts, size))
        case ValueForm.VARCHAR:
            return Codec("", partial(_read_varchar, texts.reader), partial(_write_varchar, texts, wide))
        case ValueForm.LVARCHAR:
            return Codec("", partial(_read_lvarchar, texts.reader), partial(_write_lvarchar, texts))
        case ValueForm.LOCATOR:
            # Only where the content is; the content itself is not in the stream (gbase-cdc.md 5).
            return Codec(form, lambda data: data if any(data) else None, lambda value: value or bytes(size))


def _whole(size: int) -> Codec:
    # The least number of each size stands for NULL (gbase-cdc.md 5).
    null = -(1 << (8 * size - 1))
    form = next(form for form, own in _NUMBERS.items() if own == size)

    def encode(value: int | None) -> bytes:
        if value is None:
            value = null
        elif value == null:
            raise OverflowError(f"{value} is how NULL is written")
        return value.to_bytes(size, "big", signed=True)

    return Codec(form, lambda number: None if number == null else number, encode)


def _write_decimal(size: int, value: Any) -> bytes:
    if value is None:
        return bytes(size)
    return pack_decimal(value, size)


def _write_packed(kind: ColumnType, pack: Callable[[Any, ColumnType], bytes], value: Any) -> bytes:
    if value is None:
        return bytes(kind.size or 0)
    return pack(value, kind)


def _read_int8(data: bytes) -> Value:
    # The low word comes first, although all else is big-endian (gbase-cdc.md 5).
    sign, low, high = struct.unpack(">hII", data)
    if sign == 0:
        return None
    if sign not in (-1, 1):
        raise ValueError(f"its sign is {sign}")
    return int(sign * (high << 32 | low))


def _write_int8(value: int | None) -> bytes:
    if value is None:
        return bytes(10)
    if abs(value) >= 1 << 63:
        raise OverflowError(f"{value} has more than 63 bits")
    sign = -1 if value < 0 else 1
    return struct.pack(">hII", sign, abs(value) & 0xFFFFFFFF, abs(value) >> 32)


def _read_float(unpack: Callable[[bytes], tuple[float]], data: bytes) -> Value:
    (number,) = unpack(data)
    # NULL is the one NaN that has all bits set; other NaNs are values.
    if number != number and data == b"\xff" * len(data):  # noqa: PLR0124  # as NaN does
        return None
    return number


def _write_float(form: struct.Struct, value: float | None) -> bytes:
    if value is None:
        return b"\xff" * form.size
    return form.pack(value)


def _read_date(days: int) -> Value:
    if days == _NULL_DATE:
        return None
    return dt.date.fromordinal(DAY_ZERO + days)


def _write_date(value: dt.date | None) -> bytes:
    days = _NULL_DATE if value is None else value.toordinal() - DAY_ZERO
    return struct.pack(">i", days)


def _read_boolean(data: bytes) -> Value:
    is_null, value = data
    if is_null > 1:
        raise ValueError(f"its null flag is {is_null}")
    # NULL by the flag before it, or by a value of FF, which is all that IBM's client in Java looks
    # at.
    if is_null or value == 0xFF:
        return None
    return value != 0


def _write_boolean(value: bool | None) -> bytes:
    if value is None:
        return b"\1\0"
    return bytes([0, value])


def _char_reader(texts: TextRules) -> Callable[[bytes], Value]:
    text = texts.reader
    # A text never begins with a zero byte: that is how NULL is written.
    if texts.trim:
        return lambda data: text(data.rstrip(b" ")) if data[0] else None
    return lambda data: text(data) if data[0] else None


def _write_char(texts: TextRules, size: int, value: str | None) -> bytes:
    data = b"\0" if value is None else value.encode(texts.codec)
    if len(data) > size:
        raise OverflowError(f"{len(data)} bytes do not fit into char({size})")
    return data.ljust(size, b" ")


def _read_varchar(text: Callable[[bytes], Value], data: bytes) -> Value:
    # The length has one byte or two, and only one of both widths can fit the number of bytes.
    size = len(data)
    if data[0] + 1 == size:
        content = data[1:]
    elif size > 1 and (data[0] << 8 | data[1]) + 2 == size:
        content = data[2:]
    else:
        raise ValueError(f"its length {data[:2].hex()} fits no {size} bytes")
    # A text of one zero byte alone cannot be told from NULL (gbase-cdc.md 5).
    if content == b"\0":
        return None
    return text(content)


def _write_varchar(texts: TextRules, wide: bool, value: str | None) -> bytes:
    content = b"\0" if value is None else value.encode(texts.codec)
    return len(content).to_bytes(2 if wide else 1, "big") + content


def _read_lvarchar(text: Callable[[bytes], Value], data: bytes) -> Value:
    if len(data) < 3 or (data[0] << 8 | data[1]) + 2 != len(data):
        raise ValueError(f"its length {data[:2].hex()} fits no {len(data)} bytes")
    is_null = data[2]
    if is_null > 1:
        raise ValueError(f"its null flag is {is_null}")
    if is_null:
        return None
    return text(data[3:])


def _write_lvarchar(texts: TextRules, value: str | None) -> bytes:
    content = b"" if value is None else value.encode(texts.codec)
    # The length counts the flag for NULL too (gbase-cdc.md 5).
    return (len(content) + 1).to_bytes(2, "big") + bytes([value is None]) + content
