"""What may be at a receiver keeps its plan until the receiver has answered it, whatever becomes of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from time import sleep
from typing import Literal

import pytest
from sqlalchemy import Engine

from eventlog.care.journal import hold, release
from eventlog.core.backoff import Backoff
from eventlog.core.model import Document, Outcome, Reason, Status
from eventlog.core.rules import Options, Round
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider
from eventlog.publisher.journal import Journal
from eventlog.publisher.turn_report import ConsumerSettings, Turn
from eventlog.publisher.writing import JournalTransaction
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed
from tests.support.memory import OneEach, UnaskedSink

ROWS = 30
Stops = Literal["stop", "object"]


class Killed(BaseException):
    """The process dies."""


class Receiver(UnaskedSink):
    """Takes each document once, by its plan and id, as it may; what it has was not lost with a publisher."""

    def __init__(self) -> None:
        self.known: set[tuple[str, str]] = set()
        self.came: list[int] = []
        """The rows that it took, in order."""
        self.retries: Counter[int] = Counter()
        """How often it still wants which row again."""
        self.unread: Counter[int] = Counter()
        """How often nobody can read what it still answers for which row, which it does not take."""
        self.sent: Counter[int] = Counter()
        """How often each row was sent."""
        self.dies_after = 0
        self.is_publisher_dead = False

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        [document] = documents
        [row] = [position[0] for covered in document.covers.values() for position in covered]
        self.sent[row] += 1
        if self.unread[row]:
            self.unread[row] -= 1
            return [Outcome(position=(row,), status=Status.NEW, reason=Reason.RETRY, unread=True)]
        if self.retries[row]:
            self.retries[row] -= 1
            self.known.discard((plan, document.id))
            return [Outcome(position=(row,), status=Status.NEW, reason=Reason.RETRY)]
        if (plan, document.id) not in self.known:
            self.known.add((plan, document.id))
            self.came.append(row)
        if len(self.came) == self.dies_after:
            self.is_publisher_dead = True
            raise Killed
        return ()


class MortalJournal(Journal):
    """Nobody writes it any more whose process is dead."""

    receiver: Receiver

    @contextmanager
    def transaction(self, *, soon: bool = False) -> Iterator[JournalTransaction]:
        if self.receiver.is_publisher_dead:
            raise Killed
        with super().transaction(soon=soon) as joined:
            yield joined


class Process:
    """One publisher of a receiver: all that it has in memory."""

    def __init__(
        self, table: LogTable, receiver: Receiver, on_retry: Stops, *, seconds: float = 0.001, limit: int = 100
    ) -> None:
        log = Log(table.engine, table.names)
        self.lock = LogLock(log, 60.0)
        assert self.lock.take()
        self.journal = MortalJournal(log, self.lock, LogSettings(backoff=Backoff(first=seconds, longest=seconds)))
        self.journal.receiver = receiver
        self.journal.serve([("far", ())])
        output = Output(format=OneEach(), sink=receiver, name="far")
        settings = ConsumerSettings(limit=limit, strictness=Strictness(on_retry=on_retry))
        self.consumer = Consumer(self.journal, output, Decider(Round(options=Options())), settings)

    def turn(self) -> Turn:
        assert self.lock.tenure is not None
        return self.consumer.turn(self.lock.tenure)

    def publish(self) -> None:
        for _ in range(300):
            turn = self.turn()
            sleep(turn.later or 0)
            if not turn.moved and turn.later is None:
                return
        raise AssertionError("it never comes to rest")

    def die(self, table: LogTable) -> None:
        self.lock.drop()
        table.run("DELETE FROM event_log_mark WHERE name = 'publisher'")  # its lease has run out


@pytest.fixture
def table(sqlite: Engine) -> LogTable:
    return installed(sqlite)


def write(table: LogTable, rows: int, objects: int) -> None:
    for number in range(1, rows + 1):
        table.write(number, key=f"idu={number % objects}", new_value=f"value-{number}")


def killed(table: LogTable, receiver: Receiver, on_retry: Stops) -> Process:
    """Kill a publisher before it entered its last answer of 30, and start another."""
    receiver.dies_after = ROWS
    first = Process(table, receiver, on_retry)
    with suppress(Killed):
        first.publish()
    first.die(table)
    assert len(receiver.came) == ROWS
    receiver.dies_after, receiver.is_publisher_dead = 0, False
    return Process(table, receiver, on_retry)


@pytest.mark.parametrize("objects", [ROWS, 4])
@pytest.mark.parametrize("on_retry", ["stop", "object"])
def test_a_retry_in_a_repeat_doubles_nothing_that_is_behind_it(table: LogTable, on_retry: Stops, objects: int) -> None:
    write(table, ROWS, objects)
    receiver = Receiver()
    second = killed(table, receiver, on_retry)
    receiver.retries[10] = 3
    second.publish()
    assert set(table.statuses().values()) == {"S"}
    # What the receiver wanted again is all that came again.
    assert sorted(receiver.came) == sorted([*range(1, ROWS + 1), 10])
    second.die(table)


@pytest.mark.parametrize("objects", [ROWS, 4])
@pytest.mark.parametrize("on_retry", ["stop", "object"])
def test_a_retry_writes_no_body_anew_that_is_not_of_its_object(table: LogTable, on_retry: Stops, objects: int) -> None:
    write(table, ROWS, objects)
    receiver = Receiver()
    process = Process(table, receiver, on_retry)
    receiver.retries.update({3: 5, 10: 5, 20: 5})
    process.publish()
    assert set(table.statuses().values()) == {"S"}
    assert sorted(receiver.came) == [*range(1, ROWS + 1)]
    for first in range(objects):
        of_object = [number for number in receiver.came if number % objects == first]
        assert of_object == sorted(of_object)
    if on_retry == "stop" and objects == ROWS:
        assert receiver.came == sorted(receiver.came)
    # Each retry makes a plan, and the first look one; what it frees may take one more.
    assert table.ask("SELECT plans FROM event_log_output")[0][0] <= 1 + 2 * 15
    process.die(table)


def test_nobody_looks_in_vain_until_a_row_is_offered_again(table: LogTable) -> None:
    write(table, 5, 1)
    receiver = Receiver()
    process = Process(table, receiver, "stop", seconds=60.0)
    receiver.retries[1] = 1
    process.turn()
    turn = process.turn()
    assert not turn.moved
    assert turn.later is not None
    assert turn.later > 1
    process.die(table)


def test_many_rows_behind_an_unread_document_hold_up_no_other_object(table: LogTable) -> None:
    receiver = Receiver()
    receiver.unread[1] = 1
    process = Process(table, receiver, "object", seconds=600.0, limit=3)
    write(table, 1, 1)
    process.turn()
    assert not receiver.unread[1]
    for number in range(2, 31):
        table.write(number, key="idu=0")
    for _ in range(12):
        process.turn()
    table.write(31, key="idu=other")
    process.turn()
    assert receiver.came == [31]
    process.die(table)


def test_a_row_that_comes_again_behind_an_unread_document_holds_up_no_other_object(table: LogTable) -> None:
    """It frees its object for rows before that document alone, and here there are none."""
    receiver = Receiver()
    receiver.unread[1] = 1
    process = Process(table, receiver, "object", seconds=600.0, limit=3)
    write(table, 1, 1)
    process.turn()
    for number in range(2, 31):
        table.write(number, key="idu=0")
    for _ in range(12):
        process.turn()
    table.run("UPDATE event_log_parked SET reason = 'retry', attempts = 1 WHERE record_id = 2")
    table.write(31, key="idu=other")
    for _ in range(3):
        process.turn()
    assert receiver.came == [31]
    process.die(table)


def test_a_row_that_comes_again_goes_though_many_wait_for_a_document(table: LogTable) -> None:
    write(table, 12, 1)
    table.write(13, key="idu=other")
    receiver = Receiver()
    process = Process(table, receiver, "stop", limit=3)
    log = process.journal.log
    with log.transaction() as connection:
        hold(connection, log, [(1, 1)], "somebody")
    receiver.retries[13] = 1
    for _ in range(20):
        process.turn()
        if not receiver.retries[13]:
            break
    with log.transaction() as connection:
        release(connection, log, [(1, 1)])
    receiver.unread[1] = 1
    process.publish()
    assert sorted(receiver.came) == [*range(1, 14)]
    assert set(table.statuses().values()) == {"S"}
    process.die(table)


def test_a_document_waits_for_a_row_of_it_that_was_set_back_and_comes_again(table: LogTable) -> None:
    write(table, 2, 1)
    receiver = Receiver()
    receiver.dies_after = 2
    first = Process(table, receiver, "object")
    with suppress(Killed):
        first.publish()
    first.die(table)
    receiver.dies_after, receiver.is_publisher_dead = 0, False
    second = Process(table, receiver, "object")
    receiver.retries[1] = 1
    second.turn()
    table.run("UPDATE event_log SET status = 'X' WHERE record_id = 2")
    second.journal.sweep()
    table.run("UPDATE event_log SET status = 'N' WHERE record_id = 2")
    second.die(table)
    third = Process(table, receiver, "object", seconds=600.0)
    receiver.retries[2] = 1
    for _ in range(5):
        third.turn()
    assert not receiver.retries[2]
    assert receiver.sent[2] == 2
    third.die(table)
