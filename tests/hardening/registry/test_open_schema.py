"""A schema in which others may create, as `public` is on PostgreSQL 14 and older: what somebody made there before us under a name
of ours is not taken for ours.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine

from eventlog.capture.install import install
from eventlog.capture.track import track, track_sql, trigger_states
from eventlog.cli.main import exit_code
from eventlog.core.errors import InstallError
from eventlog.sql.names import LogNames
from tests.integration.publishing import url_of
from tests.support.logged import run

USR = "CREATE TABLE usr (idu integer NOT NULL PRIMARY KEY, fname varchar(40))"
BODY = "RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"


@pytest.fixture
def stranger(postgresql: Engine) -> Iterator[Engine]:
    """A login that may create in the schema `public`, and nothing else."""
    name = "stranger_in_public"
    run(postgresql, f"CREATE ROLE {name} LOGIN", f"GRANT CREATE ON SCHEMA public TO {name}", USR)
    engine = create_engine(postgresql.url.set(username=name))
    yield engine
    engine.dispose()
    run(postgresql, f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


@pytest.mark.parametrize(
    "table", [*LogNames().registry.values(), LogNames().version, "event_log_planned", "event_log_mark"]
)
def test_a_table_that_somebody_made_before_is_none_of_the_log(postgresql: Engine, stranger: Engine, table: str) -> None:
    run(stranger, f"CREATE TABLE {table} AS SELECT CAST('0001' AS varchar) AS version_num")
    with pytest.raises(InstallError, match=f"{table} is there already, and belongs to stranger_in_public"):
        install(postgresql)
    run(stranger, f"DROP TABLE {table}")
    assert install(postgresql)


def test_whose_log_is_there_already_is_said(
    postgresql: Engine, stranger: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert install(stranger)
    assert exit_code(["install", "--database", url_of(postgresql)]) == 0
    assert "The log was there before and belongs to stranger_in_public" in capsys.readouterr().err
    assert exit_code(["install", "--database", url_of(stranger)]) == 0
    assert "belongs to" not in capsys.readouterr().err


def test_a_function_that_somebody_made_before_is_run_by_no_trigger(postgresql: Engine, stranger: Engine) -> None:
    """To replace it would leave it to its owner, who could have each write of the table run any code, as its writer."""
    install(postgresql)
    run(stranger, f"CREATE FUNCTION event_log_usr_update() {BODY}")
    for making in (track, track_sql):
        with pytest.raises(InstallError, match=r"event_log_usr_update\(\) .*belongs to stranger_in_public"):
            making(postgresql, ["usr"])
    assert trigger_states(postgresql) == []
    run(stranger, "DROP FUNCTION event_log_usr_update()")
    assert {str(state.state) for state in track(postgresql, ["usr"])} == {"CURRENT"}
