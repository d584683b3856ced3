"""The Kafka sink against librdkafka's stand-in, which every machine has: what needs no broker that aborts."""

from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer
from msgspec.structs import replace

from eventlog.core.errors import DataError, SinkError
from eventlog.core.model import Document, Edit, Reason
from eventlog.core.schema import Catalog, Column
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.sinks.kafka.sink import KafkaSink
from tests.support.events import SHOP, event_format, shop_changes
from tests.support.messages import documents, inserted, orders
from tests.support.registry_server import RegistryServer
from tests.support.servers import free_port
from tests.support.servers_kafka import consumed, settings, stand_in
from tests.support.sinks import opened, tenure


def test_a_full_queue_is_waited_for(mock_cluster: str) -> None:
    sink = KafkaSink(settings(mock_cluster, options={"queue.buffering.max.messages": 7, "linger.ms": 0}))
    sink.commit("", documents([inserted(n, customer="Ada") for n in range(200)], topic="mock.queue"))
    assert len(consumed(mock_cluster, "mock.queue")) == 200
    sink.close()


def test_what_our_own_limit_refuses_is_set_aside_at_once(mock_cluster: str) -> None:
    sink = KafkaSink(settings(mock_cluster, max_message_bytes=2000))
    batch = documents(
        [inserted(1, note="x" * 3000), inserted(2, note="y"), inserted(3, note="z" * 1560)], topic="mock.size"
    )
    said = sink.commit("", batch)
    assert (1,) in {one.position for one in said}
    assert {one.reason for one in said} == {Reason.REFUSED}
    told = [msgspec.json.decode(one.value or b"")["data"]["order_id"] for one in consumed(mock_cluster, "mock.size")]
    assert 2 in told
    assert 1 not in told
    sink.close()


def test_nobody_answers_at_the_start() -> None:
    sink = KafkaSink(settings(f"127.0.0.1:{free_port()}", timeout=0.5))
    with pytest.raises(SinkError, match=r"does not answer.*tried again") as caught:
        sink.open(None)
    assert caught.value.may_pass
    with pytest.raises(SinkError):
        sink.commit("", [Document(id="1", body=b"", covers={})])
    sink.close()


@pytest.mark.in_turn
def test_a_connection_that_failed_is_gone_though_its_error_is_kept() -> None:
    """Else it would take the transactional id away from its successor, once the brokers are back."""

    def producers() -> int:
        return sum(isinstance(one, Producer) for one in gc.get_objects())

    before = producers()
    sink = KafkaSink(settings(f"127.0.0.1:{free_port()}", timeout=0.5))
    with pytest.raises(SinkError) as caught:
        sink.open(None)
    assert producers() == before
    with stand_in() as servers:
        cut = KafkaSink(settings(servers, timeout=15))  # a busy machine needs more than a moment
        cut.open(None)
        during = producers()
    assert during > before
    with pytest.raises(SinkError) as another:
        cut.commit("", documents([inserted(1, customer="Ada")], topic="mock.cut"))
    assert producers() == before
    assert caught.value.may_pass
    assert another.value.may_pass


@pytest.mark.parametrize("value, last", [(b'{"last":"00004"}', "00004"), (b"{", None)])
def test_a_mark_of_an_older_eventlog_is_gone_on_from_and_a_damaged_one_is_told(
    mock_cluster: str, value: bytes, last: str | None
) -> None:
    ours = settings(mock_cluster, topic="mock.older")
    producer = Producer({"bootstrap.servers": mock_cluster})
    producer.produce(ours.marks_topic, value, ours.transactional_id.encode())
    producer.flush(10)
    sink = KafkaSink(ours)
    if last is None:
        with pytest.raises(DataError, match=f"mark of {ours.transactional_id} .* cannot be read"):
            sink.open(tenure())
        return
    assert opened(sink, tenure()).last() == last
    sink.commit("a", [Document(id="00003", body=b"<late/>", covers={})])
    assert opened(KafkaSink(ours), tenure(2)).last() == last
    sink.close()


