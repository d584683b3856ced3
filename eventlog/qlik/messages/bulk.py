"""Messages in files: lines of JSON, and Avro's object container files, made of values whose changeSequence was put in.

A container is put together here and not by fastavro, because the values are Avro already.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from hashlib import md5
from typing import Final, Literal

from eventlog.qlik.messages.avrovalues import number, sized
from eventlog.qlik.messages.schemas import ENVELOPE, text_of
from eventlog.qlik.messages.shape import Shape

Codec = Literal["null", "deflate"]
CONTAINER: Final = b"Obj\x01"


def json_lines(values: Sequence[bytes]) -> bytes:
    """The values, one a line."""
    return b"".join([value + b"\n" for value in values])


def container_schema(shape: Shape) -> str:
    """The schema of what a table's messages are in a container: envelopes where there are some."""
    return text_of(ENVELOPE) if shape.settings.mode in ("envelope", "metadata") else shape.data_text


def container_head(schema: str, codec: Codec = "null") -> bytes:
    """The beginning of a container file."""
    facts = {"avro.schema": schema.encode(), "avro.codec": codec.encode()}
    entries = b"".join([sized(name.encode()) + sized(value) for name, value in facts.items()])
    return b"".join((CONTAINER, number(len(facts)), entries, number(0), sync_of(schema)))


def container_block(values: Sequence[bytes], schema: str, codec: Codec = "null") -> bytes:
    """A block of values; some hundred kilobytes make a good one."""
    if not values:
        return b""
    content = b"".join(values)
    if codec == "deflate":
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        content = packer.compress(content) + packer.flush()
    return b"".join((number(len(values)), sized(content), sync_of(schema)))


def sync_of(schema: str) -> bytes:
    """What stands between blocks: it follows from the schema, so that equal messages make equal files."""
    return md5(schema.encode(), usedforsecurity=False).digest()
