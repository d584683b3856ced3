"""A registry that does not fit the database: `check` names it with the command that mends it, and nothing is published wrongly.

Somebody with all rights has edited it, a trigger's row or function is gone, a table was made again under the same name, a dump
was restored where tables have other numbers, and a database has two logs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track, trigger_states, untrack
from eventlog.check.examine import check
from eventlog.check.point import Point
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.access import in_words
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TrackRequest, TriggerOptions
from tests.hardening.registry.people import HIDDEN, documents
from tests.integration.publishing import url_of
from tests.support.logged import run
from tests.support.servers import absent, databases, postgres_binaries

USR = "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40), lname VARCHAR(40), secret VARCHAR(40))"
ROW = f"INSERT INTO usr (idu, fname, secret) VALUES (1, 'Ann', '{HIDDEN}')"
CHANGE = "UPDATE usr SET fname = 'Eve'"
TRACKED, TRIGGERS, RELATIONS = "event_log_tracked", "event_log_trigger", "event_log_relation"


@pytest.fixture(params=databases())
def server(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def site(server: Engine) -> Engine:
    """A table that is tracked without the column that nobody may see."""
    run(server, USR)
    install(server)
    track(server, ["usr"], TrackRequest(style=Style.IMAGE, exclude=("secret",)))
    return server


def config(engine: Engine, folder: Path, **source: Any) -> Config:
    settings: dict[str, Any] = {"url": url_of(engine), **source}
    return Config(
        source=SourceConfig(**settings),
        publisher=PublisherConfig(allow_loopback=True),
        output=(FilesOutput(path=str(folder)),),
    )


def points(engine: Engine, folder: Path, **source: Any) -> list[Point]:
    """What `check` says that is not as it should be."""
    return [point for point in check(lambda: config(engine, folder, **source)) if str(point.level) != "ok"]


def named(points: list[Point], *words: str) -> bool:
    """Whether a point says what is wrong, and another word what mends it."""
    said = [f"{point.said} {point.mend}" for point in points]
    return any(all(word in one for word in words) for one in said)


def ask(engine: Engine, sql: str) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(sql))]


def columns(engine: Engine, table: str) -> list[str]:
    with engine.connect() as connection:
        return list(connection.execute(text(f"SELECT * FROM {table}")).keys())


def test_a_registry_that_lacks_a_triggers_row(site: Engine, tmp_path: Path) -> None:
    """The trigger stands and writes; nothing says that it is ours, until somebody tracks again."""
    run(site, f"DELETE FROM {TRIGGERS}")
    found = points(site, tmp_path)
    assert named(found, "usr", "eventlog track"), found
    run(site, ROW, CHANGE)
    published = documents(config(site, tmp_path / "out"))
    assert HIDDEN not in published
    track(site, ["usr"])
    assert {str(state.state) for state in trigger_states(site)} == {"CURRENT"}
    run(site, "UPDATE usr SET fname = 'Joe'")
    published = documents(config(site, tmp_path / "out"))
    assert ("Joe" in published, HIDDEN in published) == (True, False)


def test_a_registry_that_lacks_the_class(site: Engine, tmp_path: Path) -> None:
    for table in (RELATIONS, TRIGGERS, TRACKED):
        run(site, f"DELETE FROM {table}")
    assert named(points(site, tmp_path), "usr"), points(site, tmp_path)
    run(site, ROW)
    documents(config(site, tmp_path / "out"))
    track(site, ["usr"], TrackRequest(exclude=("secret",)))
    assert {str(state.state) for state in trigger_states(site)} == {"CURRENT"}


@pytest.mark.parametrize("value", ["no json", "{}", "[]", '{"style": "nothing"}', '{"style": 1}'])
def test_a_registry_that_somebody_edited(site: Engine, tmp_path: Path, value: str) -> None:
    """Each text of the class's row in turn: what cannot be read is told, and hides what it hid."""
    edited = 0
    [row] = ask(site, f"SELECT * FROM {TRACKED}")
    named_texts = zip(columns(site, TRACKED), row, strict=True)
    texts = [name for name, kept in named_texts if isinstance(kept, str) and name not in ("schema_name", "table_name")]
    for column in texts:
        run(site, f"CREATE TABLE kept AS SELECT * FROM {TRACKED}")
        run(site, f"UPDATE {TRACKED} SET {column} = '{value}'")
        edited += 1
        found = points(site, tmp_path)
        run(site, "DELETE FROM usr", ROW, CHANGE)
        published = documents(config(site, tmp_path / "out"))
        assert HIDDEN not in published, column
        # No attributes is a list that may stand there.
        assert (column, value) == ("watched", "[]") or named(found, "usr", "eventlog track"), f"{column}: {found}"
        run(site, f"UPDATE {TRACKED} SET {column} = (SELECT {column} FROM kept)", "DROP TABLE kept")
    assert edited > 0


