"""Logs that others made may give one number to several rows, or odd ones: a bad row never ends a good one, and `check` finds them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.check import Point, PointLevel, check
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import SourceError
from eventlog.daemon import Publisher
from eventlog.sinks.outputs import FilesOutput
from tests.support.logged import USR, run

LOG = (
    "CREATE TABLE event_log (record_id BIGINT, status CHAR(1), event_type INTEGER, event_time TIMESTAMP NULL,"
    " perpetrator VARCHAR(9), table_name VARCHAR(64), table_key VARCHAR(99), column_name VARCHAR(64),"
    " old_value VARCHAR(99), new_value VARCHAR(99))"
)


@pytest.fixture
def adopted(engine: Engine) -> Engine:
    run(engine, LOG, *USR, "INSERT INTO usr (idu, fname) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    install(engine)
    return engine


def write(engine: Engine, *rows: tuple[int | None, int, str]) -> None:
    for number, kind, key in rows:
        values = f"{'NULL' if number is None else number}, 'N', {kind}, '2020-01-01 00:00:00', 'usr', '{key}'"
        names = "record_id, status, event_type, event_time, table_name, table_key"
        run(engine, f"INSERT INTO event_log ({names}) VALUES ({values})")


def config(engine: Engine, folder: Path, limit: int = 10_000) -> Config:
    return Config(
        source=SourceConfig(url=engine.url.render_as_string(hide_password=False)),
        publisher=PublisherConfig(query_limit=limit),
        output=(FilesOutput(path=str(folder)),),
    )


def letters(engine: Engine) -> list[tuple[int, str]]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT record_id, status FROM event_log ORDER BY 1, 2")).all()
    return [(int(row[0]), str(row[1])) for row in rows]


def found(engine: Engine, folder: Path) -> list[Point]:
    return [point for point in check(lambda: config(engine, folder)) if point.name == "numbers"]


@pytest.mark.parametrize("limit", [1, 2, 10_000])
def test_a_bad_row_does_not_end_a_good_one_of_its_number(adopted: Engine, tmp_path: Path, limit: int) -> None:
    write(adopted, (7, 9, "idu=1"), (7, 6, "idu=2"), (0, 6, "idu=1"), (-4, 6, "idu=3"), (8, 9, "x"), (8, 9, "y"))
    write(adopted, (9, 6, "idu=3"), (9, 6, "idu=3"))
    with Publisher(config(adopted, tmp_path, limit)) as publisher:
        for _ in range(9):
            publisher.run_once()
    assert letters(adopted) == [(-4, "S"), (0, "S"), (7, "W"), (7, "W"), (8, "E"), (8, "E"), (9, "S"), (9, "S")]
    published = "".join(file.read_text() for file in tmp_path.glob("*.xml"))
    assert all(f"idu={number}" in published for number in (1, 2, 3))
    with adopted.connect() as connection:
        note = connection.execute(text("SELECT note FROM event_log_outcome WHERE record_id = 7")).scalar_one()
    assert note.startswith("2 rows have this record_id, and 1 of them could not be published: event_type is 9")


def test_check_finds_odd_numbers(adopted: Engine, tmp_path: Path) -> None:
    write(adopted, (7, 6, "idu=1"), (7, 6, "idu=2"), (7, 6, "idu=2"), (0, 6, "idu=1"))
    said = [point.said for point in found(adopted, tmp_path) if point.level is PointLevel.WARNING]
    assert [one.partition(" with")[0] for one in said if "with a record_id" in one] == ["2 rows", "1 row"]
    write(adopted, (None, 6, "idu=1"))
    assert "1 row without a record_id" in {p.level: p.said for p in found(adopted, tmp_path)}[PointLevel.FAILURE]
    with Publisher(config(adopted, tmp_path)) as publisher, pytest.raises(SourceError, match="has no record_id"):
        publisher.run_once()
