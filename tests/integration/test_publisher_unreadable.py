"""A row that cannot be read back, and a table that may not be read: what the publisher does, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from eventlog.care.status import facts
from eventlog.check.log import log_points
from eventlog.check.point import Point, PointLevel
from eventlog.daemon.publisher import Publisher
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import config_of, publish_all, published, site

FAILS = {"sqlite": "json_extract(said, '$.a')", "postgresql": "1 / (said = '{}')::integer"}


@pytest.fixture(params=["sqlite", "postgresql"])
def log(request: pytest.FixtureRequest) -> LogTable:
    engine: Engine = request.getfixturevalue(request.param)
    return site(engine)


def test_one_row_that_cannot_be_read_ends_and_all_others_are_published(log: LogTable, tmp_path: Path) -> None:
    log.run("CREATE TABLE base (id INTEGER NOT NULL PRIMARY KEY, said VARCHAR(9))")
    log.run(f"CREATE VIEW people AS SELECT id AS pk_id, {FAILS[log.engine.dialect.name]} AS risky FROM base")
    for number in range(1, 21):
        log.run("INSERT INTO base VALUES (:id, :said)", {"id": number, "said": "bad" if number == 7 else "{}"})
        log.write(number, key=f"pk_id={number}", table_name="people", event_type=6, column_name=None, new_value=None)
    log.write(21)
    publish_all(config_of(log.engine, tmp_path / "out", batch_size=128))
    assert "".join(log.statuses().values()) == "S" * 6 + "E" + "S" * 14
    [(status, reason, note)] = log.outcomes().values()
    assert (status, reason) == ("E", "invalid")
    assert "people pk_id=7 cannot be read back: column risky: " in note


@contextmanager
def as_publisher(engine: Engine) -> Iterator[Engine]:
    """A login that may do everything but read the table `secret`."""
    log = LogTable(engine)
    log.run("CREATE ROLE publishes LOGIN")
    log.run("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO publishes")
    log.run("REVOKE ALL ON secret FROM publishes")
    connected = create_engine(engine.url.set(username="publishes"))
    try:
        yield connected
    finally:
        connected.dispose()
        log.run("DROP OWNED BY publishes")
        log.run("DROP ROLE publishes")


def rights(engine: Engine, log: LogTable, folder: Path) -> list[Point]:
    return [point for point in log_points(engine, log.names, config_of(engine, folder)) if point.name == "rights"]


def test_a_missing_right_on_one_table_holds_its_rows_and_is_told(postgresql: Engine, tmp_path: Path) -> None:
    log = site(postgresql)
    log.run("CREATE TABLE secret (id integer PRIMARY KEY, more text)")
    log.run("INSERT INTO usr VALUES (1, 'a', 'b')")
    log.run("INSERT INTO secret VALUES (1, 'a')")
    for number in range(1, 6):
        log.write(number, key="id=1", table_name="secret", event_type=6, column_name=None, new_value=None)
    for number in range(6, 9):
        log.write(number, event_type=6, column_name=None, new_value=None)
    with as_publisher(postgresql) as engine:
        settings = {"query_limit": 2, "retry_first": 3600, "retry_longest": 3600}
        with Publisher(config_of(engine, tmp_path / "out", **settings)) as publisher:
            reports = list(publisher.rounds(until_empty=True))
            assert "".join(log.statuses().values()) == "NNNNNSSS"
            assert [table for report in reports for table in report.unread] == ["secret"]
            said = "secret may not be read back: permission denied for table secret"
            assert any(
                one.startswith("Rows of secret wait: ") and said in one for one in facts(engine, log.names).sentences()
            )
            [point] = rights(engine, log, tmp_path / "out")
            assert (point.level, said in point.said) == (PointLevel.WARNING, True)
        log.run("GRANT SELECT ON secret TO publishes")
        publish_all(config_of(engine, tmp_path / "out"))
        [point] = rights(engine, log, tmp_path / "out")
        assert point.level is PointLevel.OK
    assert "".join(log.statuses().values()) == "SSSSSSSS"
    assert facts(postgresql, log.names).unread == {}
    assert sum(map(len, published(tmp_path / "out").values())) > 0


VIEW = (
    "CREATE VIEW view_usr AS SELECT person.id AS pk_idu, name AS sv_fname, boss AS fk__idu__manager, no AS mv_phoneno"
    " FROM person LEFT JOIN phone ON phone.id = person.id"
)
