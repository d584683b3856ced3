"""MariaDB, MySQL and SQLite: who may make a trigger of their own forges one that looks like the program's, and gets nothing by it.

On MariaDB a login has a database of its own, or may make triggers on one table of its own beside the tracked ones. On SQLite
the application wrote the text of a trigger, perhaps by restoring an old dump; whoever can write the file can do everything else.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track, trigger_states
from eventlog.cli.main import exit_code
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import InstallError
from eventlog.sinks.outputs import FilesOutput
from eventlog.tracked.options import Style, TrackRequest
from eventlog.tracked.stamp import read_stamp
from tests.hardening.registry.accounts import CHANGE, ROW, USR, Accounts, accounts_on
from tests.hardening.registry.people import HIDDEN, documents
from tests.integration.publishing import url_of
from tests.support.logged import run
from tests.support.servers import mysqls


@pytest.fixture(params=mysqls())
def accounts(request: pytest.FixtureRequest) -> Iterator[Accounts]:
    with accounts_on(request.getfixturevalue(request.param)) as found:
        yield found


def marker(table: str, log: str, **options: object) -> str:
    return json.dumps({"log": log, "table": table, "options": options, "hash": "0123456789abcdef"})


def forge(accounts: Accounts, place: str, table: str = "usr", **options: object) -> None:
    """A trigger of the stranger's that says what ours once said, in its text."""
    database = accounts.admin.url.database
    beside = place == "a table beside"
    log = "event_log" if beside else f"{database}.event_log"
    told = base64.b64encode(marker(table if beside else f"{database}.{table}", log, **options).encode()).decode()
    stranger = accounts.engines["stranger"]
    target = "mine" if beside else f"{accounts.home}.usr"
    if not beside:
        run(stranger, f"CREATE TABLE {accounts.home}.usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40))")
    schema = "" if beside else f"{accounts.home}."
    body = f"BEGIN DO 'eventlog {told}'; END"
    with stranger.begin() as connection:
        connection.exec_driver_sql(
            f"CREATE TRIGGER {schema}event_log_{'mine' if beside else 'usr'}_insert AFTER INSERT ON {target}"
            f" FOR EACH ROW {body}".replace("%", "%%")
        )


def config(accounts: Accounts, folder: Path, part: str = "publisher") -> Config:
    url = (accounts.admin if part == "admin" else accounts.engines[part]).url.render_as_string(hide_password=False)
    settings = PublisherConfig(allow_loopback=True)
    return Config(source=SourceConfig(url=url), publisher=settings, output=(FilesOutput(path=str(folder)),))


FORGED: dict[str, dict[str, Any]] = {
    "no options": {},
    "another exclusion": {"exclude": ["fname", "lname"]},
    "another key": {"key": ["secret"]},
    "the whole row": {"key": ["*"], "style": "image"},
}


@pytest.mark.parametrize("part", ["publisher", "admin"])
@pytest.mark.parametrize("what", FORGED)
def test_what_is_hidden_stays_so_and_every_change_has_its_document(
    accounts: Accounts, tmp_path: Path, what: str, part: str
) -> None:
    """A superuser's publisher sees the triggers of all; one with the least rights sees none."""
    forge(accounts, "a table beside", **FORGED[what])
    run(accounts.engines["writer"], ROW)
    run(accounts.engines["writer"], CHANGE)
    published = documents(config(accounts, tmp_path, part))
    assert (HIDDEN in published, "Eve" in published) == (False, True)
    assert accounts.statuses() == "SS"
    assert accounts.ask("SELECT reason FROM event_log_outcome WHERE reason <> 'superseded'") == []


@pytest.mark.parametrize("part", ["admin", "installer"])
def test_a_refresh_runs_nothing_of_a_strangers(accounts: Accounts, part: str) -> None:
    forge(accounts, "a table beside", when=f"{accounts.home}.trap('a condition') = 1")
    run(accounts.engines["writer"], ROW)
    url = (accounts.admin if part == "admin" else accounts.engines[part]).url.render_as_string(hide_password=False)
    code = exit_code(["refresh", "usr", "--database", url])
    assert accounts.sung() == []
    assert (code, accounts.statuses()) == (0, "NN")


