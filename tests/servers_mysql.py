"""MariaDB and MySQL for tests: `mariadb` from the system's package, else from a container, and `mysql` from a container.

Sessions of these engines take "double quotes" for names and a backslash for itself, because the conformance suites are
written in standard SQL; what other modes do is tested by engines of the tests' own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine, create_engine, make_url, text

from tests.servers import absent, containers_answer, free_port, running, said, server_owner, wait_until_ready

_numbers = count(1)
_standard = "SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',ANSI_QUOTES,NO_BACKSLASH_ESCAPES')"
# With an hour that comes twice a year, so that nothing is right only because the server lives in UTC.
_zone = {"TZ": "CET-1CEST,M3.5.0,M10.5.0/3"}
_images = {"mariadb": "mariadb:11.4", "mysql": "mysql:8.4"}
_settings = {
    "bind-address": "127.0.0.1",
    "character-set-server": "utf8mb4",
    "innodb-buffer-pool-size": "64M",
    "innodb-doublewrite": "0",
    "innodb-flush-log-at-trx-commit": "0",
    "performance-schema": "off",
    "skip-log-bin": "",
    "skip-name-resolve": "",
}


def pytest_report_header(config: pytest.Config) -> str:
    server = shutil.which("mariadbd", path=_search_path())
    version = said(server, "--version") if server else "none"
    return f"databases: MariaDB: {version}; containers: {'an engine answers' if containers_answer() else 'none'}"


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[URL]:
    """Where a MariaDB server runs, as its administrator reaches it: EVENTLOG_MARIADB_URL, or one of our own."""
    elsewhere = os.environ.get("EVENTLOG_MARIADB_URL")
    if elsewhere:
        yield make_url(elsewhere)
    elif all(shutil.which(program, path=_search_path()) for program in ("mariadbd", "mariadb-install-db")):
        with _installed_server() as url:
            yield url
    elif containers_answer():
        with _container("mariadb") as url:
            yield url
    else:
        absent("mariadb", "the package mariadb-server is not installed and no container engine answers")


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[URL]:
    """Where a MySQL server runs, as its administrator reaches it: EVENTLOG_MYSQL_URL, or a container."""
    elsewhere = os.environ.get("EVENTLOG_MYSQL_URL")
    if elsewhere:
        yield make_url(elsewhere)
        return
    if not containers_answer():
        absent("mysql", "EVENTLOG_MYSQL_URL names none and no container engine answers")
    with _container("mysql") as url:
        yield url


@pytest.fixture
def mariadb(mariadb_server: URL) -> Iterator[Engine]:
    """An engine on a new MariaDB database."""
    with _database(mariadb_server, "utf8mb4_nopad_bin") as engine:
        yield engine


@pytest.fixture
def mysql(mysql_server: URL) -> Iterator[Engine]:
    """An engine on a new MySQL database."""
    with _database(mysql_server, "utf8mb4_0900_bin") as engine:
        yield engine


@contextmanager
def _database(server: URL, collation: str) -> Iterator[Engine]:
    """Text is told apart byte by byte there, as the other databases do it; collations have tests of their own."""
    name = f"test_{os.getpid()}_{next(_numbers)}x"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE {collation}"))
    engine = create_engine(server.set(database=name), connect_args={"init_command": _standard})
    yield engine
    engine.dispose()
    with admin.connect() as connection:
        for made in connection.scalars(text(f"SHOW DATABASES LIKE '{name}%'")).all():
            connection.execute(text(f"DROP DATABASE {made}"))
    admin.dispose()


@contextmanager
def _installed_server() -> Iterator[URL]:
    """A server of our own from the installed package; the system's service is neither needed nor touched."""
    folder = Path(tempfile.mkdtemp(prefix="eventlog-maria-", dir="/tmp"))
    server = None
    try:
        owner = server_owner(folder)
        _initialise(folder, owner)
        url = URL.create("mysql+pymysql", "root", host="127.0.0.1", port=free_port(), database="mysql")
        server = _started(folder, url, owner)
        yield url
    finally:
        if server is not None:
            server.terminate()
            server.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def _initialise(folder: Path, owner: str | None) -> None:
    command = ["mariadb-install-db", "--no-defaults", f"--datadir={folder / 'data'}", "--skip-test-db"]
    options = ["--auth-root-authentication-method=normal", "--skip-name-resolve"]
    run = subprocess.run([*command, *options], check=False, capture_output=True, text=True, cwd=folder, user=owner)
    if run.returncode:
        absent("mariadb", (run.stderr or run.stdout).strip().replace("\n", " ")[-500:])


def _started(folder: Path, url: URL, owner: str | None) -> subprocess.Popen[bytes]:
    server = shutil.which("mariadbd", path=_search_path())
    assert server is not None  # the fixture has looked
    places = {"datadir": folder / "data", "socket": folder / "socket", "pid-file": folder / "pid", "port": url.port}
    options = [f"--{name}={value}" if value != "" else f"--{name}" for name, value in (places | _settings).items()]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [server, "--no-defaults", *options], stdout=log, stderr=log, cwd=folder, user=owner, env=os.environ | _zone
        )
    wait_until_ready("mariadb", url, process, folder / "log")
    return process


@contextmanager
def _container(name: str) -> Iterator[URL]:
    from testcontainers.community.mysql import MySqlContainer

    def make() -> MySqlContainer:
        # Without a binary log, as in the server of our own: with one, whoever makes triggers needs SUPER.
        packed = MySqlContainer(_images[name], username="root", password="test", dialect="pymysql")
        return packed.with_command("--skip-log-bin")

    with running(name, make) as container:
        yield make_url(container.get_connection_url())


def _search_path() -> str:
    """Where servers are; /usr/sbin is on few people's PATH."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
