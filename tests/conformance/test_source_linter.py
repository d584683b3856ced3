"""What every source must do, run on LINTER's queue in databases: order, limits, batches in hand, exact places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.core.backoff import Backoff
from eventlog.core.errors import ConfigError, SourceError
from eventlog.core.model import Image, Outcome, Reason, Status
from eventlog.core.seams import Batch
from eventlog.sources.linter import source as module
from eventlog.sources.linter.emulator import EmulatedOperation, EmulatorSettings, LinterEmulator
from eventlog.sources.linter.operations import Action
from eventlog.sources.linter.queue import EngineSession, fill_queue, make_queue, open_session
from eventlog.sources.linter.settings import LinterSettings
from eventlog.sources.linter.source import LinterReader, linter_source
from eventlog.sources.stream.source import PLACE, FileMarks, StreamSource, read_place
from tests.support.linter import READING, SCHEMA, TABLE, ended, insert


class Ground:
    """A queue in a database, and sources that read it."""

    def __init__(self, engine: Engine, marks: Path) -> None:
        self.engine = engine
        self.marks = marks
        self.now = 0.0
        make_queue(engine)
        self.emulator = LinterEmulator(SCHEMA, READING)

    def write(self, *done: EmulatedOperation) -> None:
        fill_queue(self.engine, [row for one in done for row in self.emulator.rows(one)])

    def source(self, backoff: Backoff | None = None, **settings: Any) -> StreamSource:
        session, marks = EngineSession(self.engine), FileMarks(self.marks)
        chosen = LinterSettings(code_page="cp1251", **settings)
        return linter_source(session, marks, SCHEMA, chosen, clock=lambda: self.now, backoff=backoff)

    def count(self) -> int:
        with self.engine.connect() as connection:
            return int(connection.execute(text("SELECT count(*) FROM DISPATCH_QUEUE")).scalar_one())


@pytest.fixture(params=["sqlite", "postgresql"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    return Ground(request.getfixturevalue(request.param), tmp_path / "marks.json")


def keys(batch: Batch) -> list[Any]:
    return [event.after["ID"] for event in batch.events if isinstance(event, Image) and event.after is not None]


def outcomes(batch: Batch, status: Status = Status.SUCCESS, reason: Reason = Reason.PUBLISHED) -> list[Outcome]:
    return [Outcome(position=event.position, status=status, reason=reason) for event in batch.events]


def settled(source: StreamSource, limit: int) -> list[Any]:
    batch = source.read(limit)
    source.settle(batch, outcomes(batch))
    return keys(batch)


def test_transactions_come_by_their_commits_and_only_once_they_have_ended(ground: Ground) -> None:
    source = ground.source()
    ground.write(insert(1, 10), insert(2, 20), insert(3, 30), ended(2), insert(4, 40), ended(4, Action.ROLLBACK))
    assert settled(source, 0) == [20]
    assert settled(source, 0) == []
    ground.write(insert(1, 11), ended(1))
    batch = source.read(0)
    assert keys(batch) == [10, 11]
    assert batch.catalog is not None
    assert batch.catalog.find("SHOP.T") is not None


def test_batches_are_cut_at_the_limit_and_the_rest_comes_next(ground: Ground) -> None:
    source = ground.source()
    ground.write(*[insert(1, key) for key in range(5)], ended(1), insert(2, 5), ended(2), insert(3, 6), ended(3))
    assert [settled(source, 3) for _ in range(4)] == [[0, 1, 2], [3, 4, 5], [6], []]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 0])
def test_restarts_at_every_place_neither_repeat_nor_lose(ground: Ground, limit: int) -> None:
    ground.write(insert(1, 0), insert(2, 1), ended(1), insert(2, 2), insert(3, 3), ended(2), ended(3))
    ground.write(*[done for tx in range(4, 9) for done in (insert(tx, tx), ended(tx))])
    found: list[Any] = []
    while part := settled(ground.source(), limit):
        found += part
    assert found == [0, 1, 2, 3, 4, 5, 6, 7, 8]


def test_a_transaction_number_that_is_used_again_is_another_transaction(ground: Ground) -> None:
    ground.write(insert(1, 10), ended(1))
    assert settled(ground.source(), 0) == [10]
    ground.write(insert(1, 11), ended(1, Action.ROLLBACK), insert(1, 12), ended(1))
    assert settled(ground.source(), 0) == [12]


def test_the_batch_in_hand_comes_again_until_it_is_settled(ground: Ground) -> None:
    source = ground.source()
    ground.write(insert(1, 10), insert(2, 20), ended(2), insert(1, 11), ended(1))
    first = source.read(2)
    source.note({"files": "planned"})
    ground.write(insert(3, 30), ended(3))
    for again in (source.read(9), ground.source().read(9), ground.source().read(1)):
        assert (list(again.events), again.repeated, again.notes) == (list(first.events), True, {"files": "planned"})
    after_crash = ground.source()
    batch = after_crash.read(1)
    after_crash.settle(batch, outcomes(batch))
    following = after_crash.read(9)
    assert (keys(following), following.repeated, following.notes) == ([11, 30], False, {})


def test_what_a_receiver_did_not_take_stays_in_hand_and_is_offered_later(ground: Ground) -> None:
    source = ground.source(Backoff(first=8))
    ground.write(insert(1, 10), insert(1, 11), ended(1), insert(2, 20), ended(2))
    batch = source.read(2)
    held = Outcome(position=batch.events[1].position, status=Status.NEW, reason=Reason.RETRY)
    source.settle(batch, [Outcome(position=batch.events[0].position), held], {"decided": "x"})
    waiting = source.read(9)
    assert keys(waiting) == []
    assert waiting.later is not None
    assert 4 <= waiting.later <= 8
    ground.now = 8.0
    again = source.read(9)
    assert (keys(again), again.repeated, again.notes) == ([11], True, {"decided": "x"})
    assert again.attempts == {batch.events[1].position: 1}
    assert keys(ground.source().read(9)) == [11]
    source.settle(again, outcomes(again))
    assert settled(source, 9) == [20]


def test_rows_are_not_deleted_unless_somebody_says_so(ground: Ground) -> None:
    ground.write(insert(1, 10), ended(1))
    assert settled(ground.source(), 0) == [10]
    assert ground.count() == 2


def test_handled_transactions_are_deleted_whole(ground: Ground) -> None:
    source = ground.source(delete_handled=True)
    ground.write(insert(1, 10), insert(9, 90), insert(1, 11), ended(1), insert(2, 20), ended(2, Action.ROLLBACK))
    assert settled(source, 1) == [10]
    assert ground.count() == 6
    assert settled(source, 1) == [11]
    assert settled(source, 1) == []
    assert ground.count() == 1
    ground.write(ended(9))
    assert settled(ground.source(delete_handled=True), 1) == [90]
    assert ground.count() == 0


def test_transactions_of_which_something_failed_are_not_deleted(ground: Ground) -> None:
    ground.write(insert(1, 10), insert(1, 11), ended(1), insert(2, 20), ended(2))
    source = ground.source(delete_handled=True)
    batch = source.read(1)
    source.settle(batch, outcomes(batch, Status.ERROR, Reason.REFUSED))
    assert settled(ground.source(delete_handled=True), 0) == [11, 20]
    assert ground.count() == 3


def test_transactions_without_images_are_left_behind(ground: Ground) -> None:
    source = ground.source()
    ground.write(ended(1), insert(2, 20), ended(2, Action.ROLLBACK))
    assert settled(source, 0) == []
    place = read_place(FileMarks(ground.marks).get(PLACE))
    assert place.begin > 0
    ground.write(insert(3, 30), ended(3))
    assert settled(ground.source(), 0) == [30]


def test_rows_that_vanished_meanwhile_are_let_go(ground: Ground) -> None:
    ground.write(insert(1, 10), ended(1))
    ground.source().read(0)
    with ground.engine.begin() as connection:
        connection.execute(text("DELETE FROM DISPATCH_QUEUE"))
    ground.write(insert(2, 20), ended(2))
    assert settled(ground.source(), 0) == [20]


def test_places_beyond_the_signed_range_are_in_order(ground: Ground) -> None:
    ground.emulator = LinterEmulator(SCHEMA, READING, EmulatorSettings(address=2**63 - 200))
    for tx in range(4):
        ground.write(insert(tx, tx), ended(tx))
    found = [settled(ground.source(), 1) for _ in range(5)]
    assert found == [[0], [1], [2], [3], []]


def test_many_transactions_take_many_questions(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENDING_ROWS", 3)
    monkeypatch.setattr(module, "LARGE_IMAGES", 2)
    ground.write(*[done for tx in range(20) for done in (insert(tx, tx), ended(tx))])
    source = ground.source(spill_bytes=500)
    assert keys(source.read(0)) == list(range(20))
    assert keys(ground.source().read(0)) == list(range(20))


def test_no_more_is_held_in_memory_than_a_transaction_and_the_limit(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    together = LinterReader._transactions

    def counted(reader: LinterReader, endings: Any) -> Any:
        found, reached = together(reader, endings)
        asked.append(len(found))
        return found, reached

    monkeypatch.setattr(LinterReader, "_transactions", counted)
    ground.write(insert(1, 10), insert(2, 20), ended(1), insert(1, 30), ended(2), ended(1), insert(3, 40), ended(3))
    source = ground.source(spill_bytes=1)
    assert keys(source.read(0)) == [10, 20, 30, 40]
    assert asked == [1, 1, 1, 1]
    again = ground.source(spill_bytes=1)  # whoever died reads the same from the same rows
    assert keys(again.read(0)) == [10, 20, 30, 40]
    assert settled(again, 0) == [10, 20, 30, 40]
    assert settled(again, 0) == []
    assert set(asked) == {1}


def test_a_receiving_queue_comes_as_it_arrived(tmp_path: Path, sqlite: Engine) -> None:
    ground = Ground(sqlite, tmp_path / "marks.json")
    wide = EmulatedOperation(transaction=1, action=Action.INSERT, table=18, after={"ID": 1, "B": bytes(3990)})
    ground.write(wide, insert(1, 10), ended(1))
    with sqlite.begin() as connection:
        connection.execute(text("ALTER TABLE DISPATCH_QUEUE RENAME TO RECEIVING_QUEUE"))
        connection.execute(text("ALTER TABLE RECEIVING_QUEUE DROP COLUMN SYSLOG_ADDR"))
    source = ground.source(variant="receiving")
    assert settled(source, 0) == [1, 10]
    assert settled(ground.source(variant="receiving"), 0) == []


def test_any_driver_will_do(tmp_path: Path, sqlite: Engine) -> None:
    ground = Ground(sqlite, tmp_path / "marks.json")
    ground.write(insert(1, 10), ended(1))
    settings = LinterSettings(
        code_page="cp1251", driver="sqlite3", connect={"database": str(sqlite.url.database)}, delete_handled=True
    )
    source = linter_source(open_session("", settings), FileMarks(ground.marks), SCHEMA, settings)
    [image] = source.read(0).events
    assert isinstance(image, Image)
    assert image.after == {**TABLE, "ID": 10}
    source.settle(source.read(0), [])
    assert ground.count() == 0
    source.close()


def test_what_is_not_there_is_named(ground: Ground) -> None:
    with pytest.raises(SourceError, match=r"LINTER's queue cannot be used: .*missing") as caught:
        ground.source(queue="missing").read(0)
    assert not caught.value.may_pass
    with pytest.raises(ConfigError, match="'a; DROP' is no name of a table"):
        ground.source(queue="a; DROP")
    with pytest.raises(ConfigError, match="The driver linpy_x cannot be loaded"):
        open_session("", LinterSettings(driver="linpy_x"))
