"""Random histories of the publisher on each database, and what their oracle notices.

CI asks a fifth of them each day. Who wants more says --long or EVENTLOG_HARDENING=10, or runs the package.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

import tests.publisher.world
from tests.hardening.quantity import scaled
from tests.publisher import running
from tests.publisher.actors import Row
from tests.publisher.judging import judge
from tests.publisher.running import history, made
from tests.publisher.targets import ASKABLE
from tests.publisher.world import World
from tests.support.daily import of_today
from tests.support.servers import EMPTY_TEXT

HISTORIES = {"sqlite": 142, "postgresql": 10, "mysql": 10}
LONG_TIMES = 134
"""So many times as many make 20,000 with `--long`."""
GROUPS = 4
CALM_SEED, REAL_SEED, AT_ONCE_SEED, BESIDE_SEED = 16, 11, 8, 13
PLAN = re.compile(r"\d{12}-[0-9a-f]{8}")


@pytest.mark.no_cover  # counting lines takes longer than the histories
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_history_loses_doubles_or_disorders_anything(
    request: pytest.FixtureRequest, engine: Engine, group: int
) -> None:
    made(engine)
    count = scaled(HISTORIES[engine.dialect.name]) * (LONG_TIMES if request.config.getoption("--long") else 1)
    seeds = of_today(range(count))[group::GROUPS]
    with keeping_noted(engine) as kept:
        counts = sum((history(seed, engine) for seed in seeds), Counter[str]())
    assert counts["rows"] >= len(seeds)
    if len(seeds) > LONG_TIMES:
        assert counts["shared"], "no output shares a decision"
    if engine.dialect.name == "sqlite":  # elsewhere lists are bound, and the statement makes NULL of what is empty
        assert kept == [], "Oracle gives an empty text back as NULL"


@pytest.mark.no_cover
def test_no_history_is_worse_where_one_statement_enters_all(
    postgresql: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One output alone, which can be asked what it has: most of its plans are entered at once."""
    made(postgresql)
    monkeypatch.setattr(tests.publisher.world, "MOST_OUTPUTS", 1)
    monkeypatch.setattr(tests.publisher.world, "FIRST_KINDS", [*ASKABLE])
    # Most histories of a day may have rows that wait all the time, which takes several statements.
    seeds = sorted({*of_today(range(scaled(20))), AT_ONCE_SEED})
    counts = sum((history(seed, postgresql) for seed in seeds), Counter[str]())
    assert counts["entered at once"] >= len(seeds)


def test_no_history_is_worse_where_the_next_plan_is_made_beside_a_delivery(sqlite: Engine) -> None:
    made(sqlite)
    seeds = sorted({BESIDE_SEED, *(BESIDE_SEED + 20 * number for number in of_today(range(scaled(40))))})
    counts = sum((history(seed, sqlite) for seed in seeds), Counter[str]())
    assert counts["delivered beside"] >= len(seeds)


@pytest.mark.in_turn
def test_no_history_needs_an_empty_text(no_empty_texts: Engine) -> None:
    """Oracle gives an empty text back as NULL, and so does this database."""
    made(no_empty_texts)
    assert sum(history(seed, no_empty_texts)["rows"] for seed in range(scaled(12))) >= 12


def test_a_history_is_repeated_exactly(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    made(sqlite)
    worlds: list[World] = []

    def world(seed: int, engine: Engine) -> World:
        worlds.append(World(seed, engine))
        return worlds[-1]

    monkeypatch.setattr(running, "World", world)
    assert history(REAL_SEED, sqlite) == history(REAL_SEED, sqlite)
    first, second = [PLAN.sub("", str(one.trace)) for one in worlds]  # the names of plans are drawn by the publisher
    assert worlds[0].real
    assert first == second


@pytest.mark.parametrize(
    "statement, said",
    [
        ("UPDATE event_log SET status = 'N' WHERE record_id = :record", "left at rest"),
        ("UPDATE event_log SET status = 'E' WHERE record_id = :record", "'letter', 'E', 'and not', {'S'}"),
        ("INSERT INTO event_log_outcome (record_id, status) VALUES (:record, 'N')", "a record contradicts the letter"),
        ("INSERT INTO event_log_outcome (record_id, status) VALUES (0, 'S')", "a record outlives its row"),
        ("INSERT INTO event_log_hold (record_id) VALUES (:record)", "left at rest"),
        ("", "'lost'"),
    ],
)
def test_what_the_oracle_notices(sqlite: Engine, monkeypatch: pytest.MonkeyPatch, statement: str, said: str) -> None:
    made(sqlite)

    def lying(world: World) -> None:
        row = next(row for row in world.rows.values() if _is_plain(world, row))
        if statement:
            world.run_sql(statement, record=row.record)
        else:
            target = world.targets[world.first[0]]
            target.came = [one for one in target.came if one.uid != row.uid]
        judge(world)

    monkeypatch.setattr(tests.publisher.world, "judge", lying)
    with pytest.raises(AssertionError, match=re.escape(said)):
        history(CALM_SEED, sqlite)


def _is_plain(world: World, row: Row) -> bool:
    """Return True if a row was published to all outputs and touched by nobody."""
    touched = row.setbacks or row.gone or row.foreign or row.was_held or row.excused
    came = [{one.uid: one.status for one in world.targets[name].came}.get(row.uid) for name in world.first]
    return not touched and set(came) == {"S"}


def test_an_empty_text_that_is_kept_is_found(sqlite: Engine) -> None:
    made(sqlite)
    mark = {"name": "a", "value": ""}
    with keeping_noted(sqlite) as kept, sqlite.begin() as connection:
        connection.execute(text("INSERT INTO event_log_mark (name, value) VALUES (:name, :value)"), mark)
        connection.execute(text("UPDATE event_log_output SET transactions = ''"))
        connection.execute(text("UPDATE event_log SET new_value = ''"))  # a row is what its writer says
    assert [what for what, _ in kept] == ["event_log_mark", "event_log_output"]


@contextmanager
def keeping_noted(engine: Engine) -> Iterator[list[tuple[str, str]]]:
    """Collect statements that would keep an empty text in a table beside the log, each with the table."""
    kept: list[tuple[str, str]] = []

    def noted(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        table = re.match(r"\s*(?:INSERT INTO|UPDATE)\s+(event_log_\w+)", statement)
        if table and (EMPTY_TEXT.search(statement) or "" in _texts(values)):
            kept.append((table[1], statement))

    event.listen(engine, "before_cursor_execute", noted)
    try:
        yield kept
    finally:
        event.remove(engine, "before_cursor_execute", noted)


def _texts(values: Any) -> Iterator[Any]:
    """Yield every bound value, however nested."""
    if isinstance(values, dict | list | tuple):
        for one in values.values() if isinstance(values, dict) else values:
            yield from _texts(one)
    else:
        yield values
