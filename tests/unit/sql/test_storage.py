"""Tablespaces and partitions of a log: what is refused, and what reaches a database that is connected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import create_engine

from eventlog.capture.install import install, install_sql
from eventlog.capture.log_tables import Storage
from eventlog.cli.main import main
from eventlog.core.errors import ConfigError, UsageError


@pytest.mark.parametrize("name", ["", "a b", '"D"', "1D", "D" * 31, "D; DROP"])
def test_a_tablespace_is_a_plain_name(name: str) -> None:
    with pytest.raises(UsageError, match="is no name of a tablespace"):
        Storage(tablespace=name)


@pytest.mark.parametrize("storage", [Storage(tablespace="d"), Storage(partition_rows=1000)])
def test_a_database_without_such_storage_refuses_it(storage: Storage) -> None:
    with pytest.raises(ConfigError, match="where to put tables"):
        install_sql("sqlite://", storage=storage)
    with pytest.raises(ConfigError, match="where to put tables"):
        install(create_engine("sqlite://"), storage=storage)


def test_every_table_key_and_index_lies_where_it_was_asked_for() -> None:
    script = install_sql("oracle://", storage=Storage(tablespace="log_data"))
    made = re.findall(r"CREATE (?:TABLE|(?:UNIQUE )?INDEX) .*?(?=';$)", script, flags=re.MULTILINE | re.DOTALL)
    assert len(made) > 10
    assert [one for one in made if "TABLESPACE log_data" not in one] == []
    assert [one for one in made if one.count("PRIMARY KEY") > one.count("USING INDEX TABLESPACE log_data")] == []
    assert "VALUES (''log tablespace'', ''log_data'')" in script


def test_the_log_alone_has_partitions() -> None:
    script = install_sql("oracle://", storage=Storage(partition_rows=5000))
    assert script.count("PARTITION BY RANGE (record_id) INTERVAL (5000)") == 1
    assert script.count(" USING INDEX LOCAL") == 1
    assert "TABLESPACE" not in script


def test_who_asks_for_a_place_of_a_log_that_is_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    database = f"sqlite:///{tmp_path / 'log.db'}"
    engine = create_engine(database)
    assert [install(engine), install(engine)] == [True, False]
    engine.dispose()
    monkeypatch.setattr("eventlog.capture.install.install", lambda *_given: False)
    said = CliRunner().invoke(main, ["install", "--database", database, "--partition-rows", "5000"])
    assert (said.exit_code, "is not moved" in said.stderr) == (0, True)
