"""The envelope that Debezium writes: before, after, source, op, ts_ms and transaction.

It is in JSON or in Avro. Types are Debezium's: days and microseconds since 1970, decimals as the
bytes of their digits, moments of a zone as text. Bytes are Base64 in JSON. `ts_ms` of the envelope
is the time of the change, for a format has no clock: what is repeated must be the same.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from eventlog.core.model import Change
from eventlog.core.schema import Table
from eventlog.core.who import who_fields
from eventlog.qlik.change_seq import time_of, utc
from eventlog.qlik.messages.avrovalues import NULL
from eventlog.qlik.messages.schemas import text_of
from eventlog.sinks.events.connect_avro import Schema, avro_schema, avro_writer
from eventlog.sinks.events.debezium_defaults import find_default
from eventlog.sinks.events.debezium_types import debezium_field, describe, field_way
from eventlog.sinks.events.rows import JsonRow, RowEvent, TableRows, encode
from eventlog.sinks.events.settings import DebeziumSettings
from eventlog.sinks.events.write import EventBytes
from eventlog.version import VERSION

_OPS: Final = {"insert": "c", "update": "u", "delete": "d", "refresh": "r", "truncate": "t"}
_START: Final = dt.datetime(1970, 1, 1)
_MICRO: Final = dt.timedelta(microseconds=1)
SOURCE: Final = "io.debezium.connector.eventlog.Source"
SNAPSHOTS: Final = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"


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
        """Write a value; return it with the offset of its transaction block."""
        if self._avro_parts is not None:
            write_head, write_tail = self._avro_parts
            begin = write_head(head)
            return b"".join((begin, NULL, write_tail(tail))), len(begin)
        # The last brace of the one and the first of the other object go: both are halves of one.
        begin = b"".join((self._begin, encode(head)[:-1], b',"transaction":'))
        return b"".join((begin, b"null,", encode(tail)[1:], self._end)), len(begin)


class Place(Struct, frozen=True, kw_only=True):
    """Where the tables stand: in a database of this kind, and of this name."""

    database: str = ""
    home: str = ""

    def schema(self, table: Table) -> str | None:
        """Return a table's schema; on MariaDB and MySQL the connection's database."""
        return table.schema or ((self.home or None) if self.database == "mysql" else None)


NOWHERE: Final = Place()


class DebeziumTable:
    """Writes the envelopes of one table."""

    def __init__(self, table: Table, settings: DebeziumSettings, place: Place = NOWHERE, *, who: bool = False) -> None:
        self._who = who
        self._place = place
        self.rows = TableRows(table, lambda column, _kind: debezium_field(place.database, settings, column))
        self._tombstones = settings.tombstones
        self._source = {"version": VERSION, "connector": "eventlog", "name": settings.server}
        schema = place.schema(table)
        own = schema if place.database == "mysql" else place.home
        self._location = {"db": settings.database or own or "", "sequence": None}
        self._location |= {"schema": schema, "table": table.name}
        # A number in PostgreSQL, where Debezium has that number too.
        self._writes_number = place.database == "postgresql"
        title = ".".join(filter(None, (settings.server, schema, table.name)))
        described = self._describe()
        keyed = [described[index] for index in self.rows.values.key]
        key = struct(keyed, f"{title}.Key", optional=False)
        self._key, self._value = Coder(key, settings), Envelope(self._envelope(title, described), settings)
        self._required: Mapping[str, Any] = {}
        if settings.schemas or settings.encoding == "avro":
            both = zip(described, self.rows.fields, strict=True)
            self._required = {
                field["field"]: field.get("default", kind.empty) for field, kind in both if not field["optional"]
            }

    def write(self, change: Change, event: RowEvent) -> EventBytes:
        before, after = event.before, event.after
        if self._required:
            after = self._fill(after)
            # As Debezium does without a whole row before: that of an update is not there.
            if before is not None and (event.op == "delete" or self._is_whole(before)):
                before = self._fill(before)
            else:
                before = None
        head = {
            "before": before,
            "after": after,
            "source": {
                **self._source,
                **self._times(change),
                "snapshot": "true" if change.refresh else "false",
                **self._location,
                **self._transaction(change),
                "position": change.stream or change.event_id,
                **(_who(change) if self._who else {}),
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

    def _times(self, change: Change) -> JsonRow:
        """Return the times of the source; the first is never null."""
        found = times(change)
        return {**found, "ts_ms": found["ts_ms"] or 0}

    def _transaction(self, change: Change) -> JsonRow:
        """Return the transaction's number; no trigger knows the LSN."""
        number = None if change.transaction is None else change.transaction.id
        if self._writes_number:
            return {"txId": number, "lsn": None}
        return {"txId": None if number is None else str(number)}

    def _is_whole(self, row: JsonRow) -> bool:
        return all(row.get(name) is not None for name in self._required)

    def _fill(self, row: JsonRow | None) -> JsonRow | None:
        """Fill required but unknown values of a row with stand-ins."""
        if row is None or self._is_whole(row):
            return row
        return {**row, **{name: empty for name, empty in self._required.items() if row.get(name) is None}}

    def _describe(self) -> list[Schema]:
        """Describe the columns.

        A value is optional if it may be missing: all but the key, if events lack whole rows.
        """
        values, whole = self.rows.values, values_are_whole(self.rows.table)
        described = []
        for index, (column, field) in enumerate(zip(values.columns, self.rows.fields, strict=True)):
            optional = index not in values.key and (column.nullable or not whole)
            default = find_default(self._place.database, column, field, field_way(column, field))
            described.append(describe(field, column.name, optional=optional, default=default))
        return described

    def _envelope(self, title: str, row: Sequence[Schema]) -> Schema:
        value = f"{title}.Value"
        numbers = ("ts_ms", "ts_us", "ts_ns")
        fields = [
            struct(row, value, optional=True, field="before"),
            struct(row, value, optional=True, field="after"),
            struct(self._describe_source(), SOURCE, optional=False, field="source"),
            {**block_schema(), "field": "transaction"},
            simple("string", "op", optional=False),
            *[simple("int64", name, optional=True) for name in numbers],
        ]
        return struct(fields, f"{title}.Envelope", optional=False, version=2)

    def _describe_source(self) -> list[Schema]:
        fields = [simple("string", name, optional=False) for name in ("version", "connector", "name")]
        fields += [simple("int64", name, optional=name != "ts_ms") for name in ("ts_ms", "ts_us", "ts_ns")]
        snapshot = {"name": "io.debezium.data.Enum", "version": 1, "parameters": {"allowed": SNAPSHOTS}}
        fields.append({**simple("string", "snapshot", optional=True), **snapshot, "default": "false"})
        required = ("db", "schema", "table") if self._writes_number else ("db",)
        fields += [
            simple("string", name, optional=name not in required) for name in ("db", "sequence", "schema", "table")
        ]
        kind = "int64" if self._writes_number else "string"
        fields.append(simple(kind, "txId", optional=True))
        if self._writes_number:
            fields.append(simple("int64", "lsn", optional=True))
        last = ("position", *(WHO if self._who else ()))
        return [*fields, *[simple("string", name, optional=True) for name in last]]


