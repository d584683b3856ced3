"""Messages whose schemas are in a real registry: its numbers, its rules, and readers that ask it and not us."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from eventlog.core.errors import SinkError
from eventlog.core.model import Op, Reason, Status
from eventlog.core.schema import Catalog, Column, Table
from eventlog.qlik.messages.reader import MessageReader
from eventlog.sinks.kafka.registry import registry_of
from eventlog.sinks.kafka.sink import KafkaSink
from tests.support.messages import ORDERS, change, documents, inserted, read_by_both, updated
from tests.support.servers_kafka import Found, consumed, settings
from tests.support.servers_registry import RealRegistry

CHANGES = [
    inserted(1, customer="Ada", amount="19.90", placed_on="1969-12-31", note="a\0b"),
    updated(1, customer=("Ada", "Żółć")),
    change(1, Op.DELETE),
]
RECORD = "com.attunity.queue.msg.{task}.shop.orders.{name}"


def how(name: str, **others: Any) -> dict[str, Any]:
    """A topic and a task of its own, so that no other test has its subjects."""
    own = {"topic": f"reg.{name}", "task": f"reg_{name}", "key": "table"}
    return {"mode": "registry", "encoding": "avro", **own, **others}


def numbered(found: Found) -> tuple[int, bytes]:
    """The number of the schema, and what it describes."""
    value = found.value or b""
    assert value[:1] == b"\0"
    return int.from_bytes(value[1:5], "big"), value[5:]


def orders_with(**types: str) -> Catalog:
    """The table with other types for some of its columns, or further ones."""
    columns = [Column(name=c.name, type=types.pop(c.name, c.type), key=c.key) for c in ORDERS.columns]
    columns += [Column(name=name, type=kind) for name, kind in types.items()]
    return Catalog([Table(schema="shop", name="orders", columns=tuple(columns))])


@pytest.fixture
def sink(real_registry: RealRegistry, mock_cluster: str) -> Iterator[KafkaSink]:
    with closing(KafkaSink(settings(mock_cluster, registry=real_registry.url, registry_timeout=30.0))) as made:
        yield made


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "subject, logical, expected",
    [
        ("topic", True, ["reg.{task}-key", "reg.{task}-value"]),
        ("record", False, [RECORD.format(task="reg_{task}", name=name) for name in ("DataRecord", "KeyRecord")]),
        (
            "topic-record",
            False,
            ["reg.{task}-" + RECORD.format(task="reg_{task}", name=n) for n in ("DataRecord", "KeyRecord")],
        ),
    ],
)
def test_readers_that_are_not_ours_find_each_schema_by_its_number(
    sink: KafkaSink, real_registry: RealRegistry, mock_cluster: str, subject: str, expected: list[str], logical: bool
) -> None:
    name = f"{subject.replace('-', '_')}_{logical:d}"
    batch = documents(CHANGES, **how(name, subject=subject, key="row", avro_key=True, logical_types=logical))
    assert list(sink.commit("", batch)) == []
    topic = f"reg.{name}"
    assert set(real_registry.asked("GET", "/subjects")) >= {one.format(task=name) for one in expected}
    operations = []
    with closing(SchemaRegistryClient({"url": real_registry.url})) as official:
        theirs = AvroDeserializer(official)
        for one in consumed(mock_cluster, topic):
            number, content = numbered(one)
            found = read_by_both(real_registry.asked("GET", f"/schemas/ids/{number}")["schema"], content)
            assert found == theirs(one.value, SerializationContext(topic, MessageField.VALUE))
            assert theirs(one.key, SerializationContext(topic, MessageField.KEY)) == {"order_id": 1}
            operations.append(found["headers"]["operation"])
    assert operations == ["INSERT", "UPDATE", "DELETE"]


@pytest.mark.parametrize("level", ["BACKWARD", "FULL_TRANSITIVE"])
def test_columns_come_and_go_under_every_rule(
    sink: KafkaSink, real_registry: RealRegistry, mock_cluster: str, level: str
) -> None:
    real_registry.demand(level)
    asked = how(f"grow_{level.lower()}")
    assert list(sink.commit("", documents([inserted(1, customer="Ada")], **asked))) == []
    wider = orders_with(rank="integer", since="date")
    assert list(sink.commit("", documents([inserted(2, rank=3)], wider, sink.last(), **asked))) == []
    assert list(sink.commit("", documents([inserted(3, customer="Eve")], after=sink.last(), **asked))) == []
    reader = MessageReader(registry_of(sink._settings).schema_of)
    found = consumed(mock_cluster, asked["topic"])
    assert [(reader.read(one.value).row or {}).get("rank", "none") for one in found] == ["none", 3, "none"]
    first, second, third = [numbered(one)[0] for one in found]
    assert first == third != second
    assert real_registry.asked("GET", f"/subjects/{asked['topic']}-value/versions") == [1, 2]


def test_a_type_that_changes_is_set_aside_in_the_registry_s_words_and_taken_when_the_rule_is_loosened(
    sink: KafkaSink, real_registry: RealRegistry, mock_cluster: str
) -> None:
    asked = how("clash")
    sink.commit("", documents([inserted(1, amount="1.5")], **asked))
    other = orders_with(amount="integer")
    [said] = sink.commit("", documents([inserted(2, amount=7)], other, sink.last(), **asked))
    assert (said.position, said.status, said.reason) == ((2,), Status.ERROR, Reason.REFUSED)
    note = said.note or ""
    assert note.startswith("the schema registry refuses the schema of reg.clash-value: ")
    assert "ncompatible" in note
    assert note.endswith("; change the subject's compatibility or undo the change of the table, then requeue.")
    assert list(sink.commit("", documents([inserted(3, amount="2.5")], after=sink.last(), **asked))) == []
    real_registry.demand("NONE")
    assert list(sink.commit("", documents([inserted(2, amount=7)], other, sink.last(), **asked))) == []
    reader = MessageReader(registry_of(sink._settings).schema_of)
    rows = [reader.read(one.value).row or {} for one in consumed(mock_cluster, asked["topic"])]
    assert [(row["order_id"], row["amount"]) for row in rows] == [(1, "1.50"), (3, "2.50"), (2, 7)]


@pytest.mark.in_turn
def test_a_registry_that_goes_away_holds_up_only_what_it_does_not_know_and_loses_nothing(
    sink: KafkaSink, real_registry: RealRegistry, mock_cluster: str
) -> None:
    asked, wider = how("away"), orders_with(rank="integer")
    sink.commit("", documents([inserted(1, customer="Ada")], **asked))
    real_registry.stop()
    try:
        assert list(sink.commit("", documents([inserted(2, customer="Bob")], after=sink.last(), **asked))) == []
        last = sink.last()
        batch = documents([inserted(3, rank=1), inserted(4, rank=2)], wider, last, **asked)
        for _ in range(2):
            with pytest.raises(SinkError, match=r"registry .* does not answer .*tried again") as caught:
                sink.commit("", batch)
            assert caught.value.may_pass
        assert sink.last() == last
        assert len(consumed(mock_cluster, asked["topic"])) == 2
    finally:
        real_registry.start()
    assert list(sink.commit("", batch)) == []
    reader = MessageReader(registry_of(sink._settings).schema_of)
    found = [(reader.read(one.value).row or {})["order_id"] for one in consumed(mock_cluster, asked["topic"])]
    assert found == [1, 2, 3, 4]


def test_an_address_without_its_path_is_said_and_waiting_does_not_help(
    real_registry: RealRegistry, mock_cluster: str
) -> None:
    with closing(KafkaSink(settings(mock_cluster, registry=real_registry.root))) as lost:
        with pytest.raises(SinkError, match=r"knows nothing of subjects.*Check output\.registry") as caught:
            lost.commit("", documents([inserted(1, customer="Ada")], **how("lost")))
        assert not caught.value.may_pass
