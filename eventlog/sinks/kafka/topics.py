"""Topics: whether they are there, and making those that may be made.

For who only asks, nothing is written or made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Final

from eventlog.core.errors import SinkError
from eventlog.sinks.kafka.errors import TRIED_AGAIN, error_of, in_words, louder
from eventlog.sinks.kafka.settings import KafkaSettings, client_options

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Producer

COMPACTED: Final = {"cleanup.policy": "compact"}
TOPIC_SECONDS: Final = 3.0
"""Seconds that a broker gets to make a topic by itself.

It says of one that is on its way what it says of one that is not.
"""
_COMING = frozenset({"UNKNOWN_TOPIC_OR_PART", "LEADER_NOT_AVAILABLE", "_UNKNOWN_TOPIC"})


class Topics:
    """The topics that exist; `producer` says who asks, for whoever keeps it would keep it
    alive.
    """

    def __init__(self, settings: KafkaSettings, producer: Callable[[], Producer]) -> None:
        self._settings = settings
        self._producer = producer
        self._existing: set[str] = set()

    def require(self, topic: str) -> None:
        """Returns when the topic is there; SinkError when nobody makes it."""
        if topic in self._existing:
            return
        error, _ = self._list_partitions(topic)
        # It is asked before it is made: a broker may make it itself, with settings of its own.
        if error is not None and error.name() in _COMING and self._settings.create_topics:
            self._create(topic, self._settings.partitions, {})
            error, _ = self._await_partitions(topic)
        elif error is not None:
            error, _ = self._await_partitions(topic)
        if error is not None:
            raise self._absent(topic, error)
        self._existing.add(topic)

    def marks(self, topic: str) -> list[int]:
        """Return the partitions of the topic of marks; creates it, compacted, with one partition."""
        error, partitions = self._list_partitions(topic)
        if error is not None and error.name() in _COMING:
            problem = f"Kafka at {self._settings.servers} has made {topic}, and does not list it yet."
            hint = TRIED_AGAIN
            try:
                self._create(topic, 1, COMPACTED)
            except SinkError as refused:  # the broker may make it itself even so
                problem = refused.message
                hint = f"Create {topic} with one partition and cleanup.policy=compact."
            error, partitions = self._await_partitions(topic)
            if error is not None:
                raise SinkError(problem, hint=hint)
        if error is not None:
            raise self._absent(topic, error)
        self._existing.add(topic)
        return partitions

    def _list_partitions(self, topic: str) -> tuple[KafkaError | None, list[int]]:
        """Ask the brokers about a topic; return the error or its partitions."""
        listed = self._producer().list_topics(topic, timeout=self._settings.timeout)
        found = listed.topics[topic]
        return found.error, sorted(found.partitions)

    def _await_partitions(self, topic: str) -> tuple[KafkaError | None, list[int]]:
        """Ask again while the brokers may still be creating the topic."""
        end = time.monotonic() + min(TOPIC_SECONDS, self._settings.timeout)
        while True:
            error, partitions = self._list_partitions(topic)
            if error is None or error.name() not in _COMING or time.monotonic() >= end:
                return error, partitions
            time.sleep(0.05)

    def _create(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
        from confluent_kafka.cimpl import NewTopic

        admin = AdminClient(client_options(self._settings))
        new = NewTopic(topic, partitions, self._settings.replication, config=config)
        try:
            timeout = min(TOPIC_SECONDS, self._settings.timeout)
            admin.create_topics([new], request_timeout=timeout)[topic].result()
        except KafkaException as failed:
            error = error_of(failed)
            if error.name() == "TOPIC_ALREADY_EXISTS":  # another output was faster
                return
            reason = str(error.str()).rstrip(".")
            problem = f"Kafka at {self._settings.servers} does not make the topic {topic}: {reason}."
            raise SinkError(problem, hint="Create it by hand.") from None

    def _absent(self, topic: str, error: KafkaError) -> SinkError:
        if error.name() not in _COMING:
            return in_words(error, f"{self._settings.servers} (topic {topic})")
        message = f"Kafka at {self._settings.servers} has no topic {topic}, and makes none by itself."
        hint = "Create it, or set output.create_topics = true; it is tried again."
        return SinkError(message, hint=hint)


TRIAL_SECONDS: Final = 10.0
"""Seconds for which somebody who only asks waits for a broker."""


def missing_topics(settings: KafkaSettings, topics: Collection[str]) -> list[str]:
    """Return those of the topics missing; raise SinkError if no broker answers or login fails."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    heard: KafkaError | None = None

    def hear(error: KafkaError) -> None:
        nonlocal heard
        heard = louder(heard, error)

    options: dict[str, Any] = {**client_options(settings), "error_cb": hear}
    client = AdminClient(options)
    try:
        listed = client.list_topics(timeout=min(settings.timeout, TRIAL_SECONDS))
    except KafkaException as failed:
        client.poll(0)  # lets the client say why nobody answers
        refusal = in_words(error_of(failed), settings.servers, heard)
        if refusal.hint == TRIED_AGAIN:  # not by who only asks
            refusal.hint = "See that a broker listens there, or change the output's `servers`."
        raise refusal from None
    return [topic for topic in topics if topic not in listed.topics]
