"""The publisher is killed at every named place and at random moments, and nothing is missing, twice or out of order.

Each case here dies at a few places; `python -m tests.hardening crash` at all of them, many times.
"""

from __future__ import annotations

import inspect
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.hardening.crash import configure, finish, kill_again_and_again, prepare
from tests.hardening.deaths import AT_RANDOM, keep
from tests.hardening.faults import BROKER, OWN, Fault, _owner, faults_of
from tests.hardening.quantity import scaled
from tests.hardening.replaying import tables
from tests.hardening.targets import Files
from tests.hardening.writing import transaction
from tests.support.servers_kafka import Broker

SINKS = sorted(OWN)
DATABASES = ("sqlite", "postgresql")
CASES = [(database, sink) for database in DATABASES for sink in (*SINKS, BROKER)]
LEAST = 20
"""Deaths that a run without any wishes must see."""


@pytest.mark.in_turn
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("database", DATABASES)
def test_nothing_is_lost_when_the_publisher_dies(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, sink: str
) -> None:
    engine: Any = request.getfixturevalue(database)
    servers = request.getfixturevalue("mock_cluster") if sink == "kafka" else ""
    assert died_and_published(engine, tmp_path, sink, servers) == Counter(places_of(database, sink))


@pytest.mark.in_turn
@pytest.mark.parametrize("database", DATABASES)
def test_a_real_broker_has_every_change_once_and_in_order_when_the_publisher_dies(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, broker: Broker
) -> None:
    died = died_and_published(request.getfixturevalue(database), tmp_path, BROKER, broker.servers)
    assert died == Counter(places_of(database, BROKER))


def died_and_published(engine: Engine, folder: Path, sink: str, servers: str) -> dict[str, int]:
    """Where the publisher died, how often, and nothing was lost; the figures of a run that was asked to do more are kept."""
    places = places_of(engine.dialect.name, sink)
    seed = CASES.index((engine.dialect.name, sink))
    done = kill_again_and_again(engine, folder, sink, places, seed, servers)
    assert done.rows > 5
    if scaled(1) > 1:
        keep(done)
    return done.places


def places_of(database: str, sink: str) -> list[str]:
    """Named places in turn, so that together the cases come to many of them, and moments at random between."""
    named = sorted(faults_of(sink, database))
    seed = CASES.index((database, sink))
    chosen = [named[(seed * 3 + step) % len(named)] for step in range(scaled(2))]
    return [place for n, name in enumerate(chosen) for place in ((AT_RANDOM, name) if n % 2 == 0 else (name,))]


def test_so_many_die_that_it_says_something() -> None:
    assert sum(len(places_of(*case)) for case in CASES if case[1] != BROKER) >= LEAST


@pytest.mark.parametrize("sink", SINKS)
def test_every_place_to_die_is_there(sink: str) -> None:
    found: dict[str, Fault] = faults_of(sink, "postgresql")
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
    first, *_, last = sorted(aim.folder.glob("*.xml"))
    for spoil in (first.unlink, lambda: first.write_bytes(last.read_bytes()), lambda: first.rename(f"{last}.xml")):
        body = first.read_bytes()
        spoil()
        with pytest.raises(AssertionError):
            aim.check(sqlite)
        Path(f"{last}.xml").unlink(missing_ok=True)
        first.write_bytes(body)
    assert aim.check(sqlite) == tables(sqlite)
