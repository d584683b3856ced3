"""How MariaDB and MySQL read what waits and what came late: by the index of letters and numbers, whatever was processed before."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.publisher.new_rows import gap_parameters
from eventlog.sources.marks import Run
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.support.servers import mysqls

FILL = (
    "INSERT INTO event_log (table_key, status, event_type, table_name, column_name)"
    " SELECT CONCAT('idu=', seq MOD 5000), IF(seq <= 40000, 'S', 'N'), 2, 'usr', 'fname' FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', 41999), ']'), '$[*]' COLUMNS (seq FOR ORDINALITY)) AS numbers"
)


def plan(engine: Engine, query: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(text(f"EXPLAIN {query}"), parameters)]


@pytest.fixture(params=mysqls())
def log(request: pytest.FixtureRequest) -> Log:
    engine: Engine = request.getfixturevalue(request.param)
    install(engine)
    with engine.begin() as connection:
        connection.execute(text(FILL))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE TABLE event_log")).all()
    return Log(engine, LogNames())


# Numbers of rows that wait would end the question before the plan: MySQL looks them up while it makes one.
@pytest.mark.parametrize("gaps", [[(40_001, 41_050)], [(number, number) for number in range(39_001, 39_017)]])
def test_late_rows_are_looked_for_by_the_index(log: Log, gaps: list[Run]) -> None:
    asked = {"limit": 1000, **gap_parameters(log, gaps)}
    [step] = [step for step in plan(log.engine, str(log.query("late_numbers")), asked) if step["table"] == "waiting"]
    assert step["type"] != "ALL", step
    assert step["key"] is not None, step
    assert int(step["rows"]) < 10_000, step


def test_an_empty_look_reads_the_index_alone(log: Log) -> None:
    steps = plan(log.engine, str(log.query("anything_waiting", among="among_all")), {})
    [step] = [step for step in steps if step["table"] == "waiting"]
    assert step["type"] == "ref", step
    assert int(step["rows"]) < 10_000, step
