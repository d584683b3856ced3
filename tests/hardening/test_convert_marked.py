"""The campaign of `convert --mark`: real processes that are killed, beside a publisher with a paused output, and holds.

Every row comes once to the first output or to a folder in its place, in the order of its object, and to the second one
whatever was converted while it was paused.
"""

from __future__ import annotations

import collections
import re
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Engine

from eventlog.admin import outputs
from eventlog.admin.rows import EVERYTHING, hold, release
from eventlog.config.settings import PublisherConfig
from eventlog.convert.commit import SUCCESS
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed
from tests.publisher.converting import converted

NAMES = ["one", "two"]
OBJECTS = 7
TRIES = 30
AT_ONCE_NANOSECONDS = 50_000_000


class Campaign:
    """One log, its processes, and what came of them."""

    def __init__(self, engine: Engine, folder: Path, seed: int, *more: str, longest: float = 2.5) -> None:
        self.rng = Random(seed)
        self.longest = longest
        self.table: LogTable = installed(engine)
        self.table.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64))")
        self.log = Log(engine, self.table.names)
        self.folder = folder
        self.url = engine.url.render_as_string(hide_password=False)
        self.more = more
        self.number = self.kills = 0
        self.out: Path | None = None
        self.paused = False
        self.owed: set[int] = set()
        lines = ["[source]", f'url = "{self.url}"', 'user = "nobody"', "[publisher]", "polling_interval = 1"]
        for name in NAMES:
            lines += ["[[output]]", f'name = "{name}"', 'sink = "files"', f'path = "{folder / name}"']
        self.config = folder / "eventlog.toml"
        self.config.write_text("\n".join(lines) + "\n")

    def write(self) -> None:
        count = self.rng.randint(5, 60)
        for number in range(self.number + 1, self.number + count + 1):
            self.table.write(number, key=f"idu={number % OBJECTS}", new_value=f"value-{number}")
        self.number += count

    def command(self, *words: str) -> subprocess.Popen[bytes]:
        told = [sys.executable, "-m", "eventlog", *words, "--config", str(self.config)]
        return subprocess.Popen(told, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def conversion(self) -> subprocess.Popen[bytes]:
        if self.out is None:
            self.out = self.folder / f"out-{self.number}"
        return self.command("convert", self.url, "--mark", "--output", "one", "--out", str(self.out), *self.more)

    def finished(self, process: subprocess.Popen[bytes], seconds: float | None) -> None:
        """Waits for a conversion, or kills it."""
        assert self.out is not None
        was_there = bool(converted(self.out))
        try:
            _, said = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.kills += 1
        else:
            # One that was killed when all was done is complete; since then the log went on, and it is another one.
            is_over = (self.out / SUCCESS).exists() and not list(self.out.glob("_*MARK*"))
            assert process.returncode in ((0, 64) if is_over else (75,)), said.decode()
        if not was_there and self.paused:
            self.owed.update(converted(self.out))
        if process.returncode in (0, 64):
            self.out = None

    def round(self) -> None:
        self.write()
        deed = self.rng.randrange(4)
        if deed == 0 and self.out is None:
            self.paused = not self.paused
            self.pause()
        elif deed == 1:
            first = self.rng.randint(1, self.number)
            hold(self.log, [(first, first + 2)], by="ann")
        elif deed == 2:
            release(self.log, [EVERYTHING])
        publisher = self.command("run") if self.rng.random() < 0.6 else None
        conversion = self.conversion() if self.rng.random() < 0.8 else None
        if conversion is not None:
            self.finished(conversion, self.rng.choice([None, self.rng.uniform(0.5, self.longest)]))
        if publisher is not None:
            time.sleep(self.rng.uniform(0.2, 1.5))
            publisher.kill()
            publisher.communicate()
            self.kills += 1

    def pause(self) -> None:
        if self.paused:
            outputs.pause(self.log, "two", NAMES, by="ann")
        else:
            outputs.resume(self.log, PublisherConfig(), "two", NAMES)

    def end(self) -> None:
        release(self.log, [EVERYTHING])
        for _ in range(TRIES):
            if self.out is None:
                break
            self.finished(self.conversion(), None)
        self.paused = False
        self.pause()
        for _ in range(TRIES):
            last = self.command("run", "--until-empty")
            _, said = last.communicate()
            if last.returncode == 0:
                return
        raise AssertionError(said.decode())

    def came(self, name: str) -> list[tuple[int, int]]:
        """When each row came to an output, and its number."""
        return [
            (file.stat().st_mtime_ns, int(value))
            for file in sorted((self.folder / name).rglob("*.xml"))
            for value in re.findall(r"value-(\d+)<", file.read_text(encoding="utf-8"))
        ]

    def in_folders(self) -> list[tuple[int, int]]:
        folders = [out for out in self.folder.glob("out-*") if (out / SUCCESS).exists()]
        times = {out: (out / SUCCESS).stat().st_mtime_ns for out in folders}
        return [(times[out], number) for out in folders for number in converted(out)]

    def judge(self) -> None:
        stream, two = sorted(self.came("one") + self.in_folders()), sorted(self.came("two"))
        everything = list(range(1, self.number + 1))
        assert sorted(number for _, number in stream) == everything
        to_two = {number for _, number in two}
        assert len(to_two) == len(two)
        assert self.owed <= to_two
        assert sorted(to_two | {number for _, number in self.in_folders()}) == everything
        for came in (stream, two):
            rows: dict[int, list[int]] = collections.defaultdict(list)
            for number in in_order(came):
                rows[number % OBJECTS].append(number)
            assert [numbers for numbers in rows.values() if numbers != sorted(numbers)] == []
        assert set(self.table.statuses().values()) == {"S"}
        assert self.table.outcomes() == {}
        for name in ("batch", "planned", "parked", "said", "hold"):
            assert self.table.ask(f"SELECT * FROM event_log_{name}") == []


def in_order(came: list[tuple[int, int]]) -> list[int]:
    """The numbers in the order in which they came; files of one plan are written at once, in no order."""
    found: list[list[int]] = []
    before = 0
    for moment, number in sorted(came):
        if moment - before > AT_ONCE_NANOSECONDS:
            found.append([])
        found[-1].append(number)
        before = moment
    return [number for at_once in found for number in sorted(at_once)]


@pytest.mark.parametrize(
    "server, seed", [("sqlite", 1), *((server, seed) for server in ("sqlite", "postgresql") for seed in (2, 3))]
)
@pytest.mark.long
def test_local_engine(request: pytest.FixtureRequest, tmp_path: Path, server: str, seed: int) -> None:
    campaign = Campaign(request.getfixturevalue(server), tmp_path, seed, "--engine", "local", "--jobs", "1")
    for _ in range(12):
        campaign.round()
    campaign.end()
    campaign.judge()
    assert campaign.kills


@pytest.mark.long
def test_spark(postgresql: Engine, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="Spark is not installed.")
    campaign = Campaign(postgresql, tmp_path, 4, "--engine", "spark", "--master", "local[2]", longest=12)
    for _ in range(5):
        campaign.round()
    campaign.end()
    campaign.judge()
    assert campaign.kills
