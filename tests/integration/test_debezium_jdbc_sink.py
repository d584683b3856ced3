"""Debezium's own JDBC sink connector makes tables of our topics that are equal to the source's."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import Engine, text

from eventlog.capture import Style, TriggerOptions, track
from eventlog.sinks.events.settings import DebeziumSettings
from eventlog.sinks.kafka.plugin import KafkaOutput
from tests.jdbc_sink import TARGET, Worker, jars, sinking
from tests.support.logged import run
from tests.support.random_work import KEYS, RandomWork
from tests.support.servers_kafka import Broker, settings
from tests.support.servers_registry import RealRegistry
from tests.support.told import published, tracked_tables

JSON = {"": "org.apache.kafka.connect.json.JsonConverter", ".schemas.enable": "true"}
SECONDS = 120.0


@pytest.fixture(scope="session")
def sink_jars() -> Path:
    """The connector with all that it needs, or no test: before anything is started."""
    return jars()


def rows(engine: Engine, schema: str) -> dict[str, list[Any]]:
    """What stands in the tables of a schema; nothing in those that are not there yet."""
    found = {}
    with engine.connect() as connection:
        for table, key in KEYS.items():
            name = f"{schema}.{table}"
            there = connection.execute(text("SELECT to_regclass(:name)"), {"name": name}).scalar()
            query = f"SELECT * FROM {name} ORDER BY {', '.join(key)}"
            told = connection.execute(text(query)).mappings() if there else ()
            found[table] = [dict(one) for one in told]
    return found


def awaited(worker: Worker, engine: Engine) -> None:
    """Returns once the tables of the sink are those of the source."""
    expected, end = rows(engine, "public"), time.monotonic() + SECONDS
    while (there := rows(engine, TARGET)) != expected and time.monotonic() < end:
        assert worker.failure is None, worker.failure
        time.sleep(0.2)
    assert there == expected


@pytest.mark.in_turn
@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_debezium_s_sink_makes_the_tables_of_what_is_published(
    sink_jars: Path,
    postgresql: Engine,
    broker: Broker,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    encoding: str,
) -> None:
    """Inserts, updates, deletes, changes of the key, TRUNCATE, and a new column."""
    registry: RealRegistry | None = None
    if encoding == "avro":
        registry = request.getfixturevalue("real_registry")
    form: Any = {"schemas": True} if registry is None else {"encoding": "avro"}
    login: Any = {} if registry is None else {"registry": registry.url, "registry_timeout": 30.0}
    converter = JSON if registry is None else avro_of(registry)
    found = settings(
        broker.servers,
        transactional_id=f"sunk-{encoding}",
        create_topics=True,
        **login,
    )
    name = f"sunk.{encoding}"
    events = DebeziumSettings(topic=f"{name}.{{table}}", transaction_topic=f"tx.{encoding}", **form)
    output = KafkaOutput(**structs.asdict(found) | {"format": "debezium", "debezium": events})
    tracked_tables(postgresql, Style.IMAGE)
    run(postgresql, f"CREATE SCHEMA {TARGET}")
    work = RandomWork(postgresql, Random(41), truncates=True)
    published(work, output, rounds=1, transactions=5)
    with sinking(sink_jars, tmp_path, broker.servers, postgresql, converter, name) as worker:
        awaited(worker, postgresql)
        published(work, output, rounds=3, transactions=15)
        awaited(worker, postgresql)
        run(postgresql, "ALTER TABLE item ADD COLUMN extra VARCHAR(20)")
        track(postgresql, ["item"], TriggerOptions(style=Style.IMAGE))
        run(postgresql, "INSERT INTO item (id, extra) VALUES (90, 'ü'), (91, NULL)")
        published(work, output, rounds=1, transactions=0)
        awaited(worker, postgresql)
    assert {row["id"]: row["extra"] for row in rows(postgresql, TARGET)["item"]}[90] == "ü"
    assert any(rows(postgresql, TARGET).values())


def avro_of(registry: RealRegistry) -> dict[str, str]:
    """A converter that finds schemas by the numbers that the registry gives as Confluent's does."""
    return {
        "": "io.apicurio.registry.utils.converter.AvroConverter",
        ".apicurio.registry.url": f"{registry.root}/apis/registry/v2",
        ".apicurio.registry.as-confluent": "true",
        ".apicurio.registry.use-id": "contentId",
    }
