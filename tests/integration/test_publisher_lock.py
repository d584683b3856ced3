"""The lock of a log is a lease that says who has it: taken from the dead at once, given an epoch, checked before writes."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.core.errors import OccupiedError
from eventlog.core.seams import Tenure
from eventlog.daemon.publisher import Publisher
from eventlog.sources.log import lock as locks
from eventlog.sources.log.lock import Lease, LogLock, read_holder
from eventlog.sql.connect import connect, limit_sessions, place_of, read_url
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.conformance.event_logs import LogTable, installed
from tests.integration.publishing import Process, config_of, settled, site, until


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


def lose(log: LogTable) -> None:
    """What another publisher writes when it takes the lock."""
    until, _, _ = mark_of(log).partition(" ")
    log.run(f"UPDATE event_log_mark SET value = '{until} another' WHERE name = 'publisher'")


def test_each_taking_has_a_higher_epoch_and_the_log_stays_the_same(log: LogTable) -> None:
    tenures = []
    for lock in (lock_of(log), lock_of(log), lock_of(log)):
        assert not lock.taken
        tenure = taken(lock)
        tenures.append(tenure)
        assert mark_of(log, "epoch") == str(tenure.epoch)
        lock.leave()
    epochs = [tenure.epoch for tenure in tenures]
    assert epochs == sorted(set(epochs))
    assert abs(epochs[0] / 1000 - time.time()) < 3600, "it begins with the time in milliseconds"
    assert len({tenure.log for tenure in tenures}) == 1
    assert str(UUID(tenures[0].log)) == tenures[0].log
    assert tenures[0].name.startswith(f"event_log in {log.engine.url.get_backend_name()}:")


def test_who_enters_where_somebody_has_deleted_the_mark_of_holds_begins_anew(log: LogTable) -> None:
    lock = lock_of(log)
    taken(lock)
    with lock.log.transaction() as connection:
        assert lock.enter(connection, soon=False) == mark_of(log, "holding")
    log.run("DELETE FROM event_log_mark WHERE name = 'holding'")
    with lock.log.transaction() as connection, pytest.raises(OccupiedError):
        lock.enter(connection, soon=False)
    lock.drop()
    log.run("DELETE FROM event_log_mark WHERE name = 'publisher'")
    taken(lock)
    with lock.log.transaction() as connection:
        assert lock.enter(connection, soon=False) == mark_of(log, "holding")
    lock.leave()


def test_a_place_is_told_without_whatever_may_be_a_secret() -> None:
    url = read_url("postgresql+psycopg://me:secret@db:5433/app?host=/run/pg&password=secret&options=secret")
    assert place_of(url) == "postgresql://db:5433/app?host=%2Frun%2Fpg"


def test_an_epoch_goes_on_from_the_one_in_the_marks_when_the_clock_is_behind_it(sqlite: Engine) -> None:
    log = site(sqlite)
    log.run("INSERT INTO event_log_mark (name, value) VALUES ('epoch', '99999999999999'), ('log', 'mine')")
    lock = lock_of(log)
    tenure = taken(lock)
    assert (tenure.epoch, tenure.log) == (100_000_000_000_000, "mine")
    lock.leave()


def test_the_mark_says_who_has_the_lock(log: LogTable) -> None:
    lock = lock_of(log, 7.5)
    assert lock.take()
    holder = lock_of(log).look().holder
    assert holder is not None
    assert holder.process == read_holder(mark_of(log)).process
    assert holder.lease == 7.5
    assert holder.until is not None
    assert holder.since is not None
    assert abs((holder.until - holder.since).total_seconds() - 7.5) < 60
    lock.leave()


def test_a_fresh_lease_is_confirmed_without_a_word_to_the_database(
    log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = lock_of(log, 3000.0)
    assert lock.take()
    monkeypatch.setattr(lock, "_touch", None)
    lock.confirm_lease()
    lock.leave()
    with pytest.raises(OccupiedError):
        lock.confirm_lease()


def test_who_has_slept_for_longer_than_a_lease_learns_that_before_it_writes(
    log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, before = lock_of(log, 3000.0), time.monotonic
    assert lock.take()
    monkeypatch.setattr("eventlog.sources.log.lock.seconds_up", lambda: before() + 10**7)
    former = mark_of(log)
    lock.confirm_lease()  # nobody has taken it meanwhile
    assert mark_of(log) > former, "it is renewed"
    lose(log)
    monkeypatch.setattr("eventlog.sources.log.lock.seconds_up", lambda: before() + 2 * 10**7)
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
    lock_of(log)
    far = "2099-01-01T00:00:00.000"
    log.run(f"UPDATE event_log_mark SET value = '{far} another' WHERE name = 'publisher'")
    until(lambda: kept.lost, "it is told when it renews")
    with pytest.raises(OccupiedError):
        lock.confirm_lease()


def test_two_who_find_it_free_at_the_same_moment_do_not_both_get_it(log: LogTable) -> None:
    first, second = lock_of(log), lock_of(log)
    sights = [first.look(), second.look()]
    first._enter(sights[0])
    second._enter(sights[1])
    assert (first.taken, second.taken) == (True, False)
    sight = second.look()
    first.leave()
    second._enter(sight)  # it saw a mark that is gone
    assert not second.taken
    assert second.take()
    second.leave()


def test_whoever_works_with_the_mark_is_not_waited_for(engine: Engine) -> None:
    if engine.dialect.name == "sqlite":
        pytest.skip("one transaction writes at a time there")
    log = site(engine)
    first, second = lock_of(log), lock_of(log)
    assert first.take()
    sight = second.look()
    with first.log.transaction() as connection:
        first.assure(connection)
        began = time.monotonic()
        second._enter(sight)
        assert time.monotonic() - began < 20, "a lock is waited for for half a minute"
    assert not second.taken
    first.leave()


def test_a_mark_that_nobody_renews_is_free_whatever_the_clock_says(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = site(sqlite)
    log.run(
        "INSERT INTO event_log_mark (name, value) VALUES ('publisher',"
        " strftime('%Y-%m-%dT%H:%M:%f', 'now', '3000 seconds') || ' 2026-01-01T00:00:00.000/5/other/7////x')"
    )
    assert read_holder(mark_of(log)).lease == 5.0
    lock, before = lock_of(log), time.monotonic
    assert not lock.take()
    monkeypatch.setattr(locks, "seconds_up", lambda: before() + 10**6)
    lock.look()
    monkeypatch.setattr(locks, "seconds_up", lambda: before() + 10**6 + 60)
    assert lock.take()
    lock.leave()


def test_who_dropped_it_takes_it_again_at_once(log: LogTable) -> None:
    lock = lock_of(log, 3000.0)
    former = taken(lock)
    lock.drop()
    assert not lock_of(log).take()
    assert taken(lock).epoch > former.epoch
    lock.leave()


def test_after_a_crash_the_next_one_on_this_machine_does_not_wait_for_the_lease(engine: Engine, tmp_path: Path) -> None:
    log = site(engine)
    with Process(engine, tmp_path / "out", lease=3000.0) as first:
        first.wait_for("seat_taken")
        first.tell(signal.SIGKILL)
        first.end()
        log.write(1)
        with Process(engine, tmp_path / "out", "--until-empty", lease=3000.0) as second:
            assert second.end() == 0
    assert settled(log, 1)()


def test_a_publisher_has_a_tenure_while_it_has_the_lock(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    with Publisher(config_of(sqlite, tmp_path / "out")) as publisher:
        assert not publisher.post.taken
        with pytest.raises(OccupiedError):
            publisher.post.confirm()
        publisher.run_once()
        assert publisher.post.tenure is not None
        assert publisher.post.tenure.log == mark_of(log, "log")
        publisher.post.confirm()


def test_a_lease_that_cannot_be_renewed_in_time_is_not_fresh() -> None:
    lease = Lease(60.0, -3000.0, lambda: True)
    try:
        assert not lease.fresh
        assert lease.renew()
        assert lease.fresh
    finally:
        lease.stop()


def test_who_was_frozen_behind_several_statements_sent_as_one_keeps_the_lock_from_nobody(postgresql: Engine) -> None:
    lease = 0.5
    installed(postgresql)
    frozen, heir = (connect(postgresql.url.render_as_string(hide_password=False)) for _ in range(2))
    limit_sessions(frozen, None, None, lease)
    alive = [True]
    former = LogLock(Log(frozen, LogNames()), lease, lambda: alive[0])
    taken(former)
    alive[0] = False
    later = LogLock(Log(heir, LogNames()), lease)
    try:
        with frozen.connect() as connection:
            former.assure(connection)
            # The driver sends a flush behind these, and the server's own limit is forgotten by that.
            connection.execute(
                text("INSERT INTO event_log_mark (name, value) VALUES (:name, '')"), [{"name": "a"}, {"name": "b"}]
            )
            until(later.take, "somebody else takes the lock")
            with pytest.raises(DBAPIError):
                connection.execute(text("SELECT 1"))
    finally:
        former.drop()
        later.leave()
        frozen.dispose()
        heir.dispose()
