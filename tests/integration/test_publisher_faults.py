"""What a publisher does when a database, a lock, a table or a receiver fails it: wait when that helps, else end and say why."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError

from eventlog.core.errors import ConfigError, InstallError, SourceError
from eventlog.daemon.publisher import Publisher
from eventlog.sql.connect import connect, limit_sessions
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import Process, config_of, in_thread, published, settled, site, until
from tests.integration.scripted_server import ScriptedServer, answer
from tests.support import servers

BUSY = b'<output><status level="retry" event-id="1">Come back later.</status></output>'


class OwnServer:
    """A PostgreSQL server that belongs to one test, which may take it down and up again."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries, self._folder = binaries, folder
        self._owner = servers.server_owner(folder)
        self._port = servers.free_port()
        servers._initialise(binaries, folder, self._owner)
        self._server: subprocess.Popen[bytes] | None = None
        self.up()

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"

    def up(self) -> None:
        self._server = servers._started(self._binaries, self._folder, self._port, self._owner)

    def down(self, how: signal.Signals = signal.SIGINT) -> None:
        assert self._server is not None
        self._server.send_signal(how)
        self._server.wait(servers.PATIENCE)


@pytest.fixture
def own_server() -> Iterator[OwnServer]:
    binaries = servers.postgres_binaries()
    if binaries is None:
        servers.absent("postgres", "its binaries are not there")
    folder = Path(tempfile.mkdtemp(prefix="eventlog-pg-"))
    server = OwnServer(binaries, folder)
    yield server
    server.down()
    shutil.rmtree(folder, ignore_errors=True)


def test_a_database_that_restarts_is_waited_for(own_server: OwnServer, tmp_path: Path) -> None:
    engine = create_engine(own_server.url)
    log = site(engine)
    out = tmp_path / "out"
    with Process(engine, out) as process:
        log.write(1)
        until(settled(log, 1), "the first row")
        engine.dispose()
        own_server.down()
        assert "invalid transaction" not in str(process.wait_for("failed")["error"]), "it is told in our words"
        own_server.up()
        process.wait_for("recovered")
        log.write(2, key="idu=2")
        until(settled(log, 2), "the row after the restart")
        assert process.stop() == 0
    assert process.journal[-1].items() >= {"action": "stopped", "exit_code": 0}.items()
    assert len(process.said.read_text().splitlines()) == len(process.journal), "nothing else stands there"
    assert list(published(out).values()) == [["1"], ["2"]]
    engine.dispose()


