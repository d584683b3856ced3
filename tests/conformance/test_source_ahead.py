"""Reading ahead of what is handed out: only what cannot overtake anything, in every database that allows it."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.admin.rows import hold
from eventlog.core.model import Event, Outcome, Reason, Status
from eventlog.core.seams import Batch
from eventlog.sources.log.source import MISSING_NUMBERS, LogSettings, LogSource
from eventlog.sql.dialect import dialect_of
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return installed(engine)


def numbers(batch: Batch) -> list[int]:
    return [event.position[0] for event in batch.events]


def handed_out(*of: int) -> Batch:
    return Batch(events=[Event(position=(number,), kind=1, table="usr", key="idu=1") for number in of])


def expected(log: LogTable, *ahead: int) -> list[int]:
    """A database in a file is never read ahead: its one writer would only wait."""
    return [] if dialect_of(log.engine).embedded else list(ahead)


def test_what_comes_after_is_read_ahead(log: LogTable) -> None:
    source = LogSource(log.engine, log.names)
    for number in (5, 6, 8, 9, 10):
        log.write(number, key=f"idu={number}")
    assert numbers(source.read_ahead(2, [handed_out(5), handed_out(6)])) == expected(log, 8, 9)
    assert numbers(source.read_ahead(9, [handed_out(5, 8), handed_out(6)])) == expected(log, 9, 10)
    log.run("UPDATE event_log SET status = 'S' WHERE record_id = 5")  # settled meanwhile
    assert numbers(source.read_ahead(9, [handed_out(5, 6)])) == expected(log, 8, 9, 10)


@pytest.mark.parametrize("late", [3, 7])
def test_nothing_is_read_ahead_past_a_row_that_was_committed_late(log: LogTable, late: int) -> None:
    source = LogSource(log.engine, log.names)
    for number in (5, 8, 9, late):
        log.write(number, key="idu=1" if number in (9, late) else f"idu={number}")
    assert numbers(source.read_ahead(9, [handed_out(5, 8)])) == []
    log.run(f"INSERT INTO event_log_outcome (record_id, held) VALUES ({late}, 1)")
    assert numbers(source.read_ahead(9, [handed_out(5, 8)])) == expected(log, 9)


def test_reading_ahead_leaves_out_what_is_held_and_what_comes_after_it(log: LogTable) -> None:
    source, desk = LogSource(log.engine, log.names), Log(log.engine, log.names)
    for number, key in [(5, "idu=5"), (6, "idu=1"), (7, "idu=7"), (8, 'IDU="1"'), (9, "idu=9")]:
        log.write(number, key=key)
    assert hold(desk, [(6, 6)]) == 1
    assert numbers(source.read(1)) == [5]
    assert numbers(source.read_ahead(9, [handed_out(5)])) == expected(log, 7, 9)
    assert hold(desk, [(7, 7)]) == 1
    assert numbers(source.read_ahead(9, [handed_out(5)])) == [], "somebody held a row since the last reading"


def test_nothing_is_read_ahead_where_that_could_not_be_told(log: LogTable) -> None:
    future = LogSource(log.engine, log.names, settings=LogSettings(handle_future_events=True))
    source = LogSource(log.engine, log.names, settings=LogSettings(on_retry="object"))
    log.write(1)
    log.write(2 + MISSING_NUMBERS, key="idu=2")
    log.write(3 + MISSING_NUMBERS, key="idu=3")
    assert numbers(future.read_ahead(9, [handed_out(1)])) == []
    assert numbers(source.read_ahead(0, [handed_out(1)])) == []
    assert numbers(source.read_ahead(9, [handed_out(1, 3 + MISSING_NUMBERS)])) == []
    batch = source.read(1)
    source.settle(batch, [Outcome(position=(1,), status=Status.NEW, reason=Reason.RETRY)])
    source.read(1)
    assert numbers(source.read_ahead(9, [handed_out(2 + MISSING_NUMBERS)])) == []
