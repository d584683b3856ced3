"""What a status rests on is durable when it is given: in databases by their own transactions, in folders by a flush."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.check.server import server_points
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import EventlogError
from eventlog.core.model import Document, Op
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.files import FileSink
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.access import find_losses, make_durable
from eventlog.sql.connect import connect
from eventlog.sql.dialect import dialect_of
from tests.publisher.scene import Scene
from tests.support.changerows import told
from tests.support.lakes import LAKES, put
from tests.support.sinks import tenure

Flushed = Callable[[Path], bool]


@pytest.mark.parametrize("session", ["off", "local", "remote_write", "on", "remote_apply"])
def test_a_transaction_waits_for_the_disk_and_for_no_less_than_its_session(postgresql: Engine, session: str) -> None:
    with postgresql.begin() as connection:
        connection.execute(text(f"SET LOCAL synchronous_commit = {session}"))
        make_durable(connection, dialect_of(postgresql))
        waits = connection.execute(text("SHOW synchronous_commit")).scalar_one()
    # Without a standby that is waited for, `local` is on the disk.
    assert waits == ("on" if session == "off" else session)
    with postgresql.connect() as connection:
        assert connection.execute(text("SHOW synchronous_commit")).scalar_one() == "off", "the session is as it was"


def test_a_lone_statement_cannot_be_made_durable(postgresql: Engine) -> None:
    lone = postgresql.connect().execution_options(isolation_level="AUTOCOMMIT")
    with lone as connection, pytest.raises(EventlogError):
        make_durable(connection, dialect_of(postgresql))


def test_sqlite_brings_a_commit_to_the_disk(tmp_path: Path) -> None:
    engine = connect(f"sqlite:///{tmp_path / 'log.db'}", may_create=True)
    with engine.connect() as connection:
        assert connection.execute(text("PRAGMA synchronous")).scalar_one() == 2
    engine.dispose()


@pytest.fixture
def careless(mariadb: Engine) -> Iterator[Engine]:
    """Make the server acknowledge commits it has not written yet."""
    with mariadb.connect() as connection:
        usual = connection.execute(text("SELECT @@GLOBAL.innodb_flush_log_at_trx_commit")).scalar_one()
        connection.execute(text("SET GLOBAL innodb_flush_log_at_trx_commit = 2"))
    yield mariadb
    with mariadb.connect() as connection:
        connection.execute(text(f"SET GLOBAL innodb_flush_log_at_trx_commit = {usual}"))


def test_a_server_that_may_lose_what_it_acknowledged_fails_the_check(careless: Engine) -> None:
    [point] = [one for one in server_points(careless, dt.datetime.now) if one.name == "durability"]
    assert (point.level, point.mend) == ("failure", "Set it to 1.")
    assert "innodb_flush_log_at_trx_commit is 2" in point.said


def test_a_server_that_keeps_what_it_acknowledged_passes(mariadb: Engine) -> None:
    with mariadb.connect() as connection:
        assert not [level for level, *_ in find_losses(connection, dialect_of(mariadb)) if level == "failure"]


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> Flushed:
    """Return a function to tell if a path was flushed as it is now."""
    really, known = os.fsync, dict[Path, int]()

    def fsync(descriptor: int) -> None:
        really(descriptor)
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        known[place] = os.fstat(descriptor).st_mtime_ns

    monkeypatch.setattr(os, "fsync", fsync)
    return lambda path: known.get(path.resolve()) == path.stat().st_mtime_ns


@pytest.mark.parametrize("kind", sorted(LAKES))
@pytest.mark.parametrize("mode", ["append", "mirror"])
def test_tables_of_a_lake_in_a_folder_are_on_the_disk_when_a_plan_is(
    kind: str, mode: str, tmp_path: Path, flushed: Flushed
) -> None:
    lake = LAKES[kind](tmp_path / "lake", mode, catalog_folder=tmp_path / "catalog")  # SQLite flushes its own
    sink = lake.sink()
    for number in range(3):
        put(sink, f"plan-{number}", told(number + 1, Op.ADD, number + 1, fname="Jack"))
        assert not unflushed(tmp_path / "lake", flushed)


def unflushed(folder: Path, flushed: Flushed) -> list[Path]:
    """List files of tables, and folders with names in them, not flushed to the disk."""
    tables = [path for path in folder.rglob("*") if "_eventlog" not in path.parts and path.suffix != ".crc"]
    return [path for path in [folder, *tables] if not flushed(path)]


def test_a_plan_that_can_be_read_is_on_the_disk_before_a_folder_says_so(tmp_path: Path, flushed: Flushed) -> None:
    folder = tmp_path / "out"
    first = FileSink(folder, ".xml")
    first.open(tenure(1))
    first.commit("plan", [Document(id="1", body=b"<add/>", covers={})])
    os.utime(folder)  # as if a name in it had come since its last flush: who gave it was stopped
    assert not flushed(folder)
    second = FileSink(folder, ".xml")
    second.open(tenure(1))
    os.utime(folder)
    assert second.resolve("plan").documents is None
    assert flushed(folder)


def test_a_publisher_warns_when_it_begins(careless: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(careless, "one")
    scene.lock.leave()
    url = careless.url.render_as_string(hide_password=False)
    output = FilesOutput(name="one", path=str(tmp_path))
    with Publisher(Config(source=SourceConfig(url=url), output=(output,))) as publisher:
        publisher.run_once()
    assert "may_lose" in caplog.messages
