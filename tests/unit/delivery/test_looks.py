"""Tables are looked at anew because of a row that names something unknown, and not again and again because of its like."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eventlog.core.model import Event, Outcome, Outcomes, Reason, Status
from eventlog.delivery import read_ahead
from eventlog.delivery.read_ahead import AGAIN_SECONDS, Looks, ReadAhead, causes_of
from tests.support.memory import MemorySink, event, inserts
from tests.unit.delivery.test_read_ahead import Queue, relay


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(read_ahead, "monotonic", clock)
    return clock


def test_a_look_holds_for_a_while_and_for_what_caused_it(clock: Clock) -> None:
    found = Looks()
    cause, other = ("usr", "nick"), ("grp", None)
    assert not found.cover({cause})
    found.note({cause})
    assert found.cover({cause})
    assert not found.cover({cause, other})
    assert not found.cover(set()), "nothing is wrong, so there is nothing to forgive"
    clock.now += AGAIN_SECONDS
    assert not found.cover({cause})
    found.note({other})
    assert found.cover({other})
    assert not found.cover({cause})


def test_a_look_for_one_cause_forgets_no_other(clock: Clock) -> None:
    found = Looks()
    found.note({("usr", "nick")})
    clock.now += 1
    found.note({("grp", None)})
    assert found.cover({("usr", "nick"), ("grp", None)})


def test_only_what_cannot_be_read_is_a_cause() -> None:
    events = [event(1), event(2, column="nick"), event(3, key="idu")]
    invalid = Outcome(position=(2,), status=Status.ERROR, reason=Reason.INVALID)
    refused = Outcome(position=(3,), status=Status.ERROR, reason=Reason.REFUSED)
    outcomes = Outcomes([(1,), (2,), (3,)], {(2,): invalid, (3,): refused})
    assert causes_of(events, outcomes) == {("usr", "nick")}
    assert causes_of(events, Outcomes([(1,)], {})) == frozenset()


def test_batch_after_batch_of_bad_rows_asks_for_one_look(clock: Clock) -> None:
    bad = [
        Event(position=(number,), kind=1, table="nowhere", key="a=1", column="b", time="2026-01-01")
        for number in range(3, 11)
    ]
    source = Queue([], [*inserts(2), *bad])
    runner = relay(source, MemorySink([]))
    stale = []
    for _ in range(6):
        report = runner.go_round(ahead=True)
        stale.append(report.stale)
        if report.stale:  # as the publisher does: the tables are looked at, and another relay follows this one
            runner.forget()
            runner = ReadAhead(replace(runner.pipeline, fresh=True), runner)
    assert stale == [False, True, False, False, False, False]
    assert source.waiting == []
