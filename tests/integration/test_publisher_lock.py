"""The lock of a log is a lease that says who has it: taken from the dead at once, given an epoch, checked before writes."""

from __future__ import annotations

import datetime as dt
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from eventlog.core.errors import OccupiedError, SourceError
from eventlog.core.model import Document, Outcome
from eventlog.core.seams import Tenure
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.output import Output
from eventlog.sinks.files import FileSink
from eventlog.sources.log import lock as locks
from eventlog.sources.log.lock import LogLock, read_holder
from eventlog.sql.connect import address_of, read_url
from eventlog.sql.log import Log
from eventlog.xds.write import XdsFormat
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import Process, config_of, finished, site, until


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return site(engine)


def lock_of(log: LogTable, lease: float = 30.0) -> LogLock:
    return LogLock(Log(log.engine, log.names), lease)


def mark_of(log: LogTable, name: str = "publisher") -> str:
    [(value,)] = log.ask(f"SELECT value FROM event_log_mark WHERE name = '{name}'")
    return str(value)


def taken(lock: LogLock) -> Tenure:
    assert lock.take()
    assert lock.tenure is not None
    return lock.tenure


def lose(log: LogTable, until: str = "2099-01-01T00:00:00.000") -> None:
    """What another publisher writes when it takes the lock."""
    log.run(f"UPDATE event_log_mark SET value = '{until} another' WHERE name = 'publisher'")


def test_each_taking_has_a_higher_epoch_and_the_log_stays_the_same(log: LogTable) -> None:
    tenures = []
    for lock in (lock_of(log), lock_of(log), lock_of(log)):
        assert not lock.taken
        tenures.append(taken(lock))
        assert mark_of(log, "epoch") == str(tenures[-1].epoch)
        lock.leave()
    epochs = [tenure.epoch for tenure in tenures]
    assert epochs == sorted(set(epochs))
    assert abs(epochs[0] / 1000 - time.time()) < 3600, "it begins with the time in milliseconds"
    assert len({tenure.log for tenure in tenures}) == 1
    assert str(UUID(tenures[0].log)) == tenures[0].log
    assert tenures[0].name.startswith(f"event_log in {log.engine.url.get_backend_name()}:")
    assert log.ask("SELECT name FROM event_log_mark WHERE name = 'publisher'") == []


def test_who_enters_where_somebody_has_deleted_the_mark_of_holds_begins_anew(log: LogTable) -> None:
    lock = lock_of(log)
    taken(lock)
    with lock.log.transaction() as connection:
        before = mark_of(log, "holding"), mark_of(log, "written")
        assert lock.enter(connection, soon=False, written="first") == before
    with lock.log.transaction() as connection:
        assert lock.enter(connection, soon=True, written="second") == (before[0], "first")
    log.run("DELETE FROM event_log_mark WHERE name = 'holding'")
    with lock.log.transaction() as connection, pytest.raises(OccupiedError):
        lock.enter(connection, soon=False, written="third")
    lock.drop()
    log.run("DELETE FROM event_log_mark WHERE name = 'publisher'")
    taken(lock)
    with lock.log.transaction() as connection:
        assert lock.enter(connection, soon=False, written="fourth")[0] == mark_of(log, "holding")
    lock.leave()


def test_a_place_is_told_without_whatever_may_be_a_secret() -> None:
    url = read_url("postgresql+psycopg://me:secret@db:5433/app?host=/run/pg&password=secret&options=secret")
    assert address_of(url) == "postgresql://db:5433/app?host=%2Frun%2Fpg"


def test_the_mark_says_who_has_the_lock(log: LogTable) -> None:
    lock = lock_of(log, 7.5)
    assert lock.take()
    holder = lock_of(log).look().holder
    assert holder is not None
    assert holder.claim is not None
    assert holder.claim == read_holder(mark_of(log)).claim
    assert holder.lease == 7.5
    assert holder.until is not None
    assert abs((holder.until - holder.claim.since).total_seconds() - 7.5) < 60
    lock.leave()


