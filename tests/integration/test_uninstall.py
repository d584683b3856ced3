"""`eventlog uninstall` leaves nothing of what install, track and rights made, shows it before, and asks; --sql only prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, text

from eventlog.capture.given_rights import take_back, taking_back
from eventlog.capture.install import Leaving, install, uninstall, uninstall_sql
from eventlog.capture.install_commands import has_address
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track
from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_CONFIG, EX_USAGE, OK, InstallError
from eventlog.sql.names import LogNames
from tests.acceptance.command import eventlog, ok
from tests.support.logged import USR, run
from tests.support.servers import mysqls


@pytest.mark.parametrize("url", ["sqlite://", "postgresql://", "oracle://", "mysql://", "mariadb://"])
def test_a_dialect_alone_is_enough(url: str) -> None:
    assert not has_address(url)
    printed = ok("uninstall", "--sql", "--database", url)
    assert "DROP TABLE event_log_outcome" in printed
    assert "Take the triggers off first" in printed


def test_a_database_is_looked_at_and_left_as_it_is(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'app.db'}"
    refused = eventlog("uninstall", "--sql", "--database", place)
    assert refused.returncode == EX_CONFIG
    ok("install", "--database", place)
    printed = ok("uninstall", "--sql", "--database", place)
    assert ok("uninstall", "--sql", "--database", place) == printed
    assert "DROP TABLE event_log;" in printed
    assert "triggers" not in printed


FUNCTIONS = r"SELECT proname FROM pg_proc WHERE proname LIKE 'event\_log%' ORDER BY 1"
RIGHTS = """SELECT relname || privilege_type || grantee::regrole FROM pg_class, aclexplode(relacl)
WHERE grantee::regrole::text LIKE '%_traces' AND grantee <> grantor
UNION ALL SELECT nspname || privilege_type || grantee::regrole FROM pg_namespace, aclexplode(nspacl)
WHERE grantee::regrole::text LIKE '%_traces' AND grantee <> grantor
UNION ALL SELECT roleid::regrole || ' ' || member::regrole FROM pg_auth_members WHERE member::regrole::text LIKE '%_traces'
ORDER BY 1"""
ROLES = Roles(installer="ins_traces", writer="app_traces", publisher="idm_traces", reader="read_traces")


def note_in(told: list[Leaving]) -> Callable[[Leaving], bool]:
    """Make what agrees to everything, and notes what it was."""

    def agree(leaving: Leaving) -> bool:
        told.append(leaving)
        return True

    return agree


def found(engine: Engine, query: str) -> list[str]:
    with engine.connect() as connection:
        return [str(row[0]) for row in connection.execute(text(query.replace(":", "\\:")))]


@pytest.fixture
def roles(postgresql: Engine) -> Iterator[Engine]:
    names = [getattr(ROLES, called) for called in Roles.__struct_fields__] + ["own_traces"]
    run(postgresql, *(f"CREATE ROLE {name}" for name in names), "CREATE SCHEMA app")
    yield postgresql
    run(postgresql, *(f"DROP OWNED BY {name}" for name in names), *(f"DROP ROLE {name}" for name in names))


def test_functions_and_rights_go_with_the_log_on_postgresql(roles: Engine) -> None:
    run(roles, *USR, "CREATE TABLE app.grp (idg INTEGER PRIMARY KEY)", "CREATE TABLE gone (id INTEGER PRIMARY KEY)")
    run(roles, *(f"ALTER TABLE {table} OWNER TO own_traces" for table in ("usr", "usr_phone", "app.grp", "gone")))
    run(roles, "GRANT SELECT ON usr TO read_traces")
    before = found(roles, RIGHTS)
    other = LogNames(table="event_log_two")
    install(roles)
    install(roles, other)
    track(roles, ["usr", "app.grp", "gone"])
    track(roles, ["usr", "gone"], names=other)
    give_rights(roles, ROLES)
    run(roles, "DROP TABLE gone")
    assert len(found(roles, FUNCTIONS)) > 20
    told: list[Leaving] = []
    script = uninstall_sql(roles)
    assert uninstall(roles, agree=note_in(told)) == []
    assert found(roles, RIGHTS) == before
    assert {name.split("_")[2] for name in found(roles, FUNCTIONS)} == {"two"}
    assert uninstall(roles, other) == []
    assert found(roles, FUNCTIONS) == []
    (leaving,) = told
    lines = leaving.lines()
    assert "function public.event_log_gone_insert" in lines
    assert "table public.event_log" in lines
    assert "what was given by GRANT SELECT ON app.grp TO read_traces" in lines
    assert "REVOKE SELECT ON app.grp FROM read_traces" in script
    assert "GRANT SELECT ON public.usr TO read_traces" not in "\n".join(lines), "it was not we who gave that"


@pytest.mark.parametrize("server", mysqls())
def test_rights_go_with_the_log_on_mysql(server: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(server)
    run(engine, "CREATE USER 'idm_traces'@'%'", *USR)
    before = found(engine, "SHOW GRANTS FOR 'idm_traces'@'%'")
    try:
        install(engine)
        track(engine, ["usr"])
        give_rights(engine, Roles(publisher="idm_traces@%"))
        assert found(engine, "SHOW GRANTS FOR 'idm_traces'@'%'") != before
        assert uninstall(engine) == []
        assert found(engine, "SHOW GRANTS FOR 'idm_traces'@'%'") == before
    finally:
        run(engine, "DROP USER 'idm_traces'@'%'")


def test_what_is_no_grant_is_not_run(postgresql: Engine) -> None:
    for forged in ("GRANT a TO b; DROP TABLE usr", "DROP TABLE usr", 'GRANT "a TO b', "GRANT SELECT ON a -- TO b"):
        assert taking_back(forged) is None
    install(postgresql)
    run(
        postgresql, "INSERT INTO event_log_mark VALUES ('given: 1', 'GRANT pg_monitor TO nobody; DROP TABLE event_log')"
    )
    told: list[Leaving] = []
    uninstall(postgresql, agree=note_in(told))
    assert told[0].grants == ()
    with postgresql.connect() as connection:
        assert take_back(connection, ["GRANT pg_monitor TO nobody_there"]) == ["GRANT pg_monitor TO nobody_there"]


def test_it_shows_and_wants_a_yes(sqlite: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    install(sqlite)
    run(sqlite, *USR, *(f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY NOT NULL)" for number in range(9)))
    track(sqlite, ["*"])
    run(sqlite, "INSERT INTO usr (idu) VALUES (1)", "UPDATE event_log SET status = 'S'")
    where = ["--database", str(sqlite.url)]
    assert exit_code(["uninstall", *where]) == EX_USAGE
    told = capsys.readouterr().err
    for words in (
        "table event_log_mark",
        "1 row of the log, of which 0 wait",
        "trigger event_log_t",
        "more triggers",
    ):
        assert words in told
    assert "use --yes" in told
    assert exit_code(["triggers", *where]) == OK
    assert exit_code(["uninstall", "--yes", *where]) == OK
    assert "is removed" in capsys.readouterr().out


def test_an_adopted_log_stays(sqlite: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    install(sqlite, LogNames(table="other"))
    run(sqlite, "CREATE TABLE event_log AS SELECT * FROM other")
    where = ["--database", str(sqlite.url)]
    assert exit_code(["install", *where]) == OK
    assert exit_code(["uninstall", "--yes", *where]) == OK
    assert "nothing of the log itself, which was adopted: 0 rows" in capsys.readouterr().err
    run(sqlite, "INSERT INTO event_log (record_id) VALUES (1)")


@pytest.mark.parametrize("server", ["postgresql", *mysqls()])
def test_what_writers_commit_while_triggers_go_is_not_lost(server: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(server)
    install(engine)
    run(engine, USR[0])
    track(engine, ["usr"])
    writer = engine.connect()
    writer.exec_driver_sql("INSERT INTO usr (idu) VALUES (1)")

    def write(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        if statement.lstrip().startswith("DROP TRIGGER"):
            writer.commit()  # the lock that the drop would wait for

    event.listen(engine, "before_cursor_execute", write)
    with writer, pytest.raises(InstallError, match="1 row of event_log still waits to be published"):
        uninstall(engine)
    event.remove(engine, "before_cursor_execute", write)
    assert found(engine, "SELECT status FROM event_log") == ["N"]
    uninstall(engine, purge=True)
