"""Random histories of the publisher on each database, with every accident that the kit knows; what the oracle of the
kit notices; and the faults that an audit found in the publisher before the journal.

Runs of histories are processes of their own: the kit takes threads and clocks away from all of the project's modules.
`python -m tests.histories FROM TO` says how a history is repeated.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.histories.accidents import CALM
from tests.histories.faults import FAULTS
from tests.histories.grounds import SqliteGround
from tests.histories.profiles import PROFILES
from tests.histories.receiving import Receiver
from tests.histories.world import Profile, World, Wrong

HISTORIES = {"sqlite": 80, "postgresql": 10, "mariadb": 10}
"""A third of a second of CPU each; `--long` has twenty times as many."""


def ran(*arguments: str) -> str:
    """What `python -m tests.histories` says; fails with that where a history went wrong."""
    command = [sys.executable, "-m", "tests.histories", *arguments]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    said = ended.stdout[-20_000:] + ended.stderr[-5_000:]
    assert ended.returncode == 0, said
    return said


@pytest.mark.in_turn
@pytest.mark.parametrize("database", HISTORIES)
def test_whatever_happens_all_arrives_once_and_in_order(request: pytest.FixtureRequest, database: str) -> None:
    if database != "sqlite":
        request.getfixturevalue(database)  # skips by name where there is no such server
    count = HISTORIES[database] * (20 if request.config.getoption("--long") else 1)
    said = ran("0", str(count), "--database", database)
    assert f"{count} histories, 0 of them wrong" in said
    for accident in ("kills", "errors", "freezes", "done and reported as an error"):
        assert f"'{accident}'" in said, f"{accident} did not happen: {said}"


@pytest.mark.in_turn
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_an_audit_found_is_not_here(request: pytest.FixtureRequest, fault: str) -> None:
    first, count = FAULTS[fault].seed, FAULTS[fault].seeds if request.config.getoption("--long") else 6
    assert f"{count} histories, 0 of them wrong" in ran(str(first), str(first + count), "--fault", fault)


def test_a_history_is_repeated_exactly(receiver: Receiver, tmp_path: Path) -> None:
    place, told = SqliteGround(tmp_path), []
    for _ in range(2):
        world = World(3, place, receiver, PROFILES["everything"])
        world.run()
        told.append([line.replace(str(world.folder), "") for line in world.told if "seconds" not in line])
    assert told[0] == told[1]
    assert len(told[0]) > 50


def _loses(world: World) -> None:
    """A target that forgets a row that came."""
    target = next(iter(world.targets.values()))
    del target.came[-1]


@pytest.mark.parametrize("kind", "xmcdhp")
def test_the_oracle_notices_a_row_that_is_lost(kind: str, receiver: Receiver, tmp_path: Path) -> None:
    profile = Profile(accidents=replace(CALM, holes=0.0), kinds=kind, exactly=True, rows=(10, 10))
    world = World(1, SqliteGround(tmp_path), receiver, profile)
    world.before_judging = lambda: _loses(world)
    with pytest.raises(Wrong, match=r"came to .1 0 times and not 1"):
        world.run()


@pytest.mark.parametrize(
    "statement, said",
    [
        ("UPDATE event_log SET status = 'N' WHERE record_id = 3", "waits for ever"),
        ("UPDATE event_log SET status = 'E' WHERE record_id = 3", "has E and not S"),
        ("INSERT INTO event_log_outcome (record_id, status) VALUES (3, 'N')", "its record says N"),
        ("INSERT INTO event_log_outcome (record_id, status) VALUES (999, 'S')", "outlives its row"),
        ("INSERT INTO event_log_hold (record_id) VALUES (3)", "at rest the log keeps"),
    ],
)
def test_the_oracle_notices_what_the_log_says_wrongly(
    statement: str, said: str, receiver: Receiver, tmp_path: Path
) -> None:
    world = World(1, SqliteGround(tmp_path), receiver, Profile(accidents=CALM, kinds="x", exactly=True))

    def lie() -> None:
        with world.engine.begin() as connection:
            connection.exec_driver_sql(statement)

    world.before_judging = lie
    with pytest.raises(Wrong, match=said):
        world.run()
