"""What a publisher does when a database, a lock, a table or a receiver fails it: wait when that helps, else end and say why."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.core.errors import InstallError, SourceError
from eventlog.daemon.publisher import Publisher
from eventlog.sql.connect import connect, limit_sessions
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import Process, config_of, finished, in_thread, published, site, until, url_of
from tests.integration.scripted_server import ScriptedServer, Step, answer
from tests.support import servers

BUSY = b'<output><status level="retry" event-id="1">Come back later.</status></output>'
OTHERS = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "mysql": "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()",
}
ENDING = {"postgresql": "SELECT pg_terminate_backend({})", "mysql": "KILL {}"}
"""What ends a session on each kind of server."""


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


@pytest.fixture(params=[name for name in servers.databases() if name != "sqlite"])
def server(request: pytest.FixtureRequest) -> Engine:
    """An engine on each server."""
    found: Engine = request.getfixturevalue(request.param)
    return found


def test_a_database_that_restarts_is_waited_for(own_server: OwnServer, tmp_path: Path) -> None:
    engine, out = create_engine(own_server.url), tmp_path / "out"
    log = site(engine)
    log.write(1)
    engine.dispose()
    own_server.down()
    with Process(engine, out) as process:
        process.wait_for("failed")
        own_server.up()
        until(finished(log, 1), "the row that waited, for it starts before its database does")
        engine.dispose()
        before = process.actions().count("failed")
        own_server.down()
        failed = process.wait_for("failed", before + 1)
        assert "invalid transaction" not in str(failed["error"]), "it is told in our words"
        own_server.up()
        process.wait_for("recovered")
        log.write(2, key="idu=2")
        until(finished(log, 2), "the row after the restart")
        assert process.stop() == 0
    assert process.journal[-1].items() >= {"action": "stopped", "exit_code": 0}.items()
    assert len(process.said.read_text().splitlines()) == len(process.journal), "nothing else stands there"
    assert list(published(out).values()) == [["1"], ["2"]]
    engine.dispose()


def test_connections_that_are_cut_again_and_again_lose_and_double_nothing(server: Engine, tmp_path: Path) -> None:
    log, kind = site(server), server.dialect.name
    with in_thread(Publisher(config_of(server, tmp_path / "out", query_limit=5))):
        for start in range(1, 61, 20):
            for number in range(start, start + 20):
                log.write(number, key=f"idu={number}")
            until(lambda: "S" in log.statuses().values(), "it works")
            with server.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                for (session,) in connection.execute(text(OTHERS[kind])).all():
                    with suppress(DBAPIError):  # it ended by itself meanwhile
                        connection.exec_driver_sql(ENDING[kind].format(session))
        until(finished(log, 60), "all rows")
    assert list(published(tmp_path / "out").values()) == [[str(number)] for number in range(1, 61)]


@pytest.mark.parametrize("held", ["event_log_mark WHERE name = 'publisher'", "event_log WHERE record_id = 1"])
def test_a_lock_is_not_waited_for_for_ever(server: Engine, tmp_path: Path, held: str) -> None:
    log, impatient = site(server), connect(url_of(server))
    log.write(1)
    limit_sessions(impatient, 5.0, 0.5)
    with Publisher(config_of(server, tmp_path / "out"), engine=impatient) as publisher:
        assert publisher.run_once().finished == 1
        log.run("UPDATE event_log SET status = 'N'")
        with server.begin() as other:
            other.execute(text(f"SELECT * FROM {held} FOR UPDATE")).all()
            with pytest.raises(SourceError, match=r"[Ll]ock (wait )?timeout") as waited:
                publisher.run_once()
            assert waited.value.may_pass
        assert publisher.run_once().finished == 1
    assert log.statuses() == {1: "S"}


def publish_while_a_column_goes(log: LogTable, out: Path) -> None:
    with in_thread(Publisher(config_of(log.engine, out, polling_interval=1))) as publisher:
        until(finished(log, 1), "the first row")
        log.run("ALTER TABLE event_log DROP COLUMN old_value")
        log.run(
            "INSERT INTO event_log (record_id, table_key, status, event_type, event_time, table_name)"
            " VALUES (2, 'idu=1', 'N', 4, '2026-01-01 00:00:00', 'usr')"
        )
        until(lambda: publisher.vitals.reading().silent > 2, "it ends")


def test_a_log_that_loses_a_column_ends_the_publisher_with_its_name(postgresql: Engine, tmp_path: Path) -> None:
    log = site(postgresql)
    log.write(1)
    with pytest.raises(InstallError, match="event_log has no column old_value"):
        publish_while_a_column_goes(log, tmp_path / "out")
    assert log.statuses() == {1: "S", 2: "N"}


def configured(folder: Path, engine: Engine, *lines: str) -> Publisher:
    file = folder / "eventlog.toml"
    publishing = "retry_first = 0.1\nallow_loopback = true"
    file.write_text("\n".join([f'[source]\nurl = "{url_of(engine)}"\n[publisher]\n{publishing}', *lines]))
    return Publisher.from_config(file)


@pytest.mark.parametrize(
    "setting, steps, sent",
    [
        ("stop", [answer(BUSY), answer(BUSY), answer()], ["1", "1", "1", "2", "3"]),
        ("object", [answer(BUSY), answer(), answer(BUSY), answer()], ["1", "3", "1", "1", "2"]),
    ],
)
def test_what_a_receiver_does_not_take_is_offered_again_and_not_overtaken(
    engine: Engine, tmp_path: Path, setting: str, steps: list[Step], sent: list[str]
) -> None:
    """Row 1 is refused twice; row 2 is of the same object, row 3 of another."""
    log = site(engine)
    log.write(1, key="idu=1")
    log.write(2, key="idu=1", event_type=2, old_value="Jack", new_value="John")
    log.write(3, key="idu=3")
    with ScriptedServer(steps) as server:
        files = f'[[output]]\nsink = "files"\npath = "{tmp_path / "files"}"'
        http = f'[[output]]\nsink = "http"\nurl = "http://127.0.0.1:{server.port}/"'
        with in_thread(configured(tmp_path, engine, f'on_retry = "{setting}"', files, http)):
            until(finished(log, 3), "everything is taken in the end")
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
        http = f'[[output]]\nsink = "http"\nurl = "http://127.0.0.1:{server.port}/"'
        with in_thread(configured(tmp_path, sqlite, "max_attempts = 2", http)):
            until(lambda: log.statuses() == {1: "E", 2: "S"}, "the row is given up")
    assert log.outcomes()[1] == ("E", "refused", "Given up after 2 attempts. Come back later.")