def test_who_has_slept_for_longer_than_a_lease_learns_that_before_it_writes(
    log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, before = lock_of(log, 3000.0), time.monotonic
    assert lock.take()
    monkeypatch.setattr(locks, "seconds_up", lambda: before() + 10**7)
    former = mark_of(log)
    lock.confirm_lease()  # nobody has taken it meanwhile
    assert mark_of(log) > former, "it is renewed"
    lose(log, mark_of(log).partition(" ")[0])
    monkeypatch.setattr(locks, "seconds_up", lambda: before() + 2 * 10**7)
    with pytest.raises(OccupiedError, match="Another publisher works on"):
        lock.confirm_lease()
    assert lock.tenure is None
    with pytest.raises(OccupiedError, match="Another publisher works on"):
        lock.take()  # what was begun may still be on its way
    lock.drop()
    assert not lock.take()


def test_who_learns_in_the_background_that_it_lost_the_lock_says_so_once_and_stands_by(log: LogTable) -> None:
    lock = lock_of(log, 0.6)
    assert lock.take()
    kept = lock._kept
    assert kept is not None
    lose(log)
    until(lambda: kept.lost, "it is told when it renews")
    with pytest.raises(OccupiedError):
        lock.confirm_lease()


def test_who_got_no_answer_when_it_took_the_lock_takes_it_at_once(
    log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, commit = lock_of(log, 3000.0), log.engine.dialect.do_commit
    sight = lock.look()

    def commit_without_answer(connection: Any) -> None:
        commit(connection)
        raise DBAPIError("COMMIT", None, Exception("the connection broke off"))

    monkeypatch.setattr(log.engine.dialect, "do_commit", commit_without_answer)
    with pytest.raises(SourceError):
        lock._enter(sight, lambda _: None)
    monkeypatch.undo()
    assert not lock.taken
    assert not lock_of(log).take(), "it is its own"
    assert lock.take()
    lock.leave()


def test_two_who_find_it_free_at_the_same_moment_do_not_both_get_it(log: LogTable) -> None:
    first, second = lock_of(log), lock_of(log)
    sights = [first.look(), second.look()]
    first._enter(sights[0], lambda _: None)
    second._enter(sights[1], lambda _: None)
    assert (first.taken, second.taken) == (True, False)
    sight = second.look()
    first.leave()
    second._enter(sight, lambda _: None)  # it saw a mark that is gone
    assert not second.taken
    assert second.take()
    second.leave()


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


def test_a_mark_that_nobody_renews_is_free_whatever_the_clock_says(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = site(sqlite)
    log.run(
        "INSERT INTO event_log_mark (name, value) VALUES ('publisher',"
        " strftime('%Y-%m-%dT%H:%M:%f', 'now', '3000 seconds') || ' [\"2026-01-01T00:00:00.000\",5,[\"other\",7],\"x\"]')"
    )
    assert read_holder(mark_of(log)).lease == 5.0
    lock, before = lock_of(log), time.monotonic
    assert not lock.take()
    monkeypatch.setattr(locks, "seconds_up", lambda: before() + 10**6)
    lock.look()
    monkeypatch.setattr(locks, "seconds_up", lambda: before() + 10**6 + 60)
    assert lock.take()
    lock.leave()


def test_after_a_crash_the_next_one_on_this_machine_does_not_wait_for_the_lease(engine: Engine, tmp_path: Path) -> None:
    log = site(engine)
    with Process(engine, tmp_path / "out", lease=3000.0) as first:
        first.wait_for("lock_taken")
        first.tell(signal.SIGKILL)
        first.end()
        log.write(1)
        with Process(engine, tmp_path / "out", "--until-empty", lease=3000.0) as second:
            assert second.end() == 0
    assert finished(log, 1)()


class Robbed(FileSink):
    """A sink that takes so long that somebody else takes the lock meanwhile."""

    def __init__(self, log: LogTable, folder: Path) -> None:
        super().__init__(folder, ".xml")
        self.log = log

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        lose(self.log)
        return super().commit(plan, documents)


def test_one_who_has_lost_the_lock_settles_nothing_and_takes_no_more(log: LogTable, tmp_path: Path) -> None:
    log.write_all([1, 2])
    outputs = [Output(format=XdsFormat(), sink=Robbed(log, tmp_path))]
    with Publisher(config_of(log.engine, tmp_path / "out"), outputs=outputs) as publisher:
        for _ in range(2):
            with pytest.raises(OccupiedError):
                publisher.run_once()
            assert log.statuses() == {1: "N", 2: "N"}
