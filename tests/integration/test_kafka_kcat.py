"""What an independent client finds at the broker: kcat fetches the bytes, Avro's own library and fastavro read them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from eventlog.core.model import Op
from eventlog.qlik.messages.schemas import ENVELOPE, text_of
from eventlog.sinks.kafka.sink import KafkaSink
from tests.support.messages import change, documents, inserted, read_by_both, updated
from tests.support.registry_server import RegistryServer
from tests.support.servers import absent
from tests.support.servers_kafka import Broker, settings

CHANGES = [
    inserted(1, customer="Ada", amount="19.90", placed_on="1969-12-31", note="a\0b\n"),
    updated(1, customer=("Ada", "Żółć")),
    change(1, Op.DELETE),
]


def fetched(servers: str, topic: str, *options: str) -> list[tuple[str, bytes]]:
    """Keys and values as kcat prints them: the length of each value says where it ends, whatever is in it."""
    kcat = shutil.which("kcat")
    if kcat is None:
        absent("kafka", "there is no kcat")
    given = [word for option in ("isolation.level=read_committed", *options) for word in ("-X", option)]
    command = [kcat, "-m", "60", "-b", servers, "-t", topic, "-C", "-e", "-q", "-f", "%k %S %s", *given]
    done = subprocess.run(command, capture_output=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return list(_parts(done.stdout))


def _parts(printed: bytes) -> Iterator[tuple[str, bytes]]:
    while printed:
        key, size, rest = printed.split(b" ", 2)
        yield key.decode(), rest[: int(size)]
        printed = rest[int(size) :]


def data_messages(
    topic: str, about: str, servers: str, mode: str, encoding: str, numbered: list[str]
) -> list[dict[str, Any]]:
    """The data messages in the topic, read with nothing but what a consumer has: the topics, and the schemas that a registry has numbered."""
    values = [value for _, value in fetched(servers, topic)]
    if mode == "registry":
        return [read_by_both(numbered[int.from_bytes(one[1:5], "big") - 1], one[5:]) for one in values]
    if encoding == "json":
        found = [msgspec.json.decode(one) for one in values]
        return found if mode == "bare" else [one["message"] for one in found]
    envelopes = [read_by_both(text_of(ENVELOPE), one) for one in values]
    [(_, told)] = fetched(servers, about)
    envelope = read_by_both(text_of(ENVELOPE), told)
    metadata = read_by_both(envelope["messageSchema"], envelope["message"])
    assert {one["messageSchemaId"] for one in envelopes} == {metadata["schemaId"]}
    return [read_by_both(metadata["dataSchema"], one["message"]) for one in envelopes]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "mode, encoding",
    [("bare", "json"), ("envelope", "json"), ("metadata", "json"), ("metadata", "avro"), ("registry", "avro")],
)
def test_kcat_reads_what_was_written(broker: Broker, mode: str, encoding: str) -> None:
    topic, about = broker.topic(), broker.topic()
    how: dict[str, Any] = {"mode": mode, "encoding": encoding, "topic": topic, "metadata_topic": about}
    with RegistryServer() as registry, closing(KafkaSink(settings(broker.servers, **registry.login))) as sink:
        assert list(sink.commit("", documents(CHANGES, **how))) == []
    found = data_messages(topic, about, broker.servers, mode, encoding, registry.schemas)
    assert [one["headers"]["operation"] for one in found] == ["INSERT", "UPDATE", "DELETE"]
    row = found[0]["data"]
    assert (row["customer"], row["amount"], row["placed_on"], row["note"]) == ("Ada", "19.90", "1969-12-31", "a\0b\n")
    assert (found[1]["data"]["customer"], found[1]["beforeData"]["customer"]) == ("Żółć", "Ada")
    assert [key for key, _ in fetched(broker.servers, topic)] == ["1"] * 3
