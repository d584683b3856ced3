"""Everything that stands in a topic, from its beginning to where it ends now."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from eventlog.core.errors import SinkError, SourceError
from eventlog.sinks.kafka.errors import in_words
from eventlog.sinks.kafka.settings import KafkaSettings, client_options, transaction_seconds

if TYPE_CHECKING:
    from confluent_kafka import Message

EXPIRY_SECONDS: Final = 15.0
"""Brokers look every ten seconds for transactions that are open for too long, and then end them."""


def messages_of(
    settings: KafkaSettings,
    topic: str,
    partitions: Iterable[int],
    isolation: str = "read_committed",
) -> Iterator[Message]:
    """Yield the messages of these partitions; waits for earlier transactions of others."""
    from confluent_kafka import Consumer, KafkaError, TopicPartition

    # Where it ends now: what comes while it is read is not waited for.
    left = _ends(settings, topic, partitions)
    options = {
        "group.id": settings.transactional_id,
        "isolation.level": isolation,
        # Told at the end of each partition, also behind the marks of transactions, which are no
        # messages.
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "fetch.wait.max.ms": 20,
        "auto.offset.reset": "earliest",  # where the first messages are there no more
    }
    consumer = Consumer({**client_options(settings), **options})
    patience = settings.timeout
    if isolation == "read_committed":
        # Nothing behind the open transaction of a dead writer is shown before the broker ends it.
        patience = transaction_seconds(settings) + EXPIRY_SECONDS
    deadline = time.monotonic() + patience
    try:
        # By its number: for "the beginning" a client that knows no broker yet waits half a second
        # before it asks.
        consumer.assign([TopicPartition(topic, number, 0) for number in left])
        while left:
            message = consumer.poll(0.2)
            if message is None:
                if time.monotonic() > deadline:
                    problem = f"Kafka at {settings.servers} does not show what is in {topic}."
                    raise SinkError(problem, hint="It is tried again.")
                continue
            error = message.error()
            if error is None:
                deadline = time.monotonic() + patience
                yield message
                reached = (message.offset() or 0) + 1
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - that is how the library calls it
                reached = message.offset() or 0
            elif error.name() == "GROUP_AUTHORIZATION_FAILED":
                # A client needs a group's name, and we no group: nothing is committed there.
                continue
            else:
                raise in_words(error, settings.servers)
            number = message.partition()
            if number in left and reached >= left[number]:
                del left[number]
    finally:
        consumer.close()


def topic_values(settings: KafkaSettings, topic: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield the place and value of each message of a topic."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    try:
        topics = AdminClient(client_options(settings)).list_topics(timeout=settings.timeout).topics
    except KafkaException as failed:
        raise in_words(failed.args[0], settings.servers) from None
    # Asked for by its name, a broker might make it.
    listed = topics.get(topic)
    if listed is None or listed.error is not None:
        problem = f"Kafka at {settings.servers} has no topic {topic}, or none that may be read."
        raise SourceError(problem, hint="Name another one.", may_pass=False)
    for message in messages_of(settings, topic, listed.partitions):
        position = f"{topic}, partition {message.partition()}, offset {message.offset()}"
        yield position, message.value()


def _ends(settings: KafkaSettings, topic: str, partitions: Iterable[int]) -> dict[int, int]:
    """Return the end of each non-empty partition, open transactions of others included."""
    from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin._listoffsets import OffsetSpec

    # The library forgot to type it.
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # see above
    asked = {TopicPartition(topic, number): latest for number in partitions}
    admin = AdminClient(client_options(settings))
    answers = admin.list_offsets(
        asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=settings.timeout
    )
    try:
        ends = {partition.partition: answer.result().offset for partition, answer in answers.items()}
    except KafkaException as failed:
        raise in_words(failed.args[0], settings.servers) from None
    return {number: end for number, end in ends.items() if end > 0}
