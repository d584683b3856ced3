"""The resource of dlt: changes from the log's database into DuckDB, through documents; each load is a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from eventlog.testing import Capture
from tests.support.levels import ROOT
from tests.support.logged import USR, run
from tests.support.servers import found

LOAD = """
import json, sys
import dlt
from eventlog_dlt import changes

published, folder = sys.argv[1:]
target = dlt.destinations.duckdb(folder + "/target.duckdb")
pipeline = dlt.pipeline("people", pipelines_dir=folder + "/pipelines", destination=target, dataset_name="people")
pipeline.run(changes(published))
with pipeline.sql_client() as client:
    rows = client.execute_sql("SELECT idu, fname FROM usr ORDER BY idu")
print(json.dumps([list(row) for row in rows]))
"""


@pytest.mark.in_turn  # each load imports dlt anew
def test_changes_are_merged_and_nothing_is_loaded_twice(tmp_path: Path) -> None:
    packages = found("dlt", "dlt")
    surroundings = {
        **os.environ,
        "HOME": str(tmp_path),
        "PYTHONPATH": f"{packages}:{ROOT / 'dlt_resource'}",
        "RUNTIME__DLTHUB_TELEMETRY": "false",
    }
    engine = create_engine(f"sqlite:///{tmp_path / 'app.db'}")
    run(engine, *USR)
    capture = Capture(engine, tmp_path / "out", "usr", events="image", format="jsonl")

    def loaded() -> list[list[object]]:
        words = [sys.executable, "-c", LOAD, str(tmp_path / "out"), str(tmp_path)]
        done = subprocess.run(words, env=surroundings, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        rows: list[list[object]] = json.loads(done.stdout.splitlines()[-1])
        return rows

    run(engine, "INSERT INTO usr VALUES (1, 'a', 'x', 3)", "INSERT INTO usr VALUES (2, 'b', 'y', 4)")
    run(engine, "UPDATE usr SET fname = 'c' WHERE idu = 1")
    capture.published()
    assert loaded() == [[1, "c"], [2, "b"]]
    assert loaded() == [[1, "c"], [2, "b"]]
    run(engine, "DELETE FROM usr WHERE idu = 2", "UPDATE usr SET fname = 'd' WHERE idu = 1")
    run(engine, "INSERT INTO usr VALUES (3, 'e', 'z', 5)")
    capture.published()
    assert loaded() == [[1, "d"], [3, "e"]]
