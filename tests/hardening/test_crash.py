"""The publisher is killed at every named place and at random moments, and nothing is missing, twice or out of order.

Each case here dies at a few places; `python -m tests.hardening crash` at all of them, many times.
"""

from __future__ import annotations

import inspect
import random
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.hardening.crash import AT_RANDOM, configure, finish, kill_again_and_again, prepare
from tests.hardening.faults import OWN, Fault, _owner, faults_of
from tests.hardening.quantity import scaled
from tests.hardening.replaying import tables
from tests.hardening.targets import Files
from tests.hardening.writing import transaction

SINKS = sorted(OWN)


@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_nothing_is_lost_when_the_publisher_dies(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, sink: str
) -> None:
    engine: Any = request.getfixturevalue(database)
    servers = request.getfixturevalue("mock_cluster") if sink == "kafka" else ""
    seed = SINKS.index(sink) + 4 * (database == "sqlite")
    named = sorted(faults_of(sink))
    chosen = [named[(seed * 3 + step * 5) % len(named)] for step in range(scaled(2))]
    done = kill_again_and_again(engine, tmp_path, sink, [AT_RANDOM, *chosen], seed, servers)
    assert done.rows > 5
    assert done.places >= set(chosen)


@pytest.mark.parametrize("sink", SINKS)
def test_every_place_to_die_is_there(sink: str) -> None:
    found: dict[str, Fault] = faults_of(sink)
    assert len(found) == 13
    for fault in found.values():
        owner, name = _owner(fault.place)
        assert inspect.isfunction(inspect.getattr_static(owner, name))


def test_the_checker_notices_what_is_missing_twice_or_out_of_order(sqlite: Engine, tmp_path: Path) -> None:
    aim = Files(tmp_path)
    prepare(sqlite, aim.style)
    dice = random.Random(1)
    for _ in range(30):
        transaction(sqlite, dice)
    finish(sqlite, configure(sqlite, tmp_path, aim), "files")
    assert aim.check(sqlite) == tables(sqlite)
    first, *_, last = sorted(aim.folder.iterdir())
    for spoil in (first.unlink, lambda: first.write_bytes(last.read_bytes()), lambda: first.rename(f"{last}.xml")):
        body = first.read_bytes()
        spoil()
        with pytest.raises(AssertionError):
            aim.check(sqlite)
        Path(f"{last}.xml").unlink(missing_ok=True)
        first.write_bytes(body)
    assert aim.check(sqlite) == tables(sqlite)
