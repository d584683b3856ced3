"""What every source must do, run on the log table of each database: order, limits, batches in hand, exact marks."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.core.errors import InstallError
from eventlog.core.model import Event, Outcome, Reason, Status
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.names import LogNames
from tests.conformance.event_logs import LogTable, installed, make_log
from tests.support.log_rows import LogRows, TakenRows


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return installed(engine)


@pytest.fixture
def source(log: LogTable) -> LogRows:
    return LogRows(log.engine, log.names)


def numbers(batch: TakenRows) -> list[int]:
    return [event.position[0] for event in batch.events]


def outcomes(batch: TakenRows, status: Status = Status.SUCCESS) -> list[Outcome]:
    return [Outcome(position=event.position, status=status) for event in batch.events]


def test_rows_become_events_as_they_are(log: LogTable, source: LogRows) -> None:
    log.write(7, key="idu= 1", event_type=2, old_value="a", new_value="", perpetrator="idm")
    log.write(8, event_type=None, event_time=None, table_name=None, column_name=None, new_value=None)
    first, second = source.read(10).events
    assert first == Event(
        position=(7,),
        kind=2,
        table="usr",
        key="idu= 1",
        column="fname",
        old="a",
        new="",
        time="2025-03-23 10:57:19",
        perpetrator="idm",
    )
    assert second == Event(position=(8,), kind=None, table=None, key="idu=1")


def test_only_the_capital_letter_n_is_read_and_all_others_are_left_alone(log: LogTable, source: LogRows) -> None:
    for number, status in enumerate(["n", "N ", " N", "X", "N", "S", None, ""], start=1):
        log.write(number, status=status)
    before = log.statuses()
    batch = source.read(0)
    assert numbers(batch) == [5]
    source.settle(batch, outcomes(batch))
    assert log.statuses() == {**before, 5: "S"}


def test_the_last_object_is_never_cut_in_two(log: LogTable, source: LogRows) -> None:
    for number, key in [(60, "idu=1"), (61, "idu=2"), (62, "idu= 2"), (63, "idu=1")]:
        log.write(number, key=key)
    batch = source.read(2)
    assert numbers(batch) == [60, 61, 62]
    source.settle(batch, outcomes(batch))
    assert numbers(source.read(2)) == [63]


@pytest.mark.parametrize("count", [31, 32, 33, 34, 200])
def test_an_object_of_any_length_comes_whole(log: LogTable, source: LogRows, count: int) -> None:
    log.write_all(range(1, count + 1))
    log.write(count + 1, key="idu=2")
    assert len(source.read(1).events) == count


def test_rows_that_name_no_object_are_not_drawn_together(log: LogTable, source: LogRows) -> None:
    log.write(1, key="no key")
    log.write(2, key="no key")
    assert numbers(source.read(1)) == [1]


@pytest.mark.parametrize("step", [1, 2])
def test_rows_committed_late_are_never_marked_with_a_former_batch(log: LogTable, source: LogRows, step: int) -> None:
    log.write_all(range(1000, 1200, step))
    batch = source.read(0)
    late = [10, *range(1001, 1200, 2), 1500] if step == 2 else [999, 1200]
    log.write_all(late)
    source.settle(batch, outcomes(batch))
    assert {number for number, status in log.statuses().items() if status == "N"} == set(late)
    assert numbers(source.read(0)) == late


@pytest.mark.parametrize("delete", [False, True])
def test_settling_touches_only_rows_that_are_still_new(log: LogTable, delete: bool) -> None:
    source = LogRows(log.engine, log.names, settings=LogSettings(delete_from_log=delete))
    log.write_all(range(1, 101))
    batch = source.read(0)
    log.run("UPDATE event_log SET status = 'X' WHERE record_id IN (5, 50)")
    superseded = [Outcome(position=event.position, reason=Reason.SUPERSEDED, note="by 7") for event in batch.events]
    source.settle(batch, superseded)
    left = {number: status for number, status in log.statuses().items() if status != "S"}
    assert left == {5: "X", 50: "X"}
    # No reason outlives its row.
    assert len(log.outcomes()) == (0 if delete else 98)


def test_with_delete_from_log_errors_stay(log: LogTable) -> None:
    source = LogRows(log.engine, log.names, settings=LogSettings(delete_from_log=True))
    log.write_all([1, 2, 3, 4, 5])
    batch = source.read(0)
    statuses = [Status.SUCCESS, Status.WARNING, Status.ERROR, Status.FATAL, Status.NEW]
    source.settle(
        batch,
        [Outcome(position=event.position, status=s) for event, s in zip(batch.events, statuses, strict=True)],
    )
    assert log.statuses() == {3: "E", 4: "F", 5: "N"}


def test_reasons_are_recorded_where_the_letter_says_too_little(log: LogTable, source: LogRows) -> None:
    log.write_all([1, 2, 3, 4])
    batch = source.read(0)
    source.settle(
        batch,
        [
            Outcome(position=(1,)),
            Outcome(position=(2,), reason=Reason.SUPERSEDED, winner=(1,)),
            Outcome(position=(3,), status=Status.ERROR, reason=Reason.INVALID, note="bad \0 key \ud800"),
            Outcome(position=(4,), status=Status.WARNING, note="the receiver's words"),
        ],
    )
    assert log.outcomes() == {
        2: ("S", "superseded", "superseded by 1"),
        3: ("E", "invalid", "bad \\0 key \\ud800"),
        4: ("W", "published", "the receiver's words"),
    }


def test_future_events_come_by_time_when_the_database_says_so(log: LogTable) -> None:
    source = LogRows(log.engine, log.names, settings=LogSettings(handle_future_events=True))
    log.write(1, event_time="2025-01-03 00:00:00")
    log.write(2, event_time="2999-01-01 00:00:00")
    log.write(3, event_time="2025-01-01 00:00:00.5")
    log.write(4, event_time=None)
    log.write(5, event_time="2025-01-01 00:00:00.25")
    batch = source.read(0)
    assert numbers(batch) == [4, 5, 3, 1]
    source.settle(batch, outcomes(batch))
    assert log.statuses()[2] == "N"
    assert numbers(source.read(0)) == []


def test_a_log_that_lacks_a_column_is_named_with_the_column(engine: Engine) -> None:
    log = LogTable(engine)
    installed(engine)
    log.run("ALTER TABLE event_log DROP COLUMN old_value")
    with pytest.raises(InstallError, match="event_log has no column old_value"):
        LogRows(engine, log.names)


def test_without_a_log_the_way_out_is_named(engine: Engine) -> None:
    with pytest.raises(InstallError, match=r"no event log event_log .*eventlog install"):
        LogRows(engine, LogNames())


def test_without_companions_the_way_out_is_named(engine: Engine) -> None:
    make_log(engine)
    with pytest.raises(InstallError, match=r"event_log_setup beside the event log.*eventlog install"):
        LogRows(engine, LogNames())


def test_another_clock_can_be_configured(log: LogTable) -> None:
    settings = LogSettings(handle_future_events=True)
    log.write(1, event_time="2999-12-31 23:59:59")
    log.write(2, event_time="3000-01-01 00:00:00")
    clock = "(SELECT min(event_time) FROM event_log)"
    assert numbers(LogRows(log.engine, log.names, settings=settings, clock=clock).read(0)) == [1]
