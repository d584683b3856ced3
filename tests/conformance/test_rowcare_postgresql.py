"""Row care on logs as only PostgreSQL has them: in a schema under a name that needs quotes, and in partitions."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from eventlog.admin.listing import Filters, newest
from eventlog.admin.rows import hold
from eventlog.capture.install import install
from eventlog.purge.deleting import Purge, purge
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames

COUNT = 3000
FILL = (
    "INSERT INTO {log} (record_id, table_key, status, event_type, event_time, table_name, column_name)"
    " SELECT n, 'idu=1', CASE WHEN n % 10 = 0 THEN 'N' ELSE 'S' END, 1, '2020-01-01', 'usr', 'fname'"
    " FROM generate_series(1, :count) AS n"
)
PARTITIONED = (
    "CREATE TABLE event_log (record_id BIGINT NOT NULL, table_key TEXT, status CHAR(1), event_type INTEGER,"
    " event_time TIMESTAMP, perpetrator TEXT, table_name TEXT, column_name TEXT, old_value TEXT, new_value TEXT)"
    " PARTITION BY HASH (record_id)"
)


def filled(engine: Engine, names: LogNames) -> Log:
    log = Log(engine, names)
    with engine.begin() as connection:
        connection.execute(text(FILL.format(log=log.dialect.qualified(names.schema, names.table))), {"count": COUNT})
    return log


def check_purge(log: Log) -> None:
    """Everything processed goes, in more than one step, and what waits stays."""
    steps = list(purge(log, Purge(age=60)))
    assert steps[-1].rows == COUNT * 9 // 10
    assert len(steps) > 2
    left = [*newest(log, Filters(), limit=COUNT, width=9)]
    assert [row.record_id for row in left] == list(range(10, COUNT + 1, 10))


@pytest.fixture(autouse=True)
def small_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.purge.deleting.STRETCH_ROWS", 10)


def test_a_log_in_a_schema_is_cared_for(postgresql: Engine) -> None:
    names = LogNames(table="Event Log", schema="Own")
    with postgresql.begin() as connection:
        connection.execute(text('CREATE SCHEMA "Own"'))
    install(postgresql, names)
    log = filled(postgresql, names)
    assert hold(log, [(1, 100)]).rows == 10
    check_purge(log)
    assert len([*newest(log, Filters(reason="held"), limit=99, width=9)]) == 10


def test_every_partition_of_a_log_is_purged(postgresql: Engine) -> None:
    with postgresql.begin() as connection:
        connection.execute(text(PARTITIONED))
        for part in range(3):
            connection.execute(
                text(f"CREATE TABLE part_{part} PARTITION OF event_log FOR VALUES WITH (MODULUS 3, REMAINDER {part})")
            )
    names = LogNames()
    install(postgresql, names)
    check_purge(filled(postgresql, names))
