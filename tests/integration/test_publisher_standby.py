"""One publisher a log: others stand by, say who publishes, and take over from one that ends, dies, is frozen or is cut off."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event as Flag
from typing import Final
from urllib.request import urlopen

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.care.status import Publishing, facts
from eventlog.core.errors import EX_TRY_AGAIN
from eventlog.core.model import Document, Outcome, Reason, Status
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.output import Output
from eventlog.publisher.statuses import record_ends
from eventlog.sinks.files import FileSink
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges
from eventlog.sql.connect import limit_sessions
from eventlog.sql.log import Log
from eventlog.xds.write import XdsFormat
from tests.conformance.event_logs import LogTable
from tests.hardening.proxy import Proxy
from tests.integration.publishing import PATIENCE, Process, config_of, finished, in_thread, published, site, until

LEASE: Final = 1.0
"""Who is frozen would hold what it has for ever, so that it is replaced at all says that the lease ended that."""

FREEZING: Final = """
import os, signal
from eventlog.publisher.journal import Journal
from eventlog.publisher.writing import JournalTransaction
Journal._plan_at_once = lambda *_: False  # one statement ends by itself; a transaction is held
move, frozen = JournalTransaction.move, []
def freeze(self, *given):
    move(self, *given)
    if not frozen:
        frozen.append(True)
        os.kill(os.getpid(), signal.SIGSTOP)
JournalTransaction.move = freeze
"""
"""Stops the process inside the first transaction that plans, with the journal and the lease locked."""


class Stuck(FileSink):
    """A sink whose receiver does not answer until it is let go."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ".xml")
        self.reached, self.free = Flag(), Flag()

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self.reached.set()
        self.free.wait(PATIENCE)
        return super().commit(plan, documents)


