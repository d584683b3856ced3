"""Documents of rows that have one number, at a receiver that nobody can ask: all of them get an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.core.backoff import Backoff
from eventlog.core.model import Change, Document, Outcome, Reason, Status
from eventlog.core.rules import Options, Round
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher import selection
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider
from eventlog.publisher.journal import Journal
from eventlog.publisher.turn_report import ConsumerSettings
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed
from tests.support.memory import OneEach, UnaskedSink


class Killed(BaseException):
    """The process dies."""


class Sized(OneEach):
    """Documents of so many changes, one after the other; of one each when all these are made."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self._sizes = list(sizes)

    def bind(self, written: Iterable[Change], after: str, whole: bool = False) -> Iterator[Document]:
        changes = list(written)
        while changes:
            size = self._sizes.pop(0) if self._sizes else 1
            yield from super().bind(changes[:size], after, whole=True)
            del changes[:size]


class Receiver(UnaskedSink):
    """Takes what comes but for what it is told to answer."""

    def __init__(self) -> None:
        self.came: list[str] = []
        """What it took: the rows of each document, by their objects and numbers."""
        self.offered: list[str] = []
        self.answer: Callable[[str], str] = lambda _: ""
        """What it says about a document: "again", "unread", "refused", "dies", the row that is to come again, or nothing."""

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        [document] = documents
        names = [change.split("=")[1] for change in document.body.decode().split("; ")]
        covers = document.covers.values()
        rows = " ".join(f"{name}{several[0][0]}" for name, several in zip(names, covers, strict=True))
        self.offered.append(rows)
        answer = self.answer(rows)
        if answer == "dies":
            raise Killed
        taken = [row for row in rows.split() if answer not in ("again", "unread", "refused", row)]
        if taken:
            self.came.append(" ".join(taken))
        answers: list[Outcome] = []
        for row, several in zip(rows.split(), covers, strict=True):
            new = Outcome(position=(), status=Status.NEW, reason=Reason.RETRY, unread=answer == "unread")
            if answer == "refused":
                new = Outcome(position=(), status=Status.ERROR, reason=Reason.REFUSED)
            answers += [replace(new, position=position) for position in several if row not in taken]
        return answers


class Scene:
    """An adopted log, and a publisher of it that may begin anew."""

    def __init__(self, engine: Engine) -> None:
        self.table: LogTable = installed(engine)
        self.log = Log(engine, self.table.names)
        self.lock = LogLock(self.log, 60.0)
        assert self.lock.take()
        self.receiver = Receiver()
        self.begin()

    def begin(self, *sizes: int) -> None:
        journal = Journal(self.log, self.lock, LogSettings(backoff=Backoff(first=0.001, longest=0.001)))
        journal.serve([("far", ())])
        output = Output(format=Sized(*sizes), sink=self.receiver, name="far")
        strictness = Strictness(on_error="halt", on_retry="object")
        settings = ConsumerSettings(limit=100, strictness=strictness, max_attempts=9)
        self.consumer = Consumer(journal, output, Decider(Round(options=Options())), settings)

    def write(self, number: int, name: str, column: str = "fname") -> None:
        self.table.write(number, key=f"idu={name}", column_name=column, new_value=f"{name}-{number}")

    def turn(self, times: int = 1) -> None:
        assert self.lock.tenure is not None
        for _ in range(times):
            self.consumer.turn(self.lock.tenure)

    def waits_at(self, table: str, due: int) -> None:
        self.table.run(f"UPDATE event_log_{table} SET due = {due} WHERE due IS NOT NULL")

    def statuses(self) -> set[str]:
        return {status for (status,) in self.table.ask("SELECT DISTINCT status FROM event_log")}


FAR = 4_000_000_000_000
"""A time that does not come."""


