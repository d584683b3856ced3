"""Files of change rows: Parquet, whose columns are made a block at a time, CSV, and JSON, a line for each row.

In CSV, NULL has no quotes and what looks like it has, and binary data is Base64. In JSON, values are as messages have
them. In both the mask is text: hex, with its most significant byte first.

The description of a data file says how it is written; where it stands is a setting.
"""

from __future__ import annotations

import binascii
import datetime as dt
import gzip
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import msgspec

from eventlog.core.sql_types import Category, category, is_zoned
from eventlog.qlik.change_tables.dfm import Described, block_times
from eventlog.qlik.change_tables.rows import ChangeColumn, ChangeRow, RowBlock
from eventlog.qlik.masks import bits_of_bytes, bits_to_hex
from eventlog.qlik.messages.jsonvalues import plain, to_json
from eventlog.qlik.typemap import DECIMAL_DIGITS, qlik_type
from eventlog.sinks.change_files.settings import RowFiles

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE_ROWS: Final = 200
NUMBERS: Final = frozenset({Category.NUMBER, Category.INT})
_largest_single = 3.4028235677973366e38
"""Half a step above the largest number of single precision, which is what rounds to infinity."""


def file_bytes(columns: Sequence[ChangeColumn], cells: Sequence[Sequence[Any]], form: RowFiles) -> bytes:
    """A whole file of rows that are given column by column."""
    if form.format == "parquet":
        return parquet_bytes(columns, cells)
    if form.format == "json":
        written = json_lines(columns, cells)
    else:
        written = (csv_head(columns, form) if form.header else b"") + csv_lines(columns, cells, form)
    return gzip.compress(written, mtime=0) if form.gzip else written


def parquet_bytes(columns: Sequence[ChangeColumn], cells: Sequence[Sequence[Any]]) -> bytes:
    """A whole Parquet file of rows that are given column by column."""
    import pyarrow.parquet as pq

    into = io.BytesIO()
    pq.write_table(arrow_columns(columns, cells), into, **parquet_options(columns))
    return into.getvalue()


def parquet_options(columns: Sequence[ChangeColumn]) -> dict[str, Any]:
    """How Parquet is written: values that are all different need no dictionary, only time and space.

    Statistics let readers pass over what they do not seek: that is done by change_seq, by time and by key.
    """
    words = [column.name for column in columns if not column.name.endswith(("change_seq", "stream_position"))]
    sought = [column.name for column in columns if column.key or column.name.endswith(("change_seq", "timestamp"))]
    return {"compression": "snappy", "use_dictionary": words, "write_statistics": sought or False}


