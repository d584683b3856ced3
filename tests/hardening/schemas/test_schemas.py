"""Nothing is lost on schemas as people have them: random work, four ways to log it, and a receiver that believes nothing.

EVENTLOG_SCHEMAS says how many seeds; `python -m tests.hardening schemas --minutes N` asks for so many.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.sql.triggers import Style
from tests.hardening.schemas.replaying import Replayer
from tests.hardening.schemas.running import Run, different
from tests.support.servers import databases

SEEDS = int(os.environ.get("EVENTLOG_SCHEMAS", "1"))
ROUNDS = 2 if SEEDS == 1 else 8
STEPS = 50


@pytest.mark.parametrize("style", list(Style))
@pytest.mark.parametrize("database", databases())
def test_a_receiver_has_what_the_tables_have(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, style: Style
) -> None:
    """At the end of every round, whatever was rolled back, refused, cascaded or truncated in it."""
    engine: Engine = request.getfixturevalue(database)
    folder = tmp_path / "documents"
    folder.mkdir()
    run = Run(engine, folder, style, seed=1)
    for _ in range(ROUNDS):
        assert run.round(STEPS) == []


@pytest.mark.skipif(SEEDS == 1, reason="asked by `python -m tests.hardening schemas`")
@pytest.mark.parametrize("style", list(Style))
@pytest.mark.parametrize("seed", range(2, SEEDS + 1))
def test_a_receiver_has_what_the_tables_have_for_long(
    postgresql: Engine, tmp_path: Path, seed: int, style: Style
) -> None:
    """PostgreSQL has what is hardest: every action fires triggers, and several sessions work at once."""
    run = Run(postgresql, tmp_path, style, seed)
    for _ in range(ROUNDS):
        assert run.round(STEPS) == []


def test_the_replayer_tells_of_what_cannot_be() -> None:
    def told(inner: str) -> list[bytes]:
        return [f"<nds><input>{inner}</input></nds>".encode()]

    place = "<association>id=1,table=t,schema=s</association>"
    receiver = Replayer(strict=True)
    receiver.take(
        told(
            f"<modify event-id='1'>{place}</modify><delete event-id='2'><association>id=2,table=t</association></delete>"
        )
    )
    assert [wrong.split(" ", 2)[1] for wrong in receiver.wrong] == ["modifies", "deletes"]
    gone = "<modify-attr attr-name='x'><remove-value><value>a</value></remove-value></modify-attr>"
    receiver.take(told(f"<modify event-id='3'>{place}{gone}</modify>"))
    assert receiver.wrong[-1] == "x of ('t', 'id=1') loses ['a'], and has []"
    assert different({("t", "id=1"): {"x": {"a"}}}, receiver.filled()) == [
        "('t', 'id=1'): tables {'x': {'a'}}, receiver {}"
    ]
