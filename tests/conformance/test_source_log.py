"""The log source beyond what every source does: real concurrency, strange logs, broken connections, the backlog."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.care.flow import backlog
from eventlog.config.settings import PublisherConfig
from eventlog.core.errors import SourceError
from eventlog.core.model import Outcome
from eventlog.core.schema import Catalog, Column, Table
from eventlog.publisher.flow import read_flow
from eventlog.sources.log.flow import WaitingParts
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import Marks
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed
from tests.support.log_rows import LogRows


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return installed(engine)


def numbers(source: LogRows, limit: int = 0) -> list[int]:
    return [event.position[0] for event in source.read(limit).events]


def settle(source: LogRows) -> None:
    batch = source.read(0)
    source.settle(batch, [Outcome(position=event.position) for event in batch.events])


def test_a_lower_number_that_commits_after_the_read_is_found_and_never_marked(postgresql: Engine) -> None:
    log = installed(postgresql)
    log.write_all(range(100, 300))
    source = LogRows(postgresql, log.names)
    with postgresql.connect() as slow:
        slow.execute(
            text("INSERT INTO event_log (record_id, status, table_name, table_key) VALUES (99, 'N', 'usr', 'idu=1')")
        )
        batch = source.read(0)
        slow.commit()
    source.settle(batch, [Outcome(position=event.position) for event in batch.events])
    assert [number for number, status in log.statuses().items() if status == "N"] == [99]
    assert numbers(source) == [99]


def test_an_empty_mark_is_there_and_its_text_never_reaches_the_database(log: LogTable) -> None:
    """Oracle keeps an empty text as NULL, so there is none on any database."""
    known = Log(log.engine, log.names)
    marks, lock = Marks(known), LogLock(known, lease=600.0)
    assert lock.take()
    with known.transaction() as connection:
        marks.set(connection, "set", "")
        lock.mark(connection, "under the lock", "")
    with known.transaction() as connection:
        found = marks.all(connection)
        assert [marks.get(connection, name) for name in ("set", "under the lock", "never made")] == ["", "", None]
    assert [found["set"], found["under the lock"]] == ["", ""]
    assert log.ask("SELECT count(*) FROM event_log_mark WHERE value = ''") == [(0,)]
    assert log.ask("SELECT count(*) FROM event_log_mark WHERE value IS NULL") == [(2,)]


def test_what_is_entered_under_the_lock_is_on_disk_at_its_commit_unless_it_may_be_later(postgresql: Engine) -> None:
    """With `delete_handled` LINTER's rows are gone behind the commit that has captured them."""
    log = Log(postgresql, installed(postgresql).names)
    lock = LogLock(log, lease=600.0)
    assert lock.take()
    with log.transaction() as connection:
        assert log.rows(connection, text("SHOW synchronous_commit")) == [("off",)]
        lock.assure(connection)
        lock.mark(connection, "place", "1")
        assert log.rows(connection, text("SHOW synchronous_commit")) == [("on",)]
        lock.mark(connection, "figures", "1", soon=True)
        assert log.rows(connection, text("SHOW synchronous_commit")) == [("off",)]


def test_with_a_catalog_an_object_is_known_by_any_spelling_of_its_key(log: LogTable) -> None:
    columns = (Column(name="a", type="integer", key=1), Column(name="b", type="integer", key=2))
    catalog = Catalog([Table(name="usr", columns=(*columns, Column(name="fname")))])
    for number, key in [(1, "a=1+b=2"), (2, 'B="2"+A= 1'), (3, "b=1+a=2")]:
        log.write(number, key=key)
    assert numbers(LogRows(log.engine, log.names, catalog), 1) == [1, 2]


def test_bytes_that_are_no_text_reach_the_rules_and_spoil_only_their_row(sqlite: Engine) -> None:
    log = installed(sqlite)
    log.write(1)
    log.run(
        "INSERT INTO event_log (record_id, status, event_type, table_name, table_key, new_value, event_time)"
        " VALUES (2, 'N', 'x', 'usr', 'idu=1', CAST(x'41ff' AS TEXT), 17)"
    )
    first, second = LogRows(sqlite, log.names).read(0).rows
    assert first.new == "Jack"
    assert (second.new, str(second.kind), second.time) == ("A\udcff", "x", "17")


def test_a_database_that_is_gone_is_told_and_may_come_back(postgresql: Engine) -> None:
    log = installed(postgresql)
    source = LogRows(postgresql, log.names)
    log.write(1)
    name = postgresql.url.database
    admin = create_engine(postgresql.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"), {"name": name}
        )
        connection.execute(text(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false"))
        with pytest.raises(SourceError, match="event log event_log cannot be used") as caught:
            source.read(0)
        assert caught.value.may_pass
        connection.execute(text(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true"))
    admin.dispose()
    assert numbers(source) == [1]


def test_a_statement_that_is_wrong_does_not_pass_by_waiting(postgresql: Engine) -> None:
    log = installed(postgresql)
    settings = LogSettings(handle_future_events=True)
    with pytest.raises(SourceError, match="no_such_clock") as caught:
        LogRows(postgresql, log.names, settings=settings, clock="no_such_clock()").read(0)
    assert not caught.value.may_pass


def test_the_backlog_counts_letters_apart_and_names_the_oldest(log: LogTable) -> None:
    for number, status in [(5, "N"), (3, "N"), (1, "n"), (2, "N "), (4, "S"), (6, "X"), (7, None), (8, "X")]:
        log.write(number, status=status)
    found = backlog(Log(log.engine, log.names))
    assert {status.value: count for status, count in found.by_status.items()} == {
        "N": 2,
        "S": 1,
        "W": 0,
        "E": 0,
        "F": 0,
    }
    assert found.other == {"n": 1, "N ": 1, "X": 2, "NULL": 1}
    assert found.waiting == 2
    with Log(log.engine, log.names).transaction() as connection:
        flow = read_flow(connection, Log(log.engine, log.names), PublisherConfig())
    assert (flow.parts, flow.oldest) == (WaitingParts(ready=2), 3)
    since = dt.datetime.now(dt.UTC).replace(tzinfo=None) - dt.datetime(2025, 3, 23, 10, 57, 19)
    assert flow.lag == pytest.approx(since.total_seconds(), abs=90)
