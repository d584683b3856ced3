"""Debezium's JDBC sink connector in Kafka Connect's own runtime, as a consumer that is not ours.

`./dev fetch connect` gets the jars; EVENTLOG_REQUIRE=connect makes their absence a failure.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine

from tests.support.servers import absent, found, free_port

OPTIONS = ("-Xmx500m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
TARGET = "sunk"
"""The schema of the tables that the connector makes."""


class Worker:
    """A worker of Kafka Connect with the sink alone. `log` is what it has said."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def failure(self) -> str | None:
        """What it has said last, where it or its task has ended."""
        said = self._log.read_text(errors="replace")
        ended = self._process.poll() is not None or "Task is being killed" in said
        return said[-3000:] if ended else None


def jars() -> Path:
    """The connector and the runtime; the level is absent without them."""
    if shutil.which("java") is None:
        absent("connect", "there is no Java that runs it")
    return found("connect", "jdbc-sink")


@contextmanager
def sinking(
    program: Path,
    folder: Path,
    servers: str,
    source: Engine,
    converter: Mapping[str, str],
    topics: str,
) -> Iterator[Worker]:
    """The sink, which makes tables of topics in a schema of the source's database."""
    worker = {
        "bootstrap.servers": servers,
        "listeners": f"http://127.0.0.1:{free_port()}",
        "offset.storage.file.filename": folder / "offsets",
        "plugin.discovery": "only_scan",
        **{f"key.converter{name}": value for name, value in converter.items()},
        **{f"value.converter{name}": value for name, value in converter.items()},
    }
    url = source.url
    sink = {
        "name": topics,
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "tasks.max": 1,
        "topics.regex": f"{topics}[.].*",
        "connection.url": f"jdbc:postgresql://{url.host}:{url.port}/{url.database}",
        "connection.username": url.username,
        "connection.password": url.password or "none",
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "truncate.enabled": "true",
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
        "collection.name.format": f"{TARGET}.${{source.table}}",
        "consumer.override.auto.offset.reset": "earliest",
        "consumer.override.isolation.level": "read_committed",
    }
    files = [_written(folder / "worker", worker), _written(folder / "sink", sink)]
    command = [
        "java",
        *OPTIONS,
        "-cp",
        f"{program}/*",
        "org.apache.kafka.connect.cli.ConnectStandalone",
        *map(str, files),
    ]
    log = folder / "connect.log"
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, cwd=folder)
    try:
        yield Worker(process, log)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _written(file: Path, properties: Mapping[str, object]) -> Path:
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return file
