"""Two publishers while writers write: one stands by, takes over from one that is killed and from one that ends."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.hardening.contending import by_name
from tests.hardening.crash import prepare, waiting, writers
from tests.hardening.replaying import account_for_log, replay_xds, tables
from tests.integration.publishing import Process, until


def more(out: Path) -> None:
    """Waits until documents have come."""
    there = len(list(out.glob("*.xml")))
    until(lambda: len(list(out.glob("*.xml"))) > there, "documents come")


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_standby_takes_over_while_writers_write(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    engine: Engine = request.getfixturevalue(database)
    prepare(engine, "field")
    out = tmp_path / "out"
    out.mkdir()
    with ExitStack() as stack:

        def started(number: int) -> Process:
            """A publisher that keeps a journal of its own and shares the folder with the others."""
            own = tmp_path / f"out{number}"
            own.symlink_to(out)
            return stack.enter_context(Process(engine, own, lease=0.6, polling_interval=1, query_limit=5))

        with writers(engine, 7, count=2, pause=0.05):
            first = started(1)
            first.wait_for("seat_taken")
            second, third = started(2), started(3)
            for waits in (second, third):
                waits.wait_for("standing_by")
            more(out)
            first.tell(signal.SIGKILL)
            first.end()
            until(lambda: "seat_taken" in second.actions() + third.actions(), "somebody takes over")
            heir, last = (second, third) if "seat_taken" in second.actions() else (third, second)
            more(out)
            assert "seat_taken" not in last.actions()
            assert heir.stop() == 0
            last.wait_for("seat_taken")
            more(out)
        until(lambda: waiting(engine) == 0, "the rest is published")
        assert last.stop() == 0
    store, told = replay_xds(by_name(out))
    assert store == tables(engine)
    account_for_log(engine, told)
    assert len(told) > 10
