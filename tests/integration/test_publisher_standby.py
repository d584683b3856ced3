"""Whoever stands by says who publishes, and gives an alarm when rows wait and that one settles nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Event as Flag
from urllib.request import urlopen

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.admin.status import Publishing, facts
from eventlog.core.model import Document, Outcome
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.output import Output
from eventlog.sinks.files import FileSink
from eventlog.sources.log.lock import LogLock
from eventlog.sql.log import Log
from eventlog.xds.write import XdsFormat
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import PATIENCE, Process, config_of, in_thread, settled, site, until
from tests.integration.test_publisher_frozen import FREEZING, state_of


class Stuck(FileSink):
    """A sink whose receiver does not answer until it is let go."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ".xml")
        self.free = Flag()

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self.free.wait(PATIENCE)
        return super().commit(plan, documents)


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return site(engine)


def asked(port: int, path: str) -> bytes:
    with urlopen(f"http://127.0.0.1:{port}/{path}") as answer:
        said: bytes = answer.read()
    return said


def value(metrics: bytes, name: str) -> float | None:
    found = [line for line in metrics.decode().splitlines() if line.startswith(f"{name} ")]
    return float(found[0].rpartition(" ")[2]) if found else None


@pytest.mark.in_turn
def test_an_alarm_is_given_while_rows_wait_and_nothing_is_settled(log: LogTable, tmp_path: Path) -> None:
    sink = Stuck(tmp_path / "out")
    outputs = [Output(format=XdsFormat(), sink=sink)]
    config = config_of(log.engine, tmp_path / "out", lease=60.0)
    with (
        in_thread(Publisher(config, outputs=outputs)) as first,
        Process(log.engine, tmp_path / "out", "--http", "127.0.0.1:0", lease=0.5) as second,
    ):
        until(lambda: first.post.taken, "the first one has the lock")
        port = second.wait_for("watched_at")["port"]
        second.wait_for("standing_by")
        log.write_all([1, 2, 3])
        alarm = second.wait_for("standby_while_rows_wait", 2)
        assert (alarm["waiting"], alarm["pid"], alarm["level"]) == (3, os.getpid(), "warning")
        assert alarm["seconds"] > 1.5
        told = json.loads(asked(port, "ready"))
        assert told["state"] == "standby"
        assert told["standby"]["waiting"] == 3
        assert "pid" not in told["standby"]
        assert told["standby"]["stalled_seconds"] > 1.5
        metrics = asked(port, "metrics")
        assert value(metrics, "eventlog_standby_waiting_rows") == 3
        assert (value(metrics, "eventlog_standby_stalled_seconds") or 0) > 1.5
        sink.free.set()
        until(settled(log, 3), "the first one goes on")
        until(lambda: value(asked(port, "metrics"), "eventlog_standby_stalled_seconds") == 0, "all is well again")


def test_there_is_no_alarm_while_the_other_one_does_its_work(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    config = config_of(sqlite, tmp_path / "out", lease=60.0)
    with in_thread(Publisher(config)) as first, Process(sqlite, tmp_path / "out", lease=0.5) as second:
        until(lambda: first.post.taken, "the first one has the lock")
        second.wait_for("standing_by")
        for number in range(1, 31):
            log.write(number, key=f"idu={number}")
            Flag().wait(0.1)
        until(settled(log, 30), "all is published")
        assert "standby_while_rows_wait" not in second.actions()


def test_a_database_file_that_a_frozen_process_has_locked_is_told_as_that(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    config = config_of(sqlite, tmp_path / "out", lease=1.0)
    config = replace(config, source=replace(config.source, lock_timeout=1.0))
    with Process(sqlite, tmp_path / "out", program=FREEZING, lease=1.0) as first:
        first.wait_for("seat_taken")
        log.write(1)
        until(lambda: state_of(first) == "T", "the first one is frozen inside a transaction")
        with in_thread(Publisher(config)) as second:
            until(lambda: second.vitals.reading().error, "it says what is wrong")
            assert "Another process has locked the database file" in str(second.vitals.reading().error)
            first.process.kill()
            until(settled(log, 1), "the second one publishes")


def test_status_says_who_publishes(log: LogTable) -> None:
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
