"""Who watches a conversion on Spark is told true numbers of rows, or none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventlog.convert.work import SharedTally
from eventlog_spark import progress
from eventlog_spark.convert import convert
from tests.spark.inputs import Row, order, write_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[Row] = [(n, "N", 4, "2026-01-01", None, "usr", f"idu={n}", None, None, None) for n in range(1, 6_001)]


class Watch:
    """Notes the stages, and the highest number that was told in each."""

    def __init__(self) -> None:
        self.stages: dict[str, int | None] = {}
        self.tallies: dict[str, SharedTally] = {}

    def begin(self, stage: str, rows: int | None, tally: SharedTally) -> None:
        self.stages[stage] = rows
        self.tallies[stage] = tally


def converted(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Watch:
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.01)
    (folder / "in").mkdir()
    write_rows(folder / "in" / name, ROWS)
    watch = Watch()
    convert(order(folder / "in", folder / "out"), watch=watch)
    return watch


def test_nobody_is_told_a_total_that_is_only_judged(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = converted(tmp_path, "rows.jsonl", monkeypatch)
    assert watch.stages["deciding"] is None
    assert watch.stages["writing"] == len(ROWS)
    assert watch.tallies["deciding"].rows == len(ROWS)


def test_what_parquet_says_is_a_total(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = converted(tmp_path, "rows.parquet", monkeypatch)
    assert watch.stages["deciding"] == len(ROWS)
    assert watch.tallies["deciding"].rows <= len(ROWS)
