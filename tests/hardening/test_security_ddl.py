"""What the owner of a table tries where ALTER TABLE is followed: to run code with the rights of who installed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.track import track
from eventlog.core.errors import InstallError
from eventlog.tracked.options import Style, TriggerOptions
from tests.hardening.test_security_owners import LOG, Stage, cast_traps, roles
from tests.support.logged import run

FOLLOWED = TriggerOptions(style=Style.FIELD, follow_ddl=True)
CODE = "INSERT INTO public.caught VALUES(user,'n');--"
NASTY = (f"a'; {CODE}", f'a"; {CODE}', f"a$eventlog$; {CODE}", f"a\\'; {CODE}", "%s %I %L")


@pytest.fixture
def stage(postgresql: Engine) -> Iterator[Stage]:
    with roles(postgresql) as found:
        found.own(
            "CREATE TABLE app.usr (idu integer PRIMARY KEY, fname text, kind text)",
            "CREATE TABLE app.usr_phone (idu integer REFERENCES app.usr, phoneno text)",
            *cast_traps("AS IMPLICIT"),
        )
        yield found


def write(stage: Stage, table: str, key: str = "idu") -> None:
    """What a writer does, however it ends: a new session plans everything anew."""
    quoted = f'"{key}"' if '"' not in key else key
    for statement in (
        f"INSERT INTO {table} ({quoted}) VALUES (1)",
        f"UPDATE {table} SET kind = kind",
        f"UPDATE {table} SET {quoted} = 2",
        f"DELETE FROM {table}",
        f"TRUNCATE {table} CASCADE",
    ):
        run(stage.writer, statement)
        stage.writer.dispose()


@pytest.mark.parametrize("rows", [False, True])
def test_a_column_gets_a_type_of_the_owners_and_an_index_that_calls_a_trap(stage: Stage, rows: bool) -> None:
    track(stage.admin, ["app.usr"], TriggerOptions(style=Style.FIELD, rows=rows, follow_ddl=True), LOG)
    stage.own("ALTER TABLE app.usr ALTER COLUMN kind TYPE app.mood USING 'low'::app.mood")
    stage.own("CREATE INDEX ON app.usr (app.trap(fname))", "CREATE INDEX ON app.usr (fname) WHERE app.trapped(fname)")
    stage.own("ALTER TABLE app.usr_phone ALTER COLUMN phoneno TYPE app.mood USING 'low'::app.mood")
    write(stage, "app.usr")
    stage.own(
        "INSERT INTO app.usr VALUES (3)", "INSERT INTO app.usr_phone VALUES (3, 'low')", "DELETE FROM app.usr_phone"
    )
    assert stage.caught() == set()
    assert {row[0] for row in stage.logged()} >= {4, 5, 6}


@pytest.mark.parametrize("name", NASTY)
def test_names_are_names_and_never_code(stage: Stage, name: str) -> None:
    track(stage.admin, ["app.usr"], FOLLOWED, LOG)
    quoted = '"' + name.replace('"', '""') + '"'
    percent = quoted.replace("%", "%%")
    with stage.owner.begin() as connection:
        connection.exec_driver_sql(f"ALTER TABLE app.usr RENAME TO {percent}")
    with stage.owner.begin() as connection:
        connection.exec_driver_sql(f"INSERT INTO app.{percent} (idu) VALUES (1)")
        connection.exec_driver_sql(f"ALTER TABLE app.{percent} RENAME COLUMN fname TO {percent}")
    renaming = f'ALTER TABLE app.{percent} RENAME COLUMN idu TO {percent[:-1]}2"'
    with stage.owner.connect() as connection:
        connection.exec_driver_sql(renaming)
        connection.exec_driver_sql(f"DELETE FROM app.{percent}")
        connection.rollback()
    assert stage.caught() == set()
    with stage.admin.connect() as connection:
        found = connection.execute(text("SELECT DISTINCT table_name FROM capture.event_log")).scalars().all()
    assert found == [f"app.{name}"]


def test_names_that_end_the_text_of_a_trigger_are_refused(stage: Stage) -> None:
    stage.own(f'ALTER TABLE app.usr RENAME COLUMN fname TO "{NASTY[2]}"')
    with pytest.raises(InstallError, match="would end the text of a trigger"):
        track(stage.admin, ["app.usr"], TriggerOptions(style=Style.FIELD), LOG)
    with pytest.raises(InstallError):
        track(stage.admin, ["app.usr"], TriggerOptions(when="idu = 1"), LOG)
    assert stage.caught() == set()


def test_what_an_owner_writes_into_comments_and_triggers_is_not_believed(stage: Stage) -> None:
    """The event trigger takes what it makes out of functions of its own owner's, for the table that they were made for."""
    track(stage.admin, ["app.usr"], FOLLOWED, LOG)
    before = functions(stage)
    stage.own(
        "CREATE TABLE app.mine (idu integer PRIMARY KEY, fname text, kind text)",
        "CREATE FUNCTION app.event_log_mine() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN /* eventlog ddl [[1,null]] x eyJoZWFkIjogIiJ9 */ RETURN NULL; END'",
        "CREATE TRIGGER mine AFTER INSERT ON app.mine FOR EACH ROW EXECUTE FUNCTION app.event_log_mine()",
        'COMMENT ON TRIGGER mine ON app.mine IS \'eventlog {"log":"capture.event_log","table":"app.usr"}\'',
        "COMMENT ON TRIGGER event_log_app_usr_insert ON app.usr IS 'eventlog {}'",
        "ALTER TABLE app.mine ADD COLUMN x integer",
    )
    assert functions(stage) == before
    assert stage.caught() == set()


def functions(stage: Stage) -> set[tuple[str, str]]:
    """The functions of the log's schema, and whose they are."""
    query = "SELECT prosrc, proowner::regrole::text FROM pg_proc WHERE pronamespace = 'capture'::regnamespace"
    with stage.admin.connect() as connection:
        return {(row[0], row[1]) for row in connection.execute(text(query))}
