"""`eventlog rights` as a command: what it prints, what it refuses; and the statements of databases that no server ran here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.rights import CapturedTable, RightsScope, Roles, rights
from eventlog.capture.track import track
from eventlog.core.errors import EX_CONFIG, EX_USAGE
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.sql.names import LogNames
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


def test_all_roles_stand_in_one_script_before_there_is_a_log(postgresql: Engine) -> None:
    """What `rights --sql` prints, with `install` where its comment says so, is all that a DBA runs."""
    run(postgresql, *USR, "CREATE TABLE grp (idg INTEGER PRIMARY KEY)", "CREATE ROLE app_script")
    roles = [f"{part}_script" for part in ("ins", "idm", "read")]
    run(postgresql, *(f"CREATE ROLE {role}" for role in roles))
    run(postgresql, *(f"ALTER TABLE {table} OWNER TO app_script" for table in ("usr", "usr_phone", "grp")))
    asked = ("--installer", roles[0], "--writer", "app_script", "--publisher", roles[1], "--reader", roles[2])
    url = postgresql.url.render_as_string(hide_password=False)
    try:
        printed = ok("rights", "u*", *asked, "--sql", "--database", url)
        before, after = printed.split("-- After `eventlog install`:\n")
        assert "GRANT app_script TO ins_script;\n" in before
        assert "idm_script" not in before
        assert "GRANT SELECT ON public.usr_phone TO read_script;\n" in after
        assert "grp" not in printed
        run(postgresql, *before.strip().split(";\n"))
        install(postgresql)
        run(postgresql, *after.strip().removesuffix(";").split(";\n"))
        every = ok("rights", "--all", *asked, "--sql", "--json", "--database", url)
        told = json.loads(every)["would_run"]
        assert {"role": "read_script", "part": "reader", "sql": "GRANT SELECT ON public.grp TO read_script"} in [
            {name: one[name] for name in ("role", "part", "sql")} for one in told
        ]
        ran = json.loads(ok("rights", "usr", *asked, "--json", "--database", url))["ran"]
        assert {one["part"] for one in ran} == {"installer", "writer", "publisher", "reader"}
        assert not [one for one in ran if one["role"] == "idm_script" and "usr" in one["sql"]]
    finally:
        everybody = f"app_script, {', '.join(roles)}"
        run(postgresql, f"DROP OWNED BY {everybody} CASCADE", f"DROP ROLE {everybody}")


def test_patterns_mean_tables_and_a_name_beside_all_is_refused(postgresql: Engine) -> None:
    run(postgresql, *USR)
    url = postgresql.url.render_as_string(hide_password=False)
    assert eventlog("rights", "x*", "--installer", "app", "--database", url).returncode == EX_CONFIG
    assert eventlog("rights", "usr", "--all", "--installer", "app", "--database", url).returncode == EX_USAGE


def test_on_oracle_the_owner_of_the_tables_may_add_to_the_log_and_the_writer_gets_nothing() -> None:
    site = RightsScope(
        names=LOG,
        existing=True,
        tables=(CapturedTable(schema="APP", name="USR", owner="APP"),),
    )
    given = [one.sql for one in rights(ORACLE, Roles(installer="INST", writer="CLERK", publisher="IDM"), site)]
    assert "GRANT INSERT ON indirect.event_log TO app" in given
    assert not [statement for statement in given if "clerk" in statement.lower()]
    assert "GRANT SELECT, UPDATE (status), DELETE ON indirect.event_log TO idm" in given
