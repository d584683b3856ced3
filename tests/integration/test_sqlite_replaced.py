"""A database file of SQLite that is deleted or replaced while a publisher has it open: what is written into the file that has
its name is published.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, NullPool, create_engine

from eventlog.daemon.publisher import Publisher
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import config_of, in_thread, published, site, until

TOLD = "was deleted or moved while it was used"


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    """The log, by connections that are opened anew each time."""
    site(sqlite)
    sqlite.dispose()
    return LogTable(create_engine(sqlite.url, poolclass=NullPool))


def test_another_file_of_that_name_is_read(log: LogTable, sqlite: Engine, tmp_path: Path) -> None:
    file, other = Path(sqlite.url.database or "").absolute(), tmp_path / "other.db"
    with in_thread(Publisher(config_of(sqlite, tmp_path / "out"))):
        log.write(1)
        until(lambda: published(tmp_path / "out"), "the first row is published")
        with closing(sqlite3.connect(file)) as old, closing(sqlite3.connect(other)) as new:
            old.backup(new)
        other.replace(file)
        log.write(2)
        until(lambda: ["2"] in published(tmp_path / "out").values(), "the second row is published")
    assert list(published(tmp_path / "out").values()) == [["1"], ["2"]]


def test_a_file_that_is_gone_is_told_and_none_is_made_in_its_place(
    log: LogTable, sqlite: Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, aside = Path(sqlite.url.database or "").absolute(), tmp_path / "aside.db"
    with in_thread(Publisher(config_of(sqlite, tmp_path / "out"))):
        log.write(1)
        until(lambda: published(tmp_path / "out"), "the first row is published")
        file.rename(aside)
        until(lambda: any(TOLD in str(vars(record)) for record in caplog.records), "somebody says it")
        assert not file.exists()
        aside.rename(file)
        log.write(2)
        until(lambda: ["2"] in published(tmp_path / "out").values(), "the second row is published")
    assert list(published(tmp_path / "out").values()) == [["1"], ["2"]]