@pytest.mark.parametrize("part", ["admin", "installer"])
def test_verify_runs_nothing_of_a_strangers(accounts: Accounts, part: str) -> None:
    forge(accounts, "a table beside", when=f"{accounts.home}.trap('a condition') = 1")
    run(accounts.engines["writer"], ROW)
    twin = f"{accounts.admin.url.database}_twin"
    run(accounts.admin, f"CREATE DATABASE {twin}")
    against = accounts.admin.url.set(database=twin)
    with create_engine(against).begin() as connection:
        connection.execute(text(USR))
        connection.execute(text(ROW))
    url = (accounts.admin if part == "admin" else accounts.engines[part]).url.render_as_string(hide_password=False)
    target = against.render_as_string(hide_password=False)
    assert exit_code(["verify", "usr", "--against", target, "--wait", "0", "--database", url]) == 0
    assert accounts.sung() == []


def test_what_nobody_tracks_gets_no_rights_and_the_installer_works(accounts: Accounts) -> None:
    forge(accounts, "a table beside", "private")
    publisher = str(accounts.engines["publisher"].url.username)
    given = give_rights(accounts.admin, Roles(publisher=publisher))
    assert not [one.sql for one in given if "private" in one.sql]
    track(accounts.engines["installer"], ["usr"])
    states = trigger_states(accounts.engines["installer"])
    assert {str(state.state) for state in states} - {"STRAY"} == {"CURRENT"}


def test_triggers_in_another_database_make_no_publisher_compare_triggers(accounts: Accounts) -> None:
    """A superuser's publisher is told of the triggers of all databases."""

    def stamp() -> list[tuple[Any, ...]]:
        with accounts.admin.connect() as connection:
            return read_stamp(connection, accounts.log)

    before = stamp()
    forge(accounts, "another database")
    assert before
    assert stamp() == before


def test_a_superuser_untracks_without_touching_a_strangers_trigger(accounts: Accounts) -> None:
    forge(accounts, "a table beside")
    url = accounts.admin.url.render_as_string(hide_password=False)
    assert exit_code(["untrack", "usr", "--yes", "--database", url]) == 0
    left = accounts.ask("SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = DATABASE()")
    assert left == [("event_log_mine_insert",)]


TRIGGERS = "SELECT trigger_name, definer FROM information_schema.triggers WHERE trigger_schema = DATABASE()"


@pytest.fixture
def taker(accounts: Accounts) -> Engine:
    """The stranger, who makes triggers on the tracked table too."""
    stranger = accounts.engines["stranger"]
    run(accounts.admin, f"GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER ON usr TO '{stranger.url.username}'")
    return stranger


@pytest.mark.parametrize("name", ["event_log_usr_insert", "event_log_usr_insert_tried"])
@pytest.mark.parametrize("writes", [False, True])
def test_a_strangers_trigger_with_a_name_of_ours_is_not_dropped(
    accounts: Accounts, taker: Engine, name: str, writes: bool
) -> None:
    """Neither one that the registry names, nor that under which a new one is tried, whatever it does."""
    body = "INSERT INTO event_log (table_key) VALUES ('a=1')" if writes else "SET @seen = 1"
    run(taker, "DROP TRIGGER event_log_usr_insert", f"CREATE TRIGGER {name} AFTER INSERT ON usr FOR EACH ROW {body}")
    for engine in (accounts.engines["installer"], accounts.admin):
        with pytest.raises(InstallError, match=f"{name} on usr belongs to {taker.url.username}@%") as refused:
            track(engine, ["usr"], TrackRequest(style=Style.FIELD))
        assert "Drop what has that name" in str(refused.value.hint)
    found = {str(trigger): definer for trigger, definer in accounts.ask(TRIGGERS)}
    assert found[name] == f"{taker.url.username}@%"
    assert len(found) == 3, "of ours none was taken off"
    run(taker, f"DROP TRIGGER {name}")
    assert {str(state.state) for state in track(accounts.engines["installer"], ["usr"])} == {"CURRENT"}


