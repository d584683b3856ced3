"""What the log notes of documents that are on their way outlives a hold: a receiver gets each change under one plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.admin.rows import hold, release
from eventlog.core.backoff import Backoff
from eventlog.core.model import Document, Kind, Outcome, ReadBack, Reason, RowId, Status, Unreadable
from eventlog.core.rules import Options
from eventlog.core.seams import SinkCapabilities
from eventlog.delivery import output as delivery
from eventlog.delivery.output import Output, Strictness
from eventlog.delivery.pipeline import Pipeline
from eventlog.sources.log.source import LogSettings, LogSource
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import site
from tests.support.memory import MemoryRows, OneEach, UnaskedSink, answer
from tests.support.strategies import CATALOG

BACK: dict[str, Any] = {"event_type": int(Kind.UPDATE_ROW_BACK), "column_name": None, "new_value": None}
ROW_1, ROW_2 = (RowId(None, "usr", f"idu={key}") for key in (1, 2))
JACK = MemoryRows({row: {"fname": "Jack"} for row in (ROW_1, ROW_2)})


class Killed(BaseException):
    """The end of a publisher, wherever it is."""


def killed(*_: object) -> None:
    raise Killed


class Receiver(UnaskedSink):
    """Remembers plans and ids. `took` are the events in what it took; it dies with the publisher after so many documents."""

    capabilities = SinkCapabilities()

    def __init__(self, answers: Mapping[int, Sequence[Status]] | None = None, lives: int = 99) -> None:
        self.took: list[list[int]] = []
        self.lives = lives
        self._answers = {number: list(several) for number, several in (answers or {}).items()}
        self._known: dict[tuple[str, str], list[Outcome]] = {}

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        return [outcome for document in documents for outcome in self._one(document, plan)]

    def _one(self, document: Document, plan: str) -> Iterable[Outcome]:
        known = self._known.get((plan, document.id))
        if known is None:
            positions = [position for several in document.covers.values() for position in several]
            said = [answer(position, self._next(position[0])) for position in positions if position[0] in self._answers]
            if any(outcome.status is Status.NEW for outcome in said):
                return said
            known = self._known[plan, document.id] = said
            self.took.append([number for (number,) in positions])
            self.lives -= 1
        if not self.lives:
            self.lives = 99
            raise Killed
        return known

    def _next(self, number: int) -> Status:
        left = self._answers[number]
        return left.pop(0) if len(left) > 1 else left[0]


class Unread:
    """Cannot read the first row."""

    def __init__(self, reason: Reason) -> None:
        self._one = Unreadable(note="not now", reason=reason)

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        return {row: self._one if row == ROW_1 else JACK.known[row] for row in wanted}


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return site(engine)


def publisher(log: LogTable, *receivers: Receiver, limit: int = 100, by_object: bool = False) -> Pipeline:
    """One that was started just now, and knows nothing but what the log says."""
    settings = LogSettings(on_retry="object" if by_object else "stop", backoff=Backoff(first=0, longest=0))
    return Pipeline(
        source=LogSource(log.engine, log.names, settings=settings),
        reader=JACK,
        catalog=CATALOG,
        outputs=[
            Output(format=OneEach(), sink=receiver, name=f"out {number}", answers=True)
            for number, receiver in enumerate(receivers)
        ],
        options=Options(),
        limit=limit,
        strictness=Strictness(on_retry=settings.on_retry),
    )


def until_all_is_settled(pipeline: Pipeline) -> None:
    while pipeline.go_round().events:
        pass


def die(pipeline: Pipeline) -> None:
    with pytest.raises(Killed):
        pipeline.go_round()


def held(log: LogTable, number: int) -> Iterator[None]:
    """A row is held, and released when this goes on."""
    care = Log(log.engine, log.names)
    hold(care, [(number, number)])
    yield
    release(care, [(number, number)])
    yield


@pytest.mark.parametrize("rows_between", [0, 1])
def test_a_row_that_is_held_and_released_after_its_document_was_taken_does_not_come_again(
    log: LogTable, rows_between: int
) -> None:
    receiver = Receiver(lives=2)
    for number in (1, 2):
        log.write(number, key=f"idu={number}")
    die(publisher(log, receiver))
    hold_of_2 = held(log, 2)
    next(hold_of_2)
    until_all_is_settled(publisher(log, receiver))
    assert log.statuses() == {1: "S", 2: "N"}
    for number in range(rows_between):
        log.write(9 + number, key="idu=9")
        until_all_is_settled(publisher(log, receiver))
    next(hold_of_2)
    until_all_is_settled(publisher(log, receiver))
    assert receiver.took == [[1], [2], *[[9 + number] for number in range(rows_between)]]
    assert set(log.statuses().values()) == {"S"}
    assert [name for (name,) in log.ask("SELECT name FROM event_log_mark WHERE name LIKE 'note: %'")] == []


@pytest.mark.parametrize("number", [1, 2])
def test_rows_of_a_document_that_was_taken_wait_together_whichever_of_them_is_held(log: LogTable, number: int) -> None:
    """What is left of it would come under its name, and the row that was held once more after its release."""
    receiver = Receiver(lives=1)
    log.write(1)
    log.write(2, column_name="lname")
    die(publisher(log, receiver))
    assert receiver.took == [[1, 2]]
    hold_of_it = held(log, number)
    next(hold_of_it)
    until_all_is_settled(publisher(log, receiver))
    assert log.statuses() == {1: "N", 2: "N"}
    next(hold_of_it)
    until_all_is_settled(publisher(log, receiver))
    assert receiver.took == [[1, 2]]
    assert log.statuses() == {1: "S", 2: "S"}


@pytest.mark.parametrize("others", [False, True])
def test_what_a_held_row_has_superseded_waits_with_it_once_its_document_may_be_there(
    log: LogTable, *, others: bool
) -> None:
    receiver = Receiver(lives=1)
    log.write(1, **BACK)
    log.write(2, **BACK)
    die(publisher(log, receiver))
    assert receiver.took == [[2]]
    hold_of_2 = held(log, 2)
    next(hold_of_2)
    if others:
        log.write(3, key="idu=2", **BACK)
        log.write(4, key="idu=2", **BACK)
    until_all_is_settled(publisher(log, receiver))
    next(hold_of_2)
    until_all_is_settled(publisher(log, receiver))
    assert receiver.took == [[2], [4]][: 1 + others]
    assert set(log.statuses().values()) == {"S"}
    assert log.outcomes()[1][1] == "superseded"


def test_what_had_vanished_before_it_was_held_is_not_published_behind_its_end(log: LogTable) -> None:
    """The end of the object was taken; by the time of the release somebody has inserted it again."""
    receiver = Receiver(lives=1)
    log.write(1, **BACK | {"event_type": int(Kind.INSERT_ROW_BACK)})
    log.write(2, event_type=int(Kind.DELETE_ROW), column_name=None, new_value=None)
    die(publisher(log, receiver))
    assert receiver.took == [[2]]
    hold_of_1 = held(log, 1)
    next(hold_of_1)
    log.write(3, key="idu=2")
    until_all_is_settled(publisher(log, receiver))
    assert log.statuses() == {1: "N", 2: "N", 3: "S"}
    next(hold_of_1)
    until_all_is_settled(publisher(log, receiver))
    assert receiver.took == [[2], [3]]
    assert log.statuses() == {1: "W", 2: "S", 3: "S"}


def test_what_a_receiver_said_of_a_row_is_not_forgotten_while_it_is_held(
    log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver = Receiver({2: [Status.ERROR]})
    for number in (1, 2, 3):
        log.write(number, key=f"idu={number}")
    pipeline = publisher(log, receiver)
    monkeypatch.setattr(pipeline.source, "settle", killed)
    monkeypatch.setattr(delivery, "ANSWERED_DOCUMENTS", 1)  # so that what was said of one is noted before the next
    die(pipeline)
    hold_of_2 = held(log, 2)
    next(hold_of_2)
    until_all_is_settled(publisher(log, receiver))
    next(hold_of_2)
    until_all_is_settled(publisher(log, receiver))
    assert receiver.took == [[1], [2], [3]]
    assert log.statuses() == {1: "S", 2: "E", 3: "S"}


def test_an_output_that_has_a_change_does_not_get_it_again_because_another_one_wants_the_change_before_it_later(
    log: LogTable,
) -> None:
    """The second comes in a batch of its own, after the first was settled."""
    one, other = Receiver(), Receiver({1: [Status.NEW, Status.SUCCESS]})
    log.write_all([1, 3])
    publisher(log, one, other, by_object=True).go_round()
    assert log.statuses() == {1: "N", 3: "N"}
    log.write(2, key="idu=2")
    until_all_is_settled(publisher(log, one, other, limit=1, by_object=True))
    assert one.took == [[1], [3], [2]]
    assert other.took == [[1], [2], [3]]


@pytest.mark.parametrize("reason", [Reason.NO_RIGHT, Reason.NO_ROOM])
def test_a_row_that_cannot_be_read_back_after_its_document_was_taken_comes_again_under_its_plan(
    log: LogTable, reason: Reason
) -> None:
    receiver = Receiver(lives=2)
    for number in (1, 2):
        log.write(number, key=f"idu={number}", **BACK)
    die(publisher(log, receiver))
    replace(publisher(log, receiver), reader=Unread(reason)).go_round()
    assert log.statuses() == {1: "N", 2: "S"}
    until_all_is_settled(publisher(log, receiver))
    assert log.statuses() == {1: "S", 2: "S"}
    assert receiver.took == [[1], [2]]
