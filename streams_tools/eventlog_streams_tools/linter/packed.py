"""The record codec `packed-v1`: columns laid end to end behind a mask of NULLs.

The project's own, not LINTER's.

LINTER's bytes are not documented; this is what is deduced from the nearest thing that is. Decimals
and dates have sixteen bytes: a status, then thirty digits. Does no I/O.
"""

from __future__ import annotations

import datetime as dt
import struct
from codecs import charmap_decode
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from importlib import import_module
from operator import methodcaller
from typing import Any, Final

from eventlog.core.errors import DataError
from eventlog.core.model import Row, Value
from eventlog.core.plural import count_words
from eventlog.sources.linter.layouts import ByteOrder, RecordField, RecordLayout, Type
from eventlog.sources.linter.rows import Remembered

_ORDERS: Final = {"little": "<", "big": ">"}
NUMBER_BYTES: Final = 16
WHOLE_DIGITS: Final = 20
FRACTION_DIGITS: Final = 10
_ZERO, _NEGATIVE, _POSITIVE = 0, 1, 2
SPECIAL: Final = {3: Decimal("-Infinity"), 4: Decimal("Infinity"), 5: Decimal("NaN")}
"""What overflows and errors are read as: values that no number equals."""

_first = dt.datetime(1, 1, 1)
_tick = dt.timedelta(milliseconds=10)
_NO_FRACTION = bytes(FRACTION_DIGITS // 2)
_limit = 10 ** (WHOLE_DIGITS + FRACTION_DIGITS)


def decimal(raw: bytes) -> Decimal:
    """Decode a number, without trailing zeros."""
    status = raw[0]
    if status in SPECIAL:
        return SPECIAL[status]
    digits = _digits(raw)  # looked at for a zero too: a wrong digit is damage
    if status == _ZERO:
        return Decimal(0)
    if status not in (_NEGATIVE, _POSITIVE):
        raise DataError(f"the status {status} of a number is not known")
    number = digits[:WHOLE_DIGITS].lstrip("0") or "0"
    fraction = digits[WHOLE_DIGITS:].rstrip("0")
    if fraction:
        number = f"{number}.{fraction}"
    if status == _NEGATIVE:
        number = f"-{number}"
    return Decimal(number)


def decimal_bytes(value: Decimal) -> bytes:
    """Encode a number; raise DataError beyond twenty digits and ten decimals."""
    if not value.is_finite():
        if value.is_nan():
            status = 5
        else:
            status = 3 if value.is_signed() else 4
        return bytes((status,)) + bytes(NUMBER_BYTES - 1)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    shift = exponent + FRACTION_DIGITS
    magnitude = int("".join(map(str, digits)))
    if shift < 0:
        magnitude, rest = divmod(magnitude, 10**-shift)
        if rest:
            raise DataError(f"{value} has more than {FRACTION_DIGITS} digits behind the point")
    else:
        # More digits would be too many in any case, and an exponent may ask for millions of them.
        magnitude *= 10 ** min(shift, WHOLE_DIGITS + FRACTION_DIGITS)
    if magnitude >= _limit:
        raise DataError(f"{value} has more than {WHOLE_DIGITS} digits before the point")
    if not magnitude:
        status = _ZERO
    else:
        status = _NEGATIVE if value < 0 else _POSITIVE
    return bytes((status,)) + bytes.fromhex(f"{magnitude:030d}")


def date(raw: bytes) -> dt.datetime:
    """Decode a time, to hundredths of a second."""
    digits = _digits(raw)
    if raw[0] not in (_ZERO, _POSITIVE) or raw[1 + WHOLE_DIGITS // 2 :] != _NO_FRACTION:
        # Ticks are whole, so the ten digits behind the point must be zero; a date has no sign.
        raise DataError(f"{raw.hex()} is no date")
    seconds, ticks = divmod(int(digits[:WHOLE_DIGITS]), 100)
    try:
        return _first + dt.timedelta(0, seconds, ticks * 10_000)
    except OverflowError:
        raise DataError(f"{raw.hex()} is after the year 9999") from None


def date_bytes(value: dt.datetime) -> bytes:
    """Encode a time, truncated to hundredths of a second."""
    ticks = (value - _first) // _tick
    return decimal_bytes(Decimal(ticks))


def _digits(raw: bytes) -> str:
    digits = raw[1:].hex()
    if not digits.isdecimal():
        raise DataError(f"{raw.hex()} holds a digit above 9")
    return digits


BLOB_BYTES: Final = 24
_FIXED: Final = {
    Type.SMALLINT: "h",
    Type.INTEGER: "i",
    Type.BIGINT: "q",
    Type.REAL: "f",
    Type.DOUBLE: "d",
    Type.DECIMAL: f"{NUMBER_BYTES}s",
    Type.DATE: f"{NUMBER_BYTES}s",
    Type.BOOLEAN: "B",
    Type.BLOB: f"{BLOB_BYTES}s",
    Type.CHAR: "{length}s",
    Type.BYTE: "{length}s",
    Type.NCHAR: "{double}s",
}
WIDE: Final = frozenset({Type.NCHAR, Type.NVARCHAR})
_PADDING: Final = b" \0"  # CHAR is padded with either (linter-dispatch-queue.md 8)


def reader(field: RecordField, byte_order: str) -> Callable[[Any], Value] | None:
    """Return a decoder of a stored column; None if it is stored as its value."""
    page = field.code_page
    match field.type:
        case Type.CHAR:
            return lambda raw: raw.rstrip(_PADDING).decode(page)
        case Type.VARCHAR | Type.EXTFILE:
            return _by_table(page) or methodcaller("decode", page)
        case Type.NCHAR:
            # Padding is taken off the text, for a byte of it may be a half of another character.
            return lambda raw: raw.decode(f"utf-16-{byte_order[0]}e").rstrip(" \0")
        case Type.NVARCHAR:
            return methodcaller("decode", f"utf-16-{byte_order[0]}e")
        case Type.DECIMAL:
            return decimal
        case Type.DATE:
            return date
        case Type.BOOLEAN:
            return _truth
    return None


def write_field(field: RecordField, value: Any, order: str, byte_order: str) -> bytes:
    """Encode a column; NULL is zeros in a fixed column, empty in a varying one."""
    fixed = format_of(field)
    if fixed is not None and value is None:
        return bytes(struct.calcsize(order + fixed))
    content = b"" if value is None else _content(field, value, byte_order)
    if fixed is None:
        most = field.length
        if field.type is Type.NVARCHAR:
            most *= 2
        if len(content) > most and field.type is not Type.EXTFILE:
            raise DataError(f"{len(content)} bytes do not fit into {most}")
        return struct.pack(f"{order}H", len(content)) + content
    if isinstance(content, bytes):
        # Only numbers are left: the bytes of text, dates and decimals have a size of their own.
        return _pad(field, content, struct.calcsize(order + fixed), byte_order)
    return struct.pack(order + fixed, content)


def _content(field: RecordField, value: Any, byte_order: str) -> Any:
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


def _pad(field: RecordField, content: bytes, size: int, byte_order: str) -> bytes:
    if len(content) > size:
        # The blank of NCHAR has two bytes.
        raise DataError(f"{len(content)} bytes do not fit into {size}")
    if field.type is Type.NCHAR:
        return content + " ".encode(f"utf-16-{byte_order[0]}e") * ((size - len(content)) // 2)
    return content.ljust(size, b" " if field.type is Type.CHAR else b"\0")


def format_of(field: RecordField) -> str | None:
    """Return the column's format for `struct`; None for varying length."""
    fixed = _FIXED.get(field.type)
    if fixed is None:
        return None
    return fixed.format(length=field.length, double=2 * field.length)


def _by_table(page: str) -> Callable[[Any], str] | None:
    """Reads text of a code page that has a table: a third of what its codec costs."""
    # Code pages of one byte have such a table; others, such as UTF-8, have none.
    module = import_module(f"encodings.{page.replace('-', '_')}")
    table = getattr(module, "decoding_table", None)
    if table is None:
        return None
    return lambda raw: charmap_decode(raw, "strict", table)[0]


def _truth(stored: int) -> bool:
    if stored > 1:
        raise DataError(f"{stored} is neither 0 nor 1")
    return stored == 1


def reason_of(error: Exception, field: RecordField) -> str:
    if isinstance(error, UnicodeDecodeError):
        page = error.encoding if field.type in WIDE else field.code_page
        return f"{error.object.hex()} is no text in {page}; set the code page"
    return str(error).rstrip(".")


class PackedCodec:
    """Reads and writes the records of one table."""

    def __init__(self, layout: RecordLayout) -> None:
        self.layout = layout
        self._order = _ORDERS[layout.byte_order]
        # Rounded up to whole bytes.
        self._mask_size = -(-len(layout.fields) // 8) if layout.null_mask else 0
        self._runs = [*_runs(layout.fields, self._order)]
        self._readers = [(field.name, remembering(field, layout.byte_order)) for field in layout.fields]

    def decode(self, data: bytes) -> Row:
        """Decode a record; raise DataError with the unreadable column."""
        try:
            stored, end = self._unpack(data)
        except struct.error:
            too_few = count_words(len(data), "byte")
            raise DataError(f"The record has {too_few}, too few for its columns.") from None
        # Column i is bit i % 8 of byte i // 8, so the mask is one little-endian number whatever the
        # byte order of the record.
        nulls = int.from_bytes(data[: self._mask_size], "little")
        try:
            if nulls:
                stored = [None if nulls >> number & 1 else value for number, value in enumerate(stored)]
            row = {
                name: value if value is None or read is None else read(value)
                for (name, read), value in zip(self._readers, stored, strict=True)
            }
        except (ValueError, DataError):
            raise self._unreadable(stored) from None
        # Only now, for what the columns say tells more than that the record is cut.
        if end > len(data):
            raise DataError(f"The record ends after {count_words(len(data), 'byte')}, before its last column does.")
        if end < len(data) and self.layout.strict:
            raise DataError(f"Behind the last column there is more: {count_words(len(data) - end, 'byte')}.")
        if nulls >> len(stored):
            mask = data[: self._mask_size].hex()
            raise DataError(f"The mask of NULLs {mask} has bits behind the last column.")
        return row

    def encode(self, row: Row) -> bytes:
        """Encode a record; a missing column is NULL."""
        fields = self.layout.fields
        nulls = sum(1 << number for number, field in enumerate(fields) if row.get(field.name) is None)
        mask = b""
        if self._mask_size:
            mask = nulls.to_bytes(self._mask_size, "little")
        return mask + b"".join([self._write_field(field, row.get(field.name)) for field in fields])

    def _unpack(self, data: bytes) -> tuple[list[Any], int]:
        """Split a record into stored columns; return them and the offset of the end."""
        at = self._mask_size
        stored: list[Any] = []
        for unpack, size, varying in self._runs:
            stored += unpack(data, at)
            at += size
            if varying:  # what was unpacked last is the length of what follows
                start, at = at, at + stored[-1]
                stored[-1] = data[start:at]
        return stored, at

    def _unreadable(self, stored: Sequence[Any]) -> DataError:
        """Find the first unreadable column and the reason."""
        # Looked for only now: a `try` for each value would be paid for by all records that can be
        # read.
        columns = zip(self.layout.fields, self._readers, stored, strict=True)
        problems = [_problem(field, read, value) for field, (_, read), value in columns]
        return DataError(next(problem for problem in problems if problem is not None))

    def _write_field(self, field: RecordField, value: Any) -> bytes:
        try:
            return write_field(field, value, self._order, self.layout.byte_order)
        except (ValueError, TypeError, struct.error, DataError) as error:
            raise DataError(f"Column {field.name}: {reason_of(error, field)}.") from None


def _runs(
    fields: Sequence[RecordField],
    order: str,
) -> Iterator[tuple[Callable[..., tuple[Any, ...]], int, bool]]:
    """Yield runs of columns unpacked by one call: the call, its bytes, and if a varying column
    follows.
    """
    run = ""
    for at, field in enumerate(fields):
        fixed = format_of(field)
        run += fixed or "H"
        # The length of a varying column says where the next one begins, so it ends what can be
        # unpacked with one call.
        if fixed is None or at == len(fields) - 1:
            form = struct.Struct(order + run)
            yield form.unpack_from, form.size, fixed is None
            run = ""


def _problem(field: RecordField, read: Callable[[Any], Value] | None, value: Any) -> str | None:
    try:
        if value is not None and read is not None:
            read(value)
    except (ValueError, DataError) as error:
        return f"Column {field.name}: {reason_of(error, field)}."
    return None


def remembering(field: RecordField, byte_order: ByteOrder) -> Callable[[Any], Value] | None:
    """Reads a column's values and remembers them.

    None where what lies in the record is the value.
    """
    # Without its name, so that columns that are read alike, of whatever tables, remember their
    # values together.
    return _remembering(RecordField(name="", type=field.type, code_page=field.code_page), byte_order)


@lru_cache(256)
def _remembering(field: RecordField, byte_order: ByteOrder) -> Callable[[Any], Value] | None:
    read = reader(field, byte_order)
    # A truth value is read as quickly as it is looked up.
    if read is None or field.type is Type.BOOLEAN:
        return read
    return Remembered(read).__getitem__
