"""Debezium's embedded engine as a capture that is not ours: it reads a database's own log while a test writes.

`./dev fetch debezium` gets the jars; EVENTLOG_REQUIRE=debezium makes their absence a failure.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from sqlalchemy import URL, Engine, text

from tests.support.servers import PATIENCE, absent, found

PROGRAM = Path(__file__).with_name("Capture.java")
OPTIONS = ("-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
MARK = "debezium_mark"
"""A table of which both ends are written: the engine reads what is between them."""
PREFIX = "srv"

CONNECTORS: Mapping[str, Mapping[str, object]] = {
    "postgresql": {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "plugin.name": "pgoutput",
        "publication.autocreate.mode": "filtered",
        "slot.drop.on.stop": "true",
    },
    "mysql": {
        "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
        "database.server.id": 4711,
        "database.ssl.mode": "disable",
        "include.schema.changes": "false",
        "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        "schema.history.internal.store.only.captured.tables.ddl": "true",
    },
}


class Told(Struct, frozen=True):
    """An event: its topic, its key and its value, with their schemas."""

    topic: str
    key: Any
    value: Any


def jars() -> Path:
    """The engine and its connectors; the level is absent without them."""
    if shutil.which("javac") is None:
        absent("debezium", "there is no Java that compiles and runs it")
    return found("debezium", "debezium")


@contextmanager
def capture(engine: Engine, tables: list[str], folder: Path, **options: object) -> Iterator[Callable[[], list[Told]]]:
    """Capture what is written to the tables in the block; the call that it gives waits for all of it, and tells it."""
    schema = "public" if engine.dialect.name == "postgresql" else engine.url.database
    with engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE {MARK} (id INTEGER NOT NULL PRIMARY KEY)"))
    properties = folder / "debezium.properties"
    named = {name.replace("_", "."): value for name, value in options.items()}
    settings = _settings(engine.url, engine.dialect.name, [f"{schema}.{table}" for table in (*tables, MARK)]) | named
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    told, log = folder / "debezium.events", folder / "debezium.log"
    command = ["java", *OPTIONS, "-cp", f"{jars()}/*", str(PROGRAM), str(properties)]
    with told.open("wb") as out, log.open("wb") as said:
        process = subprocess.Popen(command, stdout=out, stderr=said, cwd=folder)
    try:
        numbers = iter(range(1_000_000))

        def mark() -> int:
            number = next(numbers)
            with engine.begin() as connection:
                connection.execute(text(f"INSERT INTO {MARK} VALUES ({number})"))
            return number

        def wait(number: int | None) -> list[Told]:
            """Until a mark was read: this one, or any."""
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end:
                assert process.poll() is None, log.read_text(errors="replace")[-5000:]
                events = _read(told)
                seen = {event.key["payload"]["id"] for event in events if event.topic.endswith(MARK)}
                if seen if number is None else number in seen:
                    return [event for event in events if not event.topic.endswith(MARK)]
                if number is None:
                    mark()
                time.sleep(0.5)
            raise AssertionError(f"Debezium told no mark: {log.read_text(errors='replace')[-5000:]}")

        wait(None)  # it reads from some moment on, and not before
        yield lambda: wait(mark())
    finally:
        process.kill()
        process.wait()


def _settings(url: URL, database: str, tables: list[str]) -> dict[str, object]:
    return {
        "name": "engine",
        "topic.prefix": PREFIX,
        "database.hostname": url.host,
        "database.port": url.port,
        "database.user": url.username,
        "database.password": url.password or "",
        "database.dbname" if database == "postgresql" else "database.include.list": url.database,
        "table.include.list": ",".join(tables),
        "snapshot.mode": "no_data",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "offset.flush.interval.ms": 60_000,
        # A NULL is told as such, and not as the column's default.
        "converter.replace.null.with.default": "false",
        **CONNECTORS[database],
    }


def _read(file: Path) -> list[Told]:
    """The events in whole lines; what stands behind a deletion for Kafka is none."""
    lines = file.read_text().split("\n")[:-1]
    events = []
    for line in lines:
        topic, key, value = line.split("\t")
        if value != "null":
            events.append(Told(topic, json.loads(key), json.loads(value)))
    return events
