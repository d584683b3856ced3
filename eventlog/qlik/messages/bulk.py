"""Messages in files of Avro: object containers, made of values whose changeSequence was put in.

A container is put together here and not by fastavro, because the values are Avro already.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5
from typing import Final

from eventlog.qlik.messages.avrovalues import number, sized
from eventlog.qlik.messages.schemas import ENVELOPE, text_of
from eventlog.qlik.messages.shape import MessageShape

CONTAINER: Final = b"Obj\x01"


def container_schema(shape: MessageShape) -> str:
    """The schema of what a table's messages are in a container: envelopes where there are some."""
    return text_of(ENVELOPE) if shape.settings.mode in ("envelope", "metadata") else shape.data_text


def container_head(schema: str) -> bytes:
    facts = {"avro.schema": schema.encode(), "avro.codec": b"null"}
    entries = b"".join([sized(name.encode()) + sized(value) for name, value in facts.items()])
    return b"".join((CONTAINER, number(len(facts)), entries, number(0), sync_of(schema)))


def container_block(values: Sequence[bytes], schema: str) -> bytes:
    """A block of values; some hundred kilobytes make a good one."""
    if not values:
        return b""
    return b"".join((number(len(values)), sized(b"".join(values)), sync_of(schema)))


def sync_of(schema: str) -> bytes:
    """What stands between blocks: it follows from the schema, so that equal messages make equal files."""
    return md5(schema.encode(), usedforsecurity=False).digest()
