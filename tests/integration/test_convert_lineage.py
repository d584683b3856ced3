"""Lineage of a conversion: a run with its tables and its output."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from eventlog.cli.main import main
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