def test_a_number_of_the_registry_that_is_none(sqlite: Engine, tmp_path: Path) -> None:
    """SQLite keeps any text in a column of numbers."""
    run(sqlite, USR)
    install(sqlite)
    track(sqlite, ["usr"], TrackRequest(exclude=("secret",)))
    run(sqlite, f"UPDATE {TRACKED} SET relation = 'no number'", ROW)
    assert named(points(sqlite, tmp_path), "usr", "eventlog track")
    assert HIDDEN not in documents(config(sqlite, tmp_path / "out"))


def test_a_trigger_without_its_function(postgresql: Engine, tmp_path: Path) -> None:
    """Somebody has put another function under the trigger's name, for its own cannot be dropped."""
    run(postgresql, USR)
    install(postgresql)
    track(postgresql, ["usr"], TrackRequest(exclude=("secret",)))
    run(
        postgresql,
        "DROP TRIGGER event_log_usr_insert ON usr",
        "DROP FUNCTION event_log_usr_insert",
        "CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER event_log_usr_insert AFTER INSERT ON usr EXECUTE FUNCTION other()",
    )
    found = points(postgresql, tmp_path)
    assert named(found, "event_log_usr_insert", "eventlog track"), found
    run(postgresql, ROW, CHANGE)
    published = documents(config(postgresql, tmp_path / "out"))
    assert ("Eve" in published, HIDDEN in published) == (True, False)
    track(postgresql, ["usr"])
    run(postgresql, "DELETE FROM usr", "DELETE FROM event_log", ROW)
    assert ask(postgresql, "SELECT count(*) > 0 FROM event_log WHERE event_type IN (1, 5)") == [(True,)]


def test_a_name_that_somebody_elses_trigger_has(server: Engine) -> None:
    """It stays, and whoever tracks hears which trigger it is and what to do."""
    body = {
        "postgresql": "FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "sqlite": "BEGIN SELECT 1; END",
    }.get(server.dialect.name, "FOR EACH ROW SET @seen = 1")
    run(server, USR)
    install(server)
    run(server, f"CREATE TRIGGER event_log_usr_update BEFORE UPDATE ON usr {body}")
    with pytest.raises(DBAPIError) as refused:
        track(server, ["usr"])
    said = in_words(refused.value, "The table cannot be tracked")
    assert "event_log_usr_update" in said.message or "Trigger" in said.message
    assert server.dialect.name == "sqlite" or "another" in str(said.hint)
    run(server, f"DROP TRIGGER event_log_usr_update{' ON usr' * (server.dialect.name == 'postgresql')}")
    track(server, ["usr"])
    assert {str(state.state) for state in trigger_states(server)} == {"CURRENT"}