def test_versions_go_on_from_what_the_table_counts_and_from_what_was_told(mock_cluster: str) -> None:
    sink = KafkaSink(settings(mock_cluster))
    how: dict[str, Any] = {"mode": "metadata", "topic": "mock.versions", "metadata_topic": "mock.versions.md"}
    how["metadata_key"] = "schema-id"
    last = ""
    forms: list[tuple[int, tuple[Column, ...]]] = [(3, ()), (3, (Column(name="a"),)), (9, (Column(name="b"),))]
    for version, extra in forms:
        catalog = Catalog([replace(table, version=version) for table in orders(*extra)])
        made = documents([inserted(1)], catalog, last, **how)
        sink.commit("", made)
        last = made[-1].id
    found = [
        (one.key, msgspec.json.decode(one.value or b"")["message"])
        for one in consumed(mock_cluster, how["metadata_topic"])
    ]
    assert sorted(said["lineage"]["tableVersion"] for _, said in found) == [3, 4, 9]
    assert [key for key, _ in found] == [said["schemaId"].encode() for _, said in found]
    sink.close()


def test_a_registry_numbers_keys_and_values(mock_cluster: str) -> None:
    how: dict[str, Any] = {"mode": "registry", "encoding": "avro", "avro_key": True, "topic": "mock.registry"}
    with RegistryServer() as registry:
        sink = KafkaSink(settings(mock_cluster, **registry.login))
        sink.commit("", documents([inserted(1, customer="Ada")], **how))
        sink.close()
    [found] = consumed(mock_cluster, "mock.registry")
    key, value = found.key or b"", found.value or b""
    schemas = {"mock.registry-key": key, "mock.registry-value": value}
    for subject, told in schemas.items():
        [schema] = registry.subjects[subject]
        assert told[:5] == b"\0" + (registry.schemas.index(schema) + 1).to_bytes(4, "big")
    assert registry.subjects["mock.registry-key"][0].startswith('{"type":"record","name":"KeyRecord"')


def test_events_come_with_headers_keys_and_tombstones(mock_cluster: str) -> None:
    """What the brokers have of Debezium's envelopes and of CloudEvents in both modes."""
    sink = KafkaSink(settings(mock_cluster))
    sink.open(None)
    modes: list[tuple[str, dict[str, Any]]] = [
        ("debezium", {}),
        ("cloudevents", {}),
        ("cloudevents", {"mode": "binary"}),
    ]
    for kind, options in modes:
        topic = f"mock.{kind}.{options.get('mode', 'structured')}"
        form = event_format(kind, topics=True, topic=topic, **options)
        batch = [one for one in encode(form, shop_changes(), SHOP) if isinstance(one, MessagesDocument)]
        assert list(sink.commit("", batch)) == []
        sent = [message for one in batch for message in one.messages]
        found = consumed(mock_cluster, topic)
        keyed = [one for one in sent if one.key is not None]
        assert [(one.key, one.value) for one in found if one.key is not None] == [(one.key, one.value) for one in keyed]
        assert {one.headers for one in found} == {one.headers for one in sent}
    sink.close()


def test_an_event_that_is_too_large_is_set_aside(mock_cluster: str) -> None:
    sink = KafkaSink(settings(mock_cluster, max_message_bytes=1000))
    form = event_format("jsonl", topics=True)
    large, small = shop_changes()[:2]
    refuses = sink.capabilities.refuses
    assert refuses is not None
    said = [refuses(one) for one in form.writer(SHOP)([large, small])]
    assert said == [None, None]
    note = replace(large, edits=(Edit(column="note", new="x" * 1000),))
    [why] = [refuses(one) for one in form.writer(SHOP)([note])]
    assert why is not None
    assert "more than topic shop.goods takes" in why
