"""The consumer with sinks as they are: killed at each of its transactions, it loses nothing and leaves nothing behind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.care.journal import CaredJournal, hold, release
from eventlog.core.model import Status
from eventlog.core.rules import Options, Round
from eventlog.core.seams import Tenure
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider
from eventlog.publisher.journal import Journal
from eventlog.publisher.plans import FinishedRows, TakePlan
from eventlog.publisher.turn_report import ConsumerSettings
from eventlog.sinks.files import FileSink
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import TRACKED, Marks, note_change
from eventlog.sql.log import Log
from eventlog.xds.write import XdsFormat
from tests.conformance.event_logs import LogTable, installed

ROWS = 12


class Killed(BaseException):
    """The process dies."""


class Process:
    """One publisher of files: all that it has in memory."""

    def __init__(self, log: Log, folder: Path, *, future: bool = False) -> None:
        self.lock = LogLock(log, 60.0)
        assert self.lock.take()
        settings = LogSettings(handle_future_events=future)
        self.journal = Journal(log, self.lock, settings)
        self.journal.serve([("files", ())])
        self.sink = FileSink(folder, ".xds")
        output = Output(format=XdsFormat(rising=future), sink=self.sink, name="files")
        decider = Decider(Round(options=Options(future=future)))
        how = ConsumerSettings(limit=5, strictness=Strictness(on_retry="object"))
        self.consumer = Consumer(self.journal, output, decider, how)

    @property
    def tenure(self) -> Tenure:
        assert self.lock.tenure is not None
        return self.lock.tenure

    def publish(self) -> int:
        """Turn after turn until there is nothing more to do; how many rows got S."""
        finished = 0
        while (turn := self.consumer.turn(self.tenure)).moved:
            finished += turn.statuses.get(Status.SUCCESS, 0)
        return finished

    def die(self) -> None:
        """Die, and leave everything as it is."""
        self.lock.drop()
        self.sink.close()


@pytest.fixture
def table(engine: Engine) -> LogTable:
    return installed(engine)


@contextmanager
def killed_at(engine: Engine, number: int) -> Iterator[None]:
    """Die at the commit with this number."""
    commit, seen = engine.dialect.do_commit, 0

    def do_commit(connection: Any) -> None:
        nonlocal seen
        commit(connection)
        seen += 1
        if seen == number:
            raise Killed

    engine.dialect.do_commit = do_commit  # type: ignore[assignment]  # the one place that every commit passes
    try:
        yield
    finally:
        engine.dialect.do_commit = commit  # type: ignore[method-assign]  # as it was


def _killed(*_: object) -> None:
    raise Killed


def told(folder: Path) -> list[str]:
    """List the values in the documents, each as often as it comes."""
    return sorted(
        value
        for file in folder.rglob("*.xds")
        for value in re.findall(r"value-(\d+)<", file.read_text(encoding="utf-8"))
    )


@pytest.mark.in_turn
@pytest.mark.parametrize("number", range(1, 9))
def test_killed_after_any_transaction_it_goes_on_where_it_was(table: LogTable, tmp_path: Path, number: int) -> None:
    log = Log(table.engine, table.names)
    for record in range(1, ROWS + 1):
        table.write(record, key=f"idu={record % 3}", new_value=f"value-{record}")
    first = Process(log, tmp_path)
    with killed_at(table.engine, number), suppress(Killed):
        first.publish()
    first.die()
    table.run("DELETE FROM event_log_mark WHERE name = 'publisher'")  # its lease has run out
    second = Process(log, tmp_path)
    second.publish()
    second.die()
    assert set(table.statuses().values()) == {"S"}
    assert told(tmp_path) == sorted(map(str, range(1, ROWS + 1)))
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]
    for name in ("batch", "planned", "parked", "answer"):
        assert table.ask(f"SELECT * FROM event_log_{name}") == []


def test_what_is_behind_a_held_row_waits_and_says_so(table: LogTable, tmp_path: Path) -> None:
    log = Log(table.engine, table.names)
    for record in (1, 2, 3):
        table.write(record, key=f"idu={record // 3}", new_value=f"value-{record}")
    process = Process(log, tmp_path)
    with log.transaction() as connection:
        assert hold(connection, log, [(1, 1)], "somebody") == (1, set())
    assert process.publish() == 1
    assert told(tmp_path) == ["3"]
    waiting = "SELECT record_id, object, reason FROM event_log_parked ORDER BY record_id"
    assert table.ask(waiting) == [(1, "usr/idu=0", "held"), (2, "usr/idu=0", "behind")]
    with log.transaction() as connection:
        assert release(connection, log, [(1, 1)]) == 1
    assert process.publish() == 2
    process.die()
    assert told(tmp_path) == ["1", "2", "3"]
    assert table.ask("SELECT * FROM event_log_parked") == []


def test_a_new_output_gets_what_the_foremost_lacks(table: LogTable, tmp_path: Path) -> None:
    log = Log(table.engine, table.names)
    process = Process(log, tmp_path)
    table.write(1, key="idu=1", new_value="value-1")
    assert process.publish() == 1
    table.write(2, key="idu=2", new_value="value-2")
    process.journal.serve([("other", ())])
    assert process.publish() == 0  # the other one lacks it still
    assert table.statuses() == {1: "S", 2: "N"}
    assert table.ask("SELECT COUNT(*) FROM event_log_batch") == [(1,)]
    positions = {str(name): int(place) for name, place in table.ask("SELECT name, position FROM event_log_output")}
    assert positions["files"] > positions["other"]
    CaredJournal(log).forget("other", "somebody")
    process.die()
    assert table.statuses() == {1: "S", 2: "S"}


def test_a_row_that_was_settled_while_its_plan_was_in_doubt_comes_when_it_waits_again(
    table: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(table.engine, table.names)
    table.write(1, key="idu=1", new_value="value-1")
    first = Process(log, tmp_path)
    first.journal.serve([("other", ())])
    monkeypatch.setattr(first.sink, "commit", _killed)
    with suppress(Killed):
        first.publish()
    assert table.ask("SELECT COUNT(*) FROM event_log_planned") == [(1,)]
    first.die()
    table.run("DELETE FROM event_log_mark WHERE name = 'publisher'")
    table.run("UPDATE event_log SET status = 'X'")  # an operator's
    second = Process(log, tmp_path)
    second.publish()
    assert told(tmp_path) == []
    table.run("UPDATE event_log SET status = 'N'")
    second.publish()
    second.die()
    assert told(tmp_path) == ["1"]


NOTE_COMMITS = (
    "CREATE TABLE noted (number serial, what text, waits text)",
    (
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO noted (what, waits)"
        " VALUES (TG_OP, current_setting('synchronous_commit')); RETURN NULL; END $$"
    ),
    (
        "CREATE CONSTRAINT TRIGGER noted AFTER INSERT OR DELETE ON event_log_planned DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION note()"
    ),
)
"""Writes down how each commit that plans, or ends a plan, waits for the disk, just before it does."""


def test_a_plan_is_on_disk_before_anything_goes_out(postgresql: Engine, tmp_path: Path) -> None:
    table = installed(postgresql)
    log = Log(postgresql, table.names)
    assert table.ask("SHOW synchronous_commit") == [("off",)], "the server's setting is not the publisher's"
    table.write(1, key="idu=1", new_value="value-1")
    process = Process(log, tmp_path)
    with postgresql.begin() as connection:
        for statement in NOTE_COMMITS:
            connection.exec_driver_sql(statement)
    process.publish()
    process.die()
    assert table.ask("SELECT what, waits FROM noted ORDER BY number") == [("INSERT", "on"), ("DELETE", "off")]


def test_no_plan_is_made_ahead_by_tables_as_they_were(
    postgresql: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.publisher.consumer.AHEAD_ROWS", 1)
    table = installed(postgresql)
    for number in range(1, ROWS + 1):
        table.write(number, key=f"idu={number}", new_value=f"value-{number}")
    log = Log(postgresql, table.names)
    with log.transaction() as connection:
        Marks(log).set(connection, TRACKED, "before")
    process = Process(log, tmp_path)
    process.consumer.decider.tracked = "before"
    plan = Journal.plan

    def tracked_meanwhile(journal: Journal, name: str, made: TakePlan) -> FinishedRows:
        finished = plan(journal, name, made)
        with log.transaction() as connection:
            Marks(log).set(connection, TRACKED, "since")
            note_change(connection, log)
        return finished

    with monkeypatch.context() as tracking:
        tracking.setattr(Journal, "plan", tracked_meanwhile)
        assert process.consumer.turn(process.tenure).documents == 5
    assert process.consumer.turn(process.tenure).stale is not None
    process.die()
    assert len(told(tmp_path)) == 5


def test_what_a_look_has_read_is_not_published_again(
    table: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads rows that wait, and these are the next plan, which was made ahead."""
    monkeypatch.setattr("eventlog.publisher.consumer.AHEAD_ROWS", 1)
    for number in range(1, 9):
        table.write(number, key=f"idu={number}", new_value=f"value-{number}")
    process = Process(Log(table.engine, table.names), tmp_path)
    assert process.consumer.turn(process.tenure).documents == 5
    with process.journal.log.transaction(lone=True) as connection:
        assert process.journal.anything(connection)
    # Files would hide it: each has the name of its row.
    assert [process.consumer.turn(process.tenure).documents for _ in range(3)] == [3, 0, 0]
    process.die()
    assert set(table.statuses().values()) == {"S"}


