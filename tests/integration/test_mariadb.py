"""MariaDB and MySQL at work: who wrote, who waits for whom, triggers replaced under load, errors that pass and that do not."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from threading import Event as Flag
from threading import Thread

import pytest
from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install, install_sql, uninstall_sql
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, track_sql, trigger_states
from eventlog.core.errors import InstallError
from eventlog.core.model import Outcome
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.publishing import until
from tests.support.log_rows import LogRows
from tests.support.logged import USR, left_by, logged, run
from tests.support.servers import absent, mysqls
from tests.support.servers_mysql import mysql_shell

JACK = "INSERT INTO usr VALUES (1, 'Jack', 'Frost', NULL)"


@pytest.fixture(params=mysqls())
def usr(request: pytest.FixtureRequest) -> Engine:
    """An engine on each of the two with a log and a table that is not tracked yet."""
    found: Engine = request.getfixturevalue(request.param)
    install(found)
    run(found, *USR)
    return found


@pytest.fixture(params=mysqls())
def server(request: pytest.FixtureRequest) -> Engine:
    """An engine on each of the two with nothing in its database."""
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def shell(server: Engine) -> list[str]:
    """The words that call the server's own shell on that database."""
    with server.connect() as connection:
        version = str(connection.exec_driver_sql("SELECT VERSION()").scalar_one())
    own = ["mariadb"] if "MariaDB" in version else mysql_shell()
    if shutil.which(own[0]) is None:
        absent("mariadb", f"its shell {own[0]} is not installed")
    url = server.url
    place = [f"--host={url.host}", f"--port={url.port}", f"--user={url.username}", f"--password={url.password or ''}"]
    return [*own, "--no-defaults", *place, str(url.database)]


@pytest.fixture
def impatient(usr: Engine) -> Iterator[Engine]:
    """Sessions that wait a second for a lock and no longer."""
    command = "SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"
    found = create_engine(usr.url, connect_args={"init_command": command})
    yield found
    found.dispose()


@pytest.fixture
def account(usr: Engine) -> Iterator[Engine]:
    """Somebody who has no rights yet, with an @ in the name."""
    name = f"wri@ter{usr.url.database}"[-30:]
    run(usr, f"CREATE USER `{name}`@`%`")
    found = create_engine(usr.url.set(username=name))
    yield found
    found.dispose()
    run(usr, f"DROP USER `{name}`@`%`")


def states(engine: Engine) -> list[TriggerCondition]:
    return [state.state for state in trigger_states(engine)]


def test_the_perpetrator_is_the_writer_without_the_host_and_needs_no_right_on_the_log(
    usr: Engine, account: Engine
) -> None:
    track(usr, ["usr"])
    run(usr, f"GRANT INSERT ON usr TO `{account.url.username}`@`%`")
    run(account, JACK)
    with usr.connect() as connection:
        assert connection.execute(text("SELECT perpetrator FROM event_log")).scalars().all() == [account.url.username]
    for attempt in (
        "SELECT * FROM event_log",
        "DELETE FROM event_log",
        "INSERT INTO event_log (table_key) VALUES ('a=1')",
    ):
        with pytest.raises(DBAPIError, match="denied"):
            run(account, attempt)


def test_triggers_of_others_on_the_same_table_are_left_alone(usr: Engine) -> None:
    run(usr, "CREATE TRIGGER theirs AFTER INSERT ON usr FOR EACH ROW SET @theirs = NEW.idu")
    track(usr, ["usr"])
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD_BACK))
    with usr.begin() as connection:
        connection.exec_driver_sql(JACK)
        assert connection.exec_driver_sql("SELECT @theirs").scalar() == 1
    assert states(usr) == [TriggerCondition.CURRENT] * 6  # the child table's three, too


def test_scripts_run_by_the_shell_make_a_log_and_current_triggers_and_take_them_off(
    server: Engine, shell: list[str]
) -> None:
    def by_shell(script: str) -> None:
        subprocess.run(shell, input=script, text=True, check=True, capture_output=True)

    by_shell(install_sql("mysql://"))
    run(server, *USR)
    by_shell(track_sql(server, ["usr"], TriggerOptions(style=Style.FIELD, when="fname <> 'it''s \\\\'")))
    assert states(server) == [TriggerCondition.CURRENT] * 6
    run(server, JACK)
    assert [row[2] for row in logged(server)] == ["fname", "lname"]
    by_shell(uninstall_sql(server, purge=True))
    with server.connect() as connection:
        assert connection.exec_driver_sql("SHOW TABLES").scalars().all() == ["usr", "usr_phone"]
        assert connection.exec_driver_sql("SHOW TRIGGERS").all() == []


