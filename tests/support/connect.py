"""What a reader of Avro must find of an envelope in JSON, going by its schema of Kafka Connect."""

from __future__ import annotations

from base64 import b64decode
from decimal import Context, Decimal
from struct import pack, unpack
from typing import Any

from eventlog.qlik.messages.names import avro_name

EXACT = Context(prec=1000)


def read_as(schema: dict[str, Any], payload: Any) -> Any:
    """The payload as a reader of Avro gives it: bytes are bytes, and what is missing is null."""
    if payload is None:
        assert schema["optional"]
        return None
    kind = schema["type"]
    if kind == "struct":
        fields = {field["field"]: field for field in schema["fields"]}
        assert set(payload) <= set(fields)
        return {avro_name(name): read_as(field, payload.get(name)) for name, field in fields.items()}
    if kind == "array":
        return [read_as(schema["items"], one) for one in payload]
    if kind == "float":
        return unpack("<f", pack("<f", payload))[0]
    if kind == "double":
        return float(payload)
    if kind != "bytes":
        return payload
    content = b64decode(payload)
    if "parameters" not in schema:
        return content
    number = Decimal(int.from_bytes(content, "big", signed=True))
    return number.scaleb(-int(schema["parameters"]["scale"]), EXACT)
