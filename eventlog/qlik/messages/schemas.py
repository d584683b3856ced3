"""The Avro schemas of messages: envelope, data, key and metadata, as JSON values and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from eventlog.qlik.messages.avrovalues import avro_type
from eventlog.qlik.messages.names import NAMESPACE
from eventlog.qlik.typemap import QlikType

Schema = dict[str, Any]
Columns = Sequence[tuple[str, QlikType]]
"""Names and types of columns, in their order."""

OPERATIONS: Final = ("INSERT", "UPDATE", "DELETE", "REFRESH")

ENVELOPE: Final[Schema] = {
    "type": "record",
    "name": "MessageEnvelope",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 5}},
        {"name": "type", "type": "string"},
        {"name": "headers", "type": ["null", {"type": "map", "values": "string"}]},
        {"name": "messageSchemaId", "type": ["null", "string"]},
        {"name": "messageSchema", "type": ["null", "string"]},
        {"name": "message", "type": "bytes"},
    ],
}
COLUMN_FACTS: Final = (
    "ordinal",
    "type",
    "length",
    "precision",
    "scale",
    "primaryKeyPosition",
    "nullable",
)
_FACT_TYPES = {"type": "string", "nullable": "boolean"}


def text_of(schema: Schema) -> str:
    """Write the schema as JSON, without blanks."""
    return msgspec.json.encode(schema).decode()


def data_schema(
    columns: Columns, *, logical: bool, space: str | None, external_id: bool, table_names: bool = False
) -> Schema:
    """Make the schema of data messages; with a namespace, as a registry has it, unions have defaults."""
    registered = space is not None
    fields: list[Schema] = []
    if table_names:
        fields += [{"name": name, "type": "string"} for name in ("schema", "table")]
    data = _record("Data", None, [_column(name, kind, logical, registered) for name, kind in columns])
    fields += [
        {"name": "data", "type": data},
        {"name": "beforeData", "type": ["null", "Data"], **_default(registered)},
        {"name": "headers", "type": _headers(registered, external_id)},
    ]
    return _record("DataRecord", space, fields)


def key_schema(columns: Columns, *, logical: bool, space: str | None) -> Schema:
    """Make the schema of keys: a record of the key columns, none of which is ever null."""
    fields = [{"name": name, "type": avro_type(kind, logical=logical)} for name, kind in columns]
    return _record("KeyRecord", space, fields)


def metadata_schema(columns: Iterable[str]) -> Schema:
    """Make the schema of a table's metadata messages, in which each column is a type of its name."""
    facts = [{"name": name, "type": _FACT_TYPES.get(name, "int")} for name in COLUMN_FACTS]
    described = [{"name": name, "type": _record(name, None, facts)} for name in columns]
    columns_record = _record("TableColumns", None, described)
    structure = _record("TableStructure", None, [{"name": "tableColumns", "type": columns_record}])
    lineage = [{"name": name, "type": "string"} for name in ("server", "task", "schema", "table")]
    lineage.append({"name": "tableVersion", "type": "long"})
    lineage.append({"name": "timestamp", "type": "string"})
    fields = [
        {"name": "schemaId", "type": "string"},
        {"name": "lineage", "type": _record("Lineage", None, lineage)},
        {"name": "tableStructure", "type": structure},
        {"name": "dataSchema", "type": "string"},
    ]
    return _record("MetadataMessage", None, fields)


def _record(name: str, space: str | None, fields: Sequence[object] = ()) -> Schema:
    record: Schema = {"type": "record", "name": name}
    if space:
        record["namespace"] = space
    return record | {"fields": list(fields)}


def _column(name: str, kind: QlikType, logical: bool, registered: bool) -> Schema:
    inner = avro_type(kind, logical=logical)
    # A registry holds a new schema against the old one, where a column more needs a default.
    if registered:
        return {"name": name, "type": ["null", inner], "default": None}
    if isinstance(inner, str):
        inner = {"type": inner}
    return {"name": name, "type": [{"type": "null"}, inner]}


def _default(registered: bool) -> Schema:
    if not registered:
        return {}
    return {"default": None}


def _headers(registered: bool, external_id: bool) -> Schema:
    operation = {"type": "enum", "name": "operation", "symbols": list(OPERATIONS)}
    texts = ("changeSequence", "timestamp", "streamPosition", "transactionId")

    def either(name: str, kind: str) -> Schema:
        return {"name": name, "type": ["null", kind], **_default(registered)}

    external: list[Schema] = []
    if external_id:
        external = [{"name": "externalSchemaId", "type": "string"}]
    fields = [
        {"name": "operation", "type": operation},
        *[{"name": name, "type": "string"} for name in texts],
        either("changeMask", "bytes"),
        either("columnMask", "bytes"),
        *external,
        either("transactionEventCounter", "long"),
        either("transactionLastEvent", "boolean"),
    ]
    space = None
    if registered:
        # The headers of all tables are one type, whose name must not be that of a table's own.
        space = NAMESPACE
    return _record("Headers", space, fields)
