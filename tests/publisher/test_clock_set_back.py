"""The database's clock goes back by hours: nothing waits longer than the longest wait, and nothing goes earlier."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import Engine

from eventlog.care.journal import hold, release
from eventlog.core.model import Outcome, Reason, Status
from eventlog.publisher import reader
from eventlog.publisher.journal import Journal
from eventlog.publisher.reader import JournalReader
from eventlog.publisher.table_faults import TableFaults
from tests.publisher.scene import Scene

TWO_HOURS = dt.timedelta(hours=2)
"""As Scene's longest wait is one hour, nothing that was due by the former clock is due within it."""


@pytest.fixture
def scene(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(reader, "CLOCK_SECONDS", 0.0)
    return Scene(engine, "one")


def set_clock(monkeypatch: pytest.MonkeyPatch, by: dt.timedelta) -> None:
    usual = JournalReader.moment
    monkeypatch.setattr(JournalReader, "moment", lambda journal: usual(journal) + by)


def begin_again(scene: Scene) -> None:
    """Go on in another process, which has seen no clock before."""
    scene.journal = Journal(scene.log, scene.lock, scene.journal.settings)
    scene.consumers.clear()
    scene.add("one")


@pytest.mark.parametrize("anew", [False, True], ids=["the same process", "a new one"])
def test_a_row_that_comes_again_waits_for_the_longest_wait_at_most(
    scene: Scene, anew: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = scene.receivers["one"]
    one.again = {2}
    scene.write(1, 3)
    scene.publish()
    assert scene.waiting() == [2]
    one.again.clear()
    scene.publish()
    assert scene.waiting() == [2], "it waits for its time"
    set_clock(monkeypatch, -TWO_HOURS)
    if anew:
        begin_again(scene)
    scene.publish()
    assert (scene.waiting(), scene.receivers["one"].came[-1]) == ([], 2)


def test_a_clock_that_goes_back_a_little_lets_nothing_go_early(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    one = scene.receivers["one"]
    one.again = {2}
    scene.write(1, 3)
    scene.publish()
    one.again.clear()
    monkeypatch.setattr(JournalReader, "delay", lambda *_: 0)
    set_clock(monkeypatch, -dt.timedelta(seconds=2))
    scene.publish()
    assert scene.waiting() == [2]


def test_documents_whose_answer_nobody_could_read_wait_no_longer(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    one = scene.receivers["one"]
    taken = one.commit

    def unread(_: object, documents: object) -> list[Outcome]:
        return [Outcome(position=(1,), status=Status.NEW, reason=Reason.RETRY, unread=True)]

    one.commit = unread  # type: ignore[method-assign,assignment]  # an answer that is cut off
    scene.write(1, 1)
    scene.publish()
    one.commit = taken  # type: ignore[method-assign]  # as it was
    scene.publish()
    assert scene.left().keys() == {"planned"}
    set_clock(monkeypatch, -TWO_HOURS)
    scene.publish()
    assert (scene.waiting(), scene.left(), one.came) == ([], {}, [1])


def test_a_table_that_could_not_be_read_is_tried_again_by_the_clock_as_it_is() -> None:
    faults = TableFaults(lambda _: 60_000)
    outcome = Outcome(position=(1,), status=Status.NEW, reason=Reason.NO_RIGHT, note="no")
    now, back = 10_000_000, 10_000_000 - 7_200_000
    faults.add("usr", outcome, now)
    faults.wait("one", ["usr"])
    assert faults.to_try("one", now) == []
    faults.bound_delays(back, back + 60_000)
    assert faults.to_try("one", back) == ["usr"]
    assert faults.list_untried(back) == {}


def test_a_held_row_waits_whatever_the_clock_is(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.write(1, 3)
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(2, 2)], "somebody")
    scene.publish()
    set_clock(monkeypatch, -TWO_HOURS)
    scene.publish()
    assert scene.waiting() == [2]
    with scene.log.transaction() as connection:
        release(connection, scene.log, [(2, 2)])
    scene.publish()
    assert (scene.waiting(), scene.left()) == ([], {})
