"""The publisher with a Kafka in trouble: brokers and topics that come and go, values that do not fit, tables that change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.config.settings import Config, from_settings
from eventlog.daemon.publisher import Publisher
from eventlog.qlik.messages.schemas import ENVELOPE, text_of
from tests.integration.publishing import publish_all
from tests.support.messages import read_by_both
from tests.support.servers_kafka import Broker, consumed


class Site:
    """A log beside a table, and an output to topics of its own."""

    def __init__(self, engine: Engine, broker: Broker) -> None:
        self.engine = engine
        self.broker = broker
        self.topic, self.about = broker.topic(), broker.topic()
        self.run("CREATE TABLE item (id INTEGER PRIMARY KEY, price NUMERIC(4,2), born DATE, note TEXT)")
        install(engine)

    def run(self, statement: str, *values: Any) -> None:
        with self.engine.begin() as connection:
            connection.exec_driver_sql(statement, values)

    def log(self, number: int, **fields: Any) -> None:
        """An object was added with these fields."""
        for name, value in fields.items():
            self.run(
                "INSERT INTO event_log (status, event_type, event_time, table_name, table_key, column_name, new_value)"
                " VALUES ('N', 1, '2026-01-01 00:00:00', 'item', ?, ?, ?)",
                f"id={number}",
                name,
                value,
            )

    def log_row(self, number: int, **fields: Any) -> None:
        """An object was added that has to be read back."""
        names, marks = ", ".join(["id", *fields]), ", ".join("?" * (len(fields) + 1))
        self.run(f"INSERT INTO item ({names}) VALUES ({marks})", number, *fields.values())
        self.run(
            "INSERT INTO event_log (status, event_type, event_time, table_name, table_key)"
            " VALUES ('N', 5, '2026-01-01 00:00:00', 'item', ?)",
            f"id={number}",
        )

    def config(self, *, timeout: float = 10.0, publisher: Mapping[str, Any] | None = None, **messages: Any) -> Config:
        output: dict[str, Any] = {
            "sink": "kafka",
            "servers": self.broker.servers,
            "transactional_id": self.topic,
            "marks_topic": f"{self.topic}.marks",
            "timeout": timeout,
            "messages": {"topic": self.topic, "metadata_topic": self.about, **messages},
        }
        settings = {"source": {"url": str(self.engine.url)}, "publisher": publisher or {}, "output": [output]}
        return from_settings(settings, {}, origin="the test")

    def statuses(self) -> list[str]:
        with self.engine.connect() as connection:
            return list(connection.exec_driver_sql("SELECT status FROM event_log ORDER BY record_id").scalars())

    def notes(self) -> list[str]:
        """What stands beside rows that ended as errors."""
        with self.engine.connect() as connection:
            asked = "SELECT note FROM event_log_outcome WHERE note IS NOT NULL ORDER BY record_id"
            return list(connection.exec_driver_sql(asked).scalars())

    def told(self) -> list[dict[str, Any]]:
        """The rows in messages that are JSON."""
        found = [msgspec.json.decode(one.value or b"") for one in consumed(self.broker.servers, self.topic)]
        return [one["data"] for one in found]

    def read(self) -> list[dict[str, Any]]:
        """The rows in messages that are Avro, with the schemas that stood in the topic of metadata."""
        schemas: dict[str, str] = {}
        for one in consumed(self.broker.servers, self.about):
            envelope = read_by_both(text_of(ENVELOPE), one.value or b"")
            metadata = read_by_both(envelope["messageSchema"], envelope["message"])
            schemas[metadata["schemaId"]] = metadata["dataSchema"]
        envelopes = [
            read_by_both(text_of(ENVELOPE), one.value or b"") for one in consumed(self.broker.servers, self.topic)
        ]
        return [read_by_both(schemas[one["messageSchemaId"]], one["message"])["data"] for one in envelopes]


@pytest.fixture
def site(sqlite: Engine, broker: Broker) -> Site:
    return Site(sqlite, broker)


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_values_that_do_not_fit_are_set_aside_one_by_one(site: Site, encoding: str) -> None:
    values: list[dict[str, Any]] = [
        {"price": "12.30", "note": "fits"},
        {"price": "123.45"},
        {"born": "1583-10-15", "note": "a\0b"},
        {"born": "1969-02-30"},
        {"born": "infinity"},
        {"price": "0.001"},
        {"born": "1969-12-31", "price": "-99.99"},
    ]
    for number, fields in enumerate(values, 1):
        site.log(number, **fields)
    mode = "metadata" if encoding == "avro" else "bare"
    publish_all(site.config(mode=mode, encoding=encoding, logical_types=True, on_value="refuse-object"))
    rows = {row["id"]: row for row in (site.read() if encoding == "avro" else site.told())}
    assert [rows[1]["note"], rows[3]["note"]] == ["fits", "a\0b"]
    assert [str(rows[number]["born"]) for number in (3, 7)] == ["1583-10-15", "1969-12-31"]
    assert [str(rows[number]["price"]) for number in (1, 7)] == ["12.30", "-99.99"]
    assert rows.keys() == ({1, 3, 7} if encoding == "avro" else {1, 2, 3, 6, 7})
    notes = " ".join(site.notes())
    assert "'item' 'id=4': column 'born': '1969-02-30' is not a" in notes
    assert "'item' 'id=5': column 'born': 'infinity' is not a" in notes
    assert (("does not fit into decimal(4,2)" in notes), site.statuses().count("E")) == (
        (True, 4) if encoding == "avro" else (False, 2)
    )


def test_a_column_that_comes_and_goes_while_it_runs_is_told_with_new_metadata(site: Site) -> None:
    config = site.config(mode="metadata", encoding="avro")
    with Publisher(config) as publisher:
        site.log(1, note="first")
        publisher.run_once()
        site.run("ALTER TABLE item ADD COLUMN rank INTEGER")
        site.log(2, rank="7")
        publisher.run_once()
        site.run("ALTER TABLE item DROP COLUMN price")
        site.log(3, price="1.00")
        site.log_row(4, note="last", rank=8)
        publisher.run_once()
    assert [one.value is not None for one in consumed(site.broker.servers, site.about)] == [True] * 3
    rows = site.read()
    assert [sorted(row) for row in rows] == [
        ["born", "id", "note", "price"],
        ["born", "id", "note", "price", "rank"],
        ["born", "id", "note", "rank"],
    ]
    assert [(row["id"], row.get("rank")) for row in rows] == [(1, None), (2, 7), (4, 8)]
    assert site.statuses() == ["S", "S", "E", "S"]
    assert "price" in site.notes()[0]
