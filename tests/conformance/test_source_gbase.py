"""What every source must do, run on GBase sessions and files: batches in hand, places after a crash, nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from eventlog.core.backoff import Backoff
from eventlog.core.errors import SourceError
from eventlog.core.model import Image, Outcome, Reason, Status
from eventlog.core.seams import Batch
from eventlog.sources.gbase.emulator import reads, shop
from eventlog.sources.gbase.records import CdcRecord
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.gbase.source import FileFeed, GBaseReader, SessionFeed, gbase_source
from eventlog.sources.stream.source import FileMarks, StreamSource
from tests.support.gbase_driver import EmulatedDriver
from tests.support.gbase_server import GBaseServer

TABLE = "stores:shop.t1"
OWN = GBaseSettings(tables={"5": TABLE}, columns={TABLE: ("c1", "c2")}, keys={"t1": ("c1",)})
NOW = Backoff(first=0.0)


@pytest.fixture
def server() -> GBaseServer:
    made = GBaseServer(cut=[7, 50, 3] * 20)
    made.create(TABLE, "c1 integer, c2 varchar(20,0)")
    return made


@pytest.fixture
def marks(tmp_path: Path) -> FileMarks:
    return FileMarks(tmp_path / "marks.json")


def source_of(server: GBaseServer, marks: FileMarks, own: GBaseSettings = OWN) -> StreamSource:
    return StreamSource(
        GBaseReader(SessionFeed(lambda: EmulatedDriver(server), own), own), FileMarks(marks.path), backoff=NOW
    )


@pytest.fixture
def source(server: GBaseServer, marks: FileMarks) -> Iterator[StreamSource]:
    made = source_of(server, marks)
    assert list(made.read(1).events) == []  # from now on
    yield made
    made.close()


def insert(server: GBaseServer, *numbers: int, tx: int | None = None) -> int:
    """Inserts rows; in a transaction of their own if none is given."""
    own = server.begin() if tx is None else tx
    for number in numbers:
        server.row(CdcRecord.INSERT, own, TABLE, {"c1": number, "c2": "x"})
    if tx is None:
        server.end(own)
    return own


def numbers(batch: Batch) -> list[object]:
    return [(cast("Image", event).after or {})["c1"] for event in batch.events]


def read(source: StreamSource, limit: int = 0) -> Batch:
    """The next batch that holds something; reads may be cut, so a read may bring nothing."""
    for _ in range(300):
        batch = source.read(limit)
        if batch.events:
            return batch
    return batch


def outcomes(batch: Batch, *staying: int) -> list[Outcome]:
    return [
        Outcome(position=event.position, status=Status.NEW, reason=Reason.RETRY)
        if at in staying
        else Outcome(position=event.position)
        for at, event in enumerate(batch.events)
    ]


def test_batches_follow_each_other_and_cut_transactions_at_the_limit(server: GBaseServer, source: StreamSource) -> None:
    insert(server, 1, 2, 3, 4, 5)
    insert(server, 6)
    seen = []
    for _ in range(3):
        batch = read(source, 2)
        assert (batch.repeated, batch.catalog is not None) == (False, True)
        seen.append(numbers(batch))
        source.settle(batch, outcomes(batch))
    assert seen == [[1, 2], [3, 4], [5, 6]]
    assert list(source.read(2).events) == []


def test_the_batch_in_hand_comes_again_also_after_a_crash(
    server: GBaseServer, source: StreamSource, marks: FileMarks
) -> None:
    insert(server, 1, 2, 3)
    insert(server, 4)
    first = read(source, 2)
    source.note({"out": "half"})
    assert source.read(9).notes == {"out": "half"}
    insert(server, 5)
    for after_crash in (source, source_of(server, marks)):
        again = read(after_crash, 9)
        assert (again.events, again.repeated, again.notes) == (first.events, True, {"out": "half"})
    after_crash.settle(again, outcomes(again))
    rest = read(after_crash)
    assert (numbers(rest), rest.repeated, rest.notes) == ([3, 4, 5], False, {})


def test_nothing_comes_twice_and_nothing_is_lost_wherever_it_is_restarted(
    server: GBaseServer, marks: FileMarks
) -> None:
    first = source_of(server, marks)
    first.read(1)
    long_one = insert(server, 1, tx=server.begin())
    seen: list[object] = []
    insert(server, 10, 11, 12)
    batch = read(first, 2)
    seen += numbers(batch)
    first.settle(batch, outcomes(batch))
    insert(server, 20)
    insert(server, 2, tx=long_one)
    server.end(long_one)
    insert(server, 30)
    for _ in range(8):
        restarted = source_of(server, marks)
        batch = read(restarted, 1)
        if batch.events:
            seen += numbers(batch)
            restarted.settle(batch, outcomes(batch))
    assert seen == [10, 11, 12, 20, 1, 2, 30]


def test_what_is_not_taken_is_offered_again_and_holds_the_others(
    server: GBaseServer, source: StreamSource, marks: FileMarks
) -> None:
    insert(server, 1, 2, 3)
    batch = read(source)
    source.settle(batch, outcomes(batch, 1), {"out": "kept"})
    insert(server, 4)
    for at in (1, 2):
        one = source if at == 1 else source_of(server, marks)
        again = read(one)
        assert (numbers(again), again.attempts) == ([2], {batch.events[1].position: at})
        assert (again.notes, again.repeated) == ({"out": "kept"}, True)
        one.settle(again, outcomes(again, *([0] if at == 1 else [])), {"out": "kept"})
    assert numbers(read(one)) == [4]


def test_waiting_takes_its_time(server: GBaseServer, marks: FileMarks) -> None:
    reader = GBaseReader(SessionFeed(lambda: EmulatedDriver(server), OWN), OWN)
    own = StreamSource(reader, marks, backoff=Backoff(first=60))
    own.read(1)
    insert(server, 1)
    batch = read(own)
    own.settle(batch, outcomes(batch, 0))
    later = own.read(1).later
    assert later is not None
    assert 15 < later <= 60  # half of the wait at least, and what has passed since


def test_a_session_that_ends_is_opened_anew_at_the_kept_place(server: GBaseServer, source: StreamSource) -> None:
    insert(server, 1)
    batch = read(source)
    source.settle(batch, outcomes(batch))
    insert(server, 2)
    server.fail_next(-83790)
    with pytest.raises(SourceError, match="ended the session"):
        read(source)
    assert numbers(read(source)) == [2]
    assert server.calls.count("opensess") == 2


def test_a_place_that_the_server_no_longer_has_is_a_sentence(
    server: GBaseServer, source: StreamSource, marks: FileMarks
) -> None:
    insert(server, 1)
    batch = read(source)
    source.settle(batch, outcomes(batch))
    server.kept_from = 1 << 60
    with pytest.raises(SourceError, match=r"no longer in the logical logs.* load the tables again") as caught:
        source_of(server, marks).read(1)
    assert caught.value.may_pass is False


def test_files_that_grow_are_read_on(tmp_path: Path) -> None:
    folder = tmp_path / "captured"
    folder.mkdir()
    pieces = list(reads(shop(80, 5), cut=700))
    whole = GBaseSettings(path=str(folder), marks=str(tmp_path / "marks.json"))
    got: list[object] = []
    source = gbase_source(whole)
    for at, piece in enumerate(pieces):
        with (folder / f"{at // 5:03}.bin").open("ab") as file:
            file.write(piece)
        if at % 7 == 3:
            source.close()
            source = gbase_source(whole)
        batch = source.read(0)
        got += batch.events
        source.settle(batch, outcomes(batch))
    fresh = StreamSource(GBaseReader(FileFeed(folder), whole), FileMarks(tmp_path / "other.json"))
    whole_stream: list[object] = []
    while (batch := fresh.read(0)).events:
        whole_stream += batch.events
        fresh.settle(batch, outcomes(batch))
    assert got == whole_stream
    assert len(got) > 60
