"""The whole way on PostgreSQL: random changes, triggers, publisher, change tables, `eventlog apply`: mirror = source."""

from __future__ import annotations

import random

import pytest
from sqlalchemy import Connection, Engine, text

from eventlog.capture import Style, track
from eventlog.capture import TriggerOptions as TrackOptions
from eventlog.capture.install import install
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import ConfigError
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.output import Output
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.sinks.database.mirror import Mirrors
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from eventlog.sql.names import LogNames
from tests.integration.publishing import url_of

TABLE = "CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname VARCHAR(40), pay NUMERIC(10,2), photo BYTEA, at TIMESTAMP, ok BOOLEAN)"
NAMES = LogNames()


def change(connection: Connection, dice: random.Random) -> None:
    """Inserts, updates or deletes a row, one in ten with another key."""
    key = dice.randint(1, 8)
    values = {
        "k": key,
        "other": dice.randint(1, 8),
        "fname": dice.choice([None, "", "Jack", 'O\'Neil, "x"\\']),
        "pay": dice.choice([None, "1.50", "-99999.99"]),
        "photo": dice.choice([None, b"", b"\xaa\x00"]),
        "at": dice.choice([None, "2026-01-02 03:04:05.123456"]),
        "ok": dice.choice([None, True, False]),
    }
    step = dice.choice(["insert", "insert", "update", "update", "delete", "key"])
    if step == "insert":
        connection.execute(
            text(
                "INSERT INTO usr VALUES (:k, :fname, :pay, :photo, :at, :ok) ON CONFLICT (idu) DO UPDATE SET ok = :ok"
            ),
            values,
        )
    elif step == "update":
        column = dice.choice(["fname", "pay", "photo", "at", "ok"])
        connection.execute(text(f"UPDATE usr SET {column} = :{column} WHERE idu = :k"), values)
    elif step == "delete":
        connection.execute(text("DELETE FROM usr WHERE idu = :k"), values)
    else:
        free = "AND NOT EXISTS (SELECT 1 FROM usr WHERE idu = :other)"
        connection.execute(text(f"UPDATE usr SET idu = :other WHERE idu = :k {free}"), values)


def rows(engine: Engine, table: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(f"SELECT * FROM {table} ORDER BY idu"))]


def tracked(engine: Engine, style: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(TABLE))
    install(engine, NAMES)
    track(engine, ["usr"], TrackOptions(style=Style(style)), NAMES)


@pytest.mark.in_turn
@pytest.mark.parametrize("style", ["field", "field-replace", "row-back", "field-back"])
def test_the_mirror_equals_the_source_after_random_changes(postgresql: Engine, style: str) -> None:
    tracked(postgresql, style)
    dice = random.Random(7)
    config = Config(
        source=SourceConfig(url=url_of(postgresql), log=NAMES.table),
        publisher=PublisherConfig(allow_loopback=True),
    )
    outputs = [Output(format=ChangeTableFormat(), sink=DatabaseSink(DatabaseSettings(url=url_of(postgresql))))]
    for _ in range(6):
        for _ in range(dice.randint(3, 6)):
            with postgresql.begin() as connection:
                for _ in range(dice.randint(1, 5)):
                    change(connection, dice)
        with Publisher(config, outputs=outputs) as publisher:
            for report in publisher.rounds(until_empty=True):
                assert report.errors == 0
        Mirrors(postgresql, piece=7).apply()
        assert rows(postgresql, "usr__mirror") == rows(postgresql, "usr")
    assert len(rows(postgresql, "usr__ct")) > 25


def test_a_schema_that_is_not_there_is_named(postgresql: Engine) -> None:
    sink = DatabaseSink(DatabaseSettings(url=url_of(postgresql), schema="nowhere"))
    with pytest.raises(ConfigError, match="The database of the change tables has no schema nowhere"):
        sink.open(None)
    sink.close()
