"""Conversions that mark, in the place of the publishers: they are killed, and given again until they are complete."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.hardening.ledger.book import Place
from tests.hardening.ledger.checking import Finding, Seen, Shown
from tests.hardening.ledger.outputs import called, read_xds
from tests.hardening.ledger.publishers import Command

SUCCESS: Final = "_SUCCESS"
OTHER_INPUT: Final = 64
"""What a conversion ends with that was complete before: the log went on, so it is another one now."""

OCCUPIED: Final = 75
PATIENCE: Final = 300.0
KILLED_AFTER: Final = (0.2, 2.0)
"""Seconds. A conversion of the local engine is at work after half of one."""

SPARK_KILLED_AFTER: Final = (8.0, 30.0)
SPARK: Final = ("--engine", "spark", "--master", "local[2]")
LOCAL: Final = ("--engine", "local[1]")

_gets_rows_too = re.compile(r"^eventlog: (\S+) is paused, or was, and gets the rows too", re.MULTILINE)


class Conversion(Struct, kw_only=True):
    """A conversion of waiting rows. Outputs that are `paused`, or were and are still behind, get its rows themselves; it
    stands for all others.
    """

    folder: Path
    paused: AbstractSet[str]
    options: Sequence[str]

    @property
    def is_complete(self) -> bool:
        return (self.folder / SUCCESS).exists()

    @property
    def time(self) -> float:
        """When its documents were there."""
        return (self.folder / SUCCESS).stat().st_mtime

    def seen(self) -> list[Seen]:
        files = sorted(self.folder.glob("*.xml"))
        return [one for file in files for one in read_xds(file.read_bytes(), f"{self.folder.name}/{file.name}")]


class Conversions:
    """Those of a run, of the log at `url`. `command` starts one of eventlog's commands."""

    def __init__(self, folder: Path, url: str, command: Callable[..., Command], dice: random.Random) -> None:
        self._folder, self._url, self._command, self._dice = folder, url, command, dice
        self.all: list[Conversion] = []
        self.open: Conversion | None = None
        self.kills = 0

    def once(self, paused: AbstractSet[str], *, by_spark: bool = False) -> None:
        """Begins a conversion, or goes on with one that was killed; it is killed at a random moment, as often as not."""
        if self.open is None:
            folder = self._folder / f"converted-{len(self.all)}"
            self.open = Conversion(
                folder=folder, paused=frozenset(map(called, paused)), options=SPARK if by_spark else LOCAL
            )
            self.all.append(self.open)
        after = SPARK_KILLED_AFTER if self.open.options is SPARK else KILLED_AFTER
        self._given(self.open, self._dice.uniform(*after) if self._dice.random() < 0.6 else None)

    def finish(self) -> None:
        """Gives the one that is open again until it is complete."""
        if self.open is not None:
            self._given(self.open, None)

    def _given(self, one: Conversion, killed_after: float | None) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            words = ("--mark", "--no-strict", "--out", str(one.folder))  # there may be bad rows alone
            command = self._command("convert", "database", self._url, *one.options, *words)
            code = command.end(PATIENCE if killed_after is None else killed_after)
            if code is None and killed_after is not None:
                command.kill()
                self.kills += 1
                return
            one.paused = frozenset(_gets_rows_too.findall(command.said)) or one.paused
            if code == 0 or (code == OTHER_INPUT and one.is_complete and not list(one.folder.glob("_*MARK*"))):
                self.open = None
                return
            # Whoever was killed just now has the lock until its lease is over.
            assert code == OCCUPIED, f"{command.name} ended with {code}: {command.said}"
            assert time.monotonic() < end, f"{command.name} does not get the log: {command.said}"
            time.sleep(0.2)

    def beside(self, shown: Shown) -> Shown:
        """What a reader of an output finds who reads what was converted in its place too: each where its row stands."""
        by_place: dict[Place, list[Seen]] = {}
        for conversion in self._of(shown.output):
            for one in conversion.seen():
                by_place.setdefault(one.place, []).append(one)
        for converted in by_place.values():
            converted.sort(key=lambda one: one.record)
        merged: list[Seen] = []
        for one in shown.seen:
            before = by_place.get(one.place, [])
            while before and before[0].record < one.record:
                merged.append(before.pop(0))
            merged.append(one)
        merged += [one for rest in by_place.values() for one in rest]
        return replace(shown, seen=merged)

    def overtaking(self, files: Shown, folder: Path, again: Mapping[int, int]) -> Iterator[Finding]:
        """Documents in files that came before a conversion, though their object's rows in it stand before them, or after it
        though they stand behind; but for those that were asked for `again`.
        """
        for conversion in self._of(files.output):
            converted: dict[Place, list[int]] = {}
            for one in conversion.seen():
                if one.record not in again:
                    converted.setdefault(one.place, []).append(one.record)
            for one in files.seen:
                records = converted.get(one.place)
                if records is None or one.record in again:
                    continue
                came_before = (folder / one.where).stat().st_mtime < conversion.time
                if (one.record > min(records)) if came_before else (one.record < max(records)):
                    why = f"{one.where} and rows {records} of {conversion.folder.name}"
                    yield Finding(what="overtaken", output=files.output, place=one.place, record=one.record, why=why)

    def _of(self, output: str) -> list[Conversion]:
        """The conversions that stand for an output."""
        return [one for one in self.all if called(output) not in one.paused and one.is_complete]
