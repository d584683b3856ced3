"""MariaDB and MySQL for tests: `mariadb` from the system's package and `mysql` from fetched ones, else from containers.

Sessions of these engines take "double quotes" for names and a backslash for itself, because the conformance suites are
written in standard SQL; what other modes do is tested by engines of the tests' own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine, create_engine, make_url, text

from tests.support import mysql_packages
from tests.support.compiled import engine_on
from tests.support.levels import level_of, words_of
from tests.support.servers import (
    PATIENCE,
    absent,
    containers_answer,
    free_port,
    running,
    said,
    server_owner,
    wait_until_ready,
)

_numbers = count(1)
_standard = "SET SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',ANSI_QUOTES,NO_BACKSLASH_ESCAPES')"
_plans_as_tables = ", SESSION explain_format = 'TRADITIONAL'"
"""What EXPLAIN shows on MariaDB, and on MySQL where nobody says otherwise before 9."""
# With an hour that comes twice a year, so that nothing is right only because the server lives in UTC.
_zone = {"TZ": "CET-1CEST,M3.5.0,M10.5.0/3"}
_images = {"mariadb": "mariadb:11.4", "mysql": "mysql:8.4"}
_settings = {
    "bind-address": "127.0.0.1",
    "character-set-server": "utf8mb4",
    "innodb-buffer-pool-size": "64M",
    "innodb-doublewrite": "0",
    "innodb-flush-log-at-trx-commit": "1",
    "innodb-flush-method": "nosync",
    "performance-schema": "off",
    "skip-name-resolve": "",
}
_settings_of = {
    "mariadb": {"skip-log-bin": ""},
    # With the binary log and the transaction numbers that servers of MySQL have which are meant to be replicated.
    "mysql": {
        "log-bin": "binlog",
        "server-id": "1",
        "sync-binlog": "0",
        "gtid-mode": "on",
        "enforce-gtid-consistency": "on",
        "log-bin-trust-function-creators": "on",
        "mysqlx": "off",
        "secure-file-priv": "NULL",
    },
}
_accounts = """\
CREATE USER root@'127.0.0.1';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
"""
"""MySQL's own account is one of localhost, a name that nobody looks up here."""


def pytest_report_header(config: pytest.Config) -> str:
    server = shutil.which("mariadbd", path=_search_path())
    version = said(server, "--version") if server else "none"
    root = mysql_packages.state()
    mysql = mysql_packages.version(root) if root else "none; `./dev fetch mysql` gets one"
    engine = "an engine answers" if containers_answer() else "none"
    return f"databases: MariaDB: {version}; MySQL: {mysql}; containers: {engine}"


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all tests of MySQL in one process, if free: its start is the slowest of the databases'."""
    for item in items:
        asked = {"mysql", "mysql_server"} & {*getattr(item, "fixturenames", ()), *words_of(item)}
        if asked and level_of(item.path) != "unit" and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("mysql"))


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[URL]:
    """Start MariaDB, or take EVENTLOG_MARIADB_URL; yield the administrator's URL."""
    elsewhere = os.environ.get("EVENTLOG_MARIADB_URL")
    if elsewhere:
        yield make_url(elsewhere)
    elif all(shutil.which(program, path=_search_path()) for program in ("mariadbd", "mariadb-install-db")):
        with mariadb_running() as url:
            yield url
    elif containers_answer():
        with _container("mariadb") as url:
            yield url
    else:
        absent("mariadb", "the package mariadb-server is not installed and no container engine answers")


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[URL]:
    """Start MySQL, our own or a container, or take EVENTLOG_MYSQL_URL; yield the administrator's
    URL.
    """
    elsewhere = os.environ.get("EVENTLOG_MYSQL_URL")
    if elsewhere:
        yield make_url(elsewhere)
    elif (root := _mysql_root()) is not None:
        with _own_server("mysql", partial(_mysql_server, root)) as url:
            yield url
    else:
        with _container("mysql") as url:
            yield url


def mysql_shell(program: str = "mysql") -> list[str]:
    """Return the command of MySQL's own shell, or of another program, from the server's packages."""
    root = mysql_packages.state()
    if root is None:
        absent("mysql", "its shell comes with Debian's packages, which were not fetched")
    return mysql_packages.program(root, f"bin/{program}")


def _mysql_root() -> Path | None:
    """Return the unpacked server; None if a container replaces it."""
    root = mysql_packages.state()
    if root is None and not containers_answer():
        why = "EVENTLOG_MYSQL_URL names none, `./dev fetch mysql` got none, and no container engine answers"
        absent("mysql", why)
    return root


@pytest.fixture
def mariadb(mariadb_server: URL) -> Iterator[Engine]:
    """Make an engine on a new MariaDB database."""
    with mariadb_database(mariadb_server) as engine:
        yield engine


def mariadb_running(**settings: str) -> AbstractContextManager[URL]:
    """Run a server of its own during the block."""
    return _own_server("mariadb", _mariadb_server, settings)


