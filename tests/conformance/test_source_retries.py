"""What a log source does with rows that their receiver did not take, in each database: attempts, waiting, order."""

from __future__ import annotations

from typing import Literal

import pytest
from sqlalchemy import Engine

from eventlog.core.backoff import Backoff
from eventlog.core.model import Outcome, Reason, Status
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Batch
from eventlog.sources.log.source import LogSettings, LogSource
from tests.conformance.event_logs import LogTable, installed

HOUR = Backoff(first=3600, longest=3600)
KEPT = {"kept": '{"done":"1"}'}
"""A note for the rows that stay: the first one is at an output already."""
AT_ONCE = Backoff(first=0, longest=0)
COLUMNS = (Column(name="a", type="integer", key=1), Column(name="b", type="integer", key=2), Column(name="fname"))
CATALOG = Catalog([Table(name="usr", columns=COLUMNS)])


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return installed(engine)


def source_of(log: LogTable, settings: LogSettings) -> LogSource:
    return LogSource(log.engine, log.names, CATALOG, settings)


def numbers(batch: Batch) -> list[int]:
    return [event.position[0] for event in batch.events]


def refused(number: int, note: str = "busy") -> Outcome:
    return Outcome(position=(number,), status=Status.NEW, reason=Reason.RETRY, note=note)


def behind(number: int) -> Outcome:
    return Outcome(position=(number,), status=Status.NEW, reason=Reason.HELD)


def settle_with(source: LogSource, batch: Batch, *special: Outcome) -> None:
    """Settles the batch: these outcomes, and success for everything else."""
    known = {outcome.position: outcome for outcome in special}
    outcomes = [known.get(event.position, Outcome(position=event.position)) for event in batch.events]
    source.settle(batch, outcomes, KEPT if special else None)


def make_due(log: LogTable) -> None:
    log.run("UPDATE event_log_outcome SET next_attempt = '2000-01-01 00:00:00' WHERE next_attempt IS NOT NULL")


def test_attempts_are_counted_until_the_row_is_taken(log: LogTable) -> None:
    source = source_of(log, LogSettings(backoff=AT_ONCE))
    log.write(1)
    for attempt in (1, 2):
        batch = source.read(0)
        assert dict(batch.attempts) == ({(1,): attempt - 1} if attempt > 1 else {})
        settle_with(source, batch, refused(1, f"busy {attempt}"))
        assert log.statuses() == {1: "N"}
        assert log.outcomes() == {1: ("N", "retry", f"busy {attempt}", attempt)}
    settle_with(source, source.read(0))
    assert log.outcomes() == {1: ("S", "published", None, 2)}
    assert log.ask("SELECT next_attempt FROM event_log_outcome") == [(None,)]
    assert log.ask("SELECT name FROM event_log_mark WHERE name IN ('in hand', 'retried') OR name LIKE 'note%'") == []


def test_stopping_holds_everything_until_the_rest_of_the_batch_is_taken(log: LogTable) -> None:
    source = source_of(log, LogSettings(backoff=HOUR))
    for number in (1, 2, 3):
        log.write(number, key=f"a={number}+b=1")
    settle_with(source, source.read(0), refused(2), behind(3))
    log.write(4, key="a=4+b=1")
    assert log.statuses() == {1: "S", 2: "N", 3: "N", 4: "N"}
    waiting = source.read(0)
    assert numbers(waiting) == []
    assert waiting.later is not None
    assert 1700 < waiting.later <= 3600
    make_due(log)
    batch = LogSource(log.engine, log.names, CATALOG).read(0)
    assert (numbers(batch), batch.repeated) == ([2, 3], True)
    assert dict(batch.notes) == KEPT
    settle_with(source, batch)
    assert numbers(source.read(0)) == [4]


