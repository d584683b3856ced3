"""A stream is captured once and whole, wherever the publisher dies, and comes back as it was."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core.errors import DataError, OccupiedError, SourceError
from eventlog.core.model import EVERY_ROW, Captured, Image, Op, Position, Transaction
from eventlog.core.rules.images import open_images
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.log.lock import LogLock
from eventlog.sources.stream import fresh
from eventlog.sources.stream.captured import StreamCapture
from eventlog.sources.stream.definitions import read_catalog
from eventlog.sources.stream.source import StreamPiece, read_place
from tests.support.captured import Capturing

ROOM = 10_000_000


class KilledError(BaseException):
    """The process dies here."""


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

    def acknowledge(self, images: Sequence[Captured], begin: int) -> None:
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


def test_rows_are_read_by_the_definition_of_their_time(tmp_path: Path) -> None:
    going = Capturing(Reader([(2, 2)] * 5), tmp_path / "log.db", 1)
    while going.capture():
        pass
    assert _columns(going) == [("id", "c-1"), ("id", "c3")]
    assert len(going.taken()) == 10
    going.die()
    going = Capturing(Reader([(2, 2)] * 7), tmp_path / "log.db")
    assert len(going.take()) == 4
    assert _columns(going) == [("id", "c-1"), ("id", "c3"), ("id", "c6")]
    going.close()


def test_who_gets_the_log_back_goes_on_with_definitions_of_the_one_in_between(tmp_path: Path) -> None:
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
    catalog_read = read_catalog(going.log.log)
    assert catalog_read.former is not None
    with going.log.log.transaction() as connection:
        rows = open_images(going.waiting(connection), catalog_read)
    described = []
    for row in rows:
        assert row.image is not None
        described.append((row.position[0], row.image.number))
    # 1: what the stream had before its third transaction, 2: from there, by the other one, 3: before again, 4: from its sixth.
    assert described == [(3, 2), (4, 2), (5, 3), (6, 4)]
    going.close()


def _columns(going: Capturing) -> list[tuple[str, ...]]:
    """The columns of each definition that the log has of the table."""
    former = read_catalog(going.log.log).former
    assert former is not None
    return [tuple(column.name for column in definition.table.columns) for definition in former.known]


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
        read = open_images(going.waiting(connection), read_catalog(going.log.log))
        assert [replace(row, time=None) for row in portion.rows] == [replace(row, time=None) for row in read[:3]]
        following = going.log.fresh.portion(connection, 3, 100, ROOM)
        assert following is not None
        assert [replace(row, time=None) for row in following.rows] == [replace(row, time=None) for row in read[3:]]
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


def test_a_key_that_is_long_or_missing_has_a_place_too(tmp_path: Path) -> None:
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
    assert found == [f"id={'x' * 5000}", "#2", EVERY_ROW, "#4"]
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
