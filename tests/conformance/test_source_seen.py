"""What waits behind others is looked at once: a cycle costs as much with many such rows as with few, and misses none."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.care.rows import hold
from eventlog.core.backoff import Backoff
from eventlog.core.model import Outcome, Reason, Status
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable
from tests.support.log_rows import LogRows, TakenRows

HOUR = LogSettings(backoff=Backoff(first=3600, longest=3600))
HELD = "idu=1"


def source_of(log: LogTable, settings: LogSettings = HOUR) -> LogRows:
    return LogRows(log.engine, log.names, settings=settings)


def numbers(batch: TakenRows) -> list[int]:
    return [event.position[0] for event in batch.events]


def cycle(source: LogRows, limit: int = 100) -> list[int]:
    """Publish all rows of one cycle, and return their numbers."""
    batch = source.read(limit)
    source.settle(batch, [Outcome(position=event.position) for event in batch.events])
    return numbers(batch)


def retried(source: LogRows, number: int) -> None:
    """Offer the row; it is not taken."""
    batch = source.read(100)
    assert numbers(batch) == [number]
    source.settle(batch, [Outcome(position=(number,), status=Status.NEW, reason=Reason.RETRY)])


def held(log: LogTable, first: int = 5, last: int = 40) -> LogRows:
    """Make a source that knows the rows of one object behind a held one."""
    log.write_all(range(first, last + 1), key=HELD)
    hold(Log(log.engine, log.names), [(first, first)])
    source = source_of(log)
    assert cycle(source) == []
    return source


FEW, MANY = 5_000, 30_000


def fill(log: LogTable, first: int, last: int) -> None:
    """Very many rows of one object, by one statement."""
    digits = f"(SELECT 0 AS d{''.join(f' UNION ALL SELECT {digit}' for digit in range(1, 10))})"
    crossed = " CROSS JOIN ".join(f"{digits} AS d{place}" for place in range(5))
    number = f"{first} + {' + '.join(f'd{place}.d * {10**place}' for place in range(5))}"
    log.run(
        "INSERT INTO event_log (record_id, table_key, status, event_type, table_name, column_name)"
        f" SELECT {number}, '{HELD}', 'N', 2, 'usr', 'fname' FROM {crossed} WHERE {number} <= {last}"
    )


class Work:
    """What a database does for the sessions of an engine: rows and entries of indexes that are read, or steps."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._steps = 0
        if engine.dialect.name == "sqlite":
            with engine.connect() as connection:
                driver: Any = connection.connection.driver_connection
                driver.set_progress_handler(self._step, 100)

    def done(self) -> int:
        """Count the database's work until now."""
        if self._engine.dialect.name == "sqlite":
            return self._steps
        with self._engine.connect() as connection:
            if self._engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_stat_force_next_flush()"))
                connection.commit()
                query = (
                    "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)"
                    " + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = 'event_log')"
                )
                return int(connection.execute(text(query)).scalar_one())
            found = connection.execute(text("SHOW SESSION STATUS LIKE 'Handler_read%'"))
            return sum(int(value) for _, value in found)

    def _step(self) -> int:
        self._steps += 1
        return 0


def cost(log: LogTable, source: LogRows, work: Work, number: int) -> int:
    """Measure the cycle that publishes a row of another object."""
    log.write(number, key="idu=2")
    before = work.done()
    assert cycle(source) == [number]
    return work.done() - before


@pytest.mark.in_turn
@pytest.mark.parametrize("how", ["held", "offered again"])
@pytest.mark.parametrize("analyzed", [False, True], ids=["new", "analyzed"])
def test_a_cycle_costs_as_much_with_many_rows_that_wait_as_with_few(engine: Engine, how: str, analyzed: bool) -> None:
    install(engine)
    log = LogTable(engine)
    log.write(1, key=HELD)
    source = source_of(log)
    if how == "held":
        hold(Log(engine, log.names), [(1, 1)])
    else:
        retried(source, 1)
    work = Work(engine)
    costs = []
    for first, last in ((2, FEW), (FEW + 20, MANY)):
        fill(log, first, last)
        if analyzed:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("ANALYZE TABLE event_log" if engine.dialect.name == "mysql" else "ANALYZE"))
        cost(log, source, work, last + 1)
        costs.append([cost(log, source, work, last + place) for place in (2, 4, 7, 3, 5)])
    few, many = (sorted(found)[len(found) // 2] for found in costs)
    assert many < 2 * few, costs
    assert max(costs[1]) < 3 * few, costs
