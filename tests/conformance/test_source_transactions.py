"""The transactions of log rows: told where the database knows them and an output asks, and never mixed in one change."""

from __future__ import annotations

from sqlalchemy import Engine

from eventlog.core.model import Event
from eventlog.core.rules import decide
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.log.source import LogSource
from tests.conformance.event_logs import LogTable, installed
from tests.support.strategies import CATALOG


def two_transactions(log: LogTable) -> LogTable:
    """Two columns of one object, each written in a transaction of its own."""
    log.write(1, column_name="fname")
    log.write(2, column_name="lname")
    return log


def read(log: LogTable, *, asked: bool) -> list[Event]:
    return list(LogSource(log.engine, log.names, settings=LogSettings(transactions=asked)).read(0).rows)


def spans(events: list[Event]) -> list[tuple[tuple[int, ...], ...]]:
    return [change.positions for change in decide(events, catalog=CATALOG).changes]


def test_postgresql_knows_which_rows_were_written_together(postgresql: Engine) -> None:
    log = installed(postgresql)
    log.write_all([1, 2])
    log.write(3)
    first, second, third = read(log, asked=True)
    assert first.transaction is not None
    assert first.transaction == second.transaction
    assert third.transaction not in (None, first.transaction)


def test_a_change_never_spans_two_transactions(postgresql: Engine) -> None:
    events = read(two_transactions(installed(postgresql)), asked=True)
    assert spans(events) == [((1,),), ((2,),)]
    assert [change.transaction for change in decide(events, catalog=CATALOG).changes] == [
        event.transaction for event in events
    ]


def test_where_nobody_asks_or_can_tell_they_make_one_change(postgresql: Engine, sqlite: Engine) -> None:
    assert spans(read(two_transactions(installed(postgresql)), asked=False)) == [((1,), (2,))]
    events = read(two_transactions(installed(sqlite)), asked=True)
    assert {event.transaction for event in events} == {None}
    assert spans(events) == [((1,), (2,))]
