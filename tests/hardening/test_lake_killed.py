"""Publishers into a lake are killed again and again, at its steps and at any moment, and every change is there once."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct
from sqlalchemy import Engine

from eventlog.sinks.lake.settings import IcebergSettings
from tests.hardening.crash import PATIENCE, configure, finish, prepare, processes, publish, writers
from tests.hardening.quantity import scaled
from tests.hardening.replaying import (
    KEYS,
    Store,
    account_for_log,
    filled,
    in_order,
    replay_rows,
    shown,
    tables,
    written_key,
)
from tests.hardening.writing import many_at_once
from tests.support.lakes import LAKES, Lake, Mode

DEATHS: Final = 8
LIFE_SECONDS: Final = 1.5
STEPS: Final = {
    "delta": ("eventlog.sinks.lake.delta:DeltaTables.take", "eventlog.sinks.lake.delta:DeltaTables._put"),
    "iceberg": ("eventlog.sinks.lake.iceberg:IcebergTables.take", "eventlog.sinks.lake.iceberg:IcebergTables._put"),
}
SHOWS: Final = "eventlog.sinks.plan_folder:PlanFolder.show"


class Step(Struct, frozen=True):
    """A method at which a publisher dies when it comes there for the so-manieth time: before it is called, or after."""

    place: str
    after: bool
    times: int

    def arm(self) -> None:
        """Lets this process die there, as if the machine had lost its power: nothing is flushed, nothing closed."""
        module, _, path = self.place.partition(":")
        kind, _, name = path.partition(".")
        owner = getattr(import_module(module), kind)
        real: Callable[..., Any] = getattr(owner, name)
        numbers = count(1)

        def armed(*args: Any, **kwargs: Any) -> Any:
            found = real(*args, **kwargs) if self.after else None
            if next(numbers) >= self.times:
                os.kill(os.getpid(), signal.SIGKILL)
            return found if self.after else real(*args, **kwargs)

        setattr(owner, name, armed)


class LakeTarget:
    """Tables of a lake, as a target of the crash tests."""

    style = "row-back"
    changes = 3

    def __init__(self, kind: str, folder: Path, mode: Mode) -> None:
        self.sink, self.mode = kind, mode
        self.lake: Lake = LAKES[kind](folder / "lake", mode)

    def output(self) -> str:
        settings = self.lake.settings
        said = f'sink = "{self.sink}"\npath = "{settings.path}"\nmode = "{self.mode}"\n'
        if isinstance(settings, IcebergSettings):
            said += f'catalog = {{ type = "sql", uri = "{settings.catalog["uri"]}" }}\n'
        return said

    def check(self, source: Engine) -> Store:
        account_for_log(source, None)
        return self._mirrored() if self.mode == "mirror" else self._replayed()

    def _rows(self, table: str) -> list[dict[str, Any]]:
        found = self.lake.read(f"main.{table}") or self.lake.read(table)
        return [] if found is None else found.to_pylist()

    def _replayed(self) -> Store:
        rows = [(row, table) for table in KEYS for row in self._rows(f"{table}__ct")]
        return replay_rows(in_order([(row.pop("header__change_seq"), table, row) for row, table in rows]))

    def _mirrored(self) -> Store:
        store: Store = {}
        for table, key in KEYS.items():
            rows = self._rows(table)
            assert len(rows) == len({written_key(table, row) for row in rows})
            store |= {(table, written_key(table, row)): shown(row, key) for row in rows}
        return filled(store)


def dying(config: str, step: Step | None) -> None:
    """A publisher that dies at this step, or whenever it is killed."""
    if step is not None:
        step.arm()
    publish(config)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "kind, mode",
    [
        ("delta", "append"),
        ("iceberg", "mirror"),
        pytest.param("delta", "mirror", marks=pytest.mark.long),
        pytest.param("iceberg", "append", marks=pytest.mark.long),
    ],
)
def test_a_lake_has_every_change_once_when_its_publisher_dies(
    sqlite: Engine, tmp_path: Path, kind: str, mode: Mode
) -> None:
    dice, aim = random.Random(f"{kind} {mode}"), LakeTarget(kind, tmp_path, mode)
    prepare(sqlite, aim.style)
    config = configure(sqlite, tmp_path, aim)
    sides = [(place, after) for place in (*STEPS[kind], SHOWS) for after in (False, True)]
    places: list[tuple[str, bool] | None] = [None, *sides]  # None is at any moment
    with writers(sqlite, len(kind)):
        for number in range(scaled(DEATHS)):
            many_at_once(sqlite, dice)
            place = places[number % len(places)]
            step = None if place is None else Step(place[0], place[1], dice.randint(1, 3))
            one = processes().Process(target=dying, args=(str(config), step), daemon=True)
            one.start()
            # Writers go on, so it comes to its step, however slow the machine is.
            one.join(dice.uniform(0.2, LIFE_SECONDS) if step is None else PATIENCE)
            died = one.exitcode == -signal.SIGKILL
            with suppress(ProcessLookupError):
                os.kill(one.pid or 0, signal.SIGKILL)
            one.join(60)
            assert died or step is None, f"it did not die at {step}"
    finish(sqlite, config)
    assert aim.check(sqlite) == tables(sqlite)
