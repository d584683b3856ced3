"""Files of change rows: Parquet, whose columns are made a block at a time, and CSV.

In CSV, NULL is `\\N` without quotes, binary data is Base64, and the mask, which is text there, is in hex with its most
significant byte first.
"""

from __future__ import annotations

import binascii
import datetime as dt
import io
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from eventlog.core.sql_types import Category, category
from eventlog.qlik.change_tables.rows import ChangeColumn, ChangeRow, by_column
from eventlog.qlik.masks import bits_of_bytes, bits_to_hex
from eventlog.qlik.readings import is_float, is_zoned

if TYPE_CHECKING:
    import pyarrow as pa

RowForm = Literal["parquet", "csv"]
CSV_OPTIONS: Final = {
    "fieldDelimiter": ",",
    "recordDelimiter": "\n",
    "nullValue": "\\N",
    "quoteChar": '"',
    "escapeChar": '"',
}
DECIMAL_DIGITS: Final = 38
SAMPLE_ROWS: Final = 200
_arguments = re.compile(r"\((\d+)(?: *, *(-?\d+))?[^)]*\)").search
_special = re.compile(r'[,"\r\n]|^\\N$|^$').search


def file_bytes(columns: Sequence[ChangeColumn], rows: Sequence[ChangeRow], form: RowForm) -> bytes:
    """A whole file of the rows."""
    return csv_bytes(columns, rows) if form == "csv" else parquet_bytes(columns, by_column(rows, len(columns)))


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
        else pa.array(_texts(values, column), field.type)
        for column, values, field in zip(columns, cells, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def arrow_schema(columns: Sequence[ChangeColumn]) -> pa.Schema:
    """The columns as Arrow has them."""
    import pyarrow as pa

    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


@lru_cache(maxsize=1024)
def arrow_type(sql_type: str) -> pa.DataType:
    """Arrow's type for a column; numbers without a known precision stay exact as text."""
    import pyarrow as pa

    kind = category(sql_type)
    if kind is Category.INT or (kind is Category.NUMBER and not is_float(sql_type)):
        return _number_type(sql_type, kind)
    if kind is Category.TIMESTAMP:
        return pa.timestamp("us", tz="UTC" if is_zoned(sql_type) else None)
    return {
        Category.STRING: pa.string(),
        Category.OCTET: pa.binary(),
        Category.STATE: pa.bool_(),
        Category.NUMBER: pa.float64(),
        Category.DATE: pa.date32(),
        Category.TIME: pa.string(),  # Spark refuses a whole file for a column of Parquet's own type
    }[kind]


def misfits(columns: Sequence[ChangeColumn], rows: Sequence[ChangeRow]) -> dict[int, str]:
    """The rows that hold a value which its column cannot, by their places, and why."""
    import pyarrow as pa

    found: dict[int, str] = {}
    for place, (column, field) in enumerate(zip(columns, arrow_schema(columns), strict=True)):
        cells = _texts([row[place] for row in rows], column)
        for number, cell in enumerate(cells):
            try:
                pa.scalar(cell, type=field.type)
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                found.setdefault(number, f"column {field.name}: {' '.join(str(error).split())[:200]}")
    return found


def csv_bytes(columns: Sequence[ChangeColumn], rows: Sequence[ChangeRow]) -> bytes:
    """The rows as CSV with a line of names."""
    return csv_head(columns) + csv_lines(columns, rows)


def csv_head(columns: Sequence[ChangeColumn]) -> bytes:
    """The line of names."""
    return (",".join([_quoted(column.name) for column in columns]) + "\n").encode()


def csv_lines(columns: Sequence[ChangeColumn], rows: Sequence[ChangeRow]) -> bytes:
    """The rows as lines."""
    writers = [_mask_text if column.header and column.name.endswith("change_mask") else _csv_cell for column in columns]
    written = [
        [cell if type(cell) is str and not _special(cell) else write(cell) for cell in cells]
        for cells, write in zip(by_column(rows, len(columns)), writers, strict=True)
    ]
    return "".join([f"{line}\n" for line in map(",".join, zip(*written, strict=True))]).encode("utf-8", "surrogatepass")


def _number_type(sql_type: str, kind: Category) -> pa.DataType:
    import pyarrow as pa

    match = _arguments(sql_type)
    digits = int(match[1]) if match else None
    if kind is Category.INT:
        wide = digits is not None and digits > 18 and "int" not in sql_type.lower()
        unsigned = "unsigned" in sql_type.lower() and "bigint" in sql_type.lower()
        return pa.decimal128(min(digits or 20, DECIMAL_DIGITS), 0) if wide or unsigned else pa.int64()
    if match is None or match[2] is None or digits is None or digits > DECIMAL_DIGITS:
        return pa.string()
    return pa.decimal128(digits, int(match[2]))


def _texts(cells: Sequence[Any], column: ChangeColumn) -> Sequence[Any]:
    """The cells as Arrow takes them: times of day, and exact numbers that stay text there, are written out."""
    import pyarrow as pa

    kind = arrow_type(column.type)
    if category(column.type) is Category.TIME:
        return [cell.isoformat("microseconds") if type(cell) is dt.time else cell for cell in cells]
    if pa.types.is_string(kind) and category(column.type) is Category.NUMBER:
        return [format(cell, "f") if type(cell) is Decimal else cell for cell in cells]
    if pa.types.is_decimal(kind) and kind.scale == 0:
        return [Decimal(cell) if type(cell) is int else cell for cell in cells]
    return cells


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


def _csv_cell(cell: Any) -> str:
    write = _CSV.get(type(cell))
    return str(cell) if write is None else write(cell)


def _mask_text(cell: Any) -> str:
    return _csv_cell(bits_to_hex(bits_of_bytes(cell)) if isinstance(cell, bytes) else cell)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _special(text) else text


_CSV: Final[dict[type, Callable[[Any], str]]] = {
    type(None): lambda _: "\\N",
    str: _quoted,
    bool: lambda cell: "true" if cell else "false",
    bytes: lambda cell: _quoted(binascii.b2a_base64(cell, newline=False).decode("ascii")),
    Decimal: lambda cell: format(cell, "f"),
    float: repr,
    dt.datetime: lambda cell: cell.isoformat(" ", "microseconds"),
    dt.date: dt.date.isoformat,
    dt.time: lambda cell: cell.isoformat("microseconds"),
}
