"""Names in a folder follow the order of writing, also where the times of rows order the log and their numbers do not."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.sinks.outputs import FilesOutput
from tests.integration.publishing import publish_all
from tests.support.logged import run

NOW = dt.datetime(2025, 3, 23, 10, 0, 0)


def rows(engine: Engine, *written: tuple[int, int, str]) -> None:
    """Rows with these numbers, minutes and values, all of one object."""
    columns = "record_id, table_key, event_type, event_time, table_name, column_name, new_value"
    for number, minute, value in written:
        time = NOW + dt.timedelta(minutes=minute)
        run(
            engine,
            f"INSERT INTO event_log ({columns}) VALUES ({number}, 'idu=1', 2, '{time}', 'usr', 'fname', '{value}')",
        )


def published(engine: Engine, folder: Path, *, future: bool = True) -> list[str]:
    """The values in the documents, in the order of their names, after everything was published."""
    config = Config(
        source=SourceConfig(url=engine.url.render_as_string(hide_password=False), user="nobody"),
        publisher=PublisherConfig(handle_future_events=future, query_limit=2),
        output=(FilesOutput(path=str(folder)),),
    )
    publish_all(config)
    texts = [path.read_text() for path in sorted(folder.glob("*.xml"))]
    return [value for text in texts for value in "abcdefg" if f">{value}<" in text]


def test_names_follow_the_order_of_writing_where_times_order_the_log(engine: Engine, tmp_path: Path) -> None:
    install(engine)
    run(engine, "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64))")
    rows(engine, (5, 3, "c"), (7, 1, "a"), (6, 2, "b"))
    assert published(engine, tmp_path) == ["a", "b", "c"]
    rows(engine, (2, 4, "d"), (3, 5, "e"))
    assert published(engine, tmp_path) == ["a", "b", "c", "d", "e"]
    rows(engine, (20, 6, "f"))
    assert published(engine, tmp_path) == ["a", "b", "c", "d", "e", "f"]
    assert f"{20:020d}" in {path.stem for path in tmp_path.glob("*.xml")}


@pytest.mark.parametrize("future", [True, False])
def test_names_are_numbers_as_long_as_they_rise(sqlite: Engine, tmp_path: Path, future: bool) -> None:
    install(sqlite)
    run(sqlite, "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64))")
    rows(sqlite, (1, 1, "a"), (2, 2, "b"), (3, 3, "c"))
    assert published(sqlite, tmp_path, future=future) == ["a", "b", "c"]
    assert sorted(path.stem for path in tmp_path.glob("*.xml")) == [f"{number:020d}" for number in (1, 2, 3)]
