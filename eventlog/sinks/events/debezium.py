"""The envelope that Debezium writes: before, after, source, op, ts_ms and transaction.

It is in JSON or in Avro. Types are Debezium's: days and microseconds since 1970, decimals as the
bytes of their digits, moments of a zone as text. Bytes are Base64 in JSON. `ts_ms` of the envelope
is the time of the change, for a format has no clock: what is repeated must be the same.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.model import Change
from eventlog.core.schema import Column, Table
from eventlog.core.sql_types import is_zoned, type_name
from eventlog.qlik.change_seq import time_of, utc
from eventlog.qlik.messages.avrovalues import NULL
from eventlog.qlik.messages.schemas import text_of
from eventlog.qlik.typemap import UNSIGNED_DIGITS, QlikType
from eventlog.sinks.events.connect_avro import (
    CONNECT_DECIMAL,
    CONNECT_DIGITS,
    Schema,
    avro_schema,
    avro_writer,
    fitting,
)
from eventlog.sinks.events.rows import (
    FieldType,
    JsonRow,
    RowEvent,
    TableRows,
    Write,
    as_it_is,
    encode,
    finite,
    iso_time,
)
from eventlog.sinks.events.rows import digits as plain_digits
from eventlog.sinks.events.settings import DebeziumSettings, Decimals
from eventlog.sinks.events.write import EventBytes
from eventlog.version import VERSION

_OPS: Final = {"insert": "c", "update": "u", "delete": "d", "refresh": "r", "truncate": "t"}
_START: Final = dt.datetime(1970, 1, 1)
_DAY: Final = dt.date(1970, 1, 1)
_MILLI, _MICRO = dt.timedelta(milliseconds=1), dt.timedelta(microseconds=1)
_fraction = re.compile(r"\(\s*([0-3])\s*\)").search
"""Finds the digits of a second where a type has at most three."""

_SEMANTIC: Final = {"json": "Json", "jsonb": "Json", "uuid": "Uuid", "uniqueidentifier": "Uuid", "xml": "Xml"}

DECIMAL_MOST_DIGITS: Final = 400
"""Zeros that a number may begin or end with."""


class Coder:
    """Writes the keys or the values of a schema. `schema` is its text where a registry has it."""

    def __init__(self, schema: Schema, settings: DebeziumSettings) -> None:
        self.write: Callable[[JsonRow | None], bytes] = encode
        self.schema: str | None = None
        if settings.encoding == "avro":
            self.write, self.schema = avro_writer(schema), text_of(avro_schema(schema))
        elif settings.schemas:
            self.write = lambda payload: encode({"schema": schema, "payload": payload})


class Envelope:
    """Writes values that say nothing of their transaction, and where that stands. The schema has
    the fields of the head, the transaction, and those of the tail.
    """

    def __init__(self, schema: Schema, settings: DebeziumSettings) -> None:
        whole = Coder(schema, settings)
        self.schema = whole.schema
        self._begin, self._end = b"", b""
        self._avro_parts: Sequence[Callable[[JsonRow], bytes]] | None = None
        if settings.encoding == "avro":
            names = [field["field"] for field in schema["fields"]]
            index = names.index("transaction")
            # The transaction is known only later, so what stands before and behind it is written by
            # itself.
            parts = (schema["fields"][:index], schema["fields"][index + 1 :])
            self._avro_parts = [avro_writer({**schema, "fields": fields}) for fields in parts]
        elif settings.schemas:
            # From the right, for the payload stands behind the schema.
            self._begin, _, self._end = whole.write({}).rpartition(b"{}")

    def write(self, head: JsonRow, tail: JsonRow) -> tuple[bytes, int]:
        """A value, and the offset of its transaction block."""
        if self._avro_parts is not None:
            write_head, write_tail = self._avro_parts
            begin = write_head(head)
            return b"".join((begin, NULL, write_tail(tail))), len(begin)
        # The last brace of the one and the first of the other object go: both are halves of one.
        begin = b"".join((self._begin, encode(head)[:-1], b',"transaction":'))
        return b"".join((begin, b"null,", encode(tail)[1:], self._end)), len(begin)


class DebeziumTable:
    """Writes the envelopes of one table."""

    def __init__(self, table: Table, settings: DebeziumSettings) -> None:
        self.rows = TableRows(table, partial(debezium_field, settings))
        self._tombstones = settings.tombstones
        self._source = {"version": VERSION, "connector": "eventlog", "name": settings.server}
        self._location = {"db": settings.database, "sequence": None}
        self._location |= {"schema": table.schema, "table": table.name}
        title = ".".join(filter(None, (settings.server, table.schema, table.name)))
        key = struct(self._fields(self.rows.values.key), f"{title}.Key", optional=False)
        self._key, self._value = Coder(key, settings), Envelope(self._envelope(title), settings)

    def written(self, change: Change, event: RowEvent) -> EventBytes:
        transaction = change.transaction
        # Which must not be null.
        source_times = {name: at or 0 for name, at in times(change).items()}
        head = {
            "before": event.before,
            "after": event.after,
            "source": {
                **self._source,
                **source_times,
                "snapshot": "true" if change.refresh else "false",
                **self._location,
                "txId": None if transaction is None else str(transaction.id),
                "position": change.stream or change.event_id,
            },
        }
        value, block_at = self._value.write(head, {"op": _OPS[event.op], **times(change)})
        key = key_schema = None
        if event.key is not None:
            key, key_schema = self._key.write(event.key), self._key.schema
        return EventBytes(
            key=key,
            value=value,
            tombstone=self._tombstones and event.op == "delete",
            key_schema=key_schema,
            value_schema=self._value.schema,
            block_at=block_at,
        )

    def _fields(self, indexes: Sequence[int]) -> list[Schema]:
        """The columns; those of the key are always there."""
        values = self.rows.values
        return [
            described(self.rows.fields[index], values.names[index], optional=index not in values.key)
            for index in indexes
        ]

    def _envelope(self, title: str) -> Schema:
        row = self._fields(range(len(self.rows.values.names)))
        value = f"{title}.Value"
        texts, numbers = ("version", "connector", "name"), ("ts_ms", "ts_us", "ts_ns")
        source = [simple("string", name, optional=False) for name in texts]
        source += [simple("int64", name, optional=False) for name in numbers]
        rest = ("snapshot", "db", "sequence", "schema", "table", "txId", "position")
        source += [simple("string", name, optional=name != "db") for name in rest]
        fields = [
            struct(row, value, optional=True, field="before"),
            struct(row, value, optional=True, field="after"),
            struct(source, "io.debezium.connector.eventlog.Source", optional=False, field="source"),
            {**block_schema(), "field": "transaction"},
            simple("string", "op", optional=False),
            *[simple("int64", name, optional=True) for name in numbers],
        ]
        return struct(fields, f"{title}.Envelope", optional=False, version=2)


def block_schema() -> Schema:
    """The transaction block of an event."""
    fields = [
        simple("string", "id", optional=False),
        simple("int64", "total_order", optional=False),
        simple("int64", "data_collection_order", optional=False),
    ]
    return struct(fields, "event.block", optional=True, version=1)


def times(change: Change) -> dict[str, int | None]:
    """When the change was committed, else when it was made, in milli-, micro- and nanoseconds since
    1970.
    """
    moment = utc(time_of(change))
    if moment is None:
        return {"ts_ms": None, "ts_us": None, "ts_ns": None}
    micros = (moment - _START) // _MICRO
    nanos: int | None = micros * 1000
    # 64 bits hold the nanoseconds of the years 1678 to 2261.
    if abs(micros) * 1000 >= 1 << 63:
        nanos = None
    return {"ts_ms": micros // 1000, "ts_us": micros, "ts_ns": nanos}


def simple(kind: str, field: str, *, optional: bool) -> Schema:
    """A field without a meaning of its own, in a schema of Kafka Connect."""
    return {"type": kind, "optional": optional, "field": field}


def struct(
    fields: Sequence[Schema],
    name: str,
    *,
    optional: bool,
    field: str = "",
    version: int = 0,
) -> Schema:
    """An object, in a schema of Kafka Connect."""
    schema: Schema = {"type": "struct", "fields": list(fields), "optional": optional, "name": name}
    if version:
        schema["version"] = version
    if field:
        schema["field"] = field
    return schema


def described(kind: FieldType, field: str, *, optional: bool) -> Schema:
    """A column, in a schema of Kafka Connect."""
    schema: Schema = {"type": kind.type, "optional": optional}
    if kind.type == "struct":
        fields = [simple("int32", "scale", optional=False), simple("bytes", "value", optional=False)]
        schema["fields"] = fields
    if kind.name is not None:
        schema |= {"name": kind.name, "version": 1}
    if kind.parameters is not None:
        schema["parameters"] = kind.parameters
    return {**schema, "field": field}


def debezium_field(settings: DebeziumSettings, column: Column, kind: QlikType) -> FieldType:
    """How Debezium writes the values of a column of this type."""
    if kind.name in ("NUMERIC", "UINT8"):
        field = _number(settings.decimals, kind)
    elif kind.name == "DATETIME":
        field = _moment(column)
    else:
        meaning = None
        if kind.name == "STRING":
            meaning = _SEMANTIC.get(type_name(column.type))
        if meaning is not None:
            field = FieldType(type="string", write=as_it_is, name=f"io.debezium.data.{meaning}")
        else:
            field = _TYPES[kind.name]
    check: Callable[[Any], Any] | None = None
    if settings.encoding == "avro":
        check = fitting(field.type, field.parameters)
    elif field.type in ("float", "double"):
        check = finite
    if check is None:
        return field
    return replace(field, write=partial(_checked, check, field.write))


def _checked(check: Callable[[Any], Any], write: Write, value: Any) -> Any:
    return check(write(value))


def _moment(column: Column) -> FieldType:
    if is_zoned(column.type):
        return FieldType(type="string", write=iso_time, name="io.debezium.time.ZonedTimestamp")
    if _fraction(column.type):
        return FieldType(type="int64", write=_since(_MILLI), name="io.debezium.time.Timestamp")
    return FieldType(type="int64", write=_since(_MICRO), name="io.debezium.time.MicroTimestamp")


def _number(decimals: Decimals, kind: QlikType) -> FieldType:
    """An exact number: its digits as bytes, as text, or the nearest binary fraction."""
    if decimals == "string":
        return FieldType(type="string", write=plain_digits)
    if decimals == "double":
        return FieldType(type="double", write=float)
    stated = kind.digits
    if stated is None:  # each value brings its own scale
        title = "io.debezium.data.VariableScaleDecimal"
        return FieldType(type="struct", write=_variable, name=title)
    precision, scale = stated
    parameters = {"scale": str(scale), CONNECT_DIGITS: str(precision or UNSIGNED_DIGITS)}
    write = partial(_scaled, scale)
    return FieldType(type="bytes", write=write, name=CONNECT_DECIMAL, parameters=parameters)


def _scaled(scale: int, value: Decimal | int) -> bytes:
    """The digits of a number with a fixed scale."""
    return big_endian(_digits(Decimal(value), scale))


def _variable(value: Decimal | int) -> JsonRow:
    """A number whose scale nobody knows."""
    number = Decimal(value)
    exponent = number.as_tuple().exponent
    scale = max(0, -exponent) if isinstance(exponent, int) else 0
    return {"scale": scale, "value": big_endian(_digits(number, scale))}


def _digits(number: Decimal, scale: int) -> int:
    """The number without its point; ExpressionError where it has more digits behind it."""
    sign, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        problem = f"{value_shown(number)} is no number that a decimal can hold"
        raise ExpressionError(f'{problem}; set output.debezium.decimals = "string"')
    # Not by text, which Python reads and writes up to 4,300 digits only.
    whole = int(Decimal((0, digits, 0)))
    # A number with an exponent of millions would be written out before its size is known.
    shift = exponent + scale
    if abs(shift) > DECIMAL_MOST_DIGITS:
        problem = f"{value_shown(number)} has more digits than a decimal can hold"
        raise ExpressionError(f"{problem}; correct the value")
    power: int = 10 ** abs(shift)
    if shift >= 0:
        magnitude = whole * power
    elif whole % power == 0:
        magnitude = whole // power
    else:
        problem = f"{value_shown(number)} has more than {scale} digits behind the point"
        raise ExpressionError(f"{problem}; correct the value")
    return -magnitude if sign else magnitude


def big_endian(number: int) -> bytes:
    """A whole number in two's complement, in as few bytes as it takes."""
    magnitude = number
    if number < 0:
        magnitude = ~number  # so that -128 fits into one byte, as 127 does
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _since(unit: dt.timedelta) -> Callable[[dt.datetime], int]:
    return lambda value: (value - _START) // unit


def _of_day(value: dt.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond


_TYPES: Final[Mapping[str, FieldType]] = {
    "BOOLEAN": FieldType(type="boolean", write=as_it_is),
    **dict.fromkeys(("INT1", "UINT1", "INT2"), FieldType(type="int16", write=as_it_is)),
    **dict.fromkeys(("UINT2", "INT4"), FieldType(type="int32", write=as_it_is)),
    **dict.fromkeys(("UINT4", "INT8"), FieldType(type="int64", write=as_it_is)),
    "REAL4": FieldType(type="float", write=as_it_is),
    "REAL8": FieldType(type="double", write=as_it_is),
    **dict.fromkeys(("STRING", "CLOB", "NCLOB"), FieldType(type="string", write=as_it_is)),
    **dict.fromkeys(("BYTES", "BLOB"), FieldType(type="bytes", write=as_it_is)),
    "DATE": FieldType(type="int32", write=lambda value: (value - _DAY).days, name="io.debezium.time.Date"),
    "TIME": FieldType(type="int64", write=_of_day, name="io.debezium.time.MicroTime"),
}
