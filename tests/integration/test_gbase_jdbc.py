"""The program with a Java virtual machine inside: it captures over JDBC, and ends its session whatever ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eventlog.sources.gbase.records import CdcRecord
from tests.gbase_jdbc import classpath
from tests.support.gbase_server import GBaseServer

TABLE = "stores:shop.t1"
ROWS = 30
BEGUN = [
    "opensess informix 0 1 256 1 1",
    f"set_fullrowlogging {TABLE} 1",
    f"startcapture 7 0 {TABLE} c1,c2 5",
]
UNDONE = ["deactivatesess 7", f"endcapture 7 0 {TABLE}", f"set_fullrowlogging {TABLE} 0", "closesess 7"]


@pytest.fixture(scope="session")
def java_classes(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Compiled once a test process."""
    return classpath(tmp_path_factory.mktemp("java"))


@pytest.fixture
def place(tmp_path: Path, java_classes: list[str]) -> Path:
    """A folder with what the stand-in delivers, and the configuration of a publisher."""
    stream, heartbeat = _captured()
    (tmp_path / "stream").write_bytes(stream)
    (tmp_path / "heartbeat").write_bytes(heartbeat)
    _configure(tmp_path, java_classes, TABLE, "informix")
    return tmp_path


def _captured() -> tuple[bytes, bytes]:
    """A session's bytes with more rows than one read has bytes for, and the heartbeat behind them."""
    server = GBaseServer()
    server.create(TABLE, "c1 integer, c2 varchar(200,0)")
    session = server.opensess("", 0, 1, 256, 1, 1)
    server.startcapture(session, 0, TABLE, "c1,c2", 5)
    server.activatesess(session, 0)
    tx = server.begin()
    for number in range(ROWS):
        server.row(CdcRecord.INSERT, tx, TABLE, {"c1": number, "c2": "naïve " * 20})
    server.end(tx)
    stream = b""
    while not server.idle(session):
        stream += server.read(session, 65_536)
    return stream, server.read(session, 65_536)


def _configure(place: Path, classes: list[str], table: str, vendor: str, owner: str = "informix") -> None:
    (place / "eventlog.toml").write_text(
        f"""[source]
kind = "gbase"
[source.gbase]
driver = "jdbc"
url = "jdbc:{vendor}-sqli://localhost/syscdcv1"
classpath = {classes}
server = "informix"
owner = "{owner}"
tables = {{ "5" = "{table}" }}
columns = {{ "{table}" = ["c1", "c2"] }}
keys = {{ "shop.t1" = ["c1"] }}
marks = "{place / "marks.json"}"
[publisher]
batch_size = 128
polling_interval = 1
[[output]]
sink = "files"
path = "{place / "out"}"
"""
    )


def _command(place: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "eventlog", "run", "--config", str(place / "eventlog.toml"), *arguments]
    environment = {**os.environ, "STANDIN_FOLDER": str(place)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, cwd=place, text=True, stdout=pipe, stderr=pipe)


def _calls(place: Path) -> list[str]:
    return (place / "calls").read_text().splitlines()


def _documents(place: Path) -> str:
    return "".join(path.read_text() for path in sorted((place / "out").glob("*.xml")))


@pytest.mark.in_turn
@pytest.mark.parametrize("vendor", ["informix", "gbasedbt"])
def test_a_session_over_jdbc_is_published_and_undone(place: Path, java_classes: list[str], vendor: str) -> None:
    _configure(place, java_classes, TABLE, vendor)
    process = _command(place, "--until-empty")
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert _calls(place) == [*BEGUN, "activatesess 7 0", *UNDONE]
    documents = _documents(place)
    assert [f"<association>c1={number},table=t1," in documents for number in range(ROWS)] == [True] * ROWS
    assert documents.count("naïve " * 20 + "</value>") == ROWS


@pytest.mark.in_turn
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_java_leaves_signals_to_the_publisher(place: Path, ending: signal.Signals) -> None:
    process = _command(place)
    deadline = time.monotonic() + 90
    while not list((place / "out").glob("*.xml")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(ending)
    _, said = process.communicate(timeout=300)
    assert _documents(place).count("naïve " * 20 + "</value>") == ROWS, said
    assert _calls(place)[-4:] == UNDONE, said


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "table, owner, said, calls",
    [
        pytest.param(
            "stores:shop.gone",
            "informix",
            "logging whole rows of stores:shop.gone: -83705 (CDC_E_NOTAB): there is no such table",
            [BEGUN[0], "set_fullrowlogging stores:shop.gone 1", "closesess 7"],
            id="a table, and what was begun is undone",
        ),
        pytest.param(TABLE, "nobody", "EXECUTE FUNCTION nobody.cdc_opensess: ", [], id="what java throws"),
    ],
)
def test_what_the_server_refuses_is_a_sentence(
    place: Path, java_classes: list[str], table: str, owner: str, said: str, calls: list[str]
) -> None:
    _configure(place, java_classes, table, "informix", owner=owner)
    process = _command(place, "--once")
    _, told = process.communicate(timeout=300)
    assert process.returncode in (69, 75)
    assert f"The server refuses {said}" in told
    assert "Traceback" not in told
    assert not calls or _calls(place)[: len(calls)] == calls
