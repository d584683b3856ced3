"""Whether a log flows, on every database: waiting, held, retrying, suspended and not due are told apart, and the word follows."""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from eventlog.admin.check.log import log_points
from eventlog.admin.check.point import PointLevel
from eventlog.admin.rows import hold, release
from eventlog.admin.status import Facts, facts
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.backoff import Backoff
from eventlog.core.model import Outcome, Reason, Status
from eventlog.delivery.output import OutputState
from eventlog.sources.log.flow import TOLD_KEYS, Flow, WaitingParts, read_flow
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.source import LogSettings, LogSource
from eventlog.sources.marks import IN_HAND, OUTPUTS, UNREAD, Marks, as_text
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable

HOUR = Backoff(first=3600, longest=3600)


def now(seconds: float = 0.0) -> str:
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")


def flow(log: Log, **publisher: Any) -> Flow:
    with log.transaction() as connection:
        return read_flow(connection, log, PublisherConfig(**publisher))[0]


def published(log: Log) -> None:
    """Somebody has the lock from now on."""
    assert LogLock(log, 3600.0).take()


def seen(log: Log, **publisher: Any) -> Facts:
    return facts(log.engine, log.names, PublisherConfig(**publisher))


def complaints(log: Log, **publisher: Any) -> list[str]:
    """What `check` has against the rows."""
    config = Config(source=SourceConfig(url=str(log.engine.url)), publisher=PublisherConfig(**publisher))
    points = log_points(log.engine, log.names, config)
    return [point.said for point in points if point.name == "rows" and point.level is not PointLevel.OK]


def refuse(log: Log, on_retry: Literal["stop", "object"]) -> None:
    """The receiver does not take the first row of the log."""
    source = LogSource(log.engine, log.names, settings=LogSettings(backoff=HOUR, on_retry=on_retry))
    batch = source.read(1)
    retried = Outcome(position=batch.events[0].position, status=Status.NEW, reason=Reason.RETRY, note="busy")
    source.settle(batch, [retried, *(_behind(event.position) for event in batch.events[1:])])


def _behind(position: tuple[int, ...]) -> Outcome:
    return Outcome(position=position, status=Status.NEW, reason=Reason.HELD)


def test_an_old_row_that_nobody_fetches_is_stuck(table: LogTable, log: Log) -> None:
    table.write(1)
    assert flow(log).state == "stuck"
    published(log)
    found = flow(log)
    assert (found.state, found.oldest, found.parts) == ("stuck", 1, WaitingParts(ready=1))
    assert found.lag == found.ready_lag
    [said] = complaints(log)
    assert said.startswith("1 row waits; row 1 has waited for ")


def test_rows_that_come_and_go_flow_if_somebody_publishes_them(table: LogTable, log: Log) -> None:
    assert (flow(log).state, seen(log).state) == ("unpublished", "unpublished")
    table.write(1, event_time=now(-2))
    assert flow(log).state == "waiting"
    published(log)
    assert flow(log).state == "flowing"
    assert seen(log).state == "flowing"  # somebody writes rows, though no trigger of ours does
    table.run("UPDATE event_log SET status = 'S'")
    assert flow(log).state == "flowing"  # nobody has looked for triggers
    assert seen(log).state == "untracked"


def test_what_is_held_and_what_comes_behind_it_is_not_stuck(table: LogTable, log: Log) -> None:
    published(log)
    for number in (1, 2, 3):
        table.write(number)
    table.write(4, "idu=2", event_time=now(-2))
    hold(log, [(2, 2)])
    found = flow(log)
    assert found.parts == WaitingParts(ready=2, held=2)
    assert (found.state, found.oldest) == ("stuck", 1)  # it comes before the held one, and could go
    table.run("UPDATE event_log SET status = 'S' WHERE record_id = 1")
    found = flow(log)
    assert (found.state, found.parts, found.oldest, found.first_held) == ("held", WaitingParts(ready=1, held=2), 4, 2)
    assert found.lag is not None
    assert found.lag < 100
    assert complaints(log) == []
    told = seen(log)
    assert (told.state, told.oldest_waiting, told.backlog) == ("held", 4, found.parts)
    assert "2 rows are held or behind held ones; row 2 is the first." in list(told.sentences())
    table.run("UPDATE event_log SET status = 'S' WHERE record_id = 4")
    assert (flow(log).state, flow(log).lag, seen(log).lag_seconds) == ("held", 0.0, None)
    release(log, [(2, 2)])
    assert flow(log).state == "stuck"


