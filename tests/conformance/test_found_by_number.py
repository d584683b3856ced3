"""PostgreSQL finds rows of a log by their numbers, whether they wait or not: nothing about few rows reads the whole log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from sqlalchemy import Engine, Integer, bindparam, text
from sqlalchemy.sql.elements import TextClause

from eventlog.care.rows import Choice
from eventlog.sql.access import in_text
from eventlog.sql.dialect import log_holes, statement
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.conformance.event_logs import LogTable
from tests.conformance.test_rowcare_poll import fill

ROWS: Final = 20_000
NAMES: Final = LogNames()
RUN: Final = {"first": 7_000, "last": 7_100}
LETTERS: Final = Choice(statuses="SE").parameters()
ASKED: Final[dict[str, dict[str, Any]]] = {
    "row_status": {"record_id": 7_000},
    "keys_between": RUN | {"waiting": 0},
    "rows_numbered": {"records": [7_000, 7_001], "waiting": 0},
    "requeue_numbers": RUN | LETTERS | {"limit": 100},
    "requeue_run": RUN | LETTERS,
    "count_run": RUN | LETTERS,
    "parked_unread": {},
    "newest_number": {},
    "times_beyond": {"beyond": 0, "limit": 20},
    "newest_processed": {},
    "processed_among": {"ids": "[7000, 7001]"},
    "compare_told": {"records": [7_000, 7_001]},
}
READ: Final = {
    "numbers_after": {"first": "19000", "limit": "100"},
    "numbers_within": {"first": "7000", "last": "7100"},
    "row_range": {"first": "7000", "last": "7100", "chosen": "status = 'S'", "transaction": "", "context": ""},
}
"""What reads a log in bulk, with the numbers in the text."""


@pytest.fixture
def log(postgresql: Engine) -> Log:
    fill(postgresql, ROWS)
    table = LogTable(postgresql)
    table.run("UPDATE event_log SET status = 'N' WHERE record_id > 19500")
    with postgresql.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM ANALYZE event_log")
    return Log(postgresql, NAMES)


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_of_few_rows_is_found_by_an_index(log: Log, name: str) -> None:
    lists = [
        bindparam(key, expanding=True, type_=Integer) for key, value in ASKED[name].items() if isinstance(value, list)
    ]
    query = _query(log, name, context="")  # of a log without the column, which no index has
    check_indexes(log, query.bindparams(*lists), ASKED[name])


@pytest.mark.parametrize("name", READ)
def test_what_is_read_in_bulk_is_found_by_an_index(log: Log, name: str) -> None:
    check_indexes(log, _query(log, name, **READ[name]), {})


def _query(log: Log, name: str, **holes: str) -> TextClause:
    holes = {hole: in_text(filling) for hole, filling in log_holes(log.dialect, log.names).items()} | holes
    return text(statement(log.dialect, name, **holes))


def check_indexes(log: Log, query: TextClause, parameters: dict[str, Any]) -> None:
    known = {name: value for name, value in parameters.items() if name in query.compile().params}
    sent = str(query.bindparams(**known).compile(log.engine, compile_kwargs={"literal_binds": True}))
    with log.engine.connect() as connection:
        [plan] = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {sent}").scalars()
    nodes = list(_nodes((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"]))
    assert not [node for node in nodes if node["Node Type"] == "Seq Scan" and node.get("Relation Name") == "event_log"]
    assert any("event_log" in node.get("Index Name", "") for node in nodes), nodes


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        yield from _nodes(inner)
