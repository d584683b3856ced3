"""Threads that change places at every moment: batches hand in hand, with sinks that fail, lose and double nothing.

Each of several outputs has a thread of its own; here the interpreter lets each of them go on for a microsecond only, so
that what they share without a lock shows.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from time import monotonic
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.core.errors import MachineError, OccupiedError, SinkError
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.change_files.sink import ChangeTableFiles
from eventlog.sinks.database.sink import DatabaseSink
from eventlog.sinks.files import FileSink
from eventlog.sinks.kafka.sink import KafkaSink
from eventlog.sources.log.lock import Lease, LogLock
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.hardening.crash import configure, prepare
from tests.hardening.ledger.runs import waiting
from tests.hardening.quantity import scaled
from tests.hardening.replaying import tables
from tests.hardening.targets import Everywhere
from tests.hardening.writing import many_at_once

SINKS = (FileSink, ChangeTableFiles, DatabaseSink, KafkaSink)
HASTE = 1e-6
LEASE_SECONDS = 20.0
"""Nobody is killed here, and a database ends the session of a client that it takes for frozen; a busy machine looks like one."""


@pytest.fixture
def haste() -> Iterator[None]:
    """Turns that are as short as they can be."""
    former = sys.getswitchinterval()
    sys.setswitchinterval(HASTE)
    yield
    sys.setswitchinterval(former)


def failing(monkeypatch: pytest.MonkeyPatch, often: float, seed: int) -> None:
    """Lets sinks fail now and then, before they have written or after it."""
    dice = random.Random(seed)
    for sink in SINKS:

        def commit(self: Any, plan: str, documents: Sequence[Any], real: Any = sink.commit) -> Any:
            fate = dice.random()
            if fate < often:
                raise SinkError("It fails by intention, before it has written.", may_pass=True)
            answers = real(self, plan, documents)
            if fate > 1 - often:
                raise SinkError("It fails by intention, after it has written.", may_pass=True)
            return answers

        monkeypatch.setattr(sink, "commit", commit)


def publish(config: Path) -> int:
    """Publishes until nothing is left, however often it fails, and says how often it did."""
    for failures in range(1000):
        try:
            with Publisher.from_config(config) as publisher:
                for _ in publisher.rounds(until_empty=True):
                    continue
            return failures
        except MachineError as error:
            if "by intention" not in str(error):
                raise
    raise AssertionError("it does not come to an end")


@pytest.mark.in_turn
@pytest.mark.usefixtures("haste")
def test_a_backlog_is_published_once_and_in_order(
    postgresql: Engine, tmp_path: Path, mock_cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, 0.02, seed=1)
    aim = Everywhere(postgresql, tmp_path, mock_cluster)
    prepare(postgresql, aim.style)
    config = configure(postgresql, tmp_path, aim, lease=LEASE_SECONDS)
    dice = random.Random(1)
    for _ in range(scaled(8)):
        many_at_once(postgresql, dice)
    assert publish(config) > 0
    assert waiting(postgresql) == 0
    assert aim.check(postgresql) == tables(postgresql)


@pytest.mark.in_turn
@pytest.mark.usefixtures("haste")
def test_a_backlog_that_grows_meanwhile_is_published_once_and_in_order(
    postgresql: Engine, tmp_path: Path, mock_cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, 0.02, seed=3)
    aim = Everywhere(postgresql, tmp_path, mock_cluster)
    prepare(postgresql, aim.style)
    config = configure(postgresql, tmp_path, aim, lease=LEASE_SECONDS)
    writers = [Thread(target=_write, args=(postgresql, seed)) for seed in range(3)]
    for one in writers:
        one.start()
    while any(one.is_alive() for one in writers):
        publish(config)
    for one in writers:
        one.join()
    publish(config)
    assert waiting(postgresql) == 0
    assert aim.check(postgresql) == tables(postgresql)


def test_who_loses_the_lock_while_it_is_renewed_lets_go_at_once(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(sqlite, LogNames())
    renewing, renew = Flag(), Lease.renew

    def noted(lease: Lease) -> bool:
        renewing.set()
        return renew(lease)

    monkeypatch.setattr(Lease, "renew", noted)
    lock = LogLock(Log(sqlite, LogNames()), lease=0.3)
    assert lock.take()
    with lock.log.transaction() as connection:
        connection.execute(text("UPDATE event_log_mark SET value = '9999 another' WHERE name = 'publisher'"))
        renewing.clear()
        assert renewing.wait(60), "the lease is renewed, and waits for this transaction"
        began = monotonic()
        with pytest.raises(OccupiedError):
            lock.assure(connection)
        assert monotonic() - began < 15, "SQLite waits half a minute for a lock"
    assert not lock.taken


def _write(engine: Engine, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(scaled(3)):
        many_at_once(engine, dice)
