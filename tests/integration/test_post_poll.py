"""Statements after a cycle, on each database: as somebody wrote them, after active cycles only, and they stop nobody."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.daemon.logging import journal
from eventlog.daemon.publisher import Publisher
from tests.integration.publishing import config_of, site

NOTED = (
    "INSERT INTO cycles SELECT ':a 50% %s %%', count(*) FROM event_log WHERE table_key LIKE 'idu=%' AND status = 'S'"
)


@pytest.mark.parametrize("wrong", ["nonsense %", "INSERT INTO nowhere VALUES ('%s')", "SELECT '"])
def test_a_statement_runs_as_it_is_written_after_cycles_that_published(
    engine: Engine, tmp_path: Path, wrong: str
) -> None:
    log = site(engine)
    log.run("CREATE TABLE cycles (text VARCHAR(20), n INTEGER)")
    told = io.StringIO()
    config = config_of(engine, tmp_path / "out", post_poll_statements=(wrong, NOTED))
    with Publisher(config, journal=journal("json", stream=told)) as publisher:
        assert publisher.run_once().events == 0
        log.write(1)
        assert publisher.run_once().settled == 1
        assert publisher.run_once().events == 0
        log.write(2, event_type=9)
        assert publisher.run_once().errors == 1  # no document, so there was nothing to be active about
    assert log.ask("SELECT text, n FROM cycles") == [(":a 50% %s %%", 1)]
    failures = [line for line in map(json.loads, told.getvalue().splitlines()) if line["action"] == "post_poll_failed"]
    assert [failure["statement"] for failure in failures] == [wrong]


def test_with_delete_from_log_they_find_the_rows_gone(engine: Engine, tmp_path: Path) -> None:
    log = site(engine)
    log.run("CREATE TABLE cycles (n INTEGER)")
    statements = ("INSERT INTO cycles SELECT count(*) FROM event_log",)
    config = config_of(engine, tmp_path / "out", post_poll_statements=statements, delete_from_log=True)
    with Publisher(config) as publisher:
        log.write_all([1, 2])
        assert publisher.run_once().settled == 2
    assert log.ask("SELECT n FROM cycles") == [(0,)]
