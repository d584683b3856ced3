"""Rows are held, released and offered again while a publisher settles them: what it notes of them stays."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import create_engine, event

from eventlog.admin.listing import Filters, newest
from eventlog.admin.rows import EVERYTHING, PROCESSED, Choice, hold, release, requeue
from eventlog.core.model import Outcome, Reason, Status
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.source import LogSource
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable

MOMENT_SECONDS = 0.5
"""In this time an operator's statement is at the database, where it waits or not."""
Act = Callable[[Log], int]


def held_and_released(log: Log) -> int:
    found = hold(log, [EVERYTHING], by="ann")
    release(log, [EVERYTHING])
    return found


def offered_again(log: Log) -> int:
    return requeue(log, [EVERYTHING], Choice(letters=PROCESSED))


def settled_meanwhile(log: Log, outcome: Outcome, act: Act) -> int:
    """Settles the only row; the act begins when its reason is written, and before the row is marked."""
    operator = create_engine(log.engine.url)
    found: list[int] = []
    acting = Thread(target=lambda: found.append(act(Log(operator, log.names))))

    def after(_: Any, __: Any, sql: str, *___: Any) -> None:
        if "event_log_outcome" in sql and not acting.ident:
            acting.start()
            acting.join(MOMENT_SECONDS)

    lock = LogLock(log, 30.0)
    assert lock.take()
    source = LogSource(log.engine, log.names, lock=lock)
    batch = source.read(0)
    event.listen(log.engine, "after_cursor_execute", after)
    source.settle(batch, [outcome])
    event.remove(log.engine, "after_cursor_execute", after)
    acting.join(30.0)
    lock.leave()
    operator.dispose()
    return found[0]


@pytest.mark.parametrize("status", [Status.WARNING, Status.ERROR])
def test_a_hold_beside_a_settlement_takes_no_reason_away(table: LogTable, log: Log, status: Status) -> None:
    table.write(1, "idu=1")
    outcome = Outcome(position=(1,), status=status, reason=Reason.REFUSED, note="no such group")
    assert settled_meanwhile(log, outcome, held_and_released) == 0
    [row] = newest(log, Filters(), limit=5, width=10)
    assert (row.status, row.reason, row.note) == (status.value, "refused", "no such group")


def test_a_row_that_is_settled_and_offered_again_at_once_waits_and_has_no_reason(table: LogTable, log: Log) -> None:
    table.write(1, "idu=1")
    outcome = Outcome(position=(1,), status=Status.ERROR, reason=Reason.REFUSED, note="no such group")
    assert settled_meanwhile(log, outcome, offered_again) == 1
    [row] = newest(log, Filters(), limit=5, width=10)
    assert (row.status, row.reason, row.note) == ("N", None, None)
