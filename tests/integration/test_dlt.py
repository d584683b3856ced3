"""The resource of dlt: changes from the log's database into DuckDB, through documents; again after a restart."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from eventlog.testing import Capture
from tests.support.logged import USR, run

dlt = pytest.importorskip("dlt", reason="dlt and DuckDB are not installed: pip install 'dlt[duckdb]'")
pytest.importorskip("duckdb", reason="dlt and DuckDB are not installed: pip install 'dlt[duckdb]'")


def test_changes_are_merged_and_nothing_is_loaded_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "dlt_resource"))
    sys.modules.pop("eventlog_dlt", None)
    changes = import_module("eventlog_dlt").changes

    engine = create_engine(f"sqlite:///{tmp_path / 'app.db'}")
    run(engine, *USR)
    capture = Capture(engine, tmp_path / "out", "usr", events="image", format="jsonl")
    pipeline = dlt.pipeline(
        "people",
        pipelines_dir=str(tmp_path / "pipelines"),
        destination=dlt.destinations.duckdb(str(tmp_path / "target.duckdb")),
        dataset_name="people",
    )

    def loaded() -> list[tuple[int, str]]:
        pipeline.run(changes(str(tmp_path / "out")))
        with pipeline.sql_client() as client:
            rows = client.execute_sql("SELECT idu, fname FROM usr ORDER BY idu")
        return [(int(number), str(name)) for number, name in rows or ()]

    run(engine, "INSERT INTO usr VALUES (1, 'a', 'x', 3)", "INSERT INTO usr VALUES (2, 'b', 'y', 4)")
    run(engine, "UPDATE usr SET fname = 'c' WHERE idu = 1")
    capture.published()
    assert loaded() == [(1, "c"), (2, "b")]
    assert loaded() == [(1, "c"), (2, "b")]
    run(engine, "DELETE FROM usr WHERE idu = 2", "UPDATE usr SET fname = 'd' WHERE idu = 1")
    run(engine, "INSERT INTO usr VALUES (3, 'e', 'z', 5)")
    capture.published()
    assert loaded() == [(1, "d"), (3, "e")]