def test_our_trigger_that_came_to_another_account_is_made_again(accounts: Accounts, taker: Engine) -> None:
    """A dump that another account restores gives it the triggers: their text says that they are ours."""
    [(sql,)] = accounts.ask(
        "SELECT action_statement FROM information_schema.triggers WHERE trigger_name = 'event_log_usr_insert'"
    )
    run(taker, "DROP TRIGGER event_log_usr_insert")
    with taker.begin() as connection:
        connection.exec_driver_sql("SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_BACKSLASH_ESCAPES'")
        connection.exec_driver_sql(
            f"CREATE TRIGGER event_log_usr_insert AFTER INSERT ON usr FOR EACH ROW {sql}".replace("%", "%%")
        )
    installer = accounts.engines["installer"]
    states = {state.name: str(state.state) for state in trigger_states(installer)}
    assert states["event_log_usr_insert"] == "OUTDATED"
    assert {str(state.state) for state in track(installer, ["usr"])} == {"CURRENT"}
    assert {definer for _, definer in accounts.ask(TRIGGERS)} == {f"{installer.url.username}@%"}


def test_the_publisher_writes_marks_and_track_keeps_what_the_owner_of_the_log_said(accounts: Accounts) -> None:
    """Whatever it writes, and with a trigger beside it that says the same."""
    condition = f"{accounts.home}.trap('a condition') = 1"
    options: dict[str, Any] = {"when": condition, "exclude": ["secret"]}
    forge(accounts, "a table beside", **options)
    asked = json.dumps({"table": "usr", "options": options}).replace("'", "''")
    publisher = accounts.engines["publisher"]
    run(
        publisher,
        "DELETE FROM event_log_mark WHERE name = 'asked: usr'",
        f"INSERT INTO event_log_mark (name, value) VALUES ('asked: usr', '{asked}')",
    )
    before = accounts.ask("SELECT trigger_name, action_statement FROM information_schema.triggers ORDER BY 1")
    for engine in (accounts.admin, accounts.engines["installer"]):
        track(engine, ["usr"])
        now = accounts.ask("SELECT trigger_name, action_statement FROM information_schema.triggers ORDER BY 1")
        assert now == before
    run(accounts.engines["writer"], ROW)
    assert accounts.sung() == []
    assert accounts.statuses() == "N"


def test_a_text_of_a_trigger_on_sqlite_is_only_a_text(sqlite: Engine, tmp_path: Path) -> None:
    run(sqlite, USR, "CREATE TABLE mine (id INTEGER PRIMARY KEY)", "CREATE TABLE private (id INTEGER PRIMARY KEY)")
    install(sqlite)
    track(sqlite, ["usr"], TrackRequest(exclude=("secret",)))
    told = marker("usr", "event_log", when="1 / 0")
    run(
        sqlite,
        f"CREATE TRIGGER event_log_mine_insert AFTER INSERT ON mine BEGIN SELECT /* eventlog {told} */ 1; END",
        f"CREATE TRIGGER z AFTER INSERT ON mine BEGIN SELECT /* eventlog {marker('private', 'event_log')} */ 1; END",
        ROW,
        CHANGE,
    )
    source = SourceConfig(url=url_of(sqlite))
    config = Config(source=source, output=(FilesOutput(path=str(tmp_path / "out")),))
    published = documents(config)
    assert (HIDDEN in published, "Eve" in published) == (False, True)
    with sqlite.connect() as connection:
        statuses = connection.execute(text("SELECT group_concat(status, '') FROM event_log")).scalar_one()
    assert statuses == "SS"
    assert exit_code(["refresh", "usr", "--database", url_of(sqlite)]) == 0
    track(sqlite, ["usr"])
    states = trigger_states(sqlite)
    assert {str(state.state) for state in states} - {"STRAY"} == {"CURRENT"}
    assert exit_code(["untrack", "usr", "--yes", "--database", url_of(sqlite)]) == 0
    with sqlite.connect() as connection:
        left = (
            connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY 1")).scalars().all()
        )
    assert left == ["event_log_mine_insert", "z"]
