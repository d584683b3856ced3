"""What is large: an object with as many rows as one batch has room for, which is not cut, and a value of 50 MB."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.daemon.publisher import Publisher
from tests.integration.publishing import config_of, site
from tests.support.xds_events import read_events

ROWS = 20_000
NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows})",
    "postgresql": "WITH numbers AS (SELECT n FROM generate_series(1, {rows}) AS n)",
}
FILL = (
    "INSERT INTO event_log (record_id, table_key, status, event_type, event_time, table_name, column_name, old_value,"
    " new_value)"
)
UPDATES = (
    " SELECT n, 'idu=1', 'N', 2, '2026-01-01 00:00:00', 'usr', 'fname', CAST(n AS varchar(9)), CAST(n + 1 AS varchar(9))"
    " FROM numbers"
)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


def test_an_object_with_very_many_rows_is_one_batch_in_its_order(database: Engine, tmp_path: Path) -> None:
    """However small the cycles are: the last object of one is not cut in two while there is room."""
    log = site(database)
    numbers = NUMBERS[database.dialect.name].format(rows=ROWS)
    parts = (numbers, FILL + UPDATES) if database.dialect.name == "sqlite" else (FILL, numbers + UPDATES)
    log.run(" ".join(parts))
    log.write(ROWS + 1, key="idu=2")
    with Publisher(config_of(database, tmp_path / "out", query_limit=100, batch_size=128)) as publisher:
        assert [publisher.run_once().settled, publisher.run_once().settled] == [ROWS, 1]
    said = [event for path in sorted((tmp_path / "out").glob("*.xml")) for event in read_events(path.read_bytes())]
    assert [event.event_id for event in said] == [str(number) for number in range(1, ROWS + 2)]


def test_a_value_of_50_mb_is_published_whole(database: Engine, tmp_path: Path) -> None:
    log = site(database)
    value = "0123456789" * 5_000_000
    log.write(1, new_value=value)
    with Publisher(config_of(database, tmp_path / "out")) as publisher:
        assert publisher.run_once().settled == 1
    [document] = (tmp_path / "out").glob("*.xml")
    assert value.encode() in document.read_bytes()
    assert log.statuses() == {1: "S"}
