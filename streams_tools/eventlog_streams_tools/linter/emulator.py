"""The inverse of the reader: operations in, rows of a queue out.

For tests, and for users without a server.

It writes what is documented, and where the document is silent what the reader assumes; so it shows
nothing about a LINTER server, only about this project's reading.

Its operations are written by people as JSON lines, one operation each.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import Row, Value
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.schema_file import catalog_from_json
from eventlog.sources.linter.layouts import RecordField, Type, record_fields
from eventlog.sources.linter.operations import BLOB_ACTIONS, Action, Coding, typ_of
from eventlog.sources.linter.rows import DATA_BYTES, QueueRow, oper_date
from eventlog.sources.linter.settings import ReadingSettings
from eventlog.sources.linter.tables import SourceTables

Lengths = Literal["rows", "totals"]
Destination = tuple[str, str, str]
START: Final = dt.datetime(2024, 3, 15, 10, 20, 30)
FIRST_ADDRESS: Final = 0x0000_0001_0000_1000


class EmulatedOperation(Struct, frozen=True, kw_only=True):
    """One operation of a transaction.

    A BLOB operation names the row that owns the BLOB, as `after`.
    """

    transaction: int
    action: Action
    table: int = 0
    rowid: int = 0
    before: Row | None = None
    after: Row | None = None
    column: str | None = None
    blob_type: int = 0
    piece: bytes = b""


class EmulatorSettings(Struct, frozen=True, kw_only=True):
    """What is left open by the document: what the lengths of a continued operation mean, and how
    TYP is coded.
    """

    lengths: Lengths = "rows"
    coding: Coding = "table"
    node: str = "SOURCE"
    destinations: tuple[Destination, ...] = (("REMOTE", "SYSTEM", ""),)
    start: dt.datetime = START
    address: int = FIRST_ADDRESS
    step: dt.timedelta = dt.timedelta(milliseconds=125)


class LinterEmulator:
    """Numbers operations as they come and writes their queue rows, one set for each destination."""

    def __init__(
        self,
        schema: Catalog | None,
        reading: ReadingSettings | None = None,
        settings: EmulatorSettings | None = None,
    ) -> None:
        self.tables = SourceTables(schema, reading or ReadingSettings())
        self.settings = settings or EmulatorSettings()
        self._address = self.settings.address
        self._time = self.settings.start

    def rows(self, done: EmulatedOperation) -> Iterator[QueueRow]:
        first, second = self._parts(done)
        pieces = spread(first, second, self.settings.lengths)
        # Addresses grow by what a log's entry might take, so that no two operations share one.
        address, self._address = self._address, self._address + 64 + len(first) + len(second)
        date, self._time = oper_date(self._time), self._time + self.settings.step
        for destination in self.settings.destinations:
            for extdata, piece in enumerate(pieces):
                yield self._row(done, date, extdata, address, destination, piece)

    def _parts(self, done: EmulatedOperation) -> tuple[bytes, bytes]:
        encode = self.tables[done.table].codec.encode
        if done.action in BLOB_ACTIONS:
            return encode(done.after or {}), done.piece
        before_and_after = [encode(row) for row in (done.before, done.after) if row is not None]
        # An insert has only a new row and a delete only an old one: either is part 1.
        first, second, *_ = *before_and_after, b"", b""
        return first, second

    def _row(
        self,
        done: EmulatedOperation,
        date: bytes,
        extdata: int,
        address: int,
        destination: Destination,
        piece: tuple[int, int, bytes],
    ) -> QueueRow:
        table = self.tables[done.table].table
        server, owner, name = destination
        return QueueRow(
            oper_date=date,
            extdata=extdata,
            dbnode=self.settings.node,
            transact_id=done.transaction,
            syslog_addr=address,
            typ=typ_of(done.action, self.settings.coding),
            blobatr=self._blobatr(done),
            channel=1 + done.transaction % 100,
            tabnum_src=done.table,
            rowid_src=done.rowid,
            len1=piece[0],
            len2=piece[1],
            dst_server=server,
            dst_owner=owner,
            dst_table=name or (table.name if done.table else ""),
            data=piece[2],
        )

    def _blobatr(self, done: EmulatedOperation) -> int:
        if done.action not in BLOB_ACTIONS:
            return 0
        layout = self.tables[done.table].layout
        names = [field.name for field in layout.fields] if layout is not None else []
        if done.column not in names:
            raise DataError(
                f"{done.action} names the column {done.column}, which table {done.table} does not"
                " have; correct the script or the schema."
            )
        # As LINTER's BLOBATR: the type in the high byte, the column's number from 1 in the low one.
        return done.blob_type << 8 | names.index(done.column) + 1


def spread(first: bytes, second: bytes, lengths: Lengths) -> Sequence[tuple[int, int, bytes]]:
    """Return LEN1, LEN2 and DATA for each row of an operation; DATA has its fixed size."""
    joined = first + second
    starts = range(0, max(len(joined), 1), DATA_BYTES)
    if lengths == "totals":
        lengths_of = [(len(first), len(second))] * len(starts)
    else:
        lengths_of = []
        for start in starts:
            size = min(len(joined) - start, DATA_BYTES)
            len1 = min(max(len(first) - start, 0), size)
            lengths_of.append((len1, size - len1))
    pieces = [joined[start : start + DATA_BYTES] for start in starts]
    return [
        (len1, len2, data.ljust(DATA_BYTES, b"\0") if data else b"")
        for (len1, len2), data in zip(lengths_of, pieces, strict=True)
    ]


BYTES: Final = frozenset({Type.BYTE, Type.VARBYTE, Type.BLOB})
ACTIONS: Final = {action.name.lower().replace("_", " "): action for action in Action}


class ScriptStep(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One operation: `row` is the row after it, or the one that owns a BLOB; `old` the one before
    it.
    """

    op: str
    transaction: int = 1
    table: str | None = None
    rowid: int = 0
    row: dict[str, Any] | None = None
    old: dict[str, Any] | None = None
    column: str | None = None
    type: int = 0
    piece: bytes = b""


