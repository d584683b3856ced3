"""Operations for the emulator as people write them: JSON lines, one operation each. Does no I/O."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import Row, Value
from eventlog.core.schema import Catalog, Column, Table, catalog_from_json
from eventlog.sources.linter.coding import Action
from eventlog.sources.linter.emulator import Done
from eventlog.sources.linter.layouts import Field, Type, record_fields

BYTES: Final = frozenset({Type.BYTE, Type.VARBYTE, Type.BLOB})
ACTIONS: Final = {action.name.lower().replace("_", " "): action for action in Action}


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One operation: `row` is the row after it, or the one that owns a BLOB; `old` the one before it."""

    op: str
    transaction: int = 1
    table: str | None = None
    rowid: int = 0
    row: dict[str, Any] | None = None
    old: dict[str, Any] | None = None
    column: str | None = None
    type: int = 0
    piece: bytes = b""


def steps(lines: Iterable[bytes], schema: Catalog, origin: str) -> Iterator[Done]:
    """The operations of the lines; DataError names the line that is wrong."""
    decoder = msgspec.json.Decoder(Step)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _done(decoder.decode(line), schema)
        except (msgspec.DecodeError, DataError, ValueError, InvalidOperation, KeyError) as error:
            raise DataError(f"{origin}, line {number}: {str(error).rstrip('.')}.") from error


def _done(step: Step, schema: Catalog) -> Done:
    action = ACTIONS.get(step.op.lower())
    if action is None:
        raise DataError(f"{step.op!r} is no operation; there are {', '.join(ACTIONS)}")
    found = schema.find(step.table) if step.table is not None else None
    if step.table is not None and (found is None or found.table.number is None):
        raise DataError(f"{step.table} stands in no schema with a number")
    fields = {} if found is None else {field.name: field for field in record_fields(found.table, "ascii", {})}
    return Done(
        transaction=step.transaction,
        action=action,
        table=(found.table.number or 0) if found is not None else 0,
        rowid=step.rowid,
        before=_row(step.old, fields),
        after=_row(step.row, fields),
        column=step.column,
        blob_type=step.type,
        piece=step.piece,
    )


def _row(values: dict[str, Any] | None, fields: dict[str, Field]) -> Row | None:
    if values is None:
        return None
    unknown = [name for name in values if name not in fields]
    if unknown:
        raise DataError(f"the table has no column {unknown[0]}")
    return {name: _value(value, fields[name]) for name, value in values.items()}


def _value(value: Any, field: Field) -> Value:
    if value is None:
        return None
    if field.type in BYTES:
        return base64.b64decode(value, validate=True)
    if field.type is Type.DECIMAL:
        return Decimal(str(value))
    if field.type is Type.DATE:
        return dt.datetime.fromisoformat(value)
    found: Value = value
    return found


SAMPLE_SCHEMA: Final = Catalog(
    [
        Table(
            name="T",
            schema="SHOP",
            number=17,
            columns=(
                Column(name="ID", type="int", key=1),
                Column(name="NAME", type="varchar(20)"),
                Column(name="PRICE", type="decimal"),
                Column(name="N", type="smallint"),
            ),
        )
    ]
)
SAMPLE: Final = (
    b'{"op": "insert", "transaction": 1, "table": "T", "rowid": 3, "row": {"ID": 7, "NAME": "Table", "PRICE": "12345.678"}}',
    b'{"op": "insert", "transaction": 2, "table": "T", "rowid": 4, "row": {"ID": 8, "N": 2}}',
    b'{"op": "commit", "transaction": 1}',
    b'{"op": "update", "transaction": 2, "table": "T", "rowid": 4, "old": {"ID": 8, "N": 2}, "row": {"ID": 8, "N": 5}}',
    b'{"op": "commit", "transaction": 2}',
    b'{"op": "delete", "transaction": 3, "table": "T", "rowid": 3, "old": {"ID": 7, "NAME": "Table", "PRICE": "12345.678"}}',
    b'{"op": "rollback", "transaction": 3}',
)
"""What the emulator writes when it is given nothing: two interleaved transactions, and one that is rolled back."""


def read_schema(text: bytes | None, origin: str) -> Catalog:
    """The schema of a file, or that of the sample."""
    return SAMPLE_SCHEMA if text is None else catalog_from_json(text, origin=origin)
