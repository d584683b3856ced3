"""Publishers into a lake are killed again and again, at its steps and at any moment, and every
change is there once.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from sqlalchemy import Engine

from eventlog.sinks.lake.settings import IcebergSettings
from tests.hardening.crash import configure, finish, prepare, publisher, writers
from tests.hardening.faults import Fault
from tests.hardening.ledger.publishers import PATIENCE, Command
from tests.hardening.quantity import scaled
from tests.hardening.replaying import (
    KEYS,
    Store,
    _in_order,
    account_for_log,
    filled,
    replay_rows,
    shown,
    tables,
    written_key,
)
from tests.hardening.writing import many_at_once
from tests.support.lakes import LAKES, DuckDB, Lake, Mode
from tests.support.servers_store import ENVIRONMENT, StoreServer

STEPS: dict[str, dict[str, Fault]] = {
    kind: {
        f"{side} {step}": Fault(place=f"{module}.{step}", side=side)
        for step in ("take", "_put_rows")
        for side in ("before", "after")
    }
    for kind, module in {
        "delta": "eventlog.sinks.lake.delta:DeltaTables",
        "iceberg": "eventlog.sinks.lake.iceberg:IcebergTables",
    }.items()
}
AT_RANDOM = "at random"
LIFE_SECONDS = 1.5


class LakeTarget:
    """Tables of a lake, as a target of the crash tests."""

    style = "row-back"
    changes = 3

    def __init__(self, kind: str, folder: Path, mode: Mode, server: StoreServer | None = None) -> None:
        self.kind, self.mode = kind, mode
        shows = "eventlog.sinks.plan_folder:PlanFolder.show"
        if server is None:
            self.lake: Lake = LAKES[kind](folder / "lake", mode)
        else:
            # Only a catalog in a file stays on this machine.
            chosen = {"store": server.settings, "catalog_folder": folder / "catalog"}
            self.lake = LAKES[kind](server.address(), mode, **chosen)
            shows = "eventlog.sinks.store.plans:StoredPlans.show"
        sides: tuple[Literal["before", "after"], ...] = ("before", "after")
        self.steps = STEPS[kind] | {f"{side} showing": Fault(place=shows, side=side) for side in sides}

    def config(self) -> str:
        said = f'sink = "{self.kind}"\npath = "{self.lake.settings.path}"\nmode = "{self.mode}"\n'
        settings = self.lake.settings
        if isinstance(settings, IcebergSettings):
            said += f'catalog = {{ type = "sql", uri = "{settings.catalog["uri"]}" }}\n'
        if settings.store.endpoint:
            said += f'store = {{ endpoint = "{settings.store.endpoint}", region = "{settings.store.region}" }}\n'
        return said

    def check(self, source: Engine) -> Store:
        account_for_log(source, None)
        return self._mirrored() if self.mode == "mirror" else replay_rows(_in_order(list(self._rows())))

    def _rows(self) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
        for table in KEYS:
            found = self.lake.read(f"main.{table}__ct") or self.lake.read(f"{table}__ct")
            for row in [] if found is None else found.to_pylist():
                plain = {name: value for name, value in row.items() if not name.startswith("header__")}
                yield row["header__change_seq"], table, row["header__change_oper"], plain

    def _mirrored(self) -> Store:
        store: Store = {}
        for table, key in KEYS.items():
            found = self.lake.read(f"main.{table}") or self.lake.read(table)
            rows = [] if found is None else found.to_pylist()
            assert len(rows) == len({written_key(table, row) for row in rows})
            store |= {(table, written_key(table, row)): shown(row, key) for row in rows}
        return filled(store)


def dying(config: Path, step: Fault | None = None, times: int = 1) -> Command:
    """A publisher that dies at this step, or whenever it is killed."""
    program = "" if step is None else f"from tests.hardening.faults import Fault, arm\narm({step!r}, {times})"
    return publisher(config, program=program, **ENVIRONMENT)


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
    assert_each_change_once(sqlite, tmp_path, LakeTarget(kind, tmp_path, mode))


@pytest.mark.in_turn
@pytest.mark.parametrize("mode", ["append", "mirror"])
@pytest.mark.parametrize("kind", sorted(LAKES))
def test_a_lake_in_a_bucket_has_every_change_once_when_its_publisher_dies(
    s3_store: StoreServer, sqlite: Engine, tmp_path: Path, kind: str, mode: Mode
) -> None:
    """DuckDB finds there what the writers' own libraries find."""
    duckdb, aim = DuckDB(s3_store), LakeTarget(kind, tmp_path, mode, s3_store)
    assert_each_change_once(sqlite, tmp_path, aim, limit=100, pause=1.0)
    for table in KEYS:
        name = table if mode == "mirror" else f"{table}__ct"
        ours = aim.lake.read(name)
        assert ours is not None
        assert sorted(map(repr, duckdb.read(aim.lake, name).to_pylist())) == sorted(map(repr, ours.to_pylist()))


def assert_each_change_once(
    sqlite: Engine, tmp_path: Path, aim: LakeTarget, limit: int = 20, pause: float = 0.15
) -> None:
    """Publishers into a lake die; in the end it is equal to its source."""
    kind = aim.kind
    dice = random.Random(f"{kind} {aim.mode}")
    prepare(sqlite, aim.style)
    # Enough batches for deaths, and no more: a commit in a bucket takes many requests.
    config = configure(sqlite, tmp_path, aim, query_limit=limit)
    places = [AT_RANDOM, *aim.steps]
    with writers(sqlite, len(kind), pause=pause):
        for number in range(scaled(8)):
            many_at_once(sqlite, dice)
            place = places[number % len(places)]
            one = dying(config, aim.steps.get(place), dice.randint(1, 3))
            # Writers go on, so it comes to its step, however slow the machine is.
            one.end(dice.uniform(0.2, LIFE_SECONDS) if place == AT_RANDOM else PATIENCE)
            died = one.process.returncode == -signal.SIGKILL
            one.kill()
            assert died or place == AT_RANDOM, f"it did not die {place}: {one.said}"
    finish(sqlite, config, dying(config))
    assert aim.check(sqlite) == tables(sqlite)
