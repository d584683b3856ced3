"""Tries whether Kafka takes our login, and which topics are there; nothing is written or made."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

from eventlog.sinks.kafka.errors import error_of, in_words, louder
from eventlog.sinks.kafka.settings import KafkaSettings, client_options

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

TRIAL_SECONDS: Final = 10.0
"""Seconds for which somebody who only asks waits for a broker."""


def missing_topics(settings: KafkaSettings, topics: Collection[str]) -> list[str]:
    """Which of the topics are not there; SinkError when no broker answers or our login is refused."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    heard: list[KafkaError] = []

    def hear(error: KafkaError) -> None:
        heard[:] = [louder(heard[0] if heard else None, error)]

    options: dict[str, Any] = {**client_options(settings), "error_cb": hear}
    client = AdminClient(options)
    try:
        listed = client.list_topics(timeout=min(settings.timeout, TRIAL_SECONDS))
    except KafkaException as failed:
        client.poll(0)
        raise in_words(error_of(failed), settings.servers, heard[0] if heard else None) from None
    return [topic for topic in topics if topic not in listed.topics]
