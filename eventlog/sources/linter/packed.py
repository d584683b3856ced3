"""The record codec `packed-v1`: columns laid end to end behind a mask of NULLs. The project's own, not LINTER's.

LINTER's bytes are not documented; this is what is deduced from the nearest thing that is.
"""

from __future__ import annotations

import struct
from functools import cached_property
from typing import Any, Final

from eventlog.core.errors import DataError
from eventlog.core.model import Row
from eventlog.sources.linter.compiled import Decoder, compiled
from eventlog.sources.linter.fields import format_of, reader, said, written
from eventlog.sources.linter.layouts import Field, RecordLayout

_ORDERS: Final = {"little": "<", "big": ">"}


class PackedCodec:
    """Reads and writes the records of one table."""

    def __init__(self, layout: RecordLayout) -> None:
        self.layout = layout
        self._order = _ORDERS[layout.byte_order]
        self._mask_size = -(-len(layout.fields) // 8) if layout.null_mask else 0

    @cached_property
    def decode(self) -> Decoder:
        """Gives the values of a record, or a DataError that names what cannot be read; it is made when first needed."""
        return compiled(self.layout, self.carefully)

    def carefully(self, data: bytes) -> Row:
        """What `decode` gives, column by column."""
        try:
            found, end = self._unpacked(data)
        except struct.error:
            raise DataError(f"The record has {len(data)} byte(s), too few for its columns.") from None
        nulls = int.from_bytes(data[: self._mask_size], "little")
        row = {
            field.name: None if nulls >> place & 1 else self._value(field, found[place])
            for place, field in enumerate(self.layout.fields)
        }
        self._check_end(len(data), end)
        if nulls >> len(self.layout.fields):
            raise DataError(f"The mask of NULLs {data[: self._mask_size].hex()} has bits behind the last column.")
        return row

    def rest(self, data: bytes) -> bytes:
        """What follows the last column of a record."""
        _, end = self._unpacked(data)
        return data[end:]

    def encode(self, row: Row) -> bytes:
        """The record of values; a column that is missing is NULL."""
        fields = self.layout.fields
        nulls = sum(1 << place for place, field in enumerate(fields) if row.get(field.name) is None)
        mask = nulls.to_bytes(self._mask_size, "little") if self._mask_size else b""
        return mask + b"".join([self._written(field, row.get(field.name)) for field in fields])

    def _unpacked(self, data: bytes) -> tuple[list[Any], int]:
        """The columns as they lie there, and where the last one ends."""
        at = self._mask_size
        found: list[Any] = []
        for field in self.layout.fields:
            fixed = format_of(field)
            form = self._order + (fixed or "H")
            (value,) = struct.unpack_from(form, data, at)
            at += struct.calcsize(form)
            if fixed is None:
                start, at = at, at + value
                value = data[start:at]
            found.append(value)
        return found, at

    def _check_end(self, size: int, end: int) -> None:
        if end > size:
            raise DataError(f"The record ends after {size} byte(s), before its last column does.")
        if end < size and self.layout.strict:
            raise DataError(f"{size - end} byte(s) follow the last column.")

    def _value(self, field: Field, stored: Any) -> Any:
        """A column's value; DataError names it where it cannot be read."""
        read = reader(field, self.layout.byte_order)
        try:
            return stored if read is None else read(stored)
        except (ValueError, DataError) as error:
            raise DataError(f"Column {field.name}: {said(error, field)}.") from None

    def _written(self, field: Field, value: Any) -> bytes:
        try:
            return written(field, value, self._order, self.layout.byte_order)
        except (ValueError, TypeError, struct.error, DataError) as error:
            raise DataError(f"Column {field.name}: {said(error, field)}.") from None
