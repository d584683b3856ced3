"""A consumer of wal2json in Python: lines of JSON out of a replication slot, by the program that PostgreSQL has for that."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from bench.peers.documents import Documents
from bench.peers.stream import Slot, change_of
from bench.postgresql import binaries

OPTIONS: Final = ("format-version=2", "include-types=false", "include-transaction=false")


class Line(Struct, frozen=True):
    """What one line says: the row, and what it was before."""

    action: str
    columns: list[dict[str, Any]] = []
    identity: list[dict[str, Any]] = []


def publish(slot: Slot, folder: Path) -> None:
    """Reads all changes of the slot and writes them into XDS files."""
    shutil.rmtree(folder, ignore_errors=True)
    documents, decoder = Documents(folder), msgspec.json.Decoder(Line)
    with subprocess.Popen(_command(slot), stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        for number, line in enumerate(reader.stdout, 1):
            told = decoder.decode(line)
            documents.take(
                change_of(number, _values(told.identity) if told.action == "U" else None, _values(told.columns))
            )
    documents.write()
    if documents.written != slot.changes:
        raise AssertionError(f"{documents.written} of {slot.changes} changes came out of the slot")


def _command(slot: Slot) -> list[str]:
    place = slot.server
    program = str((binaries() or Path()) / "pg_recvlogical")
    server = ["-h", str(place.host), "-p", str(place.port), "-U", str(place.username), "-d", str(place.database)]
    options = [word for option in OPTIONS for word in ("-o", option)]
    return [program, *server, "--slot", slot.run, "--start", "--no-loop", "--endpos", slot.end, "-f", "-", *options]


def _values(columns: list[dict[str, Any]]) -> dict[str, Any]:
    return {column["name"]: column["value"] for column in columns}
