"""Messages as they go over the wire: registered schemas by their numbers, and what cannot go is set
aside with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from eventlog.core.errors import ConfigError, ExpressionError, SinkError
from eventlog.qlik.change_seq import CHARACTERS
from eventlog.qlik.messages.document import Message
from eventlog.qlik.messages.shape import SchemaRef
from eventlog.qlik.messages.write import WrittenMessage
from eventlog.sinks.events.write import WrittenEvent
from eventlog.sinks.kafka.registry import Registry, registry_of
from eventlog.sinks.kafka.settings import KafkaSettings

FRAME_BYTES: Final = 5
"""A zero and the number of a schema."""

END_BYTES: Final = 1000
"""What a message has at most beside its head and tail."""

BLOCK_BYTES: Final = 150
"""The largest transaction block of an event, beside the id."""

LAST_PLACE_NUMBERS: Final = 1_000_000
"""A number in a transaction that takes as much room as any."""


class Frames:
    """Puts the numbers of schemas before what they describe."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._registry: Registry | None = registry_of(settings) if settings.registry else None
        self._frames: dict[SchemaRef, bytes] = {}

    def frame(
        self,
        messages: Sequence[Message],
    ) -> tuple[list[Message], list[tuple[Message, str]]]:
        """Frame messages for consumers with a registry; return those refused too, with reasons."""
        taken: list[Message] = []
        refused: list[tuple[Message, str]] = []
        limit = self._settings.max_message_bytes
        without: dict[SchemaRef, str] = {}
        for message in messages:
            framed = message
            try:
                if message.value_schema is not None or message.key_schema is not None:
                    framed = self._with_numbers(message, without)
            except ExpressionError as error:
                refused.append((message, f"{error}."))
                continue
            if len(framed.value or b"") + len(framed.key or b"") > limit:
                refused.append((message, too_large(framed)))
            else:
                taken.append(framed)
        for message, why in refused:
            # It is no row's: a transaction would lack its beginning or its end, and nobody would
            # see it.
            if not message.positions:
                problem = f"A message about a transaction cannot be written: {why}"
                raise SinkError(problem, may_pass=False)
        return taken, refused

    def refuses(self, written: object) -> str | None:
        """Return why a message of unknown number is refused: larger than our limit, or its schema."""
        if isinstance(written, WrittenEvent):
            [message, *_] = written.messages()
            size = len(message.key or b"") + len(message.value or b"") + _frame_bytes(message)
            if written.part is not None:
                size += len(written.part.id) * 2 + BLOCK_BYTES
                try:
                    # A schema that the registry refuses must be known before others are counted behind
                    # it.
                    self._with_numbers(message, {})
                except ExpressionError as error:
                    return f"{error}."
            if size <= self._settings.max_message_bytes:
                return None
            return too_large(message)
        if not isinstance(written, WrittenMessage):
            # A document of XDS has no number to come, so its length is judged when it is sent.
            return None
        # Cheap for nearly all: what a message may have at most is less than the limit.
        key = len(written.key or b"")
        limit = self._settings.max_message_bytes
        if not written.headers and key + len(written.head) + len(written.tail or b"") + END_BYTES <= limit:
            return None
        # With numbers that take as much room as any: the real ones must not make it too large
        # later.
        value, tail = written.counted(LAST_PLACE_NUMBERS, last=False).close()
        if tail is not None:
            value += b"0" * CHARACTERS + tail
        message = written.table.message(written.key, value, headers=written.headers)
        if len(message.value or b"") + key + _frame_bytes(message) <= limit:
            return None
        return too_large(message)

    def _with_numbers(self, message: Message, without: dict[SchemaRef, str]) -> Message:
        value = self._frame(message.value_schema, without)
        key = self._frame(message.key_schema, without)
        return replace(
            message,
            # No value is a tombstone, and has no schema.
            value=None if message.value is None else value + message.value,
            key=None if message.key is None else key + message.key,
        )

    def _frame(self, ref: SchemaRef | None, without: dict[SchemaRef, str]) -> bytes:
        """Return the frame of a schema: a zero byte and the schema's number.

        ExpressionError if the registry gives none. Schemas in `without` are not tried again in this
        batch, and forgotten after it: the registry's rules may change before a requeue.
        """
        if ref is None:
            return b""
        frame = self._frames.get(ref)
        if frame is None:
            if self._registry is None:
                raise ConfigError("output.registry is missing: schemas in a registry need one.")
            if ref in without:
                raise ExpressionError(without[ref])
            try:
                number = self._registry.number_of(ref.subject, ref.text)
            except ExpressionError as error:
                without[ref] = str(error)
                raise
            # The wire format of Confluent's serializers: a zero, and four bytes big-endian.
            frame = self._frames[ref] = b"\x00" + number.to_bytes(4, "big")
        return frame


def _frame_bytes(message: Message) -> int:
    """Return the bytes of a message's frames."""
    schemas = (message.value_schema, message.key_schema)
    return sum(FRAME_BYTES for schema in schemas if schema is not None)


def too_large(message: Message) -> str:
    """Explain why the message is too large."""
    size = len(message.value or b"") + len(message.key or b"")
    return (
        f"The message has {size} bytes, more than topic {message.topic} takes;"
        " raise the broker's limit and output.max_message_bytes, then requeue."
    )
