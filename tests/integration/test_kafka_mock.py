"""The Kafka sink against librdkafka's stand-in, which every machine has, with a registry by HTTP; and topics that are decoded."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
import urllib3
from confluent_kafka import Producer
from msgspec.structs import replace

from eventlog.cli.main import exit_code
from eventlog.core.errors import ConfigError, DataError, ExpressionError, SinkError
from eventlog.core.model import Document, Edit, Op, Outcome, Position
from eventlog.core.schema import Catalog, Column
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.sinks.kafka.marks import NO_SPACE
from eventlog.sinks.kafka.registry import registry_of
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog.sinks.kafka.sink import KafkaSink
from tests.support.events import SHOP, event_format, shop_changes
from tests.support.messages import change, documents, inserted, orders, updated
from tests.support.registry_server import PASSWORD, USER, RegistryServer
from tests.support.servers import free_port
from tests.support.servers_kafka import consumed, settings, stand_in
from tests.support.sinks import opened, tenure


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


def told(answers: Iterable[Outcome]) -> dict[Position, str]:
    """The notes by their rows."""
    return {answer.position: answer.note or "" for answer in answers}


def test_a_full_queue_is_waited_for(mock_cluster: str) -> None:
    sink = KafkaSink(settings(mock_cluster, options={"queue.buffering.max.messages": 7, "linger.ms": 0}))
    sink.commit("", documents([inserted(n, customer="Ada") for n in range(200)], topic="mock.queue"))
    assert len(consumed(mock_cluster, "mock.queue")) == 200
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


def test_a_damaged_mark_is_told(mock_cluster: str) -> None:
    ours = settings(mock_cluster, topic="mock.damaged")
    producer = Producer({"bootstrap.servers": mock_cluster})
    producer.produce(ours.marks_topic, b"{", ours.transactional_id.encode())
    producer.flush(10)
    with pytest.raises(DataError, match=f"mark of {ours.transactional_id} .* cannot be read"):
        KafkaSink(ours).open(tenure())


def test_a_document_that_comes_late_is_not_the_last(mock_cluster: str) -> None:
    ours = settings(mock_cluster, topic="mock.late")
    sink = opened(KafkaSink(ours), tenure())
    for number in ("00004", "00003"):
        sink.commit(number, [Document(id=number, body=b"<late/>", covers={})])
    assert opened(KafkaSink(ours), tenure(2)).last() == "00004"
    sink.close()


def test_many_refused_rows_of_one_table_fit_into_one_mark(mock_cluster: str, server: RegistryServer) -> None:
    """The registry is asked once for them all."""
    asked: list[str] = []

    def refuse(subject: str, schema: str) -> tuple[int, dict[str, Any]]:
        asked.append(subject)
        return 409, {"message": "incompatible: " + "x" * 200}

    server.registered = refuse  # type: ignore[method-assign]  # only here
    many = [replace(inserted(n), positions=tuple((8 * n + field,) for field in range(8))) for n in range(1250)]
    batch = documents(many, mode="registry", encoding="avro")
    sink = opened(KafkaSink(settings(mock_cluster, **server.login)), tenure())
    said = told(sink.commit("a", batch))
    assert set(said) == {(number,) for number in range(10_000)}
    assert len(asked) == 1
    heir = opened(KafkaSink(sink._settings), tenure(2))
    there = heir.resolve("a")
    assert (there.documents, told(there.answers)) == (None, said)
    assert told(heir.commit("b", batch)) == said
    assert len(asked) == 2
    heir.close()


@pytest.mark.parametrize("count, limit", [(20, 2500), (100, 3500)])
def test_reasons_are_cut_where_a_mark_has_no_room_for_them(mock_cluster: str, count: int, limit: int) -> None:
    ours = settings(mock_cluster, max_message_bytes=limit)
    batch = documents([inserted(n, note="x" * (limit + n)) for n in range(1, count + 1)], topic="mock.room")
    sink = opened(KafkaSink(ours), tenure())
    said = told(sink.commit("a", batch))
    assert len(set(said.values())) == len(said) == count
    there = opened(KafkaSink(ours), tenure(2)).resolve("a")
    assert there.documents is None
    found = told(there.answers)
    assert set(found) == set(said)
    assert all(note == NO_SPACE or said[row].startswith(note.rstrip("…")) for row, note in found.items())
    assert (NO_SPACE in found.values()) == (count == 100)
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


def with_registry(url: str, password: str = PASSWORD) -> KafkaSettings:
    return settings("127.0.0.1:1", registry=url, registry_user=USER, registry_password=password, registry_timeout=2.0)


def test_a_schema_has_one_number_and_the_number_gives_it_back(server: RegistryServer) -> None:
    registry = registry_of(with_registry(server.url))
    first, second = '{"type":"record","name":"A","fields":[]}', '{"type":"record","name":"B","fields":[]}'
    assert [registry.number_of("s/ü", first), registry.number_of("t", second), registry.number_of("s/ü", first)] == [
        1,
        2,
        1,
    ]
    assert (registry.schema_of(1), sorted(server.subjects)) == (first, ["s/ü", "t"])
    with pytest.raises(ExpressionError, match="no schema with the number 9"):
        registry.schema_of(9)


def test_who_may_not_is_told_so_without_the_password(server: RegistryServer) -> None:
    with pytest.raises(SinkError, match=r"refuses us \(401\)") as caught:
        registry_of(with_registry(server.url, "wrong")).number_of("s", "{}")
    assert not caught.value.may_pass
    assert "wrong" not in str(caught.value)


def test_a_header_of_one_s_own_takes_the_place_of_name_and_password(server: RegistryServer) -> None:
    header = urllib3.make_headers(basic_auth=f"{USER}:{PASSWORD}")["authorization"]
    ours = settings("127.0.0.1:1", registry=server.url, registry_authorization=header, registry_user="x")
    assert registry_of(ours).number_of("s", "{}") == 1
    with pytest.raises(SinkError, match=r"refuses us \(401\)") as caught:
        registry_of(replace(ours, registry_authorization="Bearer t0ken")).number_of("s", "{}")
    assert "t0ken" not in str(caught.value)
    with pytest.raises(SinkError, match=r"refuses us \(401\)"):
        registry_of(settings("127.0.0.1:1", registry=server.url)).number_of("s", "{}")


def test_a_registry_that_does_not_answer_may_come_back(server: RegistryServer) -> None:
    with pytest.raises(SinkError, match="does not answer") as caught:
        registry_of(with_registry(f"http://127.0.0.1:{free_port()}")).number_of("s", "{}")
    assert caught.value.may_pass
    server.broken = b"<html>"
    with pytest.raises(SinkError, match="no JSON"):
        registry_of(with_registry(server.url)).number_of("s", "{}")


@pytest.mark.parametrize("url", ["localhost:8081", "ftp://host", "http://user:secret@host"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        registry_of(with_registry(url))
    assert "secret" not in str(caught.value)


def test_nothing_is_written_while_the_registry_is_away(server: RegistryServer, mock_cluster: str) -> None:
    how: dict[str, Any] = {"mode": "registry", "encoding": "avro", "topic": "mock.away"}
    own = {"registry": f"http://127.0.0.1:{free_port()}", "registry_timeout": 1.0}
    batch = documents([inserted(1, customer="Ada")], **how)
    sink = KafkaSink(settings(mock_cluster, **own))
    with pytest.raises(SinkError, match=r"registry .* does not answer.*tried again") as caught:
        sink.commit("", batch)
    assert caught.value.may_pass
    assert (sink.last(), consumed(mock_cluster, "mock.away")) == ("", [])
    sink.close()


CHANGES = [inserted(1, customer="Ada", note="a\0b\n\xff"), updated(1, customer=("Ada", "Żółć")), change(1, Op.DELETE)]


def sent(servers: str, name: str, **how: Any) -> tuple[str, str]:
    """The topics of the changes and of their metadata."""
    topic, about = f"decoded.{name}", f"decoded.{name}.about"
    with closing(KafkaSink(settings(servers))) as sink:
        sink.commit("", documents(CHANGES, topic=topic, metadata_topic=about, mode="metadata", **how))
    return topic, about


def shown(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_topics_are_read_from_a_broker(mock_cluster: str, capsys: pytest.CaptureFixture[str], encoding: str) -> None:
    topic, about = sent(mock_cluster, f"broker.{encoding}", encoding=encoding)
    assert exit_code(["decode", "messages", topic, about, "--kafka", mock_cluster, "--json"]) == 0
    found = shown(capsys)
    assert sorted(one.get("operation") or one["kind"] for one in found) == ["DELETE", "INSERT", "UPDATE", "metadata"]
    assert {one["row"]["order_id"] for one in found if one["kind"] == "data"} == {1}
    assert any(one["place"].startswith(f"{about}, partition ") for one in found)


def test_documents_need_a_topic_and_numbered_messages_a_registry(mock_cluster: str) -> None:
    numbered = documents([inserted(1)], mode="registry", encoding="avro", topic="mock.none")
    for batch, key in (([Document(id="1", body=b"", covers={})], "topic"), (numbered, "registry")):
        with pytest.raises(ConfigError, match=rf"output\.{key} is missing"):
            KafkaSink(settings(mock_cluster)).commit("", batch)
