"""Rows of change tables as a table of a lake takes them: in the types that it has, and which rows
do not fit.

Law: a value that a column cannot hold as it is never gets there as another one; its row is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from eventlog.core.errors import ExpressionError
from eventlog.core.model import Position
from eventlog.qlik.change_tables.rows import ChangeColumn, RowBlock
from eventlog.sinks.change_files.arrow import arrow_columns, misfits

Bad = dict[tuple[Position, ...], str]
"""Changes that do not fit, by their events, and why."""

UNFIT: Final = (pa.ArrowException, ValueError, TypeError, OverflowError)


class Fitted(Struct, frozen=True, kw_only=True):
    """A block without the rows that do not fit, and those rows as the table has them."""

    block: RowBlock
    rows: pa.Table
    bad: Bad


Widens = Callable[[pa.DataType, pa.DataType], bool]
"""Whether a table's column can get another type without a loss."""


def fit_rows(block: RowBlock, there: pa.Schema | None, widens: Widens) -> Fitted:
    """Fit rows to the table's names and types; without a table keep their own."""
    refuse_doubled(block.columns)
    bad: Bad = {}
    try:
        rows = arrow_columns(block.columns, block.cells)
    except UNFIT:
        # Which rows, and why, is looked for only where the block as a whole does not fit.
        bad = _by_change(block, misfits(block.columns, block.rows))
        if not bad:
            raise
        block = block.without(bad)
        rows = arrow_columns(block.columns, block.cells)
    fields = list(agree_schema(rows.schema, there, widens))
    wrong: dict[int, str] = {}
    columns = [_cast(column, field, wrong) for column, field in zip(rows.columns, fields, strict=True)]
    if wrong:
        more = _by_change(block, wrong)
        # Once more, with what is left: a row may be wrong in several columns.
        rest = fit_rows(block.without(more), there, widens)
        return Fitted(block=rest.block, rows=rest.rows, bad=bad | more | rest.bad)
    return Fitted(block=block, rows=pa.table(columns, schema=pa.schema(fields)), bad=bad)


def agree_schema(schema: pa.Schema, there: pa.Schema | None, widens: Widens) -> pa.Schema:
    """Rename columns to the table's names, and cast to its types unless it can be widened."""
    known = {}
    if there is not None:
        known = {field.name.casefold(): field for field in there}
    return pa.schema([_agree_field(field, known.get(field.name.casefold()), widens) for field in schema])


def _agree_field(field: pa.Field, there: pa.Field | None, widens: Widens) -> pa.Field:
    if there is None:
        return field
    kind = field.type if widens(there.type, field.type) else there.type
    return pa.field(there.name, kind)


def is_wider(former: pa.DataType, kind: pa.DataType) -> bool:
    """Return True if Iceberg allows widening `former` to `kind`."""
    if pa.types.is_decimal(former) and pa.types.is_decimal(kind):
        return bool(former.scale == kind.scale and former.precision < kind.precision)
    return (former, kind) in ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Reduce Arrow's several text and binary types to those our rows use."""
    return pa.schema([pa.field(field.name, _plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    if kind in (pa.large_string(), pa.string_view()):
        return pa.string()
    if kind in (pa.large_binary(), pa.binary_view()):
        return pa.binary()
    return kind


def refuse_doubled(columns: Sequence[ChangeColumn]) -> None:
    """Raise ExpressionError if two names differ only in case: a lake's tables ignore case."""
    folded = [column.name.casefold() for column in columns]
    doubled = [name for name in folded if folded.count(name) > 1]
    if doubled:
        problem = f"two of its columns are called {doubled[0]!r}"
        raise ExpressionError(f"{problem} but for upper and lower case")


def _by_change(block: RowBlock, wrong: dict[int, str]) -> Bad:
    return {block.positions[index]: why for index, why in wrong.items()}


def _cast(column: Any, field: pa.Field, wrong: dict[int, str]) -> Any:
    """Cast a column to the field's type; note unfit rows in `wrong`."""
    if column.type == field.type:
        return column
    try:
        return _exactly(column, field.type)
    except UNFIT:
        for number in range(len(column)):
            try:
                _exactly(column.slice(number, 1), field.type)
            except UNFIT as error:
                reason = " ".join(str(error).split())[:200]
                why = f"column {field.name} is {field.type} in the table there: {reason}"
                wrong.setdefault(number, why)
        if not wrong:
            raise
        return column


def _exactly(column: Any, kind: pa.DataType) -> Any:
    """Cast a column; raise an error if a value would change."""
    made = column.cast(kind)
    # A cast to a binary fraction rounds without a word; back again it shows.
    if pa.types.is_floating(kind):
        differs = pc.not_equal(made.cast(column.type), column)
        # What is no number differs from itself, and stays what it is.
        if pa.types.is_floating(column.type):
            differs = pc.and_not(differs, pc.is_nan(column))
        if pc.any(differs).as_py():
            raise ValueError("a number would lose digits")
    return made


def align_rows(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Put the columns in the table's order, with NULLs for missing ones."""
    known = {name.casefold(): index for index, name in enumerate(rows.column_names)}
    columns = []
    for field in schema:
        index = known.get(field.name.casefold())
        if index is None:
            columns.append(pa.nulls(rows.num_rows, field.type))
        else:
            columns.append(rows.column(index).cast(field.type))
    return pa.table(columns, schema=schema)


def together(several: Sequence[pa.Table], known: pa.Schema) -> pa.Table:
    """Concatenate blocks of one table; later blocks may have more or wider columns."""
    names = dict.fromkeys(name for rows in several for name in rows.column_names)
    schema = pa.schema([known.field(name) for name in names])
    return pa.concat_tables([align_rows(rows, schema) for rows in several]).combine_chunks()


def grow_schema(known: pa.Schema | None, schema: pa.Schema) -> pa.Schema:
    """Return the table's schema once these rows are written."""
    if known is None:
        return schema
    types = dict(zip(schema.names, schema.types, strict=True))
    fields = [(field.name, types.get(field.name, field.type)) for field in known]
    return pa.schema([*fields, *missing_fields(schema, known)])


def find_changed_fields(schema: pa.Schema, there: pa.Schema) -> list[pa.Field]:
    """Find fields missing from the table or too narrow there."""
    known = {field.name: field.type for field in there}
    wider = [field for field in schema if field.name in known and is_wider(known[field.name], field.type)]
    return [*missing_fields(schema, there), *wider]


def missing_fields(schema: pa.Schema, there: pa.Schema) -> list[pa.Field]:
    """Find fields missing from the table."""
    known = {field.name.casefold() for field in there}
    return [field for field in schema if field.name.casefold() not in known]
