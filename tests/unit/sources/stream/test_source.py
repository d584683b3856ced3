"""The one source of streams, with a reader of made-up transactions: nothing is lost and nothing comes twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.backoff import Backoff
from eventlog.core.errors import DataError, SourceError
from eventlog.core.model import Captured, Image, Op, Outcome, Position, Reason, Status
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Batch
from eventlog.sources.marks import as_text
from eventlog.sources.stream.source import FileMarks, StreamPiece, StreamPlace, StreamSource, read_place
from tests.support.shares import met, shares

Made = tuple[int, int]
"""A transaction: how many images it has, and how many of them make a piece."""


def catalog(number: int) -> Catalog:
    return Catalog([Table(name=f"t{number}", columns=(Column(name="id", key=1),))])


class Reader:
    """Transactions that end at places 10, 20, …; every third one has another catalog than those before it."""

    def __init__(self, made: Sequence[Made], *, may_change: bool = True) -> None:
        self.made = list(made)
        self.may_change = may_change
        self.failing = 0
        self.gone: set[Position] = set()
        self.told: list[tuple[set[int], int]] = []

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        known, at = catalog(-1), 0
        while True:
            if at >= len(self.made):
                yield None
                continue
            end, (count, size) = 10 * (at + 1), self.made[at]
            at += 1
            if end < begin:
                continue
            if self.failing:
                self.failing -= 1
                raise SourceError("The server is away.")
            found = [Image(position=(end, seq, 0), op=Op.ADD, table="t") for seq in range(1, count + 1)]
            known = catalog(at) if at % 3 == 0 else known
            for start in range(0, max(count, 1), size):
                images = [one for one in found[start : start + size] if one.position not in self.gone]
                last = start + size >= count
                yield StreamPiece(images=images, catalog=known, commit=end, begin=end + 1 if last else None)

    def settled(self, images: Sequence[Captured], failed: frozenset[int], begin: int) -> None:
        self.told.append((set(failed), begin))

    def close(self) -> None:
        return None


class MemoryMarks(FileMarks):
    """Marks that a property test writes thousands of times, without a disk."""

    def _read(self) -> dict[str, str]:
        return {}

    def _write(self, marks: dict[str, str]) -> None:
        self._marks = marks


class Ground:
    """A stream, its marks, and time that a test lets pass."""

    def __init__(self, folder: Path | None, *made: Made, may_change: bool = True) -> None:
        self._marks = MemoryMarks(Path()) if folder is None else None
        self.path = (folder or Path()) / "marks.json"
        self.reader = Reader(made, may_change=may_change)
        self.now = 0.0

    def source(self) -> StreamSource:
        return StreamSource(self.reader, self.marks, backoff=Backoff(first=8), clock=lambda: self.now)

    @property
    def marks(self) -> FileMarks:
        """What a process finds that starts now."""
        return self._marks or FileMarks(self.path)

    @property
    def place(self) -> StreamPlace:
        return read_place(self.marks.get("stream"))


def places(batch: Batch) -> list[tuple[int, int]]:
    return [(event.position[0], event.position[1]) for event in batch.events]


def outcomes(batch: Batch, *staying: int, status: Status = Status.SUCCESS) -> list[Outcome]:
    return [
        Outcome(position=event.position, status=Status.NEW, reason=Reason.RETRY)
        if at in staying
        else Outcome(position=event.position, status=status)
        for at, event in enumerate(batch.events)
    ]


@shares(restarted=0.1, failed=0.15, stayed=0.1)
@given(st.data())
def test_each_image_is_settled_once_whatever_happens(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    made = data.draw(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), min_size=1, max_size=6))
    ground = Ground(None, *made, may_change=data.draw(st.booleans()))
    expected = [(10 * (at + 1), seq) for at, (count, _) in enumerate(made) for seq in range(1, count + 1)]
    source, done = ground.source(), list[tuple[int, int]]()
    idle = 0
    seen = Counter[str]()
    while idle < 3:
        ground.now += 100
        act = data.draw(st.sampled_from(["go on", "go on", "restart", "fail", "stay"]))
        if act == "restart":
            source = ground.source()
        ground.reader.failing = act == "fail"
        try:
            batch = source.read(data.draw(st.integers(0, 4)))
        except SourceError:
            seen["failed"] += 1
            continue
        idle = 0 if batch.events else idle + 1
        if act == "restart" and batch.events:
            again = ground.source().read(data.draw(st.integers(0, 4)))
            assert (places(again), again.repeated) == (places(batch), True)
            seen["restarted"] += 1
            batch, source = again, ground.source()
            assert places(source.read(0)) == places(batch)
        staying = [at for at in range(len(batch.events)) if act == "stay" and data.draw(st.booleans())]
        seen["stayed"] += len(staying)
        source.settle(batch, outcomes(batch, *staying))
        done += [place for at, place in enumerate(places(batch)) if at not in staying]
    assert sorted(done) == expected
    met(restarted=seen["restarted"], failed=seen["failed"], stayed=seen["stayed"])
    if ground.place.in_hand == () and not ground.place.waiting:
        assert ground.place.begin == 10 * len(made) + 1


def test_a_batch_of_several_tables_comes_again_after_a_crash(tmp_path: Path) -> None:
    """The tables are met anew then, one after the other, so that the catalog is another one in the middle."""
    ground = Ground(tmp_path, (1, 1), (1, 1), (2, 1))
    batch = ground.source().read(0)
    assert places(batch) == [(10, 1), (20, 1)]  # the third transaction has another catalog
    source = ground.source()
    source.settle(source.read(0), [])
    batch = source.read(0)
    grown = ground.reader.pieces

    def one_by_one(begin: int) -> Iterator[StreamPiece | None]:
        for at, piece in enumerate(grown(begin)):
            yield piece and StreamPiece(
                images=piece.images, catalog=catalog(at), commit=piece.commit, begin=piece.begin
            )

    ground.reader.pieces = one_by_one  # type: ignore[method-assign]  # this reader only, and only here
    assert places(ground.source().read(0)) == places(batch) == [(30, 1), (30, 2)]


@pytest.mark.parametrize("may_change", [True, False])
def test_what_was_taken_out_of_the_stream_is_let_go(tmp_path: Path, may_change: bool) -> None:
    ground = Ground(tmp_path, (3, 9), may_change=may_change)
    source = ground.source()
    batch = source.read(2)
    ground.reader.gone = {batch.events[1].position}
    source = ground.source()
    found = source.read(2)
    assert places(found) == [(10, 1)]
    source.settle(found, outcomes(found, 0))
    ground.reader.gone = {(10, 1, 0), (10, 2, 0), (10, 3, 0)}
    ground.reader.made.append((1, 1))
    assert ground.source().read(0).events == ()
    assert places(ground.source().read(0)) == [(20, 1)]


def test_what_comes_late_is_no_part_of_the_batch_in_hand(tmp_path: Path) -> None:
    ground = Ground(tmp_path, (0, 1), (0, 1), (1, 1), (0, 1), (1, 1), may_change=True)
    batch = ground.source().read(0)
    ground.reader.made[3] = (1, 1)
    source = ground.source()
    again = source.read(0)
    assert places(again) == places(batch) == [(30, 1), (50, 1)]
    source.settle(again, outcomes(again))
    assert source.read(0).events == ()


def test_what_waits_is_looked_for_again_while_the_stream_may_still_give_it(tmp_path: Path) -> None:
    ground = Ground(tmp_path, (1, 1), may_change=False)
    source = ground.source()
    batch = source.read(0)
    source.settle(batch, outcomes(batch, 0))
    made, ground.reader.made = ground.reader.made, []
    source = ground.source()
    assert source.read(0).later == 1.0
    ground.reader.made = made
    assert source.read(0).attempts == {(10, 1, 0): 1}


def test_a_transaction_stays_known_as_failed_as_long_as_something_of_it_waits(tmp_path: Path) -> None:
    ground = Ground(tmp_path, (2, 2), (1, 1))
    source = ground.source()
    batch = source.read(0)
    told = outcomes(batch, 1)
    source.settle(batch, [Outcome(position=batch.events[0].position, status=Status.ERROR), *told[1:]])
    assert (ground.place.failed, ground.place.begin) == ((10,), 0)
    source = ground.source()
    again = source.read(0)
    assert places(again) == [(10, 2)]
    source.settle(again, outcomes(again))
    assert ground.reader.told[-1] == ({10}, 11)
    source.settle(source.read(0), [])
    assert (ground.place.failed, ground.reader.told[-1]) == ((), (set(), 21))


def test_what_was_gathered_before_a_failure_is_handed_out_first(tmp_path: Path) -> None:
    ground = Ground(tmp_path, (1, 1))
    source = ground.source()
    ground.reader.made = [(1, 1), (1, 1)]
    pieces = ground.reader.pieces

    def failing(begin: int) -> Iterator[StreamPiece | None]:
        for piece in pieces(begin):
            yield piece
            ground.reader.failing = 1

    ground.reader.pieces = failing  # type: ignore[method-assign]  # this reader only, and only here
    batch = source.read(0)
    assert places(batch) == [(10, 1)]
    source.settle(batch, outcomes(batch))
    assert places(source.read(0)) == [(20, 1)]


def test_nothing_is_settled_of_an_empty_batch(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    source = ground.source()
    source.settle(source.read(0), [])
    assert (ground.place, ground.reader.told) == (StreamPlace(), [])


def test_a_place_survives_and_rubbish_is_none() -> None:
    place = StreamPlace(begin=3, upto=(4, 5, 0), in_hand=(6, 7, 1), notes={"out": "x"})
    assert (read_place(as_text(place)), read_place(None)) == (place, StreamPlace())
    with pytest.raises(DataError, match="does not hold the place"):
        read_place("[]")


def test_an_image_that_is_not_taken_waits_twice_as_long_each_time_and_nothing_comes_before_it() -> None:
    ground = Ground(None, (1, 1), (1, 1))
    source, waits = ground.source(), []
    for _ in range(5):
        batch = source.read(1)
        assert places(batch) == [(10, 1)]
        source.settle(batch, outcomes(batch, 0))
        rest = source.read(1)
        assert (rest.events, rest.later is None) == ((), False)
        waits.append(rest.later or 0.0)
        ground.now += waits[-1]
    assert all(4 * 2**n <= wait <= 8 * 2**n for n, wait in zip(range(3), waits, strict=False)), waits
    assert all(30 <= wait <= 60 for wait in waits[4:]), waits
