"""Random histories of today's heart, on each database: what it promises holds whatever happens.

More of them, and on one database only: `python -m tests.histories FROM TO`, which says how a
history is repeated.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from tests.histories.accidents import CALM
from tests.histories.grounds import Ground, ServerGround, SqliteGround
from tests.histories.profiles import PROFILES
from tests.histories.receiving import Receiver
from tests.histories.world import Profile, World, Wrong

pytestmark = pytest.mark.long  # in a run with several processes one of them has ended in the middle of a history

HISTORIES = {"sqlite": 20, "postgresql": 4, "mariadb": 4}
"""All tests of histories together take half a minute of CPU; `--long` has twenty times as many."""


@pytest.fixture(params=HISTORIES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    """A ground on each database in turn."""
    if request.param == "sqlite":
        return SqliteGround(tmp_path)
    engine: Engine = request.getfixturevalue(request.param)
    return ServerGround(request.param, engine)


def run(place: Ground, receiver: Receiver, profile: Profile, count: int, first: int = 0) -> Counter[str]:
    """So many histories; what happened in them. Wrong with the first in which something is wrong."""
    counts = Counter[str]()
    for seed in range(first, first + count):
        counts += World(seed, place, receiver, profile).run()
    return counts


def scaled(request: pytest.FixtureRequest, place: Ground) -> int:
    return HISTORIES[place.name] * (20 if request.config.getoption("--long") else 1)


def test_deaths_and_takeovers_lose_double_and_disorder_nothing(
    request: pytest.FixtureRequest, place: Ground, receiver: Receiver
) -> None:
    counts = run(place, receiver, PROFILES["today"], scaled(request, place))
    assert all(counts[what] for what in ("rows", "kills", "errors", "done and reported as an error")), counts


def test_a_held_row_goes_nowhere_and_nothing_overtakes_it(
    request: pytest.FixtureRequest, place: Ground, receiver: Receiver
) -> None:
    assert run(place, receiver, PROFILES["held"], scaled(request, place) // 2)["rows"]


def test_a_history_is_repeated_exactly(receiver: Receiver, tmp_path: Path) -> None:
    place, told = SqliteGround(tmp_path), []
    for _ in range(2):
        world = World(3, place, receiver, PROFILES["today"])
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
        ("INSERT INTO event_log_mark (name, value) VALUES ('in hand', '3')", "at rest the log keeps"),
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