def test_no_change_is_lost_while_triggers_are_replaced(usr: Engine) -> None:
    track(usr, ["usr"])
    done, failures = Flag(), []
    numbers: list[int] = []

    def write() -> None:
        try:
            with usr.connect() as connection:
                while not done.is_set():
                    numbers.append(len(numbers))
                    connection.execute(text("INSERT INTO usr (idu) VALUES (:n)"), {"n": numbers[-1]})
                    connection.commit()
        except DBAPIError as error:
            failures.append(error)

    writer = Thread(target=write)
    writer.start()
    for style in (Style.FIELD_BACK, Style.ROW_BACK) * 8:
        track(usr, ["usr"], TriggerOptions(style=style))
    done.set()
    writer.join()
    assert failures == []
    assert len({row[1] for row in logged(usr)}) == len(numbers) > 16


def test_a_long_statement_keeps_nobody_from_numbering_log_rows(usr: Engine, impatient: Engine) -> None:
    track(usr, ["usr"])
    waits = "SELECT 1 FROM information_schema.processlist WHERE info LIKE 'INSERT%' AND state LIKE 'User lock'"
    with usr.connect() as gate:
        gate.execute(text("SELECT GET_LOCK('gate', 0)"))
        long = Thread(target=run, args=(usr, "INSERT INTO usr (idu, age) VALUES (1, 1), (2, GET_LOCK('gate', 60))"))
        long.start()
        until(lambda: gate.execute(text(waits)).all(), "the first row is logged and the second one waits")
        run(impatient, "INSERT INTO usr (idu) VALUES (3)")
        assert [row[1] for row in logged(usr)] == ["idu=3"]
        gate.execute(text("SELECT RELEASE_LOCK('gate')"))
        long.join()
    assert len(logged(usr)) == 3


def test_writers_do_not_wait_for_the_publisher(usr: Engine, impatient: Engine) -> None:
    track(usr, ["usr"])
    run(usr, *(f"INSERT INTO usr (idu) VALUES ({number})" for number in range(100)))
    source = LogRows(usr, LogNames())
    batch = source.read(0)
    finished = Flag()

    def wrote(*_: object) -> None:
        if not finished.is_set():
            finished.set()
            run(impatient, "INSERT INTO usr (idu) VALUES (1000)", "UPDATE usr SET fname = 'y' WHERE idu = 5")

    def after(_connection: object, _cursor: object, sql: str, *_: object) -> None:
        if sql.startswith("UPDATE event_log SET"):
            wrote()

    event.listen(usr, "after_cursor_execute", after)
    source.settle(batch, [Outcome(position=entry.position) for entry in batch.events])
    assert finished.is_set()
    assert len(source.read(0).events) == 2


def test_a_log_of_another_database_is_named_in_full(usr: Engine) -> None:
    other = f"{usr.url.database}_other"
    run(usr, f"CREATE DATABASE {other}", f"CREATE TABLE {other}.t (k INTEGER NOT NULL PRIMARY KEY)")
    with pytest.raises(InstallError, match=r"is in test_.*_other, where a trigger would look for event_log too"):
        track(usr, [f"{other}.t"])
    names = LogNames(table="event_log", schema=str(usr.url.database))
    track(usr, [f"{other}.t"], names=names)
    assert left_by(usr, f"INSERT INTO {other}.t VALUES (1)") == [(5, "k=1", None, None, None)]
    assert {state.state for state in trigger_states(usr, names)} == {TriggerCondition.CURRENT}
    assert {state.state for state in trigger_states(usr)} == {TriggerCondition.OUTDATED}  # by the log's bare name


def test_a_log_whose_collation_knows_no_case_is_read_by_its_letters(usr: Engine) -> None:
    ci = "VARCHAR(3) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
    run(usr, f"ALTER TABLE event_log DROP CONSTRAINT event_log_status_ck, MODIFY status {ci}")
    for letter in ("n", "N", "N ", "S"):
        sql = "INSERT INTO event_log (status, table_key, event_type, table_name) VALUES"
        run(usr, f"{sql} ('{letter}', 'idu=1', 6, 'usr')")
    source = LogRows(usr, LogNames())
    batch = source.read(0)
    assert [entry.position for entry in batch.events] == [(2,)]
    source.settle(batch, [Outcome(position=(2,))])
    with usr.connect() as connection:
        statuses = connection.execute(text("SELECT status FROM event_log ORDER BY record_id")).scalars().all()
    assert statuses == ["n", "S", "N ", "S"]
