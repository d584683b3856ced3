"""One publisher a log: others stand by, take over when it ends or dies, and nobody settles without the lock."""

from __future__ import annotations

import datetime as dt
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.core.errors import EX_TRY_AGAIN, OccupiedError
from eventlog.core.model import Document, Outcome
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.output import Output
from eventlog.sinks.files import FileSink
from eventlog.sources.log.lock import LogLock
from eventlog.sql.log import Log
from eventlog.xds.write import XdsFormat
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import Process, config_of, in_thread, published, settled, site, until


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return site(engine)


def lock_of(log: LogTable, lease: float = 30.0) -> LogLock:
    return LogLock(Log(log.engine, log.names), lease)


def lease_of(log: LogTable) -> str:
    """Until when the lock is taken, as it stands in the mark."""
    [(value,)] = log.ask("SELECT value FROM event_log_mark WHERE name = 'publisher'")
    return str(value).partition(" ")[0]


def steal_lock(log: LogTable) -> None:
    """What another publisher writes when it sits down."""
    lease = (dt.datetime.now(tz=dt.UTC) + dt.timedelta(minutes=50)).isoformat(timespec="milliseconds")[:23]
    log.run(f"UPDATE event_log_mark SET value = '{lease} somebody:else' WHERE name = 'publisher'")


class Thief(FileSink):
    """A sink that takes so long that somebody else sits down meanwhile."""

    def __init__(self, log: LogTable, folder: Path) -> None:
        super().__init__(folder, ".xml")
        self.log = log

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        steal_lock(self.log)
        return super().commit(plan, documents)


def test_a_seat_is_taken_by_one_and_given_back(log: LogTable) -> None:
    first, second = lock_of(log), lock_of(log)
    assert [first.take(), second.take(), first.take()] == [True, False, True]
    first.leave()
    until(second.take, "the database has noticed that the session is over")
    with Log(log.engine, log.names).transaction() as connection:
        second.assure(connection)
        with pytest.raises(OccupiedError, match="Another publisher works on the event log event_log"):
            first.assure(connection)
    second.leave()
    assert log.ask("SELECT name FROM event_log_mark WHERE name = 'publisher'") == []


def test_a_lease_that_runs_out_frees_the_seat_and_one_that_is_renewed_does_not(sqlite: Engine) -> None:
    log = site(sqlite)
    dead, alive = lock_of(log, 0.5), lock_of(log, 3.0)
    assert dead.take()
    dead.drop()  # the process is gone: nobody renews
    until(alive.take, "the lease runs out")
    first = lease_of(log)
    until(lambda: lease_of(log) > first, "the lease is renewed")
    assert not lock_of(log).take()
    alive.leave()


def test_one_who_has_lost_the_seat_settles_nothing_and_takes_no_more(log: LogTable, tmp_path: Path) -> None:
    log.write_all([1, 2])
    outputs = [Output(format=XdsFormat(), sink=Thief(log, tmp_path))]
    with Publisher(config_of(log.engine, tmp_path / "out"), outputs=outputs) as publisher:
        with pytest.raises(OccupiedError):
            publisher.run_once()
        assert log.statuses() == {1: "N", 2: "N"}
        with pytest.raises(OccupiedError):
            publisher.run_once()


def test_a_second_publisher_waits_and_takes_over(log: LogTable, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with in_thread(Publisher(config_of(log.engine, out))) as first:
        until(lambda: first.post.taken, "the first one sits")
        with Process(log.engine, out) as second:
            second.wait_for("standing_by")
            log.write(1)
            until(settled(log, 1), "the first one publishes")
            first.stop()
            until(lambda: first.vitals.reading().state == "stopping", "the first one ends")
            first.close()
            second.wait_for("seat_taken")
            log.write(2, key="idu=2")
            until(settled(log, 2), "the second one publishes")
            assert second.stop() == 0
    assert list(published(out).values()) == [["1"], ["2"]]


def test_a_standby_takes_over_within_seconds_from_one_that_was_killed(log: LogTable, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Process(log.engine, out) as first:
        first.wait_for("seat_taken")
        with in_thread(Publisher(config_of(log.engine, out))) as second:
            until(lambda: second.vitals.reading().state == "standby", "the second one stands by")
            first.tell(signal.SIGKILL)
            first.end()
            killed = time.monotonic()
            log.write(1)
            until(settled(log, 1), "the second one publishes")
            assert time.monotonic() - killed < 60
    assert list(published(out).values()) == [["1"]]


def test_one_cycle_is_refused_while_somebody_else_publishes(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    other = lock_of(log)
    assert other.take()
    with Process(sqlite, tmp_path / "out", "--once", lease=0.5) as process:
        assert process.end() == EX_TRY_AGAIN
    last = process.journal[-1]
    assert (last["action"], last["exit_code"]) == ("fatal", EX_TRY_AGAIN)
    assert "Another publisher works on the event log" in last["error"]
    other.leave()


def test_a_publisher_whose_sessions_are_cut_goes_on_and_nobody_takes_its_place(
    postgresql: Engine, tmp_path: Path
) -> None:
    log = site(postgresql)
    out = tmp_path / "out"
    with in_thread(Publisher(config_of(postgresql, out, lease=60.0))) as first:
        until(lambda: first.post.taken, "the first one has the lock")
        with in_thread(Publisher(config_of(postgresql, out))) as second:
            until(lambda: second.vitals.reading().state == "standby", "the second one stands by")
            for number in range(1, 4):
                cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                with postgresql.begin() as connection:
                    connection.execute(text(f"{cut} AND datname = current_database()"))
                log.write(number, key=f"idu={number}")
                until(settled(log, number), "it is published")
            assert second.vitals.reading().rows == {}
    assert list(published(out).values()) == [["1"], ["2"], ["3"]]


@pytest.mark.parametrize("seconds, free", [(-1, True), (3500, False), (3700, True)])
def test_a_lease_that_no_lease_lasts_for_was_given_before_the_clock_was_set_back(
    sqlite: Engine, seconds: int, free: bool
) -> None:
    log = site(sqlite)
    end = (dt.datetime.now(tz=dt.UTC) + dt.timedelta(seconds=seconds)).isoformat(timespec="milliseconds")[:23]
    log.run(f"INSERT INTO event_log_mark (name, value) VALUES ('publisher', '{end} somebody:else')")
    lock = lock_of(log)
    assert lock.take() is free
    lock.leave()
