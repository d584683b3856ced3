"""Behind PgBouncer in transaction mode each transaction has another session, and all the same happens."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import ProgrammingError

from eventlog.cli.main import main
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.access import moment, transaction
from eventlog.sql.connect import connect, limit_sessions
from eventlog.sql.pooler import is_pooled
from tests.integration.publishing import in_thread, until
from tests.support.servers import PATIENCE, absent, free_port, server_owner, wait_until_ready

BINARY = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
SESSIONS = 3
CHANGES = 60


@contextmanager
def pooling(engine: Engine, mode: str) -> Iterator[str]:
    """The URL of the database through a pooler of few sessions."""
    if BINARY is None:
        absent("pgbouncer", "there is no pgbouncer; Debian's package is pgbouncer")
    folder = Path(tempfile.mkdtemp(prefix="eventlog-pgbouncer-"))
    owner, port, log = server_owner(folder), free_port(), folder / "log"
    (folder / "users").write_text('"postgres" ""\n')
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "auth_type": "any",
        "auth_file": folder / "users",
        "pool_mode": mode,
        "default_pool_size": SESSIONS,
        "unix_socket_dir": "",
        "server_round_robin": 1,  # each transaction gets another session
    }
    lines = [f"{name} = {value}" for name, value in settings.items()]
    database = f"* = host=127.0.0.1 port={engine.url.port} user=postgres"
    (folder / "pgbouncer.ini").write_text("\n".join(["[databases]", database, "[pgbouncer]", *lines, ""]))
    with log.open("wb") as told:
        command = [BINARY, str(folder / "pgbouncer.ini")]
        pooler = subprocess.Popen(command, stdout=told, stderr=told, cwd=folder, user=owner)
    try:
        url = engine.url.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
        wait_until_ready("pgbouncer", url, pooler, log)
        yield url
    finally:
        pooler.kill()
        pooler.wait(timeout=PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def pooled(postgresql: Engine) -> Iterator[str]:
    with pooling(postgresql, "transaction") as url:
        yield url


@pytest.fixture
def others(pooled: str) -> Iterator[None]:
    """Somebody else whose settings stay in the sessions that all share."""
    over = Event()

    def work() -> None:
        engine = create_engine(pooled, connect_args={"prepare_threshold": None})
        while not over.wait(0.02):
            with engine.begin() as connection:
                connection.execute(text("SET DateStyle = 'German'"))
                connection.execute(text("SET IntervalStyle = 'sql_standard'"))
                connection.execute(text("SET TimeZone = 'Asia/Tokyo'"))
        engine.dispose()

    thread = Thread(target=work)
    thread.start()
    yield
    over.set()
    thread.join()


def test_it_is_known_only_where_there_is_one(postgresql: Engine, pooled: str) -> None:
    direct = connect(postgresql.url.render_as_string(hide_password=False))
    behind = connect(pooled)
    assert (is_pooled(direct), is_pooled(behind)) == (False, True)
    direct.dispose()
    behind.dispose()


def test_settings_are_those_of_each_transaction_and_stay_nowhere(pooled: str, others: None) -> None:
    engine = connect(pooled)
    limit_sessions(engine, 77.0, 5.0, 10.0)
    asked = text(
        "SELECT current_setting('TimeZone'), current_setting('DateStyle'), current_setting('statement_timeout')"
    )
    for _ in range(30):
        with transaction(engine, "It", lone=True) as connection:
            assert tuple(connection.execute(asked).one()) == ("UTC", "ISO, YMD", "77s")
        with moment(engine, "It") as connection:
            assert tuple(connection.execute(asked).one()) == ("UTC", "ISO, YMD", "77s")
            assert connection.execute(text("SHOW transaction_isolation")).scalar_one() == "repeatable read"
    engine.dispose()
    plain = create_engine(pooled, connect_args={"prepare_threshold": None}, isolation_level="AUTOCOMMIT")
    with plain.connect() as connection:
        found = {connection.execute(text("SHOW statement_timeout")).scalar_one() for _ in range(4 * SESSIONS)}
    plain.dispose()
    assert found == {"0"}


def test_a_publisher_works_behind_one(postgresql: Engine, pooled: str, others: None, tmp_path: Path) -> None:
    with postgresql.begin() as connection:
        connection.execute(text("CREATE TABLE usr (idu integer PRIMARY KEY, fname text, since timestamptz)"))
    for words in (["install"], ["track", "usr"], ["check"]):
        said = CliRunner().invoke(main, [*words, "--database", pooled])
        assert said.exit_code == 0 or words == ["check"], said.output
    assert "a pooler is between" in said.output
    source, out = SourceConfig(url=pooled), FilesOutput(path=str(tmp_path / "out"))
    config = Config(source=source, publisher=PublisherConfig(allow_loopback=True), output=(out,))
    with in_thread(Publisher(config)), postgresql.connect() as connection:
        for number in range(CHANGES):
            connection.execute(text(f"INSERT INTO usr VALUES ({number}, 'a', '2026-01-02 03:04:05+00')"))
            connection.commit()
            time.sleep(0.02)
        statuses = text("SELECT DISTINCT status FROM event_log")
        until(lambda: connection.execute(statuses).scalars().all() == ["S"], "all is published")
    documents = "".join(path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert {int(number) for number in re.findall(r">idu=(\d+),", documents)} == {*range(CHANGES)}


def test_each_statement_looks_for_names_in_the_servers_schema_alone(pooled: str, others: None) -> None:
    engine = connect(pooled)
    limit_sessions(engine, None, None)
    asked = "SELECT current_setting('search_path')"
    for isolation in ("AUTOCOMMIT", "READ COMMITTED"):
        with engine.connect().execution_options(isolation_level=isolation) as connection:
            for _ in range(2 * SESSIONS):
                assert connection.exec_driver_sql(asked).scalar_one() == "pg_catalog, pg_temp"
                with pytest.raises(ProgrammingError):
                    connection.exec_driver_sql("SELECT nothing FROM nowhere")
                connection.rollback()
    engine.dispose()
    # Nothing of it is left to others in a session that all share.
    other = create_engine(pooled, connect_args={"prepare_threshold": None})
    with other.connect() as connection:
        for _ in range(2 * SESSIONS):
            assert connection.exec_driver_sql(asked).scalar_one() == '"$user", public'
            connection.rollback()
    other.dispose()
