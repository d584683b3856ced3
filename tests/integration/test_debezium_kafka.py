"""Debezium's envelopes in Avro at Kafka: readers that are not ours, and schemas that change."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from random import Random
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from msgspec import structs
from sqlalchemy import Engine

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import SinkError
from eventlog.publisher.statuses import record_ends
from eventlog.sinks.events.settings import DebeziumSettings
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.tracked.options import Style
from tests.integration.publishing import publish_all
from tests.support.messages import read_by_both
from tests.support.random_work import KEYS, RandomWork, keyed, state, typed
from tests.support.registry_server import RegistryServer
from tests.support.servers_kafka import consumed, settings
from tests.support.servers_registry import RealRegistry
from tests.support.told import published, tracked_tables


def output(servers: str, transactional_id: str, login: dict[str, Any], **how: Any) -> KafkaOutput:
    """An output of envelopes in Avro."""
    found = settings(
        servers,
        **login,
        transactional_id=transactional_id,
        marks_topic=f"{transactional_id}.marks",
    )
    form = DebeziumSettings(encoding="avro", **how)
    return KafkaOutput(**structs.asdict(found) | {"format": "debezium", "debezium": form})


def numbered(content: bytes, schemas: Sequence[str]) -> Any:
    """What a message says by the schema whose number stands before it."""
    assert content[:1] == b"\0"
    return read_by_both(schemas[int.from_bytes(content[1:5], "big") - 1], content[5:])


def position(event: dict[str, Any]) -> int:
    """The last row of the log behind an event: the partitions of a topic have no common order."""
    return int(event["source"]["position"].rpartition("-")[2])


@pytest.mark.in_turn
@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_the_transaction_topic_counts_what_is_there_however_batches_cut_and_publishers_die(
    postgresql: Engine, mock_cluster: str, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    tracked_tables(postgresql, Style.IMAGE)
    work, chance, topic = RandomWork(postgresql, Random(5)), Random(6), f"dbz.tx.{encoding}"
    for _ in range(25):
        work.transact()
    form = DebeziumSettings(
        encoding="avro" if encoding == "avro" else "json",
        topic=f"{topic}.{{table}}",
        transaction_topic=topic,
        tombstones=False,
        batch_size=3,
    )

    def dying(*given: Any, **named: Any) -> None:
        if chance.random() < 0.3:
            raise SinkError("It dies before it settles.")
        record_ends(*given, **named)

    with RegistryServer() as registry:
        found = output(mock_cluster, topic, registry.login)
        source = SourceConfig(url=postgresql.url.render_as_string(hide_password=False))
        limits = PublisherConfig(allow_loopback=True, query_limit=7)
        config = Config(
            source=source,
            publisher=limits,
            output=(structs.replace(found, debezium=form),),
        )
        with monkeypatch.context() as crashes:
            crashes.setattr("eventlog.publisher.writing.record_ends", dying)
            for _ in range(6):
                with suppress(SinkError):
                    publish_all(config)
        publish_all(config)
        schemas = registry.schemas

    def said(of: str) -> list[Any]:
        values = [one.value or b"" for one in consumed(mock_cluster, of)]
        return [json.loads(one) if encoding == "json" else numbered(one, schemas) for one in values]

    begun = counted_rightly(said(topic), {table: said(f"{topic}.{table}") for table in KEYS})
    assert len(begun) > 10
    with postgresql.connect() as connection:
        told_left = connection.exec_driver_sql("SELECT transactions FROM event_log_output").scalars()
        assert not any(told_left)
        ids = connection.exec_driver_sql(
            "SELECT DISTINCT eventlog_transaction::text FROM event_log",
        )
        assert begun <= set(ids.scalars())


def counted_rightly(marks: Sequence[Any], events: Mapping[str, Sequence[Any]]) -> set[str]:
    """The transactions, each of which has one BEGIN and one END, with the counts of the events."""
    begun = [one["id"] for one in marks if one["status"] == "BEGIN"]
    ended = {one["id"]: one for one in marks if one["status"] == "END"}
    assert sorted(begun) == sorted(ended)
    assert len(marks) == 2 * len(begun)
    places: dict[str, list[tuple[int, str, int]]] = {name: [] for name in begun}
    for table, told in events.items():
        for block in (event["transaction"] for event in told):
            place = (block["total_order"], f"public.{table}", block["data_collection_order"])
            places[block["id"]].append(place)
    for name, several in places.items():
        several.sort()
        assert [place for place, *_ in several] == [*range(1, ended[name]["event_count"] + 1)]
        counts: dict[str, int] = {}
        for _, table, of_table in several:
            counts[table] = counts.get(table, 0) + 1
            assert of_table == counts[table]
        said = ended[name]["data_collections"]
        assert {one["data_collection"]: one["event_count"] for one in said} == counts
    return set(begun)


@pytest.fixture
def official(real_registry: RealRegistry) -> Iterator[SchemaRegistryClient]:
    with closing(SchemaRegistryClient({"url": real_registry.url})) as made:
        yield made


def typed_row(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """The row with values that can be compared: Debezium's dates are days since 1970."""
    if row is None:
        return None
    day = row.get("born")
    dates = {} if day is None else {"born": dt.date(1970, 1, 1) + dt.timedelta(days=day)}
    return typed({**row, **dates})


@pytest.mark.in_turn
def test_a_reader_that_is_not_ours_makes_the_tables_of_what_a_real_log_tells(
    postgresql: Engine,
    real_registry: RealRegistry,
    official: SchemaRegistryClient,
    mock_cluster: str,
) -> None:
    """By triggers and a publisher to Kafka; each row before stood, and in the end all stand."""
    tracked_tables(postgresql, Style.IMAGE)
    work = RandomWork(postgresql, Random(41), truncates=True)
    login = {"registry": real_registry.url, "registry_timeout": 30.0}
    found = output(mock_cluster, "dbz-work", login, topic="dbz.work.{table}", tombstones=False)
    published(work, found, rounds=3, transactions=15)
    theirs, told = AvroDeserializer(official), []
    for table in KEYS:
        topic = f"dbz.work.{table}"
        for one in consumed(mock_cluster, topic):
            value = theirs(one.value, SerializationContext(topic, MessageField.VALUE))
            row = value["after"] or value["before"]
            if one.key is not None:
                key = theirs(one.key, SerializationContext(topic, MessageField.KEY))
                assert key == {name: row[name] for name in KEYS[table]}
            told.append((position(value), table, value))
    rows: dict[Any, Any] = {}
    for _, table, event in sorted(told, key=lambda one: one[0]):
        if event["op"] == "t":
            rows = {place: row for place, row in rows.items() if place[0] != table}
            continue
        before, after = (typed_row(event[side]) for side in ("before", "after"))
        place = (table, keyed(table, after or before or {}))
        assert rows.pop(place, None) == before
        rows |= {} if after is None else {place: after}
    with postgresql.connect() as connection:
        assert rows == state(connection)
    assert {event["op"] for *_, event in told} >= {"c", "u", "d"}