def test_a_table_that_was_dropped_and_made_again_under_the_same_name(site: Engine, tmp_path: Path) -> None:
    """Another table now, whose columns may mean other things: it is not captured, and `check` says so."""
    run(site, "DROP TABLE usr", USR.replace("fname VARCHAR(40)", "hidden VARCHAR(40)"))
    found = points(site, tmp_path)
    assert named(found, "usr", "eventlog track") or named(found, "usr", "eventlog untrack"), found
    run(site, f"INSERT INTO usr (idu, hidden, secret) VALUES (1, '{HIDDEN}', '{HIDDEN}')")
    assert HIDDEN not in documents(config(site, tmp_path / "out"))
    track(site, ["usr"], TrackRequest(reset=True, exclude=("secret", "hidden")))
    assert {str(state.state) for state in trigger_states(site)} == {"CURRENT"}
    run(site, f"INSERT INTO usr (idu, hidden, secret) VALUES (2, '{HIDDEN}', '{HIDDEN}')")
    published = documents(config(site, tmp_path / "out"))
    assert HIDDEN not in published
    assert ask(site, "SELECT count(*) > 0 FROM event_log WHERE table_key = 'idu=2' AND status IN ('S', 'W')") in (
        [(True,)],
        [(1,)],
    )


def test_two_logs_in_one_database_know_nothing_of_each_other(server: Engine, tmp_path: Path) -> None:
    run(server, USR)
    other = LogNames(table="second_log")
    install(server)
    install(server, other)
    track(server, ["usr"], TrackRequest(exclude=("secret",)))
    track(server, ["usr"], TrackRequest(style=Style.IMAGE, exclude=("secret", "fname")), other)
    for names in (None, other):
        assert {str(state.state) for state in trigger_states(server, names)} == {"CURRENT"}
    run(server, ROW, CHANGE)
    published = documents(config(server, tmp_path / "first"))
    assert ("Eve" in published, HIDDEN in published) == (True, False)
    published = documents(config(server, tmp_path / "second", log="second_log"))
    assert ("Eve" in published, HIDDEN in published) == (False, False)
    assert not named(points(server, tmp_path), "second_log")
    untrack(server, ["usr"], other)
    assert {str(state.state) for state in trigger_states(server)} == {"CURRENT"}
    assert trigger_states(server, other) == []


@pytest.fixture
def restored(postgresql: Engine, postgresql_admin: Engine, tmp_path: Path) -> Iterator[tuple[Engine, Engine]]:
    """A database and its dump, restored where every table has another number."""
    run(postgresql, USR, "CREATE TABLE grp (idg integer PRIMARY KEY, note text, secret text)")
    install(postgresql)
    track(postgresql, ["usr"], TrackRequest(style=Style.IMAGE, exclude=("secret",)))
    track(postgresql, ["grp"], TriggerOptions(exclude=("secret",)))
    run(postgresql, ROW)
    binaries = postgres_binaries()
    assert binaries is not None
    name = f"{postgresql.url.database}_restored"
    with postgresql_admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine = create_engine(postgresql.url.set(database=name))
    run(engine, *(f"CREATE TABLE passing_{number} (id integer)" for number in range(5)))
    place = ("-h", "127.0.0.1", "-p", str(postgresql.url.port), "-U", "postgres")
    file = tmp_path / "dump"
    dump = [str(binaries / "pg_dump"), *place, "-Fc", "-f", str(file), str(postgresql.url.database)]
    subprocess.run(dump, check=True, capture_output=True)
    subprocess.run([str(binaries / "pg_restore"), *place, "-d", name, str(file)], check=True, capture_output=True)
    yield postgresql, engine
    engine.dispose()
    with postgresql_admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


def test_a_restored_dump_has_other_numbers_and_goes_on(restored: tuple[Engine, Engine], tmp_path: Path) -> None:
    """What names and hashes confirm is published; the installer writes the new numbers."""
    before, after = restored
    number = "SELECT 'usr'::regclass::oid::bigint"
    assert ask(before, number) != ask(after, number)
    run(after, CHANGE, f"INSERT INTO grp VALUES (1, 'all', '{HIDDEN}')")
    published = documents(config(after, tmp_path / "out"))
    assert ("Eve" in published, HIDDEN in published) == (True, False)
    track(after, ["usr"])
    track(after, ["grp"])
    assert {str(state.state) for state in trigger_states(after)} == {"CURRENT"}
    assert [point for point in points(after, tmp_path) if point.name == "triggers"] == []
    run(after, "UPDATE usr SET fname = 'Joe'")
    assert "Joe" in documents(config(after, tmp_path / "out"))


