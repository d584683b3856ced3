"""What every stream must do, run on LINTER's queue in databases: order, limits, exact places, what is taken off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.core.errors import ConfigError, SourceError
from eventlog.sources.linter import source as module
from eventlog.sources.linter.operations import Action
from eventlog.sources.linter.queue import DriverSession, EngineSession, open_session
from eventlog.sources.linter.settings import LinterSettings
from eventlog.sources.linter.source import LinterReader
from eventlog.sources.log.lock import LogLock
from eventlog.sources.stream.definitions import read_catalog
from eventlog_streams_tools.linter.emulator import EmulatedOperation, EmulatorSettings, LinterEmulator
from eventlog_streams_tools.linter.queue import fill_queue, make_queue
from tests.support.captured import Capturing, keys
from tests.support.linter import READING, SCHEMA, TABLE, ended, insert


class Ground:
    """A queue in a database, and sources that read it."""

    def __init__(self, engine: Engine, log: Path) -> None:
        self.engine = engine
        self.log = log
        self.going: Capturing | None = None
        make_queue(engine)
        self.emulator = LinterEmulator(SCHEMA, READING)

    def write(self, *done: EmulatedOperation) -> None:
        fill_queue(self.engine, [row for one in done for row in self.emulator.rows(one)])

    def source(self, limit: int = 10_000, **settings: Any) -> Capturing:
        """Start a publisher in the place of the former one, which dies."""
        if self.going is not None:
            self.going.die()
        chosen = LinterSettings(code_page="cp1251", **settings)
        self.going = Capturing(LinterReader(EngineSession(self.engine), SCHEMA, chosen), self.log, limit)
        return self.going

    def count(self) -> int:
        with self.engine.connect() as connection:
            return int(connection.execute(text("SELECT count(*) FROM DISPATCH_QUEUE")).scalar_one())


@pytest.fixture(params=["sqlite", "postgresql"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    return Ground(request.getfixturevalue(request.param), tmp_path / "log.db")


def taken(source: Capturing) -> list[Any]:
    return keys(source.take(), "ID")


def test_transactions_come_by_their_commits_and_only_once_they_have_ended(ground: Ground) -> None:
    source = ground.source()
    ground.write(insert(1, 10), insert(2, 20), insert(3, 30), ended(2), insert(4, 40), ended(4, Action.ROLLBACK))
    assert taken(source) == [20]
    assert taken(source) == []
    ground.write(insert(1, 11), ended(1))
    assert taken(source) == [10, 11]
    assert read_catalog(source.log.log).find("SHOP.T") is not None


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 0])
def test_restarts_at_every_place_neither_repeat_nor_lose(ground: Ground, limit: int) -> None:
    ground.write(insert(1, 0), insert(2, 1), ended(1), insert(2, 2), insert(3, 3), ended(2), ended(3))
    ground.write(*[done for tx in range(4, 9) for done in (insert(tx, tx), ended(tx))])
    found: list[Any] = []
    for _ in range(12):
        source = ground.source(limit)
        source.capture()
        found += keys(source.taken(), "ID")
    assert found == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_transactions_are_deleted_whole_once_the_log_has_them(ground: Ground) -> None:
    source = ground.source(1, delete_handled=True)
    ground.write(insert(1, 10), insert(9, 90), insert(1, 11), ended(1), insert(2, 20), ended(2, Action.ROLLBACK))
    source.capture()
    assert ground.count() in (1, 3)
    assert taken(source) == [10, 11]
    assert ground.count() == 1
    ground.write(ended(9))
    assert taken(ground.source(delete_handled=True)) == [90]
    assert ground.count() == 0


def test_nothing_is_deleted_before_the_log_has_it(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    ground.write(insert(1, 10), ended(1))
    source = ground.source(delete_handled=True)
    mark = LogLock.mark

    def marked(*arguments: Any, **more: Any) -> None:
        mark(*arguments, **more)
        raise SourceError("The disk is full.")

    monkeypatch.setattr(LogLock, "mark", marked)
    with pytest.raises(SourceError, match="disk is full"):
        source.capture()
    assert ground.count() == 2
    monkeypatch.undo()
    assert taken(ground.source(delete_handled=True)) == [10]
    assert ground.count() == 0


def test_places_beyond_the_signed_range_are_in_order(ground: Ground) -> None:
    ground.emulator = LinterEmulator(SCHEMA, READING, EmulatorSettings(address=2**63 - 200))
    for tx in range(4):
        ground.write(insert(tx, tx), ended(tx))
    found: list[Any] = []
    for _ in range(5):
        source = ground.source(1)
        source.capture()
        found += keys(source.taken(), "ID")
    assert found == [0, 1, 2, 3]


def test_a_receiving_queue_comes_as_it_arrived(tmp_path: Path, sqlite: Engine) -> None:
    ground = Ground(sqlite, tmp_path / "log.db")
    wide = EmulatedOperation(transaction=1, action=Action.INSERT, table=18, after={"ID": 1, "B": bytes(3990)})
    ground.write(wide, insert(1, 10), ended(1))
    with sqlite.begin() as connection:
        connection.execute(text("ALTER TABLE DISPATCH_QUEUE RENAME TO RECEIVING_QUEUE"))
        connection.execute(text("ALTER TABLE RECEIVING_QUEUE DROP COLUMN SYSLOG_ADDR"))
    source = ground.source(variant="receiving")
    assert taken(source) == [1, 10]
    assert taken(ground.source(variant="receiving")) == []


def test_any_driver_will_do(tmp_path: Path, sqlite: Engine) -> None:
    ground = Ground(sqlite, tmp_path / "log.db")
    ground.write(insert(1, 10), ended(1))
    settings = LinterSettings(
        code_page="cp1251", driver="sqlite3", connect={"database": str(sqlite.url.database)}, delete_handled=True
    )
    source = Capturing(LinterReader(open_session("", settings), SCHEMA, settings), ground.log)
    [image] = source.take()
    assert image.after == {**TABLE, "ID": 10}
    assert ground.count() == 0
    source.close()


def test_a_lost_connection_that_refuses_to_be_closed_ends_nobody() -> None:
    asked: list[str] = []

    class Connection:
        def close(self) -> None:
            asked.append("close")
            raise RuntimeError("The connection is closed.")

    LinterReader(DriverSession(Connection()), SCHEMA).close()
    assert asked == ["close"]


def test_what_is_not_there_is_named(ground: Ground) -> None:
    with pytest.raises(SourceError, match=r"LINTER's queue cannot be used: .*missing") as caught:
        ground.source(queue="missing").take()
    assert not caught.value.may_pass
    with pytest.raises(ConfigError, match="'a; DROP' is no name of a table"):
        ground.source(queue="a; DROP")
    with pytest.raises(ConfigError, match="The driver linpy_x cannot be loaded"):
        open_session("", LinterSettings(driver="linpy_x"))


def test_many_transactions_take_many_questions(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENDING_ROWS", 3)
    monkeypatch.setattr(module, "LARGE_IMAGES", 2)
    ground.write(*[done for tx in range(20) for done in (insert(tx, tx), ended(tx))])
    assert taken(ground.source(spill_bytes=500)) == list(range(20))
    assert taken(ground.source()) == []