def arrow_columns(columns: Sequence[ChangeColumn], cells: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows that are given column by column, as Arrow has them; its errors tell of a value that its type cannot hold."""
    import pyarrow as pa

    schema = arrow_schema(columns)
    arrays = [
        _repeated(values, field)
        if _is_time(field) and _repeats(values)
        else pa.array(_checked(_texts(values, column), field.type), field.type)
        for column, values, field in zip(columns, cells, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def arrow_schema(columns: Sequence[ChangeColumn]) -> pa.Schema:
    """The columns as Arrow has them."""
    import pyarrow as pa

    return pa.schema([pa.field(column.name, _type_of(column)) for column in columns])


def _type_of(column: ChangeColumn) -> pa.DataType:
    """The time of a change is UTC, and said to be."""
    import pyarrow as pa

    kind = arrow_type(column.type)
    return pa.timestamp("us", tz="UTC") if column.header and pa.types.is_timestamp(kind) else kind


@lru_cache(maxsize=1024)
def arrow_type(sql_type: str) -> pa.DataType:
    """Arrow's type for a column; numbers without a known precision stay exact as text."""
    import pyarrow as pa

    kind = qlik_type(sql_type)
    word = kind.forms.parquet
    if word == "decimal":
        digits = kind.digits
        return pa.string() if digits is None or digits[0] > DECIMAL_DIGITS else pa.decimal128(*digits)
    if word == "timestamp":
        return pa.timestamp("us", tz="UTC" if is_zoned(sql_type) else None)
    kinds: dict[str, pa.DataType] = {
        "bool": pa.bool_(),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
    }
    return kinds[word]


def misfits(columns: Sequence[ChangeColumn], rows: Sequence[ChangeRow]) -> dict[int, str]:
    """The rows that hold a value which its column cannot, by their places, and why."""
    import pyarrow as pa

    found: dict[int, str] = {}
    for place, (column, field) in enumerate(zip(columns, arrow_schema(columns), strict=True)):
        cells = _texts([row[place] for row in rows], column)
        for number, cell in enumerate(cells):
            try:
                pa.scalar(*_checked([cell], field.type), type=field.type)
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                found.setdefault(number, f"column {field.name}: {' '.join(str(error).split())[:200]}")
    return found


def csv_head(columns: Sequence[ChangeColumn], form: RowFiles) -> bytes:
    """The line of names."""
    quoted = _Quoting(form).quoted
    return (form.delimiter.join([quoted(column.name) for column in columns]) + "\n").encode()


def csv_lines(columns: Sequence[ChangeColumn], cells: Sequence[Sequence[Any]], form: RowFiles) -> bytes:
    quoting = _Quoting(form)
    special = quoting.special
    writers = [quoting.mask if _is_mask(column) else quoting.cell for column in columns]
    written = [
        [cell if type(cell) is str and not special(cell) else write(cell) for cell in values]
        for values, write in zip(cells, writers, strict=True)
    ]
    lines = map(form.delimiter.join, zip(*written, strict=True))
    return "".join([f"{line}\n" for line in lines]).encode("utf-8", "surrogatepass")


def json_lines(columns: Sequence[ChangeColumn], cells: Sequence[Sequence[Any]]) -> bytes:
    """The rows as objects by the names of the columns, each in a line of its own."""
    names = [column.name for column in columns]
    written = [_json_cells(column, values) for column, values in zip(columns, cells, strict=True)]
    return b"".join([_json_line(dict(zip(names, row, strict=True))) for row in zip(*written, strict=True)])


def _json_cells(column: ChangeColumn, cells: Sequence[Any]) -> Sequence[Any]:
    kind = qlik_type(column.type)
    if _is_mask(column):
        return [_mask_text(cell) for cell in cells]
    if kind.name in ("REAL4", "REAL8"):
        return [_json_real(cell) for cell in cells]
    write = to_json(kind)
    return cells if write is None else [None if cell is None else write(cell) for cell in cells]


def _json_real(cell: Any) -> Any:
    """What is no number for JSON is text, in the words that Spark reads as numbers."""
    if cell is None or math.isfinite(cell):
        return cell
    return "NaN" if math.isnan(cell) else "Infinity" if cell > 0 else "-Infinity"


def _json_line(row: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(row) + b"\n"
    except UnicodeEncodeError:  # half of a character that is written as two
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def _texts(cells: Sequence[Any], column: ChangeColumn) -> Sequence[Any]:
    """The cells as Arrow takes them: times of day, and exact numbers that stay text there, are written out."""
    import pyarrow as pa

    kind = arrow_type(column.type)
    if category(column.type) is Category.TIME:
        return [cell.isoformat("microseconds") if type(cell) is dt.time else cell for cell in cells]
    if pa.types.is_string(kind) and category(column.type) in NUMBERS:
        return [plain(cell) if type(cell) in (Decimal, int) else cell for cell in cells]
    if pa.types.is_decimal(kind) and kind.scale == 0:
        return [Decimal(cell) if type(cell) is int else cell for cell in cells]
    return cells


def _checked(cells: Sequence[Any], kind: pa.DataType) -> Sequence[Any]:
    """The same; OverflowError where Arrow would make infinity of a number."""
    import pyarrow as pa

    if pa.types.is_float32(kind) and any(map(too_large, cells)):
        raise OverflowError(f"Value {next(filter(too_large, cells))} too large for a number of single precision")
    return cells


def too_large(cell: Any) -> bool:
    """Whether single precision has no room for the number."""
    return cell is not None and _largest_single <= abs(cell) < math.inf


def _is_time(field: pa.Field) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(field.type))


def _repeats(cells: Sequence[Any]) -> bool:
    """Whether the first values let one expect few different ones."""
    some = cells[:SAMPLE_ROWS]
    return 4 * len(set(some)) <= len(some)


def _repeated(cells: Sequence[Any], field: pa.Field) -> pa.Array:
    """The same as any array, but each value is looked at once: rows of a few transactions share a few times."""
    import pyarrow as pa

    places = {cell: place for place, cell in enumerate(dict.fromkeys(cells))}
    return pa.array(list(places), field.type).take(pa.array([places[cell] for cell in cells], pa.int32()))


def _is_mask(column: ChangeColumn) -> bool:
    return column.header and column.name.endswith("change_mask")


def _mask_text(cell: Any) -> Any:
    return bits_to_hex(bits_of_bytes(cell)) if isinstance(cell, bytes) else cell


class _Quoting:
    """How cells are written to CSV."""

    def __init__(self, form: RowFiles) -> None:
        self._null, self._quote = form.null_value, form.quote
        signs = "".join(map(re.escape, (form.delimiter, form.quote)))
        # The empty string has quotes, so that it never is NULL.
        self.special = re.compile(rf"[{signs}\r\n]|^{re.escape(form.null_value)}$|^$").search
        self._ways: dict[type, Callable[[Any], str]] = {
            type(None): lambda _: self._null,
            str: self.quoted,
            bool: lambda cell: "true" if cell else "false",
            bytes: lambda cell: self.quoted(binascii.b2a_base64(cell, newline=False).decode("ascii")),
            Decimal: lambda cell: self.quoted(format(cell, "f")),
            float: lambda cell: self.quoted(repr(cell)),
            dt.datetime: lambda cell: self.quoted(cell.isoformat(" ", "microseconds")),
            dt.date: lambda cell: self.quoted(cell.isoformat()),
            dt.time: lambda cell: self.quoted(cell.isoformat("microseconds")),
        }

    def cell(self, cell: Any) -> str:
        return self._ways.get(type(cell), lambda other: self.quoted(str(other)))(cell)

    def mask(self, cell: Any) -> str:
        return self.cell(_mask_text(cell))

    def quoted(self, text: str) -> str:
        quote = self._quote
        return quote + text.replace(quote, 2 * quote) + quote if self.special(text) else text


APART: Final = "_dfm"
"""Readers of whole folders pass over what begins so."""


def description_name(form: RowFiles, stem: str) -> PurePath:
    """Where the description stands, from the folder of the data file."""
    return PurePath(APART if form.descriptions == "apart" else "", f"{stem}.dfm")


def described_file(
    form: RowFiles, stem: str, location: str, block: RowBlock, *, started: dt.datetime, ended: dt.datetime
) -> Described:
    """A data file as its description has it: its name without what comes behind the last point of it."""
    whole = f"{stem}.{form.ending}"
    name, _, extension = whole.rpartition(".")
    first, last = block_times(block)
    return Described(
        name=name,
        extension=extension,
        location=location,
        table=block.table,
        target=block.target,
        columns=block.columns,
        records=len(block.positions),
        started=started,
        ended=ended,
        first=first,
        last=last,
        version=block.table.version,
        format=form.told_format,
        options=form.told_options,
        content="data" if block.load else "changes",
    )
