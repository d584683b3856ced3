"""Whole transactions on Spark: the bytes of the local engine, and a sentence where Spark cannot have them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from eventlog.convert import local, plan
from eventlog.convert.settings import (
    Conversion,
    LogInput,
    MessageFiles,
    TableFiles,
    Target,
)
from eventlog.core.errors import UsageError
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.xds.write import XdsFormat
from eventlog_spark import change_tables, cutting, decide, events, exchange, messages, numbering
from eventlog_spark.convert import convert
from eventlog_spark.following import Following, follow
from eventlog_spark.numbering import SEQUENCE
from tests.spark.inputs import order
from tests.spark.test_outputs import rows_in, rows_of_frames
from tests.support.converting import files_of, write_csv, write_parquet
from tests.support.strategies import CATALOG
from tests.support.writers import COLUMNS, Writers, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MESSAGES = MessageFiles(settings=MessageSettings(topic="{table}", mode="metadata", metadata_topic="meta"))
AVRO = MessageFiles(settings=MessageSettings(topic="{table}", encoding="avro"))
FORMS: list[Target] = [XdsFormat(), TableFiles(), MESSAGES, AVRO]


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (plan, cutting):
        monkeypatch.setattr(module, "BUCKET_ROWS", 20)
    for module in (plan, exchange):
        monkeypatch.setattr(module, "RANGE_ROWS", 20)


@pytest.mark.parametrize("form", FORMS)
def test_files(spark: SparkSession, tmp_path: Path, form: Target) -> None:
    rows = rows_of(Writers(9).write(200))
    mixed = Random(2).sample(rows, len(rows))
    (tmp_path / "in").mkdir()
    write_parquet(tmp_path / "in" / "a.parquet", mixed[::2], COLUMNS)
    write_csv(tmp_path / "in" / "b.csv", mixed[1::2], COLUMNS)
    told: dict[str, Any] = {"format": form, "part_events": 30, "transactions": "whole"}
    here = local.convert(order(tmp_path / "in", tmp_path / "here", **told), jobs=1)
    assert convert(order(tmp_path / "in", tmp_path / "there", **told)) == here
    assert here.parts > 2
    assert files_of(tmp_path / "there") == files_of(tmp_path / "here")


def test_frames(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages and rows in the order of their numbers are those of the local engine's files."""
    monkeypatch.setattr(numbering, "RANGE_BITS", 3)  # so that numbers go on from one stretch to the next
    source = write_parquet(tmp_path / "log.parquet", rows_of(Writers(11).write(150)), COLUMNS)
    form = MessageSettings(topic="{table}")
    told: dict[str, Any] = {"transactions": "whole", "part_events": 1000}
    local.convert(order(source, tmp_path / "messages", format=MessageFiles(settings=form), **told), jobs=1)
    local.convert(order(source, tmp_path / "tables", format=TableFiles(), **told), jobs=1)
    found = events(spark.read.parquet(str(source)))
    changes = decide(found, CATALOG, unique=True, transactions="whole").persisted().changes
    made = messages(changes, CATALOG, form, transactions="whole").frame.orderBy(SEQUENCE).collect()
    lines = (tmp_path / "messages" / "usr" / "part-00000.jsonl").read_bytes().splitlines()
    assert [bytes(row["value"]) for row in made] == lines
    assert rows_of_frames(change_tables(changes, CATALOG, transactions="whole").tables()) == rows_in(
        tmp_path / "tables"
    )
    with pytest.raises(UsageError, match="do not say where their transactions end"):
        messages(decide(found, CATALOG, unique=True).changes, CATALOG, transactions="whole")


def test_what_spark_cannot_have_whole_is_refused(tmp_path: Path) -> None:
    log = LogInput(url=f"sqlite:///{tmp_path}/log.db")
    followed = Conversion(input=log, destination=tmp_path / "out", transactions="whole")
    with pytest.raises(UsageError, match="cut into batches, and transactions with it"):
        follow(Following(conversion=followed), lambda _name, _summary: None)
    assert not (tmp_path / "out").exists()
