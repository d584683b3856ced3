"""A session's calls in their order, undone after failures too; the emulator's codes; and drivers of the site."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.core.errors import ConfigError, SourceError
from eventlog.sources.gbase.drivers import DbApiDriver, driver_of
from eventlog.sources.gbase.session import CaptureSession, parts_of
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.gbase.source import SessionFeed
from tests.support.gbase_driver import EmulatedDriver
from tests.support.gbase_server import GBaseServer

TABLE = "stores:shop.t1"
OWN = GBaseSettings(tables={"5": TABLE}, columns={TABLE: ("c1", "c2")}, keys={"t1": ("c1",)})


@pytest.fixture
def server() -> GBaseServer:
    made = GBaseServer(cut=[7, 50, 3] * 20)
    made.create(TABLE, "c1 integer, c2 varchar(20,0)")
    return made


def test_the_calls_come_in_their_order_and_are_undone_backwards(server: GBaseServer) -> None:
    other = CaptureSession(EmulatedDriver(server), OWN, 0)
    own = CaptureSession(EmulatedDriver(server), OWN, 0)
    assert server.full == {TABLE}
    server.calls.clear()
    said: list[str] = []
    own._report = said.append
    own.close()
    assert server.calls == ["deactivatesess", f"endcapture {TABLE}", "closesess"]
    assert "Other sessions that capture" in said[0]
    server.calls.clear()
    other.close()
    assert server.calls == ["deactivatesess", f"endcapture {TABLE}", f"set_fullrowlogging {TABLE} 0", "closesess"]
    assert server.full == set()


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"columns": {TABLE: ("c9",)}}, "CDC_E_NOCOL"),
        ({"tables": {"1": "stores:shop.t2"}, "columns": {"stores:shop.t2": ("c1",)}}, "CDC_E_NOTAB"),
        ({"tables": {"1": "x:shop.t2"}, "columns": {"x:shop.t2": ("c1",)}}, "CDC_E_NOTAB|CDC_E_NODB"),
    ],
)
def test_what_was_begun_is_undone_when_a_call_fails(server: GBaseServer, wrong: dict[str, Any], told: str) -> None:
    own = GBaseSettings(**{"tables": OWN.tables, "columns": OWN.columns, **wrong})
    with pytest.raises(SourceError, match=told):
        CaptureSession(EmulatedDriver(server), own, 0)
    assert server.calls[-1] == "closesess"
    assert server.full == set()


class Cursor:
    """Answers every statement with a number, or fails."""

    def __init__(self, asked: list[Any]) -> None:
        self.asked = asked

    def execute(self, statement: str, arguments: tuple[object, ...]) -> None:
        self.asked.append((statement, arguments))
        if "fail" in statement:
            raise RuntimeError("no such function")

    def fetchone(self) -> tuple[int]:
        return (3,)

    def close(self) -> None:
        self.asked.append("closed")


class Connection:
    """A DB-API connection of a site that can read sessions."""

    def __init__(self, settings: GBaseSettings) -> None:
        self.asked: list[Any] = []

    def cursor(self) -> Cursor:
        return Cursor(self.asked)

    def lo_read(self, session: int, most: int) -> bytes:
        return b"bytes"

    def close(self) -> None:
        self.asked.append("connection closed")


def test_a_connection_of_the_site_is_driven_by_sql() -> None:
    connection = Connection(OWN)
    driver = DbApiDriver(connection)
    assert driver.call("informix.cdc_closesess", 7) == 3
    assert (driver.read(7, 10), driver.captures(TABLE, 7)) == (b"bytes", 3)
    with pytest.raises(SourceError, match="refuses EXECUTE FUNCTION fail: no such function"):
        driver.call("fail", 1)
    driver.close()
    asked = connection.asked
    assert asked[0] == ("EXECUTE FUNCTION informix.cdc_closesess(?)", (7,))
    assert asked[2][1] == ("stores", "shop", "t1", 7)


class LostConnection(Connection):
    """Once its server has gone away, every call says so."""

    is_lost = False

    def cursor(self) -> Cursor:
        self.ask()
        return super().cursor()

    def lo_read(self, session: int, most: int) -> bytes:
        self.ask()
        return super().lo_read(session, most)

    def close(self) -> None:
        self.ask()
        super().close()

    def ask(self) -> None:
        if self.is_lost:
            raise RuntimeError("The connection is closed.")


def test_a_connection_that_is_lost_is_opened_anew_though_it_refuses_to_be_closed() -> None:
    made: list[LostConnection] = []
    told: list[str] = []

    def connect() -> DbApiDriver:
        made.append(LostConnection(OWN))
        return DbApiDriver(made[-1])

    feed = SessionFeed(connect, OWN, told.append)
    feed.open(0)
    made[0].is_lost = True
    with pytest.raises(SourceError, match="cannot be read: The connection is closed"):
        feed.read()
    feed.open(0)
    assert (len(made), feed.read()) == (2, b"bytes")
    assert told[-1] == "The session was not ended in order: The connection is closed."
    feed.close()
    assert made[1].asked[-1] == "connection closed"


@pytest.mark.parametrize(
    "driver, told", [("", "names no driver"), ("nowhere:x", "cannot be loaded"), ("json:nothing", "cannot be loaded")]
)
def test_drivers_that_are_none_are_refused(driver: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        driver_of(GBaseSettings(driver=driver))


def test_a_table_of_a_server_is_written_whole() -> None:
    assert parts_of(TABLE) == ("stores", "shop", "t1")
    with pytest.raises(ConfigError, match=r"database:owner\.table"):
        parts_of("shop.t1")
    with pytest.raises(ConfigError, match="lo_read"):
        DbApiDriver(object())