def mariadb_database(server: URL) -> AbstractContextManager[Engine]:
    """Make an engine on a new database of this server, dropped at the end."""
    return mysql_database(server, "utf8mb4_nopad_bin")


@pytest.fixture
def mysql(mysql_server: URL) -> Iterator[Engine]:
    """Make an engine on a new MySQL database."""
    with mysql_database(mysql_server, "utf8mb4_0900_bin", _standard + _plans_as_tables) as engine:
        yield engine


@contextmanager
def mysql_database(server: URL, collation: str, session: str = _standard) -> Iterator[Engine]:
    """Make a database of this collation; the fixtures' compare text bytewise, as other databases
    do.
    """
    name = f"test_{os.getpid()}_{next(_numbers)}x"
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} COLLATE {collation}"))
    engine = engine_on(server.set(database=name), connect_args={"init_command": session})
    yield engine
    engine.dispose()
    with admin.connect() as connection:
        for made in connection.scalars(text(f"SHOW DATABASES LIKE '{name}%'")).all():
            connection.execute(text(f"DROP DATABASE {made}"))
    admin.dispose()


@contextmanager
def _own_server(
    name: str, initialised: Callable[[Path, str | None], list[str]], more: Mapping[str, str] = {}
) -> Iterator[URL]:
    """Run a server from installed or unpacked files, independent of the system's service."""
    folder = Path(tempfile.mkdtemp(prefix=f"eventlog-{name}-"))
    server = None
    try:
        owner = server_owner(folder)
        program = initialised(folder, owner)
        url = URL.create("mysql+pymysql", "root", host="127.0.0.1", port=free_port(), database="mysql")
        server = _started(name, program, folder, url, owner, more)
        yield url
    finally:
        if server is not None:
            server.terminate()
            server.wait(timeout=PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


def _mariadb_server(folder: Path, owner: str | None) -> list[str]:
    command = ["mariadb-install-db", "--no-defaults", f"--datadir={folder / 'data'}", "--skip-test-db"]
    options = ["--auth-root-authentication-method=normal", "--skip-name-resolve"]
    _initialise("mariadb", [*command, *options], folder, owner)
    server = shutil.which("mariadbd", path=_search_path())
    assert server is not None  # the fixture has looked
    return [server, "--no-defaults"]


def _mysql_server(root: Path, folder: Path, owner: str | None) -> list[str]:
    """Initialises a server whose programs were built for other folders than those that they stand in."""
    shared = root / "usr" / "share" / "mysql"
    places = {
        "basedir": root / "usr",
        "plugin-dir": root / "usr" / "lib" / "mysql" / "plugin",
        "lc-messages-dir": shared,
        "character-sets-dir": shared / "charsets",
    }
    words = [f"--{name}={place}" for name, place in places.items()]
    server = [*mysql_packages.program(root, "sbin/mysqld"), "--no-defaults", *words]
    accounts = folder / "accounts.sql"
    accounts.write_text(_accounts)
    options = [
        "--initialize-insecure",
        "--skip-log-bin",
        "--innodb-doublewrite=0",
        "--innodb-flush-log-at-trx-commit=0",
    ]
    _initialise("mysql", [*server, *options, f"--datadir={folder / 'data'}", f"--init-file={accounts}"], folder, owner)
    return server


def _initialise(name: str, command: list[str], folder: Path, owner: str | None) -> None:
    surroundings = _surroundings(folder)
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, user=owner, env=surroundings)
    if run.returncode:
        absent(name, (run.stderr or run.stdout).strip().replace("\n", " ")[-500:])


def _surroundings(folder: Path) -> dict[str, str]:
    """Set a temporary folder of its own: a starting server deletes files of others there."""
    return os.environ | _zone | {"TMPDIR": str(folder)}


def _started(
    name: str, program: list[str], folder: Path, url: URL, owner: str | None, more: Mapping[str, str] = {}
) -> subprocess.Popen[bytes]:
    places = {"datadir": folder / "data", "socket": folder / "socket", "pid-file": folder / "pid", "port": url.port}
    settings = places | _settings | dict(more or _settings_of[name])
    options = [f"--{setting}={value}" if value != "" else f"--{setting}" for setting, value in settings.items()]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*program, *options], stdout=log, stderr=log, cwd=folder, user=owner, env=_surroundings(folder)
        )
    wait_until_ready(name, url, process, folder / "log")
    return process


@contextmanager
def _container(name: str) -> Iterator[URL]:
    from testcontainers.community.mysql import MySqlContainer

    def make() -> MySqlContainer:
        # Without a binary log, as in MariaDB's server of our own: with one, whoever makes triggers needs SUPER.
        packed = MySqlContainer(_images[name], username="root", password="test", dialect="pymysql")
        return packed.with_command("--skip-log-bin")

    with running(name, make) as container:
        yield make_url(container.get_connection_url())


def _search_path() -> str:
    """Return the search path with /usr/sbin: few people have it."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