@pytest.fixture
def scene(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(selection, "EVERY_ROW_SECONDS", 0.0)
    return Scene(sqlite)


def planned(scene: Scene, *sizes: int) -> None:
    """Plan documents and kill their publisher, so they may be at the receiver."""
    scene.begin(*sizes)
    scene.receiver.answer = lambda _: "dies"
    with suppress(Killed):
        scene.turn()
    scene.begin()


def test_one_that_comes_again_and_another_of_its_number_get_an_answer(scene: Scene) -> None:
    scene.write(5, "a")
    scene.write(5, "b")
    planned(scene)
    scene.receiver.answer = lambda _: "" if "b5" in scene.receiver.offered else "again"
    scene.turn(50)
    assert scene.statuses() == {"S"}
    assert scene.receiver.came == ["b5", "a5", "b5"]


def test_what_was_sent_behind_one_that_comes_again_comes_again(scene: Scene) -> None:
    scene.write(2, "x")
    scene.write(5, "a")
    scene.write(5, "b")
    scene.write(9, "x")
    planned(scene, 2, 2)
    scene.receiver.answer = lambda _: "" if "b5 x9" in scene.receiver.offered else "x2"
    scene.turn(50)
    assert scene.statuses() == {"S"}
    assert scene.receiver.came == ["a5", "b5 x9", "x2", "a5", "b5", "x9"]


def test_no_document_waits_for_a_row_that_waits_behind_a_shared_number_for_it(scene: Scene) -> None:
    scene.write(10, "p")
    scene.write(100, "z")
    planned(scene, 2)
    scene.receiver.answer = lambda _: "unread"
    scene.turn()
    scene.waits_at("planned", FAR)
    scene.write(70, "a")
    scene.receiver.answer = lambda rows: "again" if rows == "a70" else ""
    scene.turn()
    scene.write(60, "p")
    scene.write(60, "c")
    scene.waits_at("parked", 0)
    scene.turn(10)
    assert scene.receiver.came == []
    scene.waits_at("planned", 0)
    scene.receiver.answer = lambda _: ""
    scene.turn(50)
    assert scene.statuses() == {"S"}
    assert scene.receiver.came == ["p10 z100", "c60", "p60", "a70"]


def test_a_shared_number_goes_before_documents_of_later_rows(scene: Scene) -> None:
    scene.write(20, "a")
    scene.write(20, "b")
    scene.write(23, "x")
    scene.write(26, "x")
    scene.write(27, "n")
    planned(scene, 1, 2, 2)
    scene.receiver.answer = lambda rows: "again" if "20" in rows else ""
    scene.turn()
    scene.write(21, "n")
    scene.write(21, "m")
    scene.waits_at("parked", FAR)
    scene.turn(5)
    scene.receiver.answer = lambda _: ""
    scene.waits_at("parked", 0)
    scene.turn(50)
    assert scene.statuses() == {"S"}
    assert scene.receiver.came == ["a20", "b20", "m21", "n21", "x23", "x26 n27"]


def test_two_numbers_that_come_again_leave_their_objects_in_order(scene: Scene) -> None:
    scene.write(7, "a")
    scene.write(7, "b")
    scene.write(8, "c")
    scene.write(8, "d")
    scene.write(18, "x")
    scene.write(19, "c", "sname")
    scene.write(20, "d", "sname")
    scene.write(23, "x")
    planned(scene, 1, 2, 1, 2)
    scene.receiver.answer = lambda _: "" if "b7 x18" in scene.receiver.offered else "again"
    scene.turn(50)
    assert scene.statuses() == {"S"}
    assert scene.receiver.came == ["b7 x18", "c8", "d8 x23", "a7", "b7", "x18", "c8", "d8", "x23"]


def test_none_is_sent_behind_one_without_an_answer(scene: Scene) -> None:
    scene.write(5, "a")
    scene.write(5, "b")
    scene.write(7, "x")
    scene.write(8, "b", "sname")
    scene.write(9, "x")
    planned(scene, 1, 1, 2)
    scene.receiver.offered.clear()
    scene.receiver.answer = lambda rows: "unread" if rows == "x7" else ""
    scene.turn()
    assert scene.receiver.offered == ["a5", "x7"]
    scene.waits_at("planned", 0)
    scene.receiver.answer = lambda _: ""
    scene.turn(50)
    assert scene.statuses() == {"S"}
    assert scene.receiver.came == ["a5", "a5", "x7", "b5 x9"]


def test_none_is_sent_behind_an_answer_that_ends_the_output(scene: Scene) -> None:
    scene.write(5, "a")
    scene.write(5, "b")
    planned(scene)
    scene.receiver.offered.clear()
    scene.receiver.answer = lambda _: "refused"
    scene.turn()
    assert scene.receiver.offered == ["a5"]


def test_what_was_sent_behind_one_that_comes_again_was_not_refused(scene: Scene) -> None:
    scene.write(5, "a")
    scene.write(5, "b")
    scene.write(9, "x")
    planned(scene, 1, 2)
    scene.table.run("UPDATE event_log_planned SET attempts = 8 WHERE place = 1")
    scene.receiver.answer = lambda _: "" if "b5 x9" in scene.receiver.offered else "again"
    scene.turn(50)
    assert scene.statuses() == {"S"}
