"""History out of the hot index: a poll reads the index of waiting rows, however many processed rows there are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from eventlog.capture.install import install
from eventlog.sources.log.reading import LogSettings
from tests.support.log_rows import LogRows

PROCESSED = 200_000
FILL = {
    "postgresql": (
        "INSERT INTO event_log (table_key, status, event_type, table_name, column_name)"
        " SELECT 'idu=' || n % 5000, 'S', 2, 'usr', 'fname' FROM generate_series(1, :count) AS n"
    ),
    "sqlite": (
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count)"
        " INSERT INTO event_log (table_key, status, event_type, table_name, column_name)"
        " SELECT 'idu=' || n % 5000, 'S', 2, 'usr', 'fname' FROM numbers"
    ),
}
Statement = tuple[str, Any]


def fill(engine: Engine, count: int = PROCESSED) -> None:
    install(engine)
    with engine.begin() as connection:
        connection.execute(text(FILL[engine.dialect.name]), {"count": count})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


@contextmanager
def statements(engine: Engine) -> Iterator[list[Statement]]:
    """Collect the statements on the log itself during the block."""
    sent: list[Statement] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "event_log AS" in statement:
            sent.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", note)
    yield sent
    event.remove(engine, "before_cursor_execute", note)


def polls(engine: Engine, **settings: bool) -> list[Statement]:
    """Poll a log without waiting rows, and return the statements."""
    source = LogRows(engine, settings=LogSettings(**settings))  # type: ignore[arg-type]  # only flags are set here
    with statements(engine) as sent:
        assert not source.read(10_000).events
    assert any("AS waiting" in statement for statement, _ in sent)
    return sent


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        yield from nodes(inner)


@pytest.mark.parametrize("future", [False, True])
def test_postgresql_polls_by_the_index_of_waiting_rows(postgresql: Engine, future: bool) -> None:
    fill(postgresql)
    for statement, parameters in polls(postgresql, handle_future_events=future):
        with postgresql.connect() as connection:
            explained = connection.exec_driver_sql(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", parameters)
            found = explained.scalar_one()
        plan = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
        reading = [node for node in nodes(plan) if node.get("Relation Name") == "event_log"]
        assert [node["Node Type"] for node in reading] in (["Index Scan"], ["Index Only Scan"], ["Bitmap Heap Scan"])
        index = "event_log_new" if "AS waiting" in statement else "event_log_done"
        assert {node["Index Name"] for node in nodes(plan) if "Index Name" in node} >= {index}
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 20


@pytest.mark.parametrize("future", [False, True])
def test_sqlite_polls_by_the_index_of_waiting_rows(sqlite: Engine, future: bool) -> None:
    fill(sqlite)
    for statement, parameters in polls(sqlite, handle_future_events=future):
        with sqlite.connect() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            details = [str(row[-1]) for row in plan]
        assert any("waiting USING INDEX event_log_new" in detail for detail in details), details
        assert not any(detail == "SCAN waiting" for detail in details)