def test_a_restored_dump_whose_number_is_another_tables_now(restored: tuple[Engine, Engine], tmp_path: Path) -> None:
    """The registry's number of one table is made that of another: a number alone is no proof."""
    _, after = restored
    if "relation" not in columns(after, TRACKED):
        pytest.skip("the registry keeps no number in this column")
    run(after, f"UPDATE {TRACKED} SET relation = 'grp'::regclass::oid::bigint WHERE table_name = 'usr'")
    found = points(after, tmp_path)
    assert named(found, "eventlog track") or named(found, "eventlog upgrade"), found
    run(after, CHANGE, f"INSERT INTO grp VALUES (1, 'all', '{HIDDEN}')")
    assert HIDDEN not in documents(config(after, tmp_path / "out"))


@pytest.fixture(params=["the same account", "another account"])
def copied(request: pytest.FixtureRequest, mariadb: Engine, tmp_path: Path) -> Iterator[tuple[Engine, Engine]]:
    """A database and its dump, which somebody has restored beside it, perhaps without the accounts of its triggers."""
    if shutil.which("mariadb-dump") is None:
        absent("mariadb", "mariadb-dump is not on this machine")
    run(mariadb, USR, "CREATE TABLE grp (idg INTEGER PRIMARY KEY, note VARCHAR(40), secret VARCHAR(40))")
    install(mariadb)
    track(mariadb, ["usr"], TrackRequest(style=Style.IMAGE, exclude=("secret",)))
    track(mariadb, ["grp"], TriggerOptions(exclude=("secret",)))
    run(mariadb, ROW)
    place = ("-h", str(mariadb.url.host), "-P", str(mariadb.url.port), "--protocol=tcp")
    dump = ["mariadb-dump", *place, "-u", str(mariadb.url.username), str(mariadb.url.database)]
    told = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    url = mariadb.url.set(database=f"{mariadb.url.database}_copy")
    run(mariadb, f"CREATE DATABASE {url.database}")
    if request.param == "another account":
        url = url.set(username="copier")
        run(mariadb, "CREATE USER copier@'%'", f"GRANT ALL ON {url.database}.* TO copier@'%'")
        told = re.sub(r"DEFINER=\S+@[^ *]+", "", told)
    restore = ["mariadb", *place, "-u", str(url.username), str(url.database)]
    subprocess.run(restore, check=True, capture_output=True, text=True, input=told)
    engine = create_engine(url)
    yield mariadb, engine
    engine.dispose()
    run(mariadb, f"DROP DATABASE {url.database}", "DROP USER IF EXISTS copier@'%'")


@pytest.mark.parametrize("gone", [False, True])
def test_a_dump_that_is_restored_beside_its_original_has_nothing_to_do_with_it(
    copied: tuple[Engine, Engine], tmp_path: Path, *, gone: bool
) -> None:
    """It reads no row of the original, which may be gone, and touches none of its triggers."""
    before, after = copied
    is_ours = after.url.username == before.url.username
    if gone:
        run(before, "DROP TABLE usr", "DROP TABLE grp")
    else:
        run(before, "UPDATE usr SET fname = 'Original'")
    assert {str(state.state) for state in trigger_states(after)} == {"CURRENT" if is_ours else "OUTDATED"}
    found = [point for point in points(after, tmp_path) if point.name == "triggers"]
    assert is_ours == (found == [])
    assert is_ours or named(found, "eventlog track usr"), found
    run(after, CHANGE, f"INSERT INTO grp VALUES (1, 'all', '{HIDDEN}')")
    published = documents(config(after, tmp_path / "out"))
    assert ("Eve" in published, "Original" in published, HIDDEN in published) == (True, False, False)
    assert ask(after, "SELECT DISTINCT status FROM event_log") == [("S",)]
    track(after, ["usr"])
    track(after, ["grp"])
    assert {str(state.state) for state in trigger_states(after)} == {"CURRENT"}
    run(after, "UPDATE usr SET fname = 'Joe'")
    assert "Joe" in documents(config(after, tmp_path / "out"))
    untrack(after, ["usr"])
    assert gone or {str(state.state) for state in trigger_states(before)} == {"CURRENT"}


