"""Random histories of writers, a publisher, holds and conversions that mark and are killed: nothing is lost or doubled."""

from __future__ import annotations

import collections
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Engine

from eventlog.care.rows import EVERYTHING, hold, release
from eventlog.convert import free_rows
from eventlog.convert.commit import SUCCESS
from tests.publisher.converting import converted, dying, order, ordered, publisher_stopped
from tests.publisher.scene import Scene
from tests.publisher.test_conversions import pause, resume


class History:
    """Writers, a publisher with two outputs of which one is paused at times, holds, and conversions that are killed."""

    def __init__(self, engine: Engine, folder: Path, seed: int) -> None:
        self.rng = Random(seed)
        self.scene = Scene(engine, "one", "two")
        self.folder = folder
        self.number = 0
        self.out: Path | None = None
        self.stream: list[int] = []
        """What came to `one`, or to a folder in its place, in its order."""
        self.owed: set[int] = set()
        """Rows that were converted while `two` was paused."""
        self.paused = False

    def run(self, steps: int) -> None:
        actions = [self.write, self.write, self.publish, self.convert, self.hold, self.pause]
        for _ in range(steps):
            self.rng.choice(actions)()
        release(self.scene.log, [EVERYTHING])
        if self.out is not None:
            self.convert(kill=False)
        resume(self.scene, "two")
        for _ in range(3):
            self.publish(all_of_them=True)

    def write(self) -> None:
        count = self.rng.randint(1, 5)
        self.scene.write(self.number + 1, self.number + count, objects=4)
        self.number += count

    def publish(self, *, all_of_them: bool = False) -> None:
        before = len(self.scene.receivers["one"].came)
        names = ("one", "two") if all_of_them else self.rng.choice([("one",), ("two",), ("one", "two")])
        self.scene.publish(*names)
        self.scene.journal.sweep()
        self.stream += self.scene.receivers["one"].came[before:]

    def convert(self, *, kill: bool | None = None) -> None:
        dies = self.rng.random() < 0.6 if kill is None else kill
        if self.out is not None and (self.out / SUCCESS).exists() and not list(self.out.glob("_*MARK*")):
            self.out = None  # killed when all was done, and the log has gone on since
        fresh = self.out is None
        self.out = self.out or self.folder / f"{self.number}-{self.rng.randint(0, 10**9)}"
        was_there = (self.out / SUCCESS).exists()
        with publisher_stopped(self.scene), dying(self.rng.randint(1, 30) if dies else 0) as death:
            ordered(order(self.scene, self.out))
        if not was_there and (self.out / SUCCESS).exists():
            self.stream += converted(self.out)
            self.owed.update(converted(self.out) if self.paused else ())
        if not death.is_dead:
            self.out = None
        assert fresh or death.is_dead or self.out is None

    def hold(self) -> None:
        if self.rng.random() < 0.5:
            release(self.scene.log, [EVERYTHING])
        elif self.number:
            first = self.rng.randint(1, self.number)
            hold(self.scene.log, [(first, first + 1)], by="ann")

    def pause(self) -> None:
        if self.out is None:  # what is reserved is passed or kept by those that were paused then
            self.paused = not self.paused
            (pause if self.paused else resume)(self.scene, "two")


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(6, 60))])
def test_histories(engine: Engine, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_rows, "PAGE_ROWS", 3)
    monkeypatch.setattr("eventlog.convert.place.SEAL_PIECES", 2)
    history = History(engine, tmp_path, seed)
    history.run(25)
    everything = list(range(1, history.number + 1))
    scene, two = history.scene, history.scene.receivers["two"].came
    assert sorted(history.stream) == everything
    assert len(two) == len(set(two))
    assert history.owed <= set(two)
    in_folders = {row for out in tmp_path.iterdir() for row in converted(out)}
    assert sorted(set(two) | in_folders) == everything
    for came in (history.stream, two):
        of_object: dict[int, list[int]] = collections.defaultdict(list)
        for row in came:
            of_object[row % 4].append(row)
        assert all(rows == sorted(rows) for rows in of_object.values())
    assert (scene.waiting(), scene.left()) == ([], {})
    assert set(scene.table.statuses().values()) <= {"S"}
    assert not [row for row in scene.table.outcomes().values() if row[0] == "N"]
