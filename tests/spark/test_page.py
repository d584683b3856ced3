"""What the page about Spark shows of DataFrames works as it stands there, and so does the notebook beside it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine

import eventlog_spark
from eventlog.core.schema_file import catalog_to_json
from tests.conformance.event_logs import installed
from tests.spark.inputs import Row, write_rows
from tests.support.converting import outcomes_of
from tests.support.gbase_streams import GOOD
from tests.support.strategies import CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parents[2] / "docs" / "how-to"
PAGE = (HERE / "spark.md").read_text()
NOTEBOOK = json.loads((HERE / "spark.ipynb").read_bytes())


def shown(heading: str, place: Path) -> str:
    """The code below a heading, with its files in a folder."""
    code = PAGE.split(f"{heading}\n")[1].split("```python\n")[1].split("```")[0]
    return re.sub(r'"((?:schema\.json|archive/|captures/|documents/|sent/|checkpoint/)[^"]*)"', rf'"{place}/\1"', code)


def test_the_rules_on_dataframes(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "schema.json").write_bytes(catalog_to_json(CATALOG))
    (tmp_path / "archive").mkdir()
    rows: list[Row] = [
        (number, "N", 1, "2026-01-01", "app", "usr", f"idu={number}", "fname", None, "Ann") for number in range(1, 4)
    ]
    write_rows(tmp_path / "archive" / "a.parquet", [*rows, (4, *rows[0][1:2], 9, *rows[0][3:])])
    exec(shown("## The rules on DataFrames", tmp_path), {"spark": spark})  # noqa: S102  # the page's own words
    said = capsys.readouterr().out
    assert re.search(r"S\|published\|\s+3\|", said)
    assert re.search(r"E\|\s*invalid\|\s+1\|", said)
    assert re.search(r"add\|\s*usr\| fname\|\s+3\|", said)
    written = spark.read.parquet(str(tmp_path / "documents")).orderBy("position").collect()
    assert [row.position for row in written] == [1, 2, 3]
    assert all('<add class-name="usr"' in row.body and row.note is None for row in written)


def test_captures(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "captures" / "monday").mkdir(parents=True)
    (tmp_path / "captures" / "monday" / "1.bin").write_bytes(GOOD)
    (tmp_path / "captures" / "tuesday.bin").write_bytes(GOOD[:-1])
    found: dict[str, Any] = {"spark": spark, "eventlog_spark": eventlog_spark}
    exec(shown("### Captures", tmp_path), found)  # noqa: S102  # the page's own words
    said = capsys.readouterr().out
    assert re.search(r"tuesday.bin\s*\|.*Everything before it is there\.", said)
    assert re.search(r"\|\s+3\|add\|\s+t1\|\s+c1=1\|", said)
    assert found["documents"].count() == 1


@pytest.mark.in_turn
def test_a_stream_is_written(spark: SparkSession, sqlite: Engine, tmp_path: Path) -> None:
    log = installed(sqlite)
    (tmp_path / "schema.json").write_bytes(catalog_to_json(CATALOG))
    spark.dataSource.register(eventlog_spark.EventLogSource)
    places = {"spark": spark, "eventlog_spark": eventlog_spark, "url": str(sqlite.url)}
    for first in (1, 5):
        log.write_all(range(first, first + 4))
        found: dict[str, Any] = dict(places)
        exec(shown("### Write a stream", tmp_path), found)  # noqa: S102  # the page's own words
        found["query"].processAllAvailable()
        found["query"].stop()
    done = sorted((tmp_path / "sent").glob("batch-*"))
    assert [row["position"] for folder in done for row in outcomes_of(folder)] == [*range(1, 9)]
    assert [folder.name for folder in done] == ["batch-00000000", "batch-00000001"]


def test_the_notebook_from_its_first_cell_to_its_last(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    cells = ["".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    found: dict[str, Any] = {}
    for number, cell in enumerate(cells):
        exec(compile(cell, f"cell {number}", "exec"), found)  # noqa: S102  # the notebook's own words
    said = capsys.readouterr().out
    assert found["spark"] is spark
    assert re.search(r"\|4 +\|E +\|invalid ", said)
    assert re.search(r"\|3 +\|modify\|idu=1 +\|lname +\|\[Smith\]\|\[Jones\]\|", said)
    assert '<add class-name="usr"' in said
    assert re.search(r"\|U +\|1 +\|NULL +\|Jones", said)
    assert re.search(r'\|usr +\|.*"lname":"Jones"', said)


def test_the_notebook_is_kept_without_what_a_run_of_it_leaves() -> None:
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert [(cell["outputs"], cell["execution_count"]) for cell in cells] == [([], None)] * len(cells)
