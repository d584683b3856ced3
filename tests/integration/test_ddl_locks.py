"""Making triggers on a table that is in use: nobody queues behind it for long, nothing is changed, and it says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states, untrack
from eventlog.capture.install import install, uninstall
from eventlog.core.errors import EX_TRY_AGAIN, SourceError
from eventlog.sql import dialect
from eventlog.sql.names import LogNames
from tests.support.logged import USR, logged, run
from tests.support.servers import databases


@pytest.fixture(params=[name for name in databases() if name != "sqlite"])
def usr(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A tracked table on each server; whoever changes it waits for a second."""
    engine: Engine = request.getfixturevalue(request.param)
    install(engine)
    run(engine, USR[0])
    track(engine, ["usr"])
    monkeypatch.setattr(dialect, "DDL_LOCK_SECONDS", 1)
    return engine


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "change",
    [
        lambda engine: track(engine, ["usr"], TriggerOptions(style=Style.FIELD)),
        lambda engine: untrack(engine, ["usr"]),
        lambda engine: uninstall(engine, LogNames(), purge=True),
    ],
    ids=["track", "untrack", "uninstall"],
)
def test_a_table_that_is_in_use_is_not_waited_for_for_ever(usr: Engine, change: Callable[[Engine], object]) -> None:
    with usr.connect() as writer:
        writer.execute(text("INSERT INTO usr (idu) VALUES (1)"))
        with pytest.raises(SourceError, match="did not come within 1 s") as told:
            change(usr)
        assert (told.value.may_pass, told.value.exit_code) == (True, EX_TRY_AGAIN)
        writer.commit()
    assert {state.state for state in trigger_states(usr)} == {TriggerCondition.CURRENT}
    run(usr, "INSERT INTO usr (idu) VALUES (2)")
    assert [row[:2] for row in logged(usr)] == [(5, "idu=1"), (5, "idu=2")]
    change(usr)


def test_a_session_waits_for_locks_as_before_when_it_is_done(usr: Engine) -> None:
    asked = {"postgresql": "SHOW lock_timeout", "mysql": "SELECT @@lock_wait_timeout = @@GLOBAL.lock_wait_timeout"}
    with usr.connect() as connection:
        before = connection.execute(text(asked[usr.dialect.name])).scalar()
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD_BACK))
    with usr.connect() as connection:
        assert connection.execute(text(asked[usr.dialect.name])).scalar() == before
