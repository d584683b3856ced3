"""Files of change rows: Parquet, whose columns are made a block at a time, CSV, and JSON, a line
for each row.

In CSV, NULL has no quotes and what looks like it has, and binary data is Base64. In JSON, values
are as messages have them. In both the mask is text: hex, with its most significant byte first.
"""

from __future__ import annotations

import binascii
import datetime as dt
import gzip
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from eventlog.qlik.change_tables.rows import ChangeColumn
from eventlog.qlik.masks import bits_of_bytes, bits_to_hex
from eventlog.qlik.messages.jsonvalues import to_json
from eventlog.qlik.typemap import qlik_type
from eventlog.sinks.change_files.settings import RowFiles


def file_bytes(
    columns: Sequence[ChangeColumn],
    cells: Sequence[Sequence[Any]],
    form: RowFiles,
) -> bytes:
    """Return a whole file; `cells` are given column by column."""
    if form.format == "parquet":
        # With pyarrow, which others do without.
        from eventlog.sinks.change_files.arrow import parquet_bytes

        return parquet_bytes(columns, cells)
    if form.format == "json":
        written = json_lines(columns, cells)
    else:
        written = csv_lines(columns, cells, form)
        if form.header:
            written = csv_head(columns, form) + written
    if form.gzip:
        # Without the time, so that equal rows make equal files.
        return gzip.compress(written, mtime=0)
    return written


def csv_head(columns: Sequence[ChangeColumn], form: RowFiles) -> bytes:
    """Write the line of column names."""
    quoted = _Quoting(form).quote
    return (form.delimiter.join([quoted(column.name) for column in columns]) + "\n").encode()


def csv_lines(
    columns: Sequence[ChangeColumn],
    cells: Sequence[Sequence[Any]],
    form: RowFiles,
) -> bytes:
    quoting = _Quoting(form)
    written: list[Sequence[str]] = []
    for column, values in zip(columns, cells, strict=True):
        if column.is_called("change_mask"):
            # There are as many masks as ways in which rows change.
            texts = {mask: _mask_text(mask) for mask in set(values)}
            written.append(quoting.column([texts[mask] for mask in values]))
        else:
            written.append(quoting.column(values))
    lines = map(form.delimiter.join, zip(*written, strict=True))
    # Half a character, which UTF-8 has no bytes for, is written as Java does.
    return "".join([f"{line}\n" for line in lines]).encode("utf-8", "surrogatepass")


def json_lines(columns: Sequence[ChangeColumn], cells: Sequence[Sequence[Any]]) -> bytes:
    """Write each row as one JSON object a line, by column name."""
    names = [column.name for column in columns]
    written = [_json_cells(column, values) for column, values in zip(columns, cells, strict=True)]
    rows = zip(*written, strict=True)
    return b"".join([_json_line(dict(zip(names, row, strict=True))) for row in rows])


def _json_cells(column: ChangeColumn, cells: Sequence[Any]) -> Sequence[Any]:
    kind = qlik_type(column.type)
    if column.is_called("change_mask"):
        # A mask is bytes where rows come from a log, and text already where they come from Parquet.
        return [_mask_text(cell) for cell in cells]
    # JSON has no word for infinity and what is no number; REAL can hold both.
    if kind.name in ("REAL4", "REAL8"):
        return [_json_real(cell) for cell in cells]
    write = to_json(kind)
    if write is None:
        return cells
    return [None if cell is None else write(cell) for cell in cells]


def _json_real(cell: Any) -> Any:
    if cell is None or math.isfinite(cell):
        return cell
    # What is no number for JSON is text, in the words that Spark reads as numbers.
    if math.isnan(cell):
        return "NaN"
    return "Infinity" if cell > 0 else "-Infinity"


def _json_line(row: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(row) + b"\n"
    # Half of a character that is written as two, which only Python's own encoder takes.
    except UnicodeEncodeError:
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def _mask_text(cell: Any) -> Any:
    if isinstance(cell, bytes):
        return bits_to_hex(bits_of_bytes(cell))
    return cell


class _Quoting:
    """How cells are written to CSV."""

    def __init__(self, form: RowFiles) -> None:
        self._null, self._quote = form.null_value, form.quote
        signs = "".join(map(re.escape, (form.delimiter, form.quote)))
        # The empty string has quotes, so that it never is NULL.
        self.special = re.compile(rf"[{signs}\r\n]|^{re.escape(form.null_value)}$|^$").search
        self._signs = {*form.delimiter, *form.quote, "\r", "\n"}

    def column(self, cells: Sequence[Any]) -> Sequence[str]:
        """Write the cells of a column as text.

        Few columns need quotes, so all cells are searched as one text first.
        """
        kinds = set(map(type, cells))
        has_null = type(None) in kinds
        kinds.discard(type(None))
        if len(kinds) == 1:
            [kind] = kinds
            texts = [cell for cell in cells if cell is not None] if has_null else cells
            if kind is not str:
                texts = _texts(kind, texts)
            if not self._any_special(texts):
                if not has_null:
                    return texts
                following = iter(texts)
                return [self._null if cell is None else next(following) for cell in cells]
        return [self.cell(cell) for cell in cells]

    def cell(self, cell: Any) -> str:
        if cell is None:
            return self._null
        return self.quote(_TEXTS.get(type(cell), str)(cell))

    def quote(self, text: str) -> str:
        if not self.special(text):
            return text
        quote = self._quote
        return quote + text.replace(quote, 2 * quote) + quote  # a quote in quotes is written twice

    def _any_special(self, texts: Sequence[str]) -> bool:
        if "" in texts or self._null in texts:
            return True
        together = "".join(texts)
        return any(sign in together for sign in self._signs)


def _texts(kind: type, cells: Sequence[Any]) -> list[str]:
    """Write cells of one type as text, without quotes."""
    write = _TEXTS.get(kind, str)
    if kind is not dt.datetime:
        return list(map(write, cells))
    # All rows of a transaction have one time, and stand together.
    texts: list[str] = []
    last, text = None, ""
    for cell in cells:
        if cell is not last:
            last, text = cell, write(cell)
        texts.append(text)
    return texts


_TEXTS: Final[Mapping[type, Callable[[Any], str]]] = {
    # By their exact types: a bool is an int, and a datetime a date.
    bool: lambda cell: "true" if cell else "false",
    bytes: lambda cell: binascii.b2a_base64(cell, newline=False).decode("ascii"),
    Decimal: lambda cell: format(cell, "f"),
    float: repr,
    dt.datetime: lambda cell: cell.isoformat(" ", "microseconds"),
    dt.date: dt.date.isoformat,
    dt.time: lambda cell: cell.isoformat("microseconds"),
}
