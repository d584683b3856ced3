"""What readers of Debezium's messages must find, going by their schemas of Kafka Connect."""

from __future__ import annotations

import json
from base64 import b64decode
from collections import Counter
from collections.abc import Sequence
from decimal import Context, Decimal
from struct import pack, unpack
from typing import Any

from eventlog.qlik.messages.document import Message
from eventlog.qlik.messages.names import avro_name
from tests.support.messages import read_by_both

EXACT = Context(prec=1000)


def read_as(schema: dict[str, Any], payload: Any) -> Any:
    """Convert the payload to what a reader of Avro gives: bytes are bytes, missing is null."""
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


def read(message: Message) -> Any:
    """Read a message in JSON or in Avro."""
    if message.value_schema is not None:
        return read_by_both(message.value_schema.text, message.value or b"")
    said = json.loads(message.value or b"")
    return said["payload"] if "schema" in said else said


def told_rightly(sent: Sequence[Message], topic: str) -> int:
    """Check that each transaction is reported right; return their number."""
    totals, tables = Counter[str](), dict[str, Counter[str]]()
    begun, ended = set[str](), set[str]()
    for message in sent:
        said = read(message)
        if message.topic == topic:
            name = said["id"]
            if said["status"] == "BEGIN":
                assert (said["event_count"], said["data_collections"]) == (None, None)
                assert name not in begun
                begun.add(name)
                continue
            assert said["status"] == "END"
            assert said["event_count"] == totals[name]
            counts = said["data_collections"]
            assert {one["data_collection"]: one["event_count"] for one in counts} == tables[name]
            ended.add(name)
            continue
        block = said["transaction"]
        if block is None:
            assert said["source"]["txId"] is None
            continue
        source, name = said["source"], block["id"]
        table = ".".join(filter(None, (source["schema"], source["table"])))
        assert name in begun - ended
        totals[name] += 1
        tables.setdefault(name, Counter())[table] += 1
        assert (block["total_order"], block["data_collection_order"]) == (
            totals[name],
            tables[name][table],
        )
    assert begun == ended
    return len(begun)
