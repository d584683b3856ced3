"""The publisher with a Kafka: a log becomes messages, each once, whatever dies, is away or refuses us meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import EX_UNAVAILABLE
from tests.acceptance.command import eventlog
from tests.integration.publishing import publish_all
from tests.support.servers_kafka import USERS, Broker, consumed


@pytest.fixture
def config(sqlite: Engine, broker: Broker) -> Config:
    """A log of three changes to one object, and topics that are nobody else's."""
    topic = broker.topic()
    with sqlite.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT, age INTEGER)")
    install(sqlite)
    rows = [
        (1, 1, "fname", None, "Jack"),
        (2, 1, "age", None, "7"),
        (3, 2, "fname", "Jack", "Ann"),
        (4, 4, None, None, None),
    ]
    with sqlite.begin() as connection:
        for number, kind, column, old, new in rows:
            connection.exec_driver_sql(
                "INSERT INTO event_log (record_id, status, event_type, event_time, table_name, table_key, column_name,"
                " old_value, new_value) VALUES (?, 'N', ?, '2026-01-01 00:00:00', 'usr', 'idu=1', ?, ?, ?)",
                (number, kind, column, old, new),
            )
    output: dict[str, Any] = {
        "sink": "kafka",
        "servers": broker.servers,
        "transactional_id": topic,
        "marks_topic": f"{topic}.marks",
    }
    output |= {"create_topics": True, "messages": {"topic": topic}}
    settings = {"source": {"url": str(sqlite.url)}, "publisher": {"query_limit": 2}, "output": [output]}
    return from_settings(settings, {}, origin="the test")


def told(broker: Broker, config: Config) -> list[tuple[str, str | None]]:
    (output,) = config.output
    found = [msgspec.json.decode(one.value or b"") for one in consumed(broker.servers, output.messages.topic)]  # type: ignore[attr-defined]  # it is Kafka's
    return [(one["headers"]["operation"], one["data"]["fname"]) for one in found]


CHANGES = [("INSERT", "Jack"), ("UPDATE", "Ann"), ("DELETE", None)]


def test_who_dies_before_the_log_is_marked_repeats_nothing(
    broker: Broker, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as crash:
        crash.setattr("eventlog.publisher.journal.settle", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            publish_all(config)
    assert told(broker, config) == CHANGES
    publish_all(config)
    assert told(broker, config) == CHANGES


def statuses(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return list(connection.exec_driver_sql("SELECT status FROM event_log ORDER BY record_id").scalars())


def test_a_wrong_password_ends_the_publisher_settles_nothing_and_stays_secret(
    broker: Broker, config: Config, sqlite: Engine, tmp_path: Path
) -> None:
    (output,) = config.output
    topic = output.messages.topic  # type: ignore[attr-defined]  # it is Kafka's
    file, secret = tmp_path / "eventlog.toml", tmp_path / "password"
    file.write_text(
        f"""
        [source]
        url = "{sqlite.url}"
        [[output]]
        sink = "kafka"
        servers = "{broker.login}"
        transactional_id = "{topic}"
        marks_topic = "{topic}.marks"
        timeout = 3.0
        tls = true
        ca_file = "{broker.authority.certificate}"
        sasl = "scram-sha-512"
        user = "writer"
        password = "${{file:{secret}}}"
        messages = {{ topic = "{topic}" }}
        """
    )
    secret.write_text("wr0ng-pa55word")
    done = eventlog("run", "--until-empty", "--config", file)
    assert done.returncode == EX_UNAVAILABLE
    assert "Check output.sasl, output.user and output.password." in done.stderr
    assert "wr0ng" not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    assert statuses(sqlite) == ["N"] * 4
    secret.write_text(USERS["writer"])
    done = eventlog("run", "--until-empty", "--config", file)
    assert (done.returncode, statuses(sqlite)) == (0, ["S"] * 4)
    assert told(broker, config) == CHANGES