@pytest.fixture(params=["one owner", "several owners"])
def dumped(request: pytest.FixtureRequest, postgresql: Engine, tmp_path: Path) -> Iterator[Path]:
    """The dump of a log that a superuser has made, or an installer beside the owner of the tables."""
    run(postgresql, USR, "CREATE TABLE grp (idg integer PRIMARY KEY, note text, secret text)", "CREATE ROLE heir LOGIN")
    installer = postgresql
    if request.param == "several owners":
        run(
            postgresql, "CREATE ROLE app_owner", "CREATE ROLE app_installer LOGIN", "ALTER TABLE usr OWNER TO app_owner"
        )
        give_rights(postgresql, Roles(installer="app_installer"), tables=["usr"])
        run(postgresql, "ALTER TABLE grp OWNER TO app_installer")
        installer = create_engine(postgresql.url.set(username="app_installer"))
    install(installer)
    track(installer, ["usr"], TrackRequest(style=Style.IMAGE, exclude=("secret",)))
    track(installer, ["grp"], TriggerOptions(exclude=("secret",)))
    run(postgresql, ROW)
    binaries, file = postgres_binaries(), tmp_path / "dump"
    assert binaries is not None
    place = ["-h", "127.0.0.1", "-p", str(postgresql.url.port), "-U", "postgres"]
    dump = [str(binaries / "pg_dump"), *place, "-Fc", "-f", str(file), str(postgresql.url.database)]
    subprocess.run(dump, check=True, capture_output=True)
    yield file
    installer.dispose()
    for role in ("heir", "app_owner", "app_installer"):
        with suppress(DBAPIError):
            run(postgresql, f"DROP OWNED BY {role} CASCADE", f"DROP ROLE {role}")


@pytest.mark.parametrize("without", [("--no-owner",), ("--no-owner", "--no-acl")], ids="".join)
def test_a_dump_that_another_role_restores_is_that_roles(
    dumped: Path, postgresql: Engine, postgresql_admin: Engine, tmp_path: Path, without: tuple[str, ...]
) -> None:
    """Where rights were left out, everybody could make a trigger that writes into the log with its owner's rights."""
    name = f"{postgresql.url.database}_heir"
    with postgresql_admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} OWNER heir"))
    after = create_engine(postgresql.url.set(database=name, username="heir"))
    try:
        place = ["-h", "127.0.0.1", "-p", str(postgresql.url.port), "-U", "heir", "-d", name]
        binaries = postgres_binaries()
        assert binaries is not None
        # Roles that are not there get no rights, which it says.
        subprocess.run([str(binaries / "pg_restore"), *place, *without, str(dumped)], check=False, capture_output=True)
        found = points(after, tmp_path)
        assert named(found, "usr", "eventlog track"), found
        assert named(found, "grp", "eventlog track"), found
        assert not named(found, "eventlog untrack"), found
        run(after, CHANGE, f"INSERT INTO grp VALUES (1, 'all', '{HIDDEN}')")
        assert HIDDEN not in documents(config(after, tmp_path / "out"))
        assert ask(after, "SELECT 1 FROM event_log WHERE status NOT IN ('S', 'N')") == []
        track(after, ["usr"])
        track(after, ["grp"])
        assert {str(state.state) for state in trigger_states(after)} == {"CURRENT"}
        open_to_all = "SELECT proname FROM pg_proc WHERE proname LIKE 'event_log_%' AND has_function_privilege('public', oid, 'EXECUTE')"
        assert ask(after, open_to_all) == []
        run(after, "UPDATE usr SET fname = 'Joe'")
        published = documents(config(after, tmp_path / "out"))
        assert ("Eve" in published, "Joe" in published, HIDDEN in published) == (True, True, False)
        assert ask(after, "SELECT DISTINCT status FROM event_log") == [("S",)]
    finally:
        after.dispose()
        with postgresql_admin.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