def steps(lines: Iterable[bytes], schema: Catalog, origin: str) -> Iterator[EmulatedOperation]:
    """Yield the operations of a script; raise DataError with the number of a wrong line."""
    decoder = msgspec.json.Decoder(ScriptStep)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _do_step(decoder.decode(line), schema)
        except (msgspec.DecodeError, DataError, ValueError, InvalidOperation, KeyError) as error:
            raise DataError(f"{origin}, line {number}: {str(error).rstrip('.')}.") from error


def _do_step(step: ScriptStep, schema: Catalog) -> EmulatedOperation:
    action = ACTIONS.get(step.op.lower())
    if action is None:
        raise DataError(f"{step.op!r} is no operation; there are {', '.join(ACTIONS)}")
    match = schema.find(step.table) if step.table is not None else None
    if step.table is not None and (match is None or match.table.number is None):
        raise DataError(f"{step.table} has no number in the schema")
    fields: dict[str, RecordField] = {}
    number = 0
    if match is not None:
        number = match.table.number or 0
        fields = {field.name: field for field in record_fields(match.table, "ascii", {})}
    return EmulatedOperation(
        transaction=step.transaction,
        action=action,
        table=number,
        rowid=step.rowid,
        before=_row(step.old, fields),
        after=_row(step.row, fields),
        column=step.column,
        blob_type=step.type,
        piece=step.piece,
    )


def _row(values: dict[str, Any] | None, fields: dict[str, RecordField]) -> Row | None:
    if values is None:
        return None
    unknown = [name for name in values if name not in fields]
    if unknown:
        raise DataError(f"the table has no column {unknown[0]}")
    return {name: _value(value, fields[name]) for name, value in values.items()}


def _value(value: Any, field: RecordField) -> Value:
    if value is None:
        return None
    if field.type in BYTES:
        return base64.b64decode(value, validate=True)
    if field.type is Type.DECIMAL:
        return Decimal(str(value))
    if field.type is Type.DATE:
        return dt.datetime.fromisoformat(value)
    typed: Value = value
    return typed


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
"""What the emulator writes when it is given nothing: two interleaved transactions, and one that is
rolled back.
"""


def read_schema(text: bytes | None, origin: str) -> Catalog:
    """Read a schema file; the sample's schema without one."""
    return SAMPLE_SCHEMA if text is None else catalog_from_json(text, origin=origin)
