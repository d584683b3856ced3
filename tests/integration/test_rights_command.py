"""`eventlog rights` as a command: what it prints, what it refuses; and the statements of databases that no server ran here."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.core.errors import EX_CONFIG, EX_USAGE
from eventlog.sql.install import install
from eventlog.sql.names import LogNames
from eventlog.sql.oracle.dialect import ORACLE
from eventlog.sql.rights import CapturedTable, RightsScope, Roles, rights
from eventlog.sql.triggers import track
from tests.acceptance.command import eventlog, ok
from tests.support.logged import USR, run

LOG = LogNames(table="EVENT_LOG", schema="INDIRECT")


def test_a_database_without_roles_is_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'app.db'}"
    ok("install", "--database", place)
    done = eventlog("rights", "--writer", "app", "--database", place)
    assert done.returncode == EX_USAGE
    assert "sqlite has no roles" in done.stderr


def test_nobody_to_give_rights_to_is_refused(postgresql: Engine) -> None:
    install(postgresql)
    done = eventlog("rights", "--database", postgresql.url.render_as_string(hide_password=False))
    assert done.returncode == EX_USAGE
    assert "--installer, --writer, --publisher and --reader" in done.stderr


@pytest.mark.parametrize("role", ["--writer", "--publisher"])
def test_rights_on_a_log_that_is_not_there_are_refused(postgresql: Engine, role: str) -> None:
    done = eventlog("rights", role, "app", "--database", postgresql.url.render_as_string(hide_password=False))
    assert done.returncode == EX_CONFIG
    assert "eventlog install" in done.stderr


def test_sql_is_printed_and_nothing_is_changed(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, *USR)
    track(postgresql, ["usr"])
    url = postgresql.url.render_as_string(hide_password=False)
    printed = ok("rights", "--writer", "No Body", "--publisher", "idm", "--sql", "--database", url)
    assert 'REVOKE ALL ON public.event_log FROM PUBLIC, "No Body";\n' in printed
    assert "GRANT SELECT ON public.usr_phone TO idm;\n" in printed


def test_on_oracle_the_owner_of_the_tables_may_add_to_the_log_and_the_writer_gets_nothing() -> None:
    site = RightsScope(names=LOG, standing=True, places=(CapturedTable(schema="APP", name="USR", owner="APP"),))
    given = [sql for _, sql in rights(ORACLE, Roles(installer="INST", writer="CLERK", publisher="IDM"), site)]
    assert "GRANT INSERT ON indirect.event_log TO app" in given
    assert not [statement for statement in given if "clerk" in statement.lower()]
    assert "GRANT SELECT, UPDATE (status), DELETE ON indirect.event_log TO idm" in given
