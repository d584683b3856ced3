"""Messages read back, ours and those of other producers: recognised by their first bytes, and taken
as they come.

Tolerated are namespaces that Avro forbids, logical times in micros and millis, masks in either
order of bytes or missing, a deleted row in `data` or in `beforeData`, tombstones, and the JSON of
old versions.
"""

from __future__ import annotations

import binascii
import io
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError, shorten
from eventlog.qlik.masks import bits_of_hex, places_of

Kind = Literal["data", "metadata", "tombstone", "unread"]
NOT_MET: Final = "its metadata message was not met yet"
_OLD_OPERATIONS: Final = {"F": "REFRESH", "I": "INSERT", "U": "UPDATE", "D": "DELETE"}


class Read(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message. `row` is what it holds.

    Of a deletion, the row that is gone. `note` says what is missing to read it.
    """

    kind: Kind
    table: str | None = None
    schema_id: str | None = None
    operation: str | None = None
    sequence: str | None = None
    row: Mapping[str, Any] | None = None
    before: Mapping[str, Any] | None = None
    changed: tuple[str, ...] | None = None
    present: tuple[str, ...] | None = None
    headers: Mapping[str, Any] = {}
    content: Mapping[str, Any] | None = None
    note: str | None = None


class MessageReader:
    """Reads messages; remembers the metadata that it meets, for the data after them.

    `registered` gives the schema of a number; `schema` is that of Avro without envelope.
    """

    def __init__(
        self,
        registered: Callable[[int], str] | None = None,
        schema: str | None = None,
    ) -> None:
        self._registered = registered
        self._schema = None
        if schema is not None:
            self._schema = lenient(schema)
        self._known: dict[str, dict[str, Any]] = {}
        self._numbered: dict[int, dict[str, Any]] = {}
        self._tables: dict[str, str] = {}

    def read(self, value: bytes | None) -> Read:
        """Read a message; raise DataError where it is none."""
        if value is None:
            return Read(kind="tombstone", operation="DELETE")
        if value.startswith(b"atMSG"):
            from eventlog.qlik.messages.schemas import ENVELOPE

            return self._avro_envelope_of(decode(ENVELOPE, value))
        # The bytes that a registry's clients put before a value: zero, and four of its schema's
        # number.
        if value.startswith(b"\x00") and len(value) > 5:
            number = int.from_bytes(value[1:5], "big")
            if self._registered is None:
                note = "its schema is in a registry; name the registry"
                return Read(kind="unread", schema_id=str(number), note=note)
            if number not in self._numbered:
                self._numbered[number] = lenient(self._registered(number))
            schema = self._numbered[number]
            # Producers put the names of schema and table at the end of the namespace.
            space = str(schema.get("namespace", "")).split(".")
            return _data(decode(schema, value[5:]), ".".join(space[-2:]) or None, str(number))
        if value.lstrip()[:1] == b"{":
            return self.read_json(_object(value))
        if self._schema is None:
            raise DataError("This is no JSON and has no envelope; if it is bare Avro, name its schema.")
        return self.read_record(decode(self._schema, value))

    def read_json(self, content: Mapping[str, Any]) -> Read:
        """Read a message that is an object of JSON already."""
        if content.get("magic") == "atMSG":
            return self._envelope(content, content.get("message"))
        if "headers" in content and ("data" in content or "beforeData" in content):
            return _data(content, None, None)
        if "op" in content and "data" in content:
            return _legacy(content)
        raise DataError(f"This object is no message: it has the fields {shorten(', '.join(content))}.")

    def read_record(self, content: Mapping[str, Any]) -> Read:
        """Read a record of Avro, of an envelope or of a bare message."""
        if "magic" in content:
            return self._avro_envelope_of(content)
        return _data(content, None, None)

    def _avro_envelope_of(self, envelope: Mapping[str, Any]) -> Read:
        try:
            schema_id, text = envelope["messageSchemaId"], envelope["messageSchema"]
            content = envelope["message"]
        except KeyError as error:
            raise DataError(f"The envelope has no {error.args[0]}.") from None
        texts = isinstance(schema_id, str | None) and isinstance(text, str | None)
        if not texts or not isinstance(content, bytes):
            raise DataError("The envelope's messageSchemaId, messageSchema or message is of another type.")
        # An envelope of metadata brings its schema with it; that of data names it by a number.
        if text:
            schema: dict[str, Any] | None = lenient(text)
        else:
            schema = self._known.get(schema_id or "") or self._schema
        if schema is None:
            note = "nothing says its schema; name it"
            if schema_id:
                note = NOT_MET
            return Read(kind="unread", schema_id=schema_id, note=note)
        return self._envelope(envelope, decode(schema, content))

    def _envelope(self, envelope: Mapping[str, Any], message: Any) -> Read:
        if not isinstance(message, Mapping):
            raise DataError("The envelope holds no message.")
        schema_id = envelope.get("messageSchemaId")
        if not isinstance(schema_id, str | None):
            raise DataError("The envelope's messageSchemaId is no text.")
        if envelope.get("type") == "MD":
            return self._metadata(message)
        return _data(message, self._tables.get(schema_id or ""), schema_id)

    def _metadata(self, message: Mapping[str, Any]) -> Read:
        lineage = _object_of(message, "lineage")
        columns = _object_of(_object_of(message, "tableStructure"), "tableColumns")
        _refuse_other_types(message, METADATA_TYPES)
        _refuse_other_types(lineage, LINEAGE_TYPES, "lineage.")
        for name in columns:
            _refuse_other_types(_object_of(columns, name), COLUMN_TYPES, f"{name}.")
        text = message.get("dataSchema")
        schema_id = str(message.get("schemaId"))
        names = lineage.get("schema"), lineage.get("table")
        table = ".".join([str(name) for name in names if name])
        self._tables[schema_id] = table
        if text:
            self._known[schema_id] = lenient(text)
        return Read(kind="metadata", table=table, schema_id=schema_id, content=dict(message))


METADATA_TYPES: Final[dict[str, type]] = {"schemaId": str, "dataSchema": str}
LINEAGE_TYPES: Final[dict[str, type]] = {
    **dict.fromkeys(("server", "task", "schema", "table", "timestamp"), str),
    "tableVersion": int,
}
COLUMN_TYPES: Final[dict[str, type]] = {
    **dict.fromkeys(("ordinal", "length", "precision", "scale", "primaryKeyPosition"), int),
    "type": str,
    "nullable": bool,
}
"""What stands in a metadata message, in its lineage, and in what it says of a column."""
_WORDS: Final[dict[type, str]] = {str: "text", int: "whole number", bool: "truth value"}


def _refuse_other_types(
    content: Mapping[str, Any],
    types: Mapping[str, type],
    of: str = "",
) -> None:
    """Raise DataError if a value is of another type; null counts as missing."""
    for name, kind in types.items():
        value = content.get(name)
        # By the exact type, for a bool is an int too.
        if value is not None and type(value) is not kind:
            raise DataError(f"The metadata message's {shorten(of + name)} is no {_WORDS[kind]}.")


def _object_of(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object in a metadata message; empty where it is missing or null."""
    value = content.get(name)
    if not isinstance(value, Mapping | None):
        raise DataError(f"The metadata message's {shorten(name)} is no object.")
    return value or {}


def masks(headers: Mapping[str, Any], columns: int) -> tuple[int | None, int | None]:
    """Read the bits of changeMask and columnMask, in either order of bytes."""
    changed, present = headers.get("changeMask"), headers.get("columnMask")
    order: Literal["little", "big"] = "little"
    if isinstance(present, bytes):
        little, big = int.from_bytes(present, "little"), int.from_bytes(present, "big")
        too_many = 1 << columns
        all_of_them = too_many - 1
        # The order is the one in which columnMask names columns that there are, or all of them.
        if little >= too_many > big or (big == all_of_them != little):
            order = "big"
    return _bits(changed, order), _bits(present, order)


def _bits(mask: Any, order: Literal["little", "big"]) -> int | None:
    if mask is None:
        return None
    if isinstance(mask, bytes):
        return int.from_bytes(mask, order)
    return bits_of_hex(str(mask))


def _data(message: Mapping[str, Any], table: str | None, schema_id: str | None) -> Read:
    data = row = message.get("data")
    headers = message.get("headers") or {}
    former = before = message.get("beforeData")
    if data is None:
        # A deletion whose row is in beforeData, as some producers write it.
        row, former = before, None
    if not isinstance(row, Mapping):
        raise DataError("The message holds no row, neither in data nor in beforeData.")
    if not isinstance(headers, Mapping) or not isinstance(before, Mapping | None):
        raise DataError("The message is none of ours: its headers, or its beforeData, are no object.")
    names = list(row)
    changed, present = masks(headers, len(names))
    named = ".".join([str(message[key]) for key in ("schema", "table") if message.get(key)])
    return Read(
        kind="data",
        table=table or named or None,
        schema_id=headers.get("externalSchemaId") or schema_id,
        operation=headers.get("operation"),
        sequence=headers.get("changeSequence") or None,
        row=row,
        before=former,
        changed=_columns(changed, names),
        present=_columns(present, names),
        headers=headers,
    )


def _columns(bits: int | None, names: list[str]) -> tuple[str, ...] | None:
    if bits is None:
        return None
    # Bits beyond the last column are left out, for the table may have become wider.
    known = bits & ((1 << len(names)) - 1)
    return tuple([names[index] for index in places_of(known)])


def _legacy(message: Mapping[str, Any]) -> Read:
    """Read a message of an old version, whose rows are lists of objects with a column each."""

    def row_of(cells: Any) -> dict[str, Any] | None:
        if not cells:
            return None
        if not isinstance(cells, list) or not all(isinstance(cell, Mapping) for cell in cells):
            raise DataError("The message is none of an old version: its row is no list of columns.")
        columns: dict[str, Any] = {}
        for cell in cells:
            columns |= cell
        # Old versions had no other way to say NULL.
        return {name: None if value == "NULL" else value for name, value in columns.items()}

    row, before = row_of(message.get("data")), row_of(message.get("bu_data"))
    if row is None:
        row, before = before, None
    header_names = ("task_name", "stream_position", "ts")
    headers = {name: message[name] for name in header_names if name in message}
    names = [str(message[name]) for name in ("schema", "table") if message.get(name)]
    operation = str(message["op"])
    return Read(
        kind="data",
        table=".".join(names) or None,
        operation=_OLD_OPERATIONS.get(operation, operation),
        sequence=message.get("change_seq") or None,
        row=row,
        before=before,
        headers=headers,
    )


def _object(value: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(value, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"This is no JSON: {error}.") from None


def bytes_of(text: str) -> bytes:
    """Decode the value in a line: JSON as it is, anything else in Base64, or its bytes as kcat writes
    them.
    """
    if text.lstrip().startswith("{"):
        # Bytes that are no UTF-8 came as halves of pairs, and become themselves again.
        return text.encode("utf-8", "surrogateescape")
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError:  # binascii.Error is one; text that is not ASCII is another
        return text.encode("utf-8", "surrogateescape")


# What no name of Avro has; the points stand between the parts of a namespace.
_illegal: Final = re.compile(r"[^A-Za-z0-9_.]")
_NAMED: Final = frozenset({"record", "enum", "fixed"})
_PLAIN: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string", "array", "map", *_NAMED}
)


def lenient(text: str) -> dict[str, Any]:
    """Parse a schema, replacing names that Avro forbids.

    Raise DataError where it is no schema of a record.
    """
    try:
        schema = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(f"The schema is no JSON: {error}.") from None
    if not isinstance(schema, dict):
        raise DataError("The schema is not that of a record.")
    repaired = _repair(schema)
    assert isinstance(repaired, dict)
    return repaired


def decode(schema: dict[str, Any], value: bytes) -> dict[str, Any]:
    """Decode the bytes of one record; raise DataError where they are not one, or are more."""
    # Here and not above, for only whoever reads Avro should pay for importing it.
    from fastavro import parse_schema, schemaless_reader

    stream = io.BytesIO(value)
    try:
        record = schemaless_reader(stream, parse_schema(schema), None)
    except Exception as error:  # noqa: BLE001 - fastavro raises whatever its decoding runs into
        raise DataError(f"The bytes do not fit the schema ({type(error).__name__}).") from None
    # fastavro takes what it needs, so a schema of fewer fields would pass unseen.
    if stream.tell() != len(value):
        raise DataError(f"The bytes do not fit the schema: {len(value) - stream.tell()} are left over.")
    if not isinstance(record, dict):
        raise DataError("The schema is not that of a record.")
    return record


def _repair(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_repair(branch) for branch in schema]
    if isinstance(schema, str):
        # A type that has no plain name is one that the schema defines elsewhere.
        return schema if schema in _PLAIN else _name(schema)
    if not isinstance(schema, dict):
        return schema
    repaired = dict(schema)
    for key in ("type", "items", "values"):
        if key in repaired:
            repaired[key] = _repair(repaired[key])
    if isinstance(repaired.get("type"), str) and repaired["type"] in _NAMED:
        for key in ("name", "namespace"):
            if isinstance(repaired.get(key), str):
                repaired[key] = _name(repaired[key])
    if isinstance(repaired.get("fields"), list):
        # Not the fields' own names, which consumers know the columns by.
        repaired["fields"] = [_repair(field) for field in repaired["fields"]]
    return repaired


def _name(text: str) -> str:
    parts = _illegal.sub("_", text).split(".")
    return ".".join([f"_{part}" if part[:1].isdigit() else part for part in parts])
