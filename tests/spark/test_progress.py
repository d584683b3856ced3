"""Who watches a conversion on Spark is told true numbers of rows, or none."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

import eventlog_spark
from eventlog.cli.watching import Counting
from eventlog.convert.commit import Summary
from eventlog_spark import progress
from eventlog_spark.convert import convert
from tests.spark.inputs import Row, order, write_rows
from tests.spark.test_frames import TYPES
from tests.support.strategies import CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[Row] = [(n, "N", 4, "2026-01-01", None, "usr", f"idu={n}", None, None, None) for n in range(1, 6_001)]


class Watch:
    """Notes the stages, and the highest number that was told in each."""

    def __init__(self) -> None:
        self.stages: dict[str, int | None] = {}
        self.tallies: dict[str, Counting] = {}

    def begin(self, stage: str, rows: int | None, tally: Counting) -> None:
        self.stages[stage] = rows
        self.tallies[stage] = tally


@pytest.mark.parametrize(
    "name, total", [("rows.jsonl", None), ("rows.parquet", len(ROWS))], ids=["only judged", "said by Parquet"]
)
def test_a_total_is_true_or_is_not_told(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, total: int | None
) -> None:
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.01)
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / name, ROWS)
    watch = Watch()
    convert(order(tmp_path / "in", tmp_path / "out"), watch=watch)
    assert watch.stages["deciding"] == total
    assert watch.stages["writing"] == len(ROWS)
    assert watch.tallies["deciding"].rows <= len(ROWS)


def test_jobs_are_described_have_a_tag_and_are_logged(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    context = spark.sparkContext
    with caplog.at_level(logging.INFO, "eventlog_spark"), progress.describe_jobs(spark, "deciding"):
        assert {*context.getJobTags()} == {"eventlog"}
        assert context.getLocalProperty("spark.job.description") == "eventlog: deciding"
    assert not {*context.getJobTags()}
    assert context.getLocalProperty("spark.job.description") is None
    assert [message.split(":")[0] for message in caplog.messages] == ["deciding"]


def test_a_platform_that_forbids_metrics_fails_no_conversion(caplog: pytest.LogCaptureFixture) -> None:
    from py4j.protocol import Py4JError

    class Guarded:
        """As clusters that several people share have it."""

        applicationId = "guarded"  # noqa: N815  # Spark's own name

        @property
        def _jsc(self) -> None:
            raise Py4JError("not whitelisted")

    progress.count_conversion(cast("SparkSession", SimpleNamespace(sparkContext=Guarded())), Summary(rows=1))
    assert caplog.messages == ["Spark's metrics do not count the conversion: not whitelisted"]


def test_what_the_rules_meet_is_observed_by_name(spark: SparkSession) -> None:
    from pyspark.sql import Observation

    rows: list[Row] = [
        (1, "N", 1, "2026-01-01", "app", "usr", "idu=1", "fname", None, "Ann"),
        (2, "N", 1, "2026-01-01", "app", "usr", "idu=1", "lname", None, "A"),
        (3, "N", 9, "2026-01-01", "app", "usr", "idu=2", None, None, None),
    ]
    found = eventlog_spark.events(spark.createDataFrame(rows, TYPES))
    observation = Observation("eventlog")
    decided = eventlog_spark.decide(found, CATALOG, unique=True).observed(observation).persisted()
    assert decided.changes.count() == 1
    assert observation.get == {"rows": 3, "changes": 1, "S": 2, "W": 0, "E": 1, "F": 0}
    decided.results.unpersist()
