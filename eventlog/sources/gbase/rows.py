"""A whole row: its bytes become values by name, column by column and exactly, or by code that `compiled` makes.

The code does at once what the codecs do one by one, for rows in which nothing is odd; any other row is read slowly.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, Literal

from eventlog.core.errors import DataError
from eventlog.core.model import Value
from eventlog.sources.gbase.layout import CapturedColumn, Layout
from eventlog.sources.gbase.values import Codec, TextRules, codec

Order = Literal["auto", "big", "little"]
"""In which byte order the sizes of the varying columns are written; each row shows it."""
Values = dict[str, Value]
Reader = Callable[[bytes, int], Values]
"""Takes a record and the size of its header; DataError names the column that is damaged."""
FIXED_HEADER: Final = 36
"""Where the sizes begin in the header of a row."""
MOST_SIZE: Final = 65_536
"""No row is as long, so sizes that are not below it were read in the wrong order."""


class SlowReader:
    """Reads rows of a layout one column at a time, and says what is wrong with them."""

    def __init__(self, layout: Layout, texts: TextRules, order: Order) -> None:
        self._layout = layout
        self._order = order
        self._fixed = [(column, codec(column.type, texts)) for column in layout.fixed]
        self._varying = [(column, codec(column.type, texts)) for column in layout.varying]

    def __call__(self, data: bytes, header_size: int) -> Values:
        sizes = sizes_of(self._layout, data, header_size, self._order)
        values: Values = {}
        at = header_size
        for column, own in self._fixed:
            at = self._read(values, column, own, data, (at, column.type.size or 0))
        for (column, own), size in zip(self._varying, sizes, strict=True):
            at = self._read(values, column, own, data, (at, size))
        return values

    def _read(self, values: Values, column: CapturedColumn, own: Codec, data: bytes, place: tuple[int, int]) -> int:
        start, size = place
        found = data[start : start + size]
        try:
            values[column.name] = own.decode(found)
        except (ValueError, OverflowError, IndexError) as error:
            shown = found[:40].hex() + ("…" if size > 40 else "")
            raise DataError(f"the column {column.name} holds no {column.written} ({shown}): {error}.") from None
        return start + size


def sizes_of(layout: Layout, data: bytes, header_size: int, order: Order) -> Sequence[int]:
    """The sizes of the varying columns, in the order of bytes in which they fit; DataError when neither does."""
    surplus = header_size - FIXED_HEADER
    if surplus != 4 * len(layout.varying):
        raise DataError(
            f"the header has {surplus} bytes of sizes, and {len(layout.varying)} column(s) of varying length need"
            f" {4 * len(layout.varying)}."
        )
    rest = len(data) - header_size - layout.fixed_bytes
    for sign in {"auto": "<>", "big": ">", "little": "<"}[order]:
        sizes = struct.unpack_from(f"{sign}{len(layout.varying)}I", data, FIXED_HEADER)
        if sum(sizes) == rest and max(sizes, default=0) < MOST_SIZE:
            return sizes
    raise DataError(
        f"the row has {len(data) - header_size} bytes, and neither byte order of its sizes fits"
        f" {layout.fixed_bytes} bytes of fixed length and {len(layout.varying)} column(s) of varying length."
    )
