"""A whole row: its bytes become values by name, each column with its codec."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Binary
from typing import Any, Final, Literal

from eventlog.core.errors import DataError
from eventlog.core.model import Value
from eventlog.core.plural import count_words
from eventlog.sources.gbase.layout import CapturedLayout
from eventlog.sources.gbase.values import TextRules, codec

Order = Literal["auto", "big", "little"]
"""In which byte order the sizes of the varying columns are written; each row shows it."""
Values = dict[str, Value]
ReadRow = Callable[[bytes, int], Values]
"""Takes a record and the size of its header; DataError names the column that is damaged."""
FIXED_HEADER_BYTES: Final = 36
"""Where the sizes begin in the header of a row."""
MOST_ROW_BYTES: Final = 65_536
"""No row is as long, so sizes that are not below it were read in the wrong order."""
_SIGNS: Final = {"auto": "<>", "big": ">", "little": "<"}


class GBaseRowReader:
    """Reads the rows of a layout, and says what is wrong with them."""

    def __init__(self, layout: CapturedLayout, texts: TextRules, order: Order = "auto") -> None:
        self.layout = layout
        codecs = [codec(column.type, texts) for column in layout.fixed]
        varying = [codec(column.type, texts) for column in layout.varying]
        columns = zip((*layout.fixed, *layout.varying), (*codecs, *varying), strict=True)
        self._columns = [(column.name, own.read) for column, own in columns]
        # Columns of fixed length come first and big-endian, then those of varying length.
        self._fixed = Binary(">" + "".join(own.form for own in codecs)).unpack_from
        self._fixed_bytes = layout.fixed_bytes
        self._sizes_bytes = 4 * len(layout.varying)
        self._orders = [Binary(f"{sign}{len(layout.varying)}I").unpack_from for sign in _SIGNS[order]]

    def __call__(self, data: bytes, header_size: int) -> Values:
        sizes = self.sizes(data, header_size)
        pieces = [*self._fixed(data, header_size)]
        at = header_size + self._fixed_bytes
        for size in sizes:
            pieces.append(data[at : at + size])
            at += size
        try:
            pairs = zip(self._columns, pieces)  # noqa: B905  # both are as long as the layout is
            return {name: read(piece) for (name, read), piece in pairs}
        # Which column it was is looked for only then: asking for each value would take its time.
        except (ValueError, OverflowError, IndexError):
            raise self._find_damage(data, header_size, sizes, pieces) from None

    def sizes(self, data: bytes, header_size: int) -> Sequence[int]:
        """Read the sizes of varying columns, in the byte order in which they fit.

        DataError if neither fits.
        """
        if header_size - FIXED_HEADER_BYTES != self._sizes_bytes:
            # A header of another size is of another table, or of a former shape of this one.
            varying = f"{count_words(len(self.layout.varying), 'column')} of varying length"
            raise DataError(
                f"the header has {header_size - FIXED_HEADER_BYTES} bytes of sizes; for"
                f" {varying} it must have {self._sizes_bytes}."
            )
        rest = len(data) - header_size - self._fixed_bytes
        for unpack in self._orders:
            sizes = unpack(data, FIXED_HEADER_BYTES)
            if sum(sizes) == rest and (rest < MOST_ROW_BYTES or max(sizes, default=0) < MOST_ROW_BYTES):
                return sizes
        varying = f"{count_words(len(self.layout.varying), 'column')} of varying length"
        raise DataError(
            f"the row has {len(data) - header_size} bytes, and neither byte order of its sizes"
            f" fits {self._fixed_bytes} bytes of fixed length and {varying}."
        )

    def _find_damage(
        self,
        data: bytes,
        header_size: int,
        sizes: Sequence[int],
        pieces: Sequence[Any],
    ) -> DataError:
        """Find the first unreadable column and the reason."""
        widths = [*[column.type.size or 0 for column in self.layout.fixed], *sizes]
        read_pieces = zip(self._columns, pieces, strict=True)
        problems = [_problem(read, piece) for (_, read), piece in read_pieces]
        first = next(number for number, problem in enumerate(problems) if problem is not None)
        at, width = header_size + sum(widths[:first]), widths[first]
        column = (*self.layout.fixed, *self.layout.varying)[first]
        shown = data[at : at + min(width, 40)].hex()
        if width > 40:
            shown += "…"
        problem = f"the column {column.name} holds no {column.written} ({shown})"
        return DataError(f"{problem}: {problems[first]}.")


def _problem(read: Callable[[Any], Value], piece: Any) -> Exception | None:
    try:
        read(piece)
    except (ValueError, OverflowError, IndexError) as error:
        return error
    return None