def test_a_row_that_writes_a_held_object_in_another_way_is_behind_it_too(table: LogTable, log: Log) -> None:
    table.write(1)
    table.write(2, " idu= 1")
    table.write(3, "idu = 1", table_name="USR")
    hold(log, [(1, 1)])
    assert flow(log).parts == WaitingParts(held=3)


def test_many_objects_that_are_held_are_passed_over_here(
    table: LogTable, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.sources.log.flow.PAGE_ROWS", 7)
    count = TOLD_KEYS + 5
    for number in range(count):
        table.write(number, f"idu={number}")
        table.write(1000 + number, f"idu= {number}")
    hold(log, [(0, count - 1)])
    assert (flow(log).parts, flow(log).oldest) == (WaitingParts(held=2 * count), None)
    table.write(2000, "idu=2000")
    found = flow(log)
    assert (found.parts, found.oldest, found.state) == (WaitingParts(ready=1, held=2 * count), 2000, "stuck")


def test_a_held_row_whose_object_nobody_can_read_is_held(table: LogTable, log: Log) -> None:
    table.write(1, "idu=1+nothing at all", table_name=None)
    hold(log, [(1, 1)])
    assert flow(log).parts == WaitingParts(held=1)


def test_what_a_receiver_did_not_take_is_retried_and_not_stuck(table: LogTable, log: Log) -> None:
    table.write(1)
    table.write(2)
    table.write(3, "idu=2", event_time=now(-2))
    refuse(log, "object")
    published(log)
    found = flow(log, on_retry="object")
    assert (found.state, found.parts) == ("retrying", WaitingParts(ready=1, retrying=2))
    assert (found.oldest, found.is_late) == (1, True)  # the receiver is away for long, which nobody wants
    assert found.ready_lag is not None
    assert found.ready_lag < 100
    [said] = complaints(log, on_retry="object")
    assert said.startswith("3 rows wait because a receiver did not take a row; row 1 has waited for ")
    assert flow(log, on_retry="stop").parts == WaitingParts(retrying=3)
    table.run("UPDATE event_log SET event_time = '2025-03-23 10:57:19' WHERE record_id = 3")
    assert flow(log, on_retry="object").state == "stuck"
    assert flow(log, on_retry="stop").state == "retrying"


def test_an_output_that_fails_is_retried_while_somebody_publishes(table: LogTable, log: Log) -> None:
    table.write(1)
    wrong = {"out": OutputState(error="no route", failed_at=2.0, at=1.0)}
    with log.transaction() as connection:
        Marks(log).set(connection, IN_HAND, "1")
        Marks(log).set(connection, OUTPUTS, as_text(wrong))
    assert seen(log).state == "stuck"
    published(log)
    assert seen(log).state == "retrying"
    with log.transaction() as connection:
        Marks(log).set(connection, OUTPUTS, as_text({"out": replace(wrong["out"], at=3.0)}))
    assert seen(log).state == "stuck"


def test_rows_of_a_table_that_may_not_be_read_are_suspended(table: LogTable, log: Log) -> None:
    table.write(1, "idu=1", table_name="secret")
    table.write(2, event_time=now(-2))
    published(log)
    with log.transaction() as connection:
        Marks(log).set(connection, UNREAD, '{"secret":"permission denied"}')
    found = flow(log)
    assert (found.state, found.parts) == ("suspended", WaitingParts(ready=1, suspended=1))
    assert complaints(log) == []  # which table, and what to do, is said of the rights


def test_a_row_whose_time_has_not_come_waits_and_hides_no_other(table: LogTable, log: Log) -> None:
    published(log)
    table.write(1, event_time=now(90_000))
    found = flow(log, handle_future_events=True)
    assert (found.state, found.parts, found.lag) == ("waiting", WaitingParts(not_due=1), 0.0)
    assert complaints(log, handle_future_events=True) == []
    assert flow(log).state == "flowing"  # nobody looks at its time, and it is published at once
    table.write(2, "idu=2")
    found = flow(log, handle_future_events=True)
    assert (found.state, found.oldest, found.parts) == ("stuck", 2, WaitingParts(ready=1, not_due=1))


def test_what_is_late_is_told_by_how_often_rows_are_published(table: LogTable, log: Log) -> None:
    published(log)
    table.write(1, event_time=now(-3600))
    assert flow(log).state == "stuck"
    assert flow(log, polling_interval=600).state == "flowing"
    assert flow(log, time_of_day=("02:00",)).state == "flowing"