def values_are_whole(table: Table) -> bool:
    """Tell whether events of a table bring all of its values."""
    return table.images and not table.view


WHO: Final = {"user_name": "user", "context": "context"}
"""Who is behind a change, as `source` says it: the user as Debezium's connector for Oracle does."""


def _who(change: Change) -> dict[str, str | None]:
    fields = who_fields(change.who)
    return {name: fields[field] for name, field in WHO.items()}


def block_schema() -> Schema:
    """Describe the transaction block of an event."""
    fields = [
        simple("string", "id", optional=False),
        simple("int64", "total_order", optional=False),
        simple("int64", "data_collection_order", optional=False),
    ]
    return struct(fields, "event.block", optional=True, version=1)


def times(change: Change) -> dict[str, int | None]:
    """Return the commit time, else the time of the change, in ms, µs and ns since 1970."""
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
    """Describe a plain field in a schema of Kafka Connect."""
    return {"type": kind, "optional": optional, "field": field}


def struct(
    fields: Sequence[Schema],
    name: str,
    *,
    optional: bool,
    field: str = "",
    version: int = 0,
) -> Schema:
    """Describe an object in a schema of Kafka Connect."""
    schema: Schema = {"type": "struct", "fields": list(fields), "optional": optional, "name": name}
    if version:
        schema["version"] = version
    if field:
        schema["field"] = field
    return schema
