"""Messages, and documents that hold some; what is on its way to a broker."""

from __future__ import annotations

import binascii
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from eventlog.core.model import Document, Position
from eventlog.qlik.messages.metadata import Structure
from eventlog.qlik.messages.shape import SchemaRef

Header = tuple[str, bytes]


class Message(Struct, frozen=True, kw_only=True, gc=False):
    """One message and the events behind it; without a value it is a tombstone.

    `value_schema` and `key_schema` are schemas in a registry: who sends the message puts their
    numbers before it. `structure` describes its table where a message about that has to stand
    before it.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    positions: tuple[Position, ...] = ()
    headers: tuple[Header, ...] = ()
    value_schema: SchemaRef | None = None
    key_schema: SchemaRef | None = None
    structure: Structure | None = None


class MessagesDocument(Document, frozen=True, kw_only=True):
    """Messages that are sent together.

    Its body is empty where its sink takes the messages themselves.
    """

    messages: tuple[Message, ...]


def lines(messages: Iterable[Message]) -> bytes:
    """Write one line for each message: its topic, its key and its value, as text in Base64 unless it is
    JSON.
    """
    return b"".join([_line(message) for message in messages])


def _line(message: Message) -> bytes:
    value = message.value
    # Not decoded and written anew, which could change how its numbers are written.
    if value is not None and value.startswith(b"{"):
        content = msgspec.Raw(value)
    else:
        content = msgspec.Raw(msgspec.json.encode(_text(value)))
    line = {"topic": message.topic, "key": _text(message.key), "value": content}
    return msgspec.json.encode(line) + b"\n"


def _text(content: bytes | None) -> str | None:
    """Write bytes in JSON: UTF-8 as text, anything else in Base64."""
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return binascii.b2a_base64(content, newline=False).decode()
