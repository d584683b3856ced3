"""Random histories of the journal on each database. Who wants more says EVENTLOG_HARDENING=10, or runs the package."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from tests.hardening.quantity import scaled
from tests.publisher.running import history, made

HISTORIES = {"sqlite": 24, "postgresql": 4, "mysql": 4}
GROUPS = 4


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_history_loses_doubles_or_disorders_anything(engine: Engine, group: int) -> None:
    made(engine)
    seeds = range(group, scaled(HISTORIES[engine.dialect.name]), GROUPS)
    rows = sum(history(seed, engine)["rows"] for seed in seeds)
    assert rows >= len(seeds)
