"""Why a row waits is recorded beside it, in each database: behind one that is offered again, or behind one that is held."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.admin.explain import explain
from eventlog.admin.listing import Filters, newest
from eventlog.admin.rows import hold, release
from eventlog.config.settings import Config, PublisherConfig
from eventlog.core.backoff import Backoff
from eventlog.core.model import Outcome, Reason, Status
from eventlog.core.seams import Batch
from eventlog.sources.log.source import LogSettings, LogSource
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import site

HOUR = Backoff(first=3600, longest=3600)
FIRST = "row 1 of the same object comes first."


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return site(engine)


def by_object(log: LogTable) -> LogSource:
    return LogSource(log.engine, log.names, settings=LogSettings(backoff=HOUR, on_retry="object"))


def settle_with(source: LogSource, batch: Batch, *special: Outcome) -> None:
    known = {outcome.position: outcome for outcome in special}
    source.settle(batch, [known.get(event.position, Outcome(position=event.position)) for event in batch.events])


def refused(number: int) -> Outcome:
    return Outcome(position=(number,), status=Status.NEW, reason=Reason.RETRY, note="busy")


def behind(number: int) -> Outcome:
    return Outcome(position=(number,), status=Status.NEW, reason=Reason.HELD, note="an earlier change comes first.")


def make_due(log: LogTable) -> None:
    log.run("UPDATE event_log_outcome SET next_attempt = '2000-01-01 00:00:00' WHERE next_attempt IS NOT NULL")


def recorded(log: LogTable, record_id: int, on_retry: str = "object") -> str:
    publisher = PublisherConfig(on_retry="stop" if on_retry == "stop" else "object")
    return explain(log.engine, log.names, Config(publisher=publisher), record_id).recorded


def test_rows_that_were_read_with_one_that_is_offered_again_say_so_until_they_end(log: LogTable) -> None:
    source = by_object(log)
    log.write_all([1, 2])
    settle_with(source, source.read(0), refused(1), behind(2))
    assert log.outcomes() == {
        1: ("N", "retry", "busy", 1),
        2: ("N", "held", "an earlier change comes first.", 0),
    }
    [shown] = newest(Log(log.engine, log.names), Filters(reason="held"), limit=9, width=9)
    assert (shown.record_id, shown.note) == (2, "an earlier change comes first.")
    assert recorded(log, 2) == "Recorded: N held: an earlier change comes first."
    make_due(log)
    settle_with(source, source.read(0))
    assert {number: row[:3] for number, row in log.outcomes().items()} == {
        1: ("S", "published", None),
        2: ("S", "published", None),
    }


def test_rows_that_come_behind_one_that_is_offered_again_say_which(log: LogTable) -> None:
    source = by_object(log)
    log.write(1)
    settle_with(source, source.read(0), refused(1))
    log.write(2)
    log.write(3, key="idu=9")
    assert recorded(log, 2) == "It waits behind row 1 of the same object, which is offered again first."
    batch = source.read(0)
    assert log.outcomes()[2] == ("N", "held", FIRST, 0)
    settle_with(source, batch)
    assert 3 not in log.outcomes()
    make_due(log)
    settle_with(source, source.read(0))
    assert log.outcomes()[2][:3] == ("S", "published", None)
    source.read(0)
    assert log.ask("SELECT name FROM event_log_mark WHERE name = 'behind'") == []


def test_rows_behind_one_that_somebody_holds_say_so_and_end_after_it(log: LogTable) -> None:
    source = by_object(log)
    log.write_all([1, 2])
    hold(Log(log.engine, log.names), [(1, 1)])
    assert recorded(log, 2) == "It waits behind row 1 of the same object, which is held."
    assert source.read(0).events == []
    assert log.outcomes()[2] == ("N", "held", FIRST, 0)
    release(Log(log.engine, log.names), [(1, 1)])
    settle_with(source, source.read(0))
    assert log.statuses() == {1: "S", 2: "S"}
    assert log.outcomes()[2][:3] == ("S", "published", None)


def test_when_everything_stops_every_row_says_for_which_one(log: LogTable) -> None:
    source = LogSource(log.engine, log.names, settings=LogSettings(backoff=HOUR))
    log.write(1)
    settle_with(source, source.read(0), refused(1))
    log.write(2, key="idu=2")
    assert recorded(log, 2, "stop") == "It waits behind row 1, which is offered again first, for on_retry is stop."
    assert recorded(log, 2) == "It waits."


def test_looking_for_them_again_and_again_is_not_done_in_every_cycle(log: LogTable) -> None:
    """It reads all that wait; a row that has come meanwhile is told of the next time."""
    source = by_object(log)
    log.write(1)
    hold(Log(log.engine, log.names), [(1, 1)])
    source.read(0)
    log.write(2)
    source.read(0)
    assert 2 not in log.outcomes()
    by_object(log).read(0)
    assert log.outcomes()[2] == ("N", "held", FIRST, 0)
