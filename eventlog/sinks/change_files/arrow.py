"""Rows of change tables as Arrow has them: columns of a block at a time, Parquet files, and which
rows do not fit.

Whether the cells of a row fit is asked of Arrow, but only where it could say no.
"""

from __future__ import annotations

import datetime as dt
import io
import math
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from eventlog.core.sql_types import Category, category, is_zoned
from eventlog.qlik.change_tables.rows import ChangeColumn, ChangeRow
from eventlog.qlik.messages.jsonvalues import plain
from eventlog.qlik.typemap import DECIMAL_DIGITS, qlik_type

SAMPLE_ROWS: Final = 200
NUMBERS: Final = frozenset({Category.NUMBER, Category.INT})
_largest_single = 3.4028235677973366e38
"""Half a step above the largest number of single precision, which is what rounds to infinity."""


def parquet_bytes(columns: Sequence[ChangeColumn], cells: Sequence[Sequence[Any]]) -> bytes:
    """Return a whole Parquet file; `cells` are given column by column."""
    into = io.BytesIO()
    pq.write_table(arrow_columns(columns, cells), into, **parquet_options(columns))
    return into.getvalue()


def parquet_options(columns: Sequence[ChangeColumn]) -> dict[str, Any]:
    """Choose options of Parquet: dictionaries only for columns with repeated values, statistics for
    columns readers search by (change_seq, time, key).
    """
    # A name that ends in these is a header's, or a column of the source that is called alike.
    words, sought = [], []
    for column in columns:
        if not column.name.endswith(("change_seq", "stream_position")):
            words.append(column.name)
        if column.key or column.name.endswith(("change_seq", "timestamp")):
            sought.append(column.name)
    return {"compression": "snappy", "use_dictionary": words, "write_statistics": sought or False}


def arrow_columns(columns: Sequence[ChangeColumn], cells: Sequence[Sequence[Any]]) -> pa.Table:
    """Make an Arrow table; `cells` are given column by column.

    An Arrow error names a value its type cannot hold.
    """
    schema = arrow_schema(columns)
    arrays = []
    for column, values, field in zip(columns, cells, schema, strict=True):
        some = values[:SAMPLE_ROWS]
        # Rows of a few transactions share a few times, if the first ones do.
        if pa.types.is_timestamp(field.type) and 4 * len(set(some)) <= len(some):
            arrays.append(_make_repeated(values, field))
        else:
            arrays.append(pa.array(_check_cells(_texts(values, column), field.type), field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def arrow_schema(columns: Sequence[ChangeColumn]) -> pa.Schema:
    """Return the columns as an Arrow schema."""
    fields = []
    for column in columns:
        kind = arrow_type(column.type)
        if column.header and pa.types.is_timestamp(kind):
            kind = pa.timestamp("us", tz="UTC")  # the time of a change is UTC, and its type shows it
        fields.append(pa.field(column.name, kind))
    return pa.schema(fields)


@lru_cache(maxsize=1024)
def arrow_type(sql_type: str) -> pa.DataType:
    """Choose Arrow's type for a column; numbers of unknown precision stay exact as text."""
    kind = qlik_type(sql_type)
    word = kind.forms.parquet
    if word == "decimal":
        digits = kind.digits
        if digits is None or digits[0] > DECIMAL_DIGITS:
            return pa.string()
        return pa.decimal128(*digits)
    if word == "timestamp":
        zone = "UTC" if is_zoned(sql_type) else None
        return pa.timestamp("us", tz=zone)
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
    """Find rows with a value outside its column's type; the reason by index of the row."""
    problems: dict[int, str] = {}
    for index, (column, field) in enumerate(zip(columns, arrow_schema(columns), strict=True)):
        cells = _texts([row[index] for row in rows], column)
        for number, cell in enumerate(cells):
            try:
                pa.scalar(*_check_cells([cell], field.type), type=field.type)
            except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
                # Some of Arrow's errors have the whole value in them.
                why = " ".join(str(error).split())[:200]
                problems.setdefault(number, f"column {field.name}: {why}")
    return problems


def _texts(cells: Sequence[Any], column: ChangeColumn) -> Sequence[Any]:
    """Turn into text the cells Arrow keeps as text: times of day and exact numbers."""
    kind = arrow_type(column.type)
    if category(column.type) is Category.TIME:
        return [cell.isoformat("microseconds") if type(cell) is dt.time else cell for cell in cells]
    if pa.types.is_string(kind) and category(column.type) in NUMBERS:
        return [plain(cell) if type(cell) in (Decimal, int) else cell for cell in cells]
    if pa.types.is_decimal(kind) and kind.scale == 0:
        # Arrow takes whole numbers only up to what 64 bits hold.
        return [Decimal(cell) if type(cell) is int else cell for cell in cells]
    return cells


def _check_cells(cells: Sequence[Any], kind: pa.DataType) -> Sequence[Any]:
    """Return the cells; raise OverflowError for a number Arrow would turn into infinity."""
    if pa.types.is_float32(kind) and any(map(too_large, cells)):
        value = next(filter(too_large, cells))
        raise OverflowError(f"Value {value} too large for a number of single precision")
    return cells


def too_large(cell: Any) -> bool:
    """Return True if the number overflows single precision."""
    return cell is not None and _largest_single <= abs(cell) < math.inf


def _make_repeated(cells: Sequence[Any], field: pa.Field) -> pa.Array:
    """Make an array with each distinct value converted once."""
    index_of = {cell: index for index, cell in enumerate(dict.fromkeys(cells))}
    indices = pa.array([index_of[cell] for cell in cells], pa.int32())
    return pa.array(list(index_of), field.type).take(indices)