def test_by_object_only_the_objects_own_rows_wait_and_none_overtakes(log: LogTable) -> None:
    source = source_of(log, LogSettings(backoff=HOUR, on_retry="object"))
    log.write(1, key="a=1+b=2")
    log.write(2, key="a=2+b=2")
    settle_with(source, source.read(0), refused(1))
    log.write(3, key="a=1+b=2")
    log.write(4, key="b=2+A= 1")
    log.write(5, key="a=3+b=3")
    batch = source.read(1)
    assert numbers(batch) == [5]
    assert batch.later is not None
    settle_with(source, batch)
    assert numbers(source.read(0)) == []
    make_due(log)
    assert numbers(source.read(0)) == [1, 3, 4]


def test_by_object_a_batch_is_filled_past_the_rows_that_wait(log: LogTable) -> None:
    source = source_of(log, LogSettings(backoff=HOUR, on_retry="object"))
    log.write(1, key="a=1+b=2")
    settle_with(source, source.read(0), refused(1))
    log.write_all(range(2, 202), key="b=2+a=1")
    log.write(300, key="a=9+b=9")
    assert numbers(source.read(1)) == [300]


def test_a_row_that_somebody_settled_meanwhile_holds_nobody_up(log: LogTable) -> None:
    source = source_of(log, LogSettings(backoff=HOUR, on_retry="object"))
    log.write(1, key="a=1+b=2")
    settle_with(source, source.read(0), refused(1))
    log.write(2, key="a=1+b=2")
    log.run("UPDATE event_log SET status = 'X' WHERE record_id = 1")
    batch = source.read(0)
    assert (numbers(batch), batch.later, dict(batch.notes)) == ([2], None, {})
    settle_with(source, batch)
    assert log.ask("SELECT name FROM event_log_mark WHERE name IN ('in hand', 'retried') OR name LIKE 'note%'") == []


def test_waits_grow_from_attempt_to_attempt(log: LogTable) -> None:
    source = source_of(log, LogSettings(backoff=Backoff(first=100, longest=300)))
    log.write(1)
    waits = []
    for _ in range(3):
        settle_with(source, source.read(0), refused(1))
        later = source.read(0).later
        assert later is not None
        waits.append(later)
        make_due(log)
    assert 45 < waits[0] <= 100 < 2 * waits[1] <= 400
    assert 145 < waits[2] <= 300


def test_notes_come_back_with_the_batch_and_go_with_it(log: LogTable) -> None:
    source = source_of(log, LogSettings())
    log.write_all([1, 2])
    source.read(0)
    source.note({"files out": "a", "decided": "b"})
    source.note({"files out": "c"})
    batch = source_of(log, LogSettings()).read(0)
    assert (batch.repeated, dict(batch.notes)) == (True, {"files out": "c", "decided": "b"})
    settle_with(source, batch)
    log.write(3)
    assert dict(source.read(0).notes) == {}


def test_notes_go_when_all_that_was_in_hand_has_vanished(log: LogTable) -> None:
    source = source_of(log, LogSettings())
    log.write(1)
    source.read(0)
    source.note({"files out": '{"done":"1"}'})
    log.run("DELETE FROM event_log")
    log.write(2)
    batch = source.read(0)
    assert (numbers(batch), batch.repeated, dict(batch.notes)) == ([2], False, {})


@pytest.mark.parametrize("on_retry", ["stop", "object"])
def test_a_clock_that_was_set_back_delays_nobody_for_longer_than_the_longest_wait(
    log: LogTable, on_retry: Literal["stop", "object"]
) -> None:
    settings = LogSettings(backoff=Backoff(first=4000, longest=6000), on_retry=on_retry)
    log.write(1, key="a=1+b=1")
    source = source_of(log, LogSettings(backoff=Backoff(first=90_000, longest=90_000), on_retry=on_retry))
    settle_with(source, source.read(0), refused(1))
    batch = source_of(log, settings).read(0)
    assert numbers(batch) == []
    assert batch.later is not None
    assert 5000 < batch.later <= 6001
    assert source.read(0).later == pytest.approx(batch.later, abs=900)  # it stands in the database
    assert log.outcomes()[1] == ("N", "retry", "busy", 1)
