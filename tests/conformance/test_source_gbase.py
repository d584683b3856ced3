"""What every stream must do, run on GBase sessions and files: places after a crash, nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.core.errors import DataError, SourceError
from eventlog.sources.gbase.records import CdcRecord
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.gbase.source import FileFeed, GBaseReader, SessionFeed, gbase_reader
from eventlog_streams_tools.gbase.emulator import reads, shop
from tests.support.captured import Capturing, keys
from tests.support.gbase_driver import EmulatedDriver
from tests.support.gbase_server import GBaseServer

TABLE = "stores:shop.t1"
OWN = GBaseSettings(tables={"5": TABLE}, columns={TABLE: ("c1", "c2")}, keys={"t1": ("c1",)})


@pytest.fixture
def server() -> GBaseServer:
    made = GBaseServer(cut=[7, 50, 3] * 20)
    made.create(TABLE, "c1 integer, c2 varchar(20,0)")
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.db"


def source_of(server: GBaseServer, path: Path, limit: int = 0, own: GBaseSettings = OWN) -> Capturing:
    return Capturing(GBaseReader(SessionFeed(lambda: EmulatedDriver(server), own), own), path, limit)


@pytest.fixture
def source(server: GBaseServer, path: Path) -> Iterator[Capturing]:
    made = source_of(server, path)
    assert made.take() == []  # from now on
    yield made
    made.close()


def insert(server: GBaseServer, *numbers: int, tx: int | None = None) -> int:
    """Insert rows, in a transaction of their own if none is given."""
    own = server.begin() if tx is None else tx
    for number in numbers:
        server.row(CdcRecord.INSERT, own, TABLE, {"c1": number, "c2": "x"})
    if tx is None:
        server.end(own)
    return own


def read(source: Capturing) -> list[object]:
    """Read the next rows; records may be cut, so one read may bring nothing."""
    for _ in range(300):
        if images := source.take():
            return keys(images, "c1")
    return []


def test_nothing_comes_twice_and_nothing_is_lost_wherever_it_is_restarted(server: GBaseServer, path: Path) -> None:
    first = source_of(server, path)
    first.take()
    long_one = insert(server, 1, tx=server.begin())
    insert(server, 10, 11, 12)
    seen = read(first)
    insert(server, 20)
    insert(server, 2, tx=long_one)
    server.end(long_one)
    insert(server, 30)
    first.die()
    for _ in range(8):
        restarted = source_of(server, path, 1)
        for _ in range(4):
            restarted.capture()
        seen += keys(restarted.taken(), "c1")
        restarted.die()
    seen += read(source_of(server, path))
    assert seen == [10, 11, 12, 20, 1, 2, 30]


def test_a_session_that_ends_is_opened_anew_at_the_kept_place(server: GBaseServer, source: Capturing) -> None:
    insert(server, 1)
    assert read(source) == [1]
    insert(server, 2)
    server.fail_next(-83790)
    with pytest.raises(SourceError, match="ended the session"):
        read(source)
    assert read(source) == [2]
    assert server.calls.count("opensess") == 2


def test_a_place_that_the_server_no_longer_has_is_a_sentence(
    server: GBaseServer, source: Capturing, path: Path
) -> None:
    insert(server, 1)
    assert read(source) == [1]
    source.die()
    server.kept_from = 1 << 60
    with pytest.raises(SourceError, match=r"no longer in the logical logs.* load the tables again") as caught:
        source_of(server, path).take()
    assert caught.value.may_pass is False


@pytest.mark.parametrize("line", ["{hex}", "R1 valid {hex}", "{hex} # a read"])
def test_a_text_that_is_read_while_its_last_line_is_written_is_read_on(tmp_path: Path, line: str) -> None:
    chunks = list(reads(shop(3, 5), cut=70))
    text = "\n".join(line.format(hex=chunk.hex(" ", 4)) for chunk in chunks)
    path = tmp_path / "stream.hex"
    path.touch()
    feed, got = FileFeed(path), b""
    feed.open(0)
    for character in text:
        with path.open("a") as file:
            file.write(character)
        got += feed.read()
    assert got == b"".join(chunks), "though the last line has no end"
    with path.open("a") as file:
        file.write("\n0\n")
    with pytest.raises(DataError, match="is no row of hexadecimal digits"):
        feed.read()


def test_files_that_grow_are_read_on(tmp_path: Path) -> None:
    folder = tmp_path / "captured"
    folder.mkdir()
    pieces = list(reads(shop(80, 5), cut=700))
    whole = GBaseSettings(path=str(folder))
    got: list[object] = []
    source = Capturing(gbase_reader(whole), tmp_path / "log.db")
    for at, piece in enumerate(pieces):
        with (folder / f"{at // 5:03}.bin").open("ab") as file:
            file.write(piece)
        if at % 7 == 3:
            source.close()
            source = Capturing(gbase_reader(whole), tmp_path / "log.db")
        got += source.take()
    source.close()
    fresh = Capturing(GBaseReader(FileFeed(folder), whole), tmp_path / "other.db")
    assert got == fresh.take()
    assert len(got) > 60
    fresh.close()
