"""Lineage of a conversion, and of a publisher: a run with its tables and its output."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner
from sqlalchemy import Engine

from eventlog.cli.main import main
from tests.integration.publishing import Process, finished, site, until
from tests.support.converting import log_row


def test_a_conversion_is_a_run_with_its_tables_and_its_output(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(log_row(1)) + "\n")
    table = {"name": "usr", "columns": [{"name": "idu", "key": 1}, {"name": "fname"}]}
    (tmp_path / "schema.json").write_text(json.dumps({"tables": [table]}))
    (tmp_path / "eventlog.toml").write_text(f'[lineage]\nfile = "{tmp_path}/lineage.jsonl"\n')
    words = ["convert", "files", str(tmp_path / "rows.jsonl"), "--schema", str(tmp_path / "schema.json")]
    words += ["--config", str(tmp_path / "eventlog.toml"), "--engine", "local", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    start, end = [json.loads(line) for line in (tmp_path / "lineage.jsonl").read_text().splitlines()]
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert end["inputs"] == [{"namespace": "file", "name": "usr", "inputFacets": {}}]
    assert end["outputs"] == [{"namespace": "eventlog", "name": str(tmp_path / "out")}]
    assert end["job"]["facets"]["jobType"]["processingType"] == "BATCH"


def test_a_publisher_is_a_run_from_its_start_to_its_end(sqlite: Engine, tmp_path: Path) -> None:
    told = tmp_path / "lineage.jsonl"
    (tmp_path / "eventlog.toml").write_text(f'[lineage]\nfile = "{told}"\nevery = 1\n')
    log = site(sqlite)
    with Process(sqlite, tmp_path / "out", "--config", str(tmp_path / "eventlog.toml")) as process:
        until(lambda: told.exists() and "START" in told.read_text(), "the start")
        log.write_all(range(1, 4))
        until(finished(log, 3), "the rows")
        until(lambda: "RUNNING" in told.read_text(), "news")
        assert process.stop() == 0
    events = [json.loads(line) for line in told.read_text().splitlines()]
    assert [event["eventType"] for event in events] == ["START", "RUNNING", "COMPLETE"]
    assert len({event["run"]["runId"] for event in events}) == 1
    [table] = events[-1]["inputs"]
    assert table["namespace"] == f"file://{sqlite.url.database}"
    assert table["inputFacets"]["inputStatistics"]["rowCount"] == 3
    assert events[-1]["outputs"][0]["namespace"] == "eventlog"
