"""How often a publisher has died, where, and what of it: the figures of the crash tests, kept with the other results."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from bench.machine import Machine, this_machine

RESULTS: Final = Path(__file__).resolve().parents[2] / "bench" / "results" / "hardening"

AT_RANDOM: Final = "at random"
DATABASES: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
SINKS: Final = {
    "files": "files",
    "database": "change tables",
    "http": "an HTTP receiver",
    "kafka": "Kafka, a stand-in",
    "broker": "Kafka, a real broker",
}


class Deaths(Struct, frozen=True, kw_only=True):
    """What happened to one publisher: how often it died at each place, and how many rows its log had in the end.

    There are none of a run in which anything was missing, twice or out of order.
    """

    database: str
    sink: str
    places: dict[str, int]
    rows: int

    @property
    def kills(self) -> int:
        return sum(self.places.values())


class Kept(Struct, frozen=True, kw_only=True):
    """The deaths of the last full run."""

    day: dt.date
    machine: Machine
    runs: list[Deaths]


def kept(folder: Path = RESULTS) -> list[Deaths]:
    """The runs that are kept."""
    path = folder / "deaths.json"
    return msgspec.json.decode(path.read_bytes(), type=Kept).runs if path.exists() else []


def keep(found: Deaths, folder: Path = RESULTS) -> Path:
    """Puts a run in the place of the former one from the same database to the same sink."""
    others = [one for one in kept(folder) if (one.database, one.sink) != (found.database, found.sink)]
    runs = sorted([*others, found], key=lambda one: (one.database, one.sink))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "deaths.json"
    content = Kept(day=dt.datetime.now(tz=dt.UTC).date(), machine=this_machine(), runs=runs)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")
    return path


def table(runs: Sequence[Deaths]) -> list[str]:
    """The runs as the page about threats shows them."""
    lines = [
        "| from | to | deaths | at named places | rows in the log | lost, twice, out of order |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for one in runs:
        named = one.kills - one.places.get(AT_RANDOM, 0)
        lines.append(f"| {DATABASES[one.database]} | {SINKS[one.sink]} | {one.kills} | {named} | {one.rows} | 0 |")
    return [*lines, f"| | together | {sum(one.kills for one in runs)} | | {sum(one.rows for one in runs)} | 0 |"]
