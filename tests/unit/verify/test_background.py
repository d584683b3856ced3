"""Regular proofs without a publisher: what is skipped, said once, kept, and ended."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.capture import track
from eventlog.capture.install import install
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import OccupiedError
from eventlog.core.plugins import BackgroundOrder
from eventlog.core.proofs import LastProof, read_proofs
from eventlog.daemon.vitals import PublisherHealth
from eventlog.sources.marks import VERIFIED, Marks
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.verify.background import VERIFY, ProofsStopped, RegularPace, RegularProofs
from eventlog.verify.breaking import Breaker
from eventlog.verify.verifying import Verifier


class Told:
    """A journal that remembers."""

    def __init__(self) -> None:
        self.records: list[tuple[str, dict[str, Any]]] = []

    def bind(self, **_facts: Any) -> Told:
        return self

    def info(self, action: str, **facts: Any) -> None:
        self.records.append((action, facts))

    warning = error = info


class Bench:
    """A log, a tracked table, and a database that has a copy of the table as its mirror."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'app.db'}"
        self.engine: Engine = sa.create_engine(self.url)
        with self.engine.begin() as connection:
            for table in ("usr", "usr__mirror"):
                connection.exec_driver_sql(f"CREATE TABLE {table} (idu INTEGER NOT NULL PRIMARY KEY, fname TEXT)")
                connection.exec_driver_sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
        install(self.engine)
        track(self.engine, ["usr"])
        self.journal, self.vitals, self.held, self.now = Told(), PublisherHealth(), True, 1_000_000.0

    def config(self, **verify: Any) -> Config:
        lake = {"name": "lake", "sink": "database", "format": "change-tables", "url": self.url}
        settings: dict[str, Any] = {
            "source": {"url": self.url},
            "output": [{"name": "xds", "sink": "stdout"}, lake],
            "verify": {"every": "1h", "mirrors": True, **verify},
        }
        return from_settings(settings, {}, origin="x.toml")

    def proofs(self, **verify: Any) -> RegularProofs:
        order = BackgroundOrder(
            config=self.config(**verify),
            names=LogNames(),
            journal=self.journal,
            vitals=self.vitals,
            mark=self._mark,
        )
        found = VERIFY.build(order)
        assert isinstance(found, RegularProofs)
        found._clock = lambda: self.now
        return found

    def _mark(self, connection: Any, name: str, value: str) -> None:
        if not self.held:
            raise OccupiedError
        Marks(Log(self.engine, LogNames())).set(connection, name, value)

    def last(self) -> tuple[LastProof, ...]:
        log = Log(self.engine, LogNames())
        with log.transaction() as connection:
            return read_proofs(Marks(log).get(connection, VERIFIED))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.engine.dispose()


def test_a_failure_is_kept_beside_the_last_result(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.proofs()._round(bench.engine)
    [before] = bench.last()
    bench.now += 4000
    monkeypatch.setattr(Verifier, "verify", lambda *_, **__: 1 / 0)
    assert bench.proofs()._round(bench.engine) == 300
    [last] = bench.last()
    assert (last.at, last.rows, last.equal) == (before.at, 2, True)
    assert (last.failed_at, last.error) == (bench.now, "ZeroDivisionError: division by zero.")
    assert bench.journal.records[-1] == ("verify_failed", {"error": "ZeroDivisionError: division by zero."})


def test_what_nobody_can_read_back_is_said_only_where_it_was_named(bench: Bench) -> None:
    proofs = bench.proofs(outputs=["xds"])
    for _ in range(2):
        assert proofs._round(bench.engine) == 300
    [(action, facts)] = bench.journal.records
    assert (action, facts["output"]) == ("verify_failed", "xds")
    assert "cannot be read: it sends xds to stdout" in facts["error"]


def test_who_lost_the_lock_keeps_nothing_and_ends(bench: Bench) -> None:
    bench.held = False
    bench.proofs().run()
    assert bench.last() == ()
    assert bench.journal.records == []


def test_it_ends_while_it_waits_and_before_a_range(bench: Bench) -> None:
    proofs = bench.proofs()
    thread = Thread(target=proofs.run)
    thread.start()
    while not bench.last():
        assert thread.is_alive()
    proofs.stop()
    thread.join(30)
    assert not thread.is_alive()
    with pytest.raises(ProofsStopped):
        RegularPace(0, None, proofs.pause).enter()
    with pytest.raises(ProofsStopped):
        proofs._round(bench.engine)


class Connection:
    """A connection of a driver."""

    def __init__(self, done: Event) -> None:
        self.cancel: Callable[[], None] = done.set


def test_statements_under_way_are_broken_off(tmp_path: Path) -> None:
    breaker, done = Breaker(), Event()
    engine = breaker.watch(sa.create_engine(f"sqlite:///{tmp_path / 'x.db'}"))
    breaker._taken(Connection(done), None, None)
    breaker._taken(object(), None, None)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(endless)
        except sa.exc.OperationalError as error:
            errors.append(error)

    thread = Thread(target=work)
    thread.start()
    while thread.is_alive():
        breaker.break_off()
        thread.join(0.1)
    assert done.wait(10)
    assert isinstance(errors[0], sa.exc.OperationalError)
    assert isinstance(errors[0].orig, sqlite3.OperationalError)
    engine.dispose()
