"""Which indexes of an adopted log lead a poll to its waiting rows: what `eventlog check` takes for one, and what the planner does."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import DBAPIError

from eventlog.admin.check.log import index_points, newest_points
from eventlog.admin.check.point import PointLevel
from eventlog.sql.names import LogNames
from tests.conformance.event_logs import make_log
from tests.support.logged import run

LOG = LogNames()
MANY = """
INSERT INTO event_log (record_id, status, table_key, event_type, table_name)
SELECT n, CASE WHEN n % 1000 = 0 THEN 'N' ELSE 'S' END, 'idu=1', 6, 'usr' FROM generate_series(1, 20000) AS n
"""
POLL = "EXPLAIN (ANALYZE, TIMING OFF) SELECT * FROM event_log WHERE status = 'N' ORDER BY record_id LIMIT 100"
INDEXES = [
    ("(record_id) WHERE status = 'N'", True),
    ("(table_key) WHERE status IN ('N', 'E')", True),
    ("(record_id) WHERE status <> 'S'", True),
    ("(status)", True),
    ("(status DESC, table_key)", True),
    ("USING hash (status)", True),
    ("(record_id) WHERE status = 'S'", False),
    ("(record_id) WHERE status <> 'N'", False),
    ("(record_id) WHERE status = 'N' AND event_type = 6", False),
    ("(status) WHERE event_type = 4", False),
    ("(lower(status))", False),
    ("(record_id, status)", False),
    ("(record_id)", False),
]


def is_told(engine: Engine) -> bool:
    """Whether a warning says that no index leads there."""
    (point,) = index_points(engine, LOG)
    assert (point.level is PointLevel.WARNING) == ("Let a DBA run: CREATE INDEX" in str(point.mend))
    return point.level is PointLevel.WARNING


@pytest.mark.parametrize("index, serves", INDEXES)
def test_an_index_counts_when_the_planner_can_use_it(postgresql: Engine, index: str, serves: bool) -> None:
    make_log(postgresql)
    run(postgresql, MANY, f"CREATE INDEX theirs ON event_log {index}", "ANALYZE event_log")
    with postgresql.connect() as connection:
        plan = "\n".join(connection.execute(text(POLL)).scalars())
        # An index on the number alone gives the order, and with it all rows that are done.
        passed_over = sum(map(int, re.findall(r"Rows Removed by Filter: (\d+)", plan)))
        assert ("theirs" in plan and passed_over < 100) is serves, plan
    assert is_told(postgresql) is not serves


def test_an_index_that_was_not_finished_serves_nobody(postgresql: Engine) -> None:
    make_log(postgresql)
    run(postgresql, "INSERT INTO event_log (record_id, status) VALUES (1, 'N'), (2, 'N')")
    alone = postgresql.execution_options(isolation_level="AUTOCOMMIT")
    with alone.connect() as connection, pytest.raises(DBAPIError, match="could not create unique index"):
        connection.execute(text("CREATE UNIQUE INDEX CONCURRENTLY theirs ON event_log (status)"))
    assert is_told(postgresql)


@pytest.mark.parametrize("index, serves", [INDEXES[0], INDEXES[3], *INDEXES[6:9], INDEXES[12]])
def test_so_it_does_on_sqlite(sqlite: Engine, index: str, serves: bool) -> None:
    make_log(sqlite)
    run(sqlite, f"CREATE INDEX theirs ON event_log {index}")
    assert is_told(sqlite) is not serves


def test_a_log_without_an_index_of_its_processed_rows_is_told_what_makes_one(postgresql: Engine) -> None:
    make_log(postgresql)
    run(postgresql, "ALTER TABLE event_log DROP CONSTRAINT IF EXISTS event_log_pkey", *_indexes_gone(postgresql))
    (point,) = newest_points(postgresql, LOG)
    assert point.level is PointLevel.WARNING
    assert point.mend is not None
    assert "CREATE INDEX CONCURRENTLY event_log_done" in point.mend
    with postgresql.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("CREATE INDEX event_log_new ON event_log (record_id) WHERE status = 'N'"))
        connection.execute(text(point.mend.partition(": ")[2]))
    assert [*newest_points(postgresql, LOG)] == []


def _indexes_gone(engine: Engine) -> list[str]:
    return [f"DROP INDEX {index['name']}" for index in inspect(engine).get_indexes("event_log")]