def test_who_takes_the_lock_again_knows_what_others_did_meanwhile(table: LogTable, tmp_path: Path) -> None:
    log = Log(table.engine, table.names)
    table.write(1, key="idu=1", new_value="value-1")
    first = Process(log, tmp_path)
    first.publish()
    first.lock.leave()
    table.write(2, key="idu=2", new_value="value-2")
    second = Process(log, tmp_path)
    second.publish()
    second.lock.leave()
    table.write(3, key="idu=3", new_value="value-3")
    assert first.lock.take()
    first.publish()
    first.die()
    second.die()
    assert told(tmp_path) == ["1", "2", "3"]
    assert table.ask("SELECT plans, warning FROM event_log_output") == [(3, None)]


def test_what_takes_effect_earlier_is_not_overtaken_by_a_lower_number(table: LogTable, tmp_path: Path) -> None:
    """The row with the higher number takes effect first and is held: the one behind it in time waits with it."""
    log = Log(table.engine, table.names)
    table.write(1, event_time="2025-03-23 10:00:02", new_value="second")
    table.write(2, event_time="2025-03-23 10:00:01", new_value="first")
    table.write(3, key="idu=2", event_time="2025-03-23 10:00:03")
    with log.transaction() as connection:
        hold(connection, log, [(2, 2)], "by a test")
    process = Process(log, tmp_path, future=True)
    assert process.publish() == 1
    assert table.statuses() == {1: "N", 2: "N", 3: "S"}
    with log.transaction() as connection:
        release(connection, log, [(2, 2)])
    assert process.publish() == 2
    told = "".join(path.read_text() for path in sorted(tmp_path.glob("*.xds")))
    assert told.index("first") < told.index("second")
    process.die()
