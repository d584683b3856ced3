"""A stream is captured once and whole, wherever the publisher dies, and comes back as it was."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import DataError, OccupiedError, SourceError
from eventlog.core.model import EVERY_ROW, Captured, Image, Op, Position, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.log.lock import LogLock
from eventlog.sources.stream import fresh
from eventlog.sources.stream.captured import StreamCapture
from eventlog.sources.stream.packed import packed, unpacked
from eventlog.sources.stream.source import StreamPiece, read_place
from tests.support.captured import Capturing

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.text(alphabet="\ud800a\0"),
    st.decimals(allow_nan=False),
    st.binary(),
    st.datetimes(),
    st.dates(),
    st.times(),
)
ROWS = st.none() | st.dictionaries(st.text(max_size=3), VALUES | st.tuples(VALUES, VALUES), max_size=4)


ROOM = 10_000_000


class KilledError(BaseException):
    """The process dies here."""


@given(
    before=ROWS,
    after=ROWS,
    op=st.sampled_from([*Op]),
    place=st.integers(0, 2**64),
    time=st.datetimes(),
    is_whole=st.booleans(),
)
def test_an_image_comes_back_as_it_was(
    *, before: Any, after: Any, op: Op, place: int, time: dt.datetime, is_whole: bool
) -> None:
    names = tuple(after or ()) if is_whole else ("id",)
    transaction = Transaction(id=place, time=time, end=place + 1)
    image = Image(
        position=(place, 2, 0),
        op=op,
        table="t",
        before=before,
        after=after,
        time=time,
        transaction=transaction,
        place=3,
        last=True,
        stream="0:1",
    )
    read, catalog = unpacked(packed(image, 7, names), "t", lambda _: names, "Row 1")
    assert (read, catalog) == (image, 7)
    for one, was in ((read.before, before), (read.after, after)):
        assert [type(value) for value in (one or {}).values()] == [type(value) for value in (was or {}).values()]
    assert packed(read, 7, names) == packed(image, 7, names)


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2]",
        *(
            f'[1,[1],"add",null,{row},null,null,null,1,false,null,null]'
            for row in ('["d",["x"]]', '["",[]]', '["?",[1]]')
        ),
    ],
)
def test_a_row_that_somebody_has_written_is_named(text: str) -> None:
    with pytest.raises(DataError, match="Row 1 holds no image of a stream"):
        unpacked(text, "t", lambda _: ("a",), "Row 1")


def catalog(number: int) -> Catalog:
    return Catalog([Table(name="t", columns=(Column(name="id", key=1), Column(name=f"c{number}")))])


class Reader:
    """Transactions that end at places 10, 20, …, in pieces; every third one has another catalog than those before it."""

    def __init__(self, made: Sequence[tuple[int, int]]) -> None:
        self.made = list(made)
        self.failing = 0
        self.settled_to = 0
        self.told: list[Position] = []
        self.dies = False

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
            transaction = Transaction(id=at % 2, end=end)
            found = [
                Image(position=(end, seq, 0), op=Op.ADD, table="t", after={"id": seq}, transaction=transaction)
                for seq in range(1, count + 1)
            ]
            known = catalog(at) if at % 3 == 0 else known
            for start in range(0, max(count, 1), size):
                last = start + size >= count
                images = found[start : start + size]
                yield StreamPiece(images=images, catalog=known, commit=end, begin=end + 1 if last else None)

    def settled(self, images: Sequence[Captured], begin: int) -> None:
        if self.dies:
            raise KilledError
        self.told += [image.position for image in images]
        self.settled_to = begin

    def close(self) -> None:
        return None


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(6))
def test_each_image_is_captured_once_and_in_order_wherever_it_dies(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)
    made = [(dice.randint(0, 5), dice.randint(1, 3)) for _ in range(6)]
    expected = [(10 * (at + 1), seq, 0) for at, (count, _) in enumerate(made) for seq in range(1, count + 1)]
    reader, path, limit = Reader(made), tmp_path / "log.db", dice.randint(1, 4)
    mark, dying = LogLock.mark, [""]

    def marked(lock: LogLock, *arguments: Any, **more: Any) -> None:
        mark(lock, *arguments, **more)
        if dying[0] == "before the rows are durable":
            raise KilledError

    monkeypatch.setattr(LogLock, "mark", marked)
    came: list[Position] = []
    deaths = set[str]()
    going = Capturing(reader, path, limit)
    for _ in range(60):
        dying[0] = dice.choice(["", "", "before the rows are durable", "before it is told", "at rest"])
        reader.dies = dying[0] == "before it is told"
        reader.failing = dice.random() < 0.1
        try:
            with suppress(SourceError):
                going.capture()
            if dying[0] == "at rest":
                raise KilledError  # noqa: TRY301  # as if it came from there
        except KilledError:
            deaths.add(dying[0])
            going.die()
            going = Capturing(reader, path, limit)
        if dice.random() < 0.3:
            came += [image.position for image in going.taken()]
    dying[0], reader.dies, reader.failing = "", False, 0
    came += [image.position for image in going.take()]
    assert came == expected
    assert deaths
    assert set(reader.told) <= set(expected)
    going.close()


def test_rows_are_described_by_the_catalog_of_their_time(tmp_path: Path) -> None:
    going = Capturing(Reader([(2, 2)] * 5), tmp_path / "log.db", 1)
    while going.capture():
        pass
    names = [name for name in _marks(going) if name.startswith("catalog ")]
    assert len(names) == 2
    assert going.log.catalogs.find(1).tables == catalog(-1).tables
    assert going.log.catalogs.find(2).tables == catalog(3).tables
    going.taken()
    again = Reader([(2, 2)] * 7)
    going.die()
    going = Capturing(again, tmp_path / "log.db")
    going.take()
    assert [name for name in _marks(going) if name.startswith("catalog ")] == ["catalog 3"]
    going.close()


def test_who_gets_the_log_back_leaves_catalogs_of_the_one_in_between(tmp_path: Path) -> None:
    going = Capturing(Reader([(1, 1)] * 2), tmp_path / "log.db")
    going.take()
    going._lock.leave()
    other = Capturing(Reader([(1, 1)] * 4), tmp_path / "log.db")
    while other.capture():
        pass
    other.close()
    assert going._lock.take()
    capture = StreamCapture(Reader([(1, 1)] * 6), going.log, 100)
    while capture.capture():
        pass
    with going.log.log.transaction() as connection:
        rows = going.waiting(connection)
    going.die()
    read = Capturing(Reader([]), tmp_path / "log.db")
    images = [read.log.image(event) for event in rows]
    described = [(image.position[0], read.log.catalogs.find(number).tables) for image, number in images]
    places = {30: 3, 40: 3, 50: -1, 60: 6}
    assert described == [(place, catalog(number).tables) for place, number in places.items()]
    read.close()


def _marks(going: Capturing) -> list[str]:
    with going.engine.connect() as connection:
        return [str(name) for (name,) in connection.exec_driver_sql("SELECT name FROM event_log_mark ORDER BY 1")]


def test_transactions_have_numbers_of_their_own_and_objects_their_keys(tmp_path: Path) -> None:
    going = Capturing(Reader([(3, 2), (2, 9)]), tmp_path / "log.db")
    while going.capture():
        pass
    with going.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT eventlog_transaction, table_key FROM event_log ORDER BY record_id")
        assert rows.fetchall() == [(1, "id=1"), (1, "id=2"), (1, "id=3"), (4, "id=1"), (4, "id=2")]
    going.close()


def test_rows_that_were_captured_just_now_are_those_that_stand_in_the_log(tmp_path: Path) -> None:
    going = Capturing(Reader([(3, 2), (3, 9)]), tmp_path / "log.db")
    going.capture()
    with going.engine.connect() as connection:
        portion = going.log.fresh.portion(connection, 0, 2, ROOM)
        assert portion is not None
        read = going.waiting(connection)
        assert portion.rows == read[:3], "to the end of the transaction"
        following = going.log.fresh.portion(connection, 3, 100, ROOM)
        assert following is not None
        assert following.rows == read[3:]
        assert going.log.fresh.portion(connection, 6, 100, ROOM) is None
    going.close()


def test_no_more_is_kept_in_memory_than_has_room_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh, "MOST_FRESH_CHARACTERS", 10)
    going = Capturing(Reader([(6, 2)]), tmp_path / "log.db")
    going.capture()
    with going.engine.connect() as connection:
        portion = going.log.fresh.portion(connection, 0, 9, ROOM)
        assert portion is not None
        assert [event.position for event in portion.rows] == [(1,), (2,)]
        assert len(going.waiting(connection)) == 6
    going.close()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM event_log WHERE record_id = 5",
        "UPDATE event_log SET status = 'E' WHERE record_id = 5",
        "UPDATE event_log SET status = 'N' WHERE record_id = 1",
    ],
)
def test_the_log_is_asked_where_somebody_has_changed_it_since(statement: str, tmp_path: Path) -> None:
    going = Capturing(Reader([(3, 9), (3, 9)]), tmp_path / "log.db")
    going.capture()
    with going.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE event_log SET status = 'P' WHERE record_id < 4")
        assert going.log.fresh.portion(connection, 0, 9, ROOM) is not None
        assert going.log.fresh.portion(connection, 0, 9, 10) is None, "they have no room"
        connection.exec_driver_sql(statement)
        assert going.log.fresh.portion(connection, 0, 9, ROOM) is None
    going.close()


def test_a_key_that_is_too_long_or_missing_has_a_place_too(tmp_path: Path) -> None:
    class Odd(Reader):
        def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
            images = [
                Image(position=(1, 1), op=Op.ADD, table="t", after={"id": "x" * 5000}),
                Image(position=(1, 2), op=Op.ADD, table="t", after={"id": None}),
                Image(position=(1, 3), op=Op.TRUNCATE, table="t"),
                Image(position=(1, 4), op=Op.ADD, table="unknown", after={"id": 1}),
            ]
            yield StreamPiece(images=images, catalog=catalog(1), commit=1, begin=2)
            yield None

    going = Capturing(Odd([]), tmp_path / "log.db")
    assert not going.capture()
    with going.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT table_key FROM event_log ORDER BY record_id").scalars().all()
    assert found[0].startswith("hash=")
    assert found[1:] == ["#2", EVERY_ROW, EVERY_ROW]
    going.close()


def test_what_is_no_place_is_named() -> None:
    with pytest.raises(DataError, match="does not hold the place of a stream"):
        read_place("[]")


def test_what_was_gathered_before_a_failure_is_captured_first(tmp_path: Path) -> None:
    class Failing(Reader):
        def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
            for piece in super().pieces(begin):
                if piece is not None and piece.commit == 20:
                    raise SourceError("The stream is damaged there.")
                yield piece

    going = Capturing(Failing([(2, 2), (2, 2)]), tmp_path / "log.db")
    assert going.capture()
    assert len(going.taken()) == 2
    with pytest.raises(SourceError, match="damaged"):
        going.capture()
    going.close()


def test_who_has_been_replaced_captures_nothing(tmp_path: Path) -> None:
    reader = Reader([(2, 2)])
    going = Capturing(reader, tmp_path / "log.db")
    with going.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE event_log_mark SET value = value || 'x' WHERE name = 'publisher'")
    with pytest.raises(OccupiedError):
        going.capture()
    assert reader.told == []
    assert going.taken() == []
    going.engine.dispose()


def test_a_decimal_keeps_its_digits() -> None:
    image = Image(position=(1,), op=Op.ADD, table="t", after={"a": Decimal("1.50"), "b": float("inf")})
    read, _ = unpacked(packed(image, 1, ("a", "b")), "t", lambda _: ("a", "b"), "Row 1")
    assert read.after is not None
    assert (str(read.after["a"]), read.after["b"]) == ("1.50", float("inf"))