def state_of(process: Process) -> str:
    stat = Path(f"/proc/{process.process.pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[0]


@contextmanager
def standby(engine: Engine, out: Path, lease: float = LEASE) -> Iterator[Publisher]:
    with in_thread(Publisher(config_of(engine, out, lease=lease))) as second:
        until(lambda: second.vitals.reading().state == "standby", "the second one stands by")
        yield second


def comes_back(log: LogTable, first: Process, second: Publisher) -> None:
    """Whoever was frozen finds that it has lost the lock, stands by, and takes over when it is its turn."""
    first.tell(signal.SIGCONT)
    first.wait_for("standing_by")
    until(lambda: second.post.taken or first.actions().count("lock_taken") > 1, "one of them has the lock")
    second.stop()
    until(lambda: second.vitals.reading().state == "stopping", "the second one ends")
    second.close()
    first.wait_for("lock_taken", 2)
    log.write(2, key="idu=2")
    until(finished(log, 2), "the first one publishes again")
    assert first.stop() == 0


def test_a_second_publisher_waits_and_takes_over(postgresql: Engine, tmp_path: Path) -> None:
    log, out = site(postgresql), tmp_path / "out"
    with in_thread(Publisher(config_of(postgresql, out))) as first:
        until(lambda: first.post.taken, "the first one sits")
        with Process(postgresql, out) as second:
            second.wait_for("standing_by")
            log.write(1)
            until(finished(log, 1), "the first one publishes")
            first.stop()
            until(lambda: first.vitals.reading().state == "stopping", "the first one ends")
            first.close()
            second.wait_for("lock_taken")
            log.write(2, key="idu=2")
            until(finished(log, 2), "the second one publishes")
            assert second.stop() == 0
    assert list(published(out).values()) == [["1"], ["2"]]


def test_a_standby_takes_over_within_seconds_from_one_that_was_killed(sqlite: Engine, tmp_path: Path) -> None:
    log, out = site(sqlite), tmp_path / "out"
    with Process(sqlite, out) as first:
        first.wait_for("lock_taken")
        with standby(sqlite, out, lease=30.0):
            first.tell(signal.SIGKILL)
            first.end()
            killed = time.monotonic()
            log.write(1)
            until(finished(log, 1), "the second one publishes")
            assert time.monotonic() - killed < 60
    assert list(published(out).values()) == [["1"]]


def test_who_is_frozen_between_two_batches_is_replaced(mariadb: Engine, tmp_path: Path) -> None:
    log, out = site(mariadb), tmp_path / "out"
    with Process(mariadb, out, lease=LEASE, polling_interval=1) as first:
        first.wait_for("lock_taken")
        with standby(mariadb, out) as second:
            first.tell(signal.SIGSTOP)
            until(lambda: state_of(first) == "T", "the first one is frozen")
            log.write(1)
            until(finished(log, 1), "the second one publishes")
            assert state_of(first) == "T"
            comes_back(log, first, second)


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
def test_who_is_frozen_inside_a_transaction_is_replaced(
    server: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine: Engine = request.getfixturevalue(server)
    log, out = site(engine), tmp_path / "out"
    with Process(engine, out, program=FREEZING, lease=LEASE, polling_interval=1) as first:
        first.wait_for("lock_taken")
        with standby(engine, out) as second:
            log.write(1)
            until(lambda: state_of(first) == "T", "the first one is frozen")
            until(finished(log, 1), "the second one publishes")
            assert state_of(first) == "T"
            comes_back(log, first, second)


def test_a_database_file_that_a_frozen_process_has_locked_is_told_as_that(sqlite: Engine, tmp_path: Path) -> None:
    log, out = site(sqlite), tmp_path / "out"
    config = config_of(sqlite, out, lease=LEASE)
    config = replace(config, source=replace(config.source, lock_timeout=0.5))
    with Process(sqlite, out, program=FREEZING, lease=LEASE) as first:
        first.wait_for("lock_taken")
        log.write(1)
        until(lambda: state_of(first) == "T", "the first one is frozen inside a transaction")
        with in_thread(Publisher(config)) as second:
            until(lambda: second.vitals.reading().error, "it says what is wrong")
            assert "Another process has locked the database file" in str(second.vitals.reading().error)
            first.process.kill()
            until(finished(log, 1), "the second one publishes")


def test_who_is_cut_off_from_the_database_is_replaced(postgresql: Engine, tmp_path: Path) -> None:
    log, out, url = site(postgresql), tmp_path / "out", postgresql.url
    with Proxy(str(url.host), int(url.port or 0)) as proxy:
        behind = create_engine(url.set(port=proxy.port))
        with Process(behind, out, lease=LEASE, polling_interval=1) as first:
            first.wait_for("lock_taken")
            with standby(postgresql, out) as second:
                proxy.delay = 3600.0
                log.write(1)
                until(finished(log, 1), "the second one publishes")
                proxy.delay = 0.0
                proxy.reset()
                comes_back(log, first, second)
    assert sorted(published(out).values()) == [["1"], ["2"]]


@pytest.mark.parametrize(
    "server, limit, wanted",
    [
        ("postgresql", "SHOW idle_in_transaction_session_timeout", "14s"),
        ("mariadb", "SELECT @@idle_transaction_timeout", 14),
    ],
)
def test_a_transaction_may_be_idle_for_two_leases(
    server: str, limit: str, wanted: object, request: pytest.FixtureRequest
) -> None:
    engine = create_engine(request.getfixturevalue(server).url)
    limit_sessions(engine, None, None, 7.0)
    with engine.connect() as connection:
        assert connection.scalar(text(limit)) == wanted
    engine.dispose()


def test_a_session_that_stands_still_and_has_only_locked_a_row_is_ended(mariadb: Engine) -> None:
    """The server may count such a transaction as one that reads."""
    site(mariadb).run("INSERT INTO usr (idu) VALUES (1)")
    engine = create_engine(mariadb.url)
    limit_sessions(engine, None, None, 0.5)
    with engine.connect() as connection:
        connection.execute(text("SELECT idu FROM usr WHERE idu = 1 FOR UPDATE"))
        with mariadb.begin() as writing:  # it waits until the other session has ended
            writing.execute(text("UPDATE usr SET fname = 'Jack' WHERE idu = 1"))
        with pytest.raises(DBAPIError):
            connection.execute(text("SELECT 1"))
    engine.dispose()


def test_a_session_that_stands_still_after_it_has_noted_reasons_is_ended(postgresql: Engine) -> None:
    """Psycopg sends many records in a pipeline, and what ends a pipeline stops the server's clock for idle sessions."""
    log = site(postgresql)
    log.write_all([1, 2])
    engine = create_engine(postgresql.url)
    limit_sessions(engine, None, None, 0.25)
    watching = postgresql.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, watching.connect() as watch:
        mine = connection.scalar(text("SELECT pg_backend_pid()"))
        refused = Outcome(position=(1,), status=Status.ERROR, reason=Reason.REFUSED, note="no.")
        ended = dict.fromkeys((1, 2), refused)
        record_ends(connection, Log(engine, log.names), RowRanges.of(ended), ended, LogSettings())
        alive = text(f"SELECT count(*) FROM pg_stat_activity WHERE pid = {mine}")
        until(lambda: not watch.scalar(alive), "the server ends the session")
        with pytest.raises(DBAPIError):
            connection.execute(text("SELECT 1"))
    engine.dispose()


def test_a_publisher_whose_sessions_are_cut_goes_on_and_nobody_takes_its_place(
    postgresql: Engine, tmp_path: Path
) -> None:
    log, out = site(postgresql), tmp_path / "out"
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    with in_thread(Publisher(config_of(postgresql, out, lease=60.0))) as first:
        until(lambda: first.post.taken, "the first one has the lock")
        with standby(postgresql, out, lease=30.0) as second:
            for number in range(1, 4):
                with postgresql.begin() as connection:
                    connection.execute(text(f"{cut} AND datname = current_database()"))
                log.write(number, key=f"idu={number}")
                until(finished(log, number), "it is published")
            assert second.vitals.reading().rows == {}
    assert list(published(out).values()) == [["1"], ["2"], ["3"]]


def test_one_cycle_is_refused_while_somebody_else_publishes(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    other = LogLock(Log(sqlite, log.names), 30.0)
    assert other.take()
    with Process(sqlite, tmp_path / "out", "--once", lease=0.5) as process:
        assert process.end() == EX_TRY_AGAIN
    last = process.journal[-1]
    assert (last["action"], last["exit_code"]) == ("fatal", EX_TRY_AGAIN)
    assert "Another publisher works on the event log" in last["error"]
    other.leave()


def asked(port: int, path: str) -> bytes:
    with urlopen(f"http://127.0.0.1:{port}/{path}") as answer:
        said: bytes = answer.read()
    return said


def value(metrics: bytes, name: str) -> float | None:
    found = [line for line in metrics.decode().splitlines() if line.startswith(f"{name} ")]
    return float(found[0].rpartition(" ")[2]) if found else None


@pytest.mark.in_turn
def test_an_alarm_is_given_while_rows_wait_and_nothing_is_settled(engine: Engine, tmp_path: Path) -> None:
    log, sink = site(engine), Stuck(tmp_path / "out")
    config = config_of(engine, tmp_path / "out", lease=60.0)
    with (
        in_thread(
            Publisher(config, outputs=[Output(name=f"files {tmp_path / 'out'}", format=XdsFormat(), sink=sink)])
        ) as first,
        Process(engine, tmp_path / "out", "--http", "127.0.0.1:0", lease=0.5) as second,
    ):
        until(lambda: first.post.taken, "the first one has the lock")
        port = second.wait_for("watched_at")["port"]
        second.wait_for("standing_by")
        log.write_all([1, 2, 3])
        alarm = second.wait_for("standby_while_rows_wait")
        assert (alarm["waiting"], alarm["pid"], alarm["level"]) == (3, os.getpid(), "warning")
        assert alarm["seconds"] >= 1.5
        told = json.loads(asked(port, "ready"))
        assert told["state"] == "standby"
        assert told["standby"]["waiting"] == 3
        assert "pid" not in told["standby"]
        assert told["standby"]["stalled_seconds"] > 1.4
        metrics = asked(port, "metrics")
        assert value(metrics, "eventlog_standby_waiting_rows") == 3
        assert (value(metrics, "eventlog_standby_stalled_seconds") or 0) > 1.4
        sink.free.set()
        until(finished(log, 3), "the first one goes on")
        until(lambda: value(asked(port, "metrics"), "eventlog_standby_stalled_seconds") == 0, "all is well again")


def test_there_is_no_alarm_while_the_other_one_does_its_work(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    config = config_of(sqlite, tmp_path / "out", lease=60.0)
    with in_thread(Publisher(config)) as first, Process(sqlite, tmp_path / "out", lease=0.5) as second:
        until(lambda: first.post.taken, "the first one has the lock")
        second.wait_for("standing_by")
        for number in range(1, 21):
            log.write(number, key=f"idu={number}")
            Flag().wait(0.1)
        until(finished(log, 20), "all is published")
        assert "standby_while_rows_wait" not in second.actions()


def test_who_hangs_gives_no_sign_of_life_so_that_a_watchdog_can_notice(sqlite: Engine, tmp_path: Path) -> None:
    log, signs, sink = site(sqlite), list[bool](), Stuck(tmp_path)
    vitals = PublisherHealth(on_move=lambda: signs.append(sink.reached.is_set() and not sink.free.is_set()))
    outputs = [Output(format=XdsFormat(), sink=sink)]
    with in_thread(Publisher(config_of(sqlite, tmp_path, lease=0.5), outputs=outputs, vitals=vitals)):
        until(lambda: signs, "it shows life while it has nothing to do")
        log.write(1)
        assert sink.reached.wait(PATIENCE)
        until(lambda: vitals.reading().silent > 0.6, "the lease is renewed meanwhile, and that is no sign")
        sink.free.set()
        until(finished(log, 1), "it goes on")
    assert not any(signs)


def test_status_says_who_publishes(engine: Engine) -> None:
    log = site(engine)

    def said() -> tuple[Publishing | None, str]:
        found = facts(log.engine, log.names)
        return found.publisher, next(found.sentences())

    publisher, sentence = said()
    assert (publisher, "no publisher works on this log" in sentence) == (None, True)
    lock = LogLock(Log(log.engine, log.names), 0.6)
    assert lock.take()
    held, sentence = said()
    assert sentence.startswith(f"Process {os.getpid()} on ")
    assert held is not None
    assert (held.pid, held.expired) == (os.getpid(), False)
    assert str(held.since) < str(held.lease_until)
    lock.drop()
    until(lambda: said()[1].endswith(" UTC, and has not given its lock back."), "the lease has run out")
    log.run("UPDATE event_log_mark SET value = '2099-01-01T00:00:00.000 x' WHERE name = 'publisher'")
    assert said()[1].startswith("Somebody published the log until 2099")
