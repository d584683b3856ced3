"""A Kafka broker for benchmarks: the one that tests start, where its jars are on this machine."""

from __future__ import annotations

from contextlib import ExitStack

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.ending import at_end
from tests.support.servers_kafka import JavaProgram, jars_here, running


def local_broker(*topics: str) -> str | None:
    """The servers of a broker with these topics, which ends with this process; None where there are no jars."""
    jars = jars_here()
    if jars is None:
        return None
    open_until_exit = ExitStack()
    at_end(open_until_exit.close)
    broker = open_until_exit.enter_context(running(lambda _folder: JavaProgram(jars)))
    admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 2})
    if topics:
        for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
            made.result()
    return broker.servers