def test_connections_that_are_cut_again_and_again_lose_and_double_nothing(postgresql: Engine, tmp_path: Path) -> None:
    log = site(postgresql)
    out = tmp_path / "out"
    with in_thread(Publisher(config_of(postgresql, out, query_limit=5))):
        for start in range(1, 101, 20):
            for number in range(start, start + 20):
                log.write(number, key=f"idu={number}")
            with postgresql.begin() as connection:
                connection.execute(
                    text(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
                )
            time.sleep(0.1)
        until(settled(log, 100), "all rows")
    assert list(published(out).values()) == [[str(number)] for number in range(1, 101)]


def test_a_lock_is_not_waited_for_for_ever(postgresql: Engine, tmp_path: Path) -> None:
    log = site(postgresql)
    log.write(1)
    config = config_of(postgresql, tmp_path / "out")
    impatient = connect(config.source.url)
    limit_sessions(impatient, 5.0, 0.2)
    with Publisher(config, engine=impatient) as publisher, postgresql.begin() as other:
        publisher.post.take()
        other.execute(text("LOCK TABLE event_log IN ACCESS EXCLUSIVE MODE"))
        with pytest.raises(SourceError, match="lock timeout") as waited:  # without a limit it would wait for ever
            publisher.run_once()
        assert waited.value.may_pass
        other.rollback()
        assert publisher.run_once().settled == 1


def test_a_statement_does_not_run_for_ever(postgresql: Engine) -> None:
    engine = connect(postgresql.url.render_as_string(hide_password=False))
    limit_sessions(engine, 0.2, None)
    with engine.connect() as connection, pytest.raises(Exception, match="statement timeout"):
        connection.execute(text("SELECT pg_sleep(5)"))
    engine.dispose()


def test_a_limit_that_a_database_cannot_keep_is_refused(sqlite: Engine) -> None:
    with pytest.raises(ConfigError, match=r"source.statement_timeout cannot be set: sqlite has no such limit"):
        limit_sessions(sqlite, 5.0, None)


def publish_while_a_column_goes(log: LogTable, out: Path) -> None:
    with in_thread(Publisher(config_of(log.engine, out))) as publisher:
        until(settled(log, 1), "the first row")
        log.run("ALTER TABLE event_log DROP COLUMN old_value")
        log.run(
            "INSERT INTO event_log (record_id, table_key, status, event_type, event_time, table_name)"
            " VALUES (2, 'idu=1', 'N', 4, '2026-01-01 00:00:00', 'usr')"
        )
        until(lambda: publisher.vitals.reading().silent > 2, "it ends")


def test_a_log_that_loses_a_column_ends_the_publisher_with_its_name(engine: Engine, tmp_path: Path) -> None:
    log = site(engine)
    log.write(1)
    with pytest.raises(InstallError, match="event_log has no column old_value"):
        publish_while_a_column_goes(log, tmp_path / "out")
    assert log.statuses() == {1: "S", 2: "N"}


@pytest.mark.parametrize(
    "setting, sent",
    [("stop", ["1", "1", "1", "2", "3"]), ("object", ["1", "3", "1", "1", "2"])],
)
def test_what_a_receiver_does_not_take_is_offered_again_and_not_overtaken(
    engine: Engine, tmp_path: Path, setting: str, sent: list[str]
) -> None:
    """Row 1 is refused twice; row 2 is of the same object, row 3 of another."""
    log = site(engine)
    log.write(1, key="idu=1")
    log.write(2, key="idu=1", event_type=2, old_value="Jack", new_value="John")
    log.write(3, key="idu=3")
    steps = [answer(BUSY), answer(BUSY), *([answer()] * 3)]
    if setting == "object":
        steps = [answer(BUSY), answer(), answer(BUSY), *([answer()] * 2)]
    with ScriptedServer(steps) as server:
        file = tmp_path / "eventlog.toml"
        file.write_text(
            f'[publisher]\non_retry = "{setting}"\nretry_first = 0.2\nallow_loopback = true\n'
            f'[[output]]\nsink = "files"\npath = "{tmp_path / "files"}"\n'
            f'[[output]]\nsink = "http"\nurl = "http://127.0.0.1:{server.port}/"\n'
        )
        with in_thread(Publisher.from_config(_with_database(file, engine))):
            until(settled(log, 3), "everything is taken in the end")
        heads = [head for head, _ in server.requests]
    numbers = [head.lower().split("eventlog-document: ")[1].split("\r")[0].lstrip("0") for head in heads]
    assert numbers == sent
    assert list(published(tmp_path / "files").values()) == [["1"], ["2"], ["3"]]
    assert log.outcomes() == {}


def test_after_enough_attempts_a_row_is_an_error_and_the_rest_goes_on(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    log.write(1, key="idu=1")
    log.write(2, key="idu=2")
    with ScriptedServer([answer(BUSY), answer(BUSY), answer()]) as server:
        file = tmp_path / "eventlog.toml"
        file.write_text(
            "[publisher]\nmax_attempts = 2\nretry_first = 0.1\nallow_loopback = true\n"
            f'[[output]]\nsink = "http"\nurl = "http://127.0.0.1:{server.port}/"\n'
        )
        with in_thread(Publisher.from_config(_with_database(file, sqlite))):
            until(lambda: log.statuses() == {1: "E", 2: "S"}, "the row is given up")
    assert log.outcomes()[1] == ("E", "refused", "Given up after 2 attempts. Come back later.", 0)


def _with_database(file: Path, engine: Engine) -> Path:
    file.write_text(f'[source]\nurl = "{engine.url.render_as_string(hide_password=False)}"\n' + file.read_text())
    return file


def test_a_server_that_does_not_answer_is_given_up(postgresql: Engine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        engine = connect(f"postgresql+psycopg://postgres@127.0.0.1:{silent.getsockname()[1]}/app?connect_timeout=2")
        limit_sessions(engine, None, None)
        with pytest.raises(OperationalError, match="timeout"):
            engine.connect()
    engine = connect(postgresql.url.render_as_string(hide_password=False))
    limit_sessions(engine, None, None)
    with engine.connect() as connection:
        driver: Any = connection.connection.driver_connection
        assert driver.info.get_parameters()["tcp_user_timeout"] == "30000"
    engine.dispose()
