"""What Kafka itself knows of an output: its last document, and the structure that each table was told with.

Marks are messages in a compacted topic, written in the same transaction as the messages that they speak of.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from eventlog.errors import SinkError
from eventlog.sinks.kafka_errors import in_words
from eventlog.sinks.kafka_settings import KafkaSettings, client_options

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition


class Told(Struct, frozen=True):
    """With which structure a table was told last, and which version of it that was."""

    schema_id: str
    version: int


class Marks(Struct, frozen=True, kw_only=True):
    """The last document, and what was told of each table."""

    last: str = ""
    tables: Mapping[str, Told] = {}


def mark_messages(identity: str, last: str, tables: Mapping[str, Told]) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of the messages that keep these marks."""
    yield identity.encode(), msgspec.json.encode({"last": last})
    for table, told in tables.items():
        yield f"{identity}/{table}".encode(), msgspec.json.encode(told)


def read_marks(settings: KafkaSettings, partitions: list[int]) -> Marks:
    """The marks of this output; waits for transactions of others that stand before them."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    ends = _ends(settings, partitions)
    options = {
        "group.id": settings.transactional_id,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 20,
    }
    consumer = Consumer({**client_options(settings), **options})
    try:
        consumer.assign([TopicPartition(settings.marks_topic, number, OFFSET_BEGINNING) for number in ends])
        found = dict(_messages(consumer, settings, ends))
    finally:
        consumer.close()
    return _marks(settings.transactional_id, found)


def _ends(settings: KafkaSettings, partitions: list[int]) -> dict[int, int]:
    """Where each partition that is not empty ends, transactions of others that are still open included."""
    from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin._listoffsets import OffsetSpec

    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # the library forgot to type it
    asked: dict[TopicPartition, OffsetSpec] = {TopicPartition(settings.marks_topic, one): latest for one in partitions}
    admin = AdminClient(client_options(settings))
    answers = admin.list_offsets(
        asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=settings.timeout
    )
    try:
        ends = {place.partition: answer.result().offset for place, answer in answers.items()}
    except KafkaException as failed:
        raise in_words(failed.args[0], settings.servers) from None
    return {number: end for number, end in ends.items() if end > 0}


def _messages(consumer: Consumer, settings: KafkaSettings, ends: dict[int, int]) -> Iterator[tuple[bytes, bytes]]:
    from confluent_kafka import KafkaError

    left = dict(ends)
    deadline = time.monotonic() + settings.timeout
    while left:
        message = consumer.poll(0.2)
        if message is None:
            if time.monotonic() > deadline:
                problem = f"Kafka at {settings.servers} does not show the marks in {settings.marks_topic}."
                raise SinkError(problem, hint="It is tried again.")
            continue
        error = message.error()
        if error is None:
            yield message.key() or b"", message.value() or b""
            reached = (message.offset() or 0) + 1
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is how the library calls it
            reached = message.offset() or 0
        else:
            raise in_words(error, settings.servers)
        number = message.partition()
        if number in left and reached >= left[number]:
            del left[number]


def _marks(identity: str, found: Mapping[bytes, bytes]) -> Marks:
    """Among the marks of all outputs, ours."""
    own = found.get(identity.encode())
    last: dict[str, Any] = {} if own is None else msgspec.json.decode(own)
    before = f"{identity}/".encode()
    tables = {
        key.removeprefix(before).decode(): msgspec.json.decode(value, type=Told)
        for key, value in found.items()
        if key.startswith(before)
    }
    return Marks(last=str(last.get("last", "")), tables=tables)
