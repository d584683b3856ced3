"""The SQL of installation for every database, printed without connecting to one."""

from __future__ import annotations

import re

import pytest

from eventlog.capture.install import install_sql, uninstall_sql
from eventlog.sql.names import LogNames

URLS = ["sqlite://", "postgresql://", "oracle://", "mysql://", "mariadb://"]


@pytest.mark.parametrize("url", URLS)
def test_a_script_has_nothing_in_it_that_only_a_driver_understands(url: str) -> None:
    script = install_sql(url)
    assert "%%" not in script
    assert ":ret" not in script
    assert "%(" not in script


def test_postgresql_gets_the_one_index_that_was_measured_best() -> None:
    script = install_sql("postgresql://")
    assert "CREATE UNIQUE INDEX event_log_new ON event_log (record_id) WHERE status = 'N'" in script
    assert "PRIMARY KEY (record_id)" not in script[: script.index("event_log_outcome")]


def test_names_are_free_and_quoted_where_they_need_it() -> None:
    names = LogNames(table="Log", schema="own", columns=("id", "st", "type", "at", "who", "table", "k", "c", "o", "n"))
    script = install_sql("postgresql://", names)
    assert 'CREATE TABLE own."Log" (' in script
    assert '"table" TEXT NOT NULL' in script
    assert 'CREATE DOMAIN own."Log_letter" AS CHAR(1)' in script
    assert "st own.\"Log_letter\" DEFAULT 'N' NOT NULL" in script
    assert "CHECK (c IS NOT NULL OR type BETWEEN 4 AND 6)" in install_sql("sqlite://", names)
    assert "WHERE st = 'N'" in script


@pytest.mark.parametrize("url", URLS)
def test_every_table_beside_the_log_has_a_primary_key(url: str) -> None:
    """Servers refuse one without (sql_require_primary_key, Galera, Group Replication), or cannot replicate it."""
    tables = re.findall(r"CREATE TABLE (\S+) \((.*?)^\)", install_sql(url), re.MULTILINE | re.DOTALL)
    keyless = [name for name, columns in tables if "PRIMARY KEY" not in columns]
    assert len(tables) == 18 + (url == "sqlite://")  # what sessions say there stands in a table
    assert keyless == (["event_log"] if url == "postgresql://" else [])


@pytest.mark.parametrize("url", URLS)
def test_taking_off_is_printed_for_every_database_and_takes_off_all_that_is_made(url: str) -> None:
    made = re.findall(r"CREATE (TABLE|DOMAIN|SEQUENCE) (\S+)", install_sql(url))
    script = uninstall_sql(url)
    assert made
    assert [thing for thing in made if not re.search(rf"DROP {thing[0]} (IF EXISTS )?{thing[1]}\b", script)] == []
    assert "-- Without a database to look at. Take the triggers off first" in script
    assert [part for part in ("%%", ":ret", "%(") if part in script] == []


def test_the_sequence_that_was_asked_for_goes_too() -> None:
    names = LogNames(schema="INDIRECT", sequence="EVENT_LOG_SEQ")
    assert 'DROP SEQUENCE "INDIRECT"."EVENT_LOG_SEQ"' in uninstall_sql("oracle://", names)
    assert "SEQUENCE" not in uninstall_sql("oracle://")
