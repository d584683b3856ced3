"""Metadata messages: where a table comes from, what its columns are, and the Avro schema of its
data messages.

Everything in them follows from the table but the time and the version, which whoever sends it puts
in: it may know that more was sent before than the table's own count says.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from eventlog.qlik.messages import avrocoder, jsoncoder
from eventlog.qlik.messages.avrovalues import number, prefix_size
from eventlog.qlik.messages.schemas import COLUMN_FACTS
from eventlog.qlik.messages.shape import MessageShape


class Structure(Struct, frozen=True, kw_only=True, gc=False):
    """A table's structure, ready to be sent: pieces round version and time."""

    table: str
    schema_id: str
    topic: str
    key: bytes | None
    version: int
    avro: bool
    envelope: bytes
    head: bytes
    tail: bytes

    def message(self, version: int, time: str) -> bytes:
        if not self.avro:
            version_and_time = f'{version},"timestamp":"{time}"'.encode()
            return b"".join((self.envelope, self.head, version_and_time, self.tail, b"}"))
        inner = b"".join((self.head, number(version), prefix_size(time.encode()), self.tail))
        return self.envelope + prefix_size(inner)


def structure_of(shape: MessageShape) -> Structure:
    avro = shape.settings.encoding == "avro"
    if avro:
        envelope = avrocoder.envelope_head("MD", shape.schema_id, shape.metadata_text)
        texts = [shape.schema_id, *_lineage(shape).values()]
        head = b"".join([prefix_size(text.encode()) for text in texts])
        facts = [_fact(of_column[name]) for of_column in shape.columns.values() for name in COLUMN_FACTS]
        tail = b"".join([*facts, prefix_size(shape.data_text.encode())])
    else:
        envelope = jsoncoder.envelope_head("MD", shape.schema_id, shape.metadata_text)
        encode = msgspec.json.encode
        # The lineage stays open: the table's version and the time are its last two fields.
        lineage = encode(_lineage(shape))[:-1]
        head = encode({"schemaId": shape.schema_id})[:-1] + b',"lineage":' + lineage + b',"tableVersion":'
        rest = {"tableStructure": {"tableColumns": shape.columns}, "dataSchema": shape.data_text}
        tail = b"}," + encode(rest)[1:]
    keys = {"table": shape.title, "schema-id": shape.schema_id, "none": None}
    key = keys[shape.settings.metadata_key]
    return Structure(
        table=shape.title,
        schema_id=shape.schema_id,
        topic=shape.settings.metadata_topic,
        key=None if key is None else key.encode(),
        version=shape.table.version,
        avro=avro,
        envelope=envelope,
        head=head,
        tail=tail,
    )


def _lineage(shape: MessageShape) -> dict[str, str]:
    settings, table = shape.settings, shape.table
    # In the order of the schema's fields, which Avro takes them in.
    return {
        "server": settings.server,
        "task": settings.task,
        "schema": table.schema or "",
        "table": table.name,
    }


def _fact(value: object) -> bytes:
    if isinstance(value, bool):  # before int, which a bool is too
        if value:
            return b"\x01"
        return b"\x00"
    if isinstance(value, int):
        return number(value)
    return prefix_size(str(value).encode())
