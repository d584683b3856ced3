"""Captured streams as DataFrames give what the local engine gives of the same files, and say what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyarrow import parquet

import eventlog_spark
from eventlog.convert import local
from eventlog.convert.settings import Conversion, StreamInput, TableFiles
from eventlog.core.errors import DataError, UsageError
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.linter.exports import export_row
from eventlog.sources.linter.settings import LinterSettings
from eventlog_spark import capturing
from eventlog_streams_tools.gbase.emulator import reads, shop, table_record
from tests.spark.test_frames import bodies
from tests.spark.test_outputs import rows_in, rows_of_frames
from tests.support.gbase_streams import OWN, T1, begin, commit, insert
from tests.support.linter import SCHEMA, ended, queued
from tests.support.linter import insert as queued_insert

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOP = GBaseSettings(
    tables={"1": "shop.customer", "2": "shop.purchase"},
    keys={"shop.customer": ("id",), "shop.purchase": ("id",)},
)
STREAM = b"".join(reads(shop(60, seed=3)))
QUEUE = [
    export_row(row)
    for row in queued([queued_insert(1, 7), queued_insert(2, 8), ended(2), ended(1), queued_insert(3, 9)])
]


def here(place: Path, out: Path, settings: GBaseSettings | LinterSettings, **told: object) -> list[tuple[object, ...]]:
    """Converts by the local engine; what became of each image."""
    places = tuple(map(str, sorted(place.iterdir()) if place.is_dir() else [place]))
    order = Conversion(input=StreamInput(places=places, settings=settings), destination=out, **told)  # type: ignore[arg-type]  # words for a Conversion
    local.convert(order, jobs=1)
    return [tuple(row.values()) for row in parquet.read_table(out / "outcomes.parquet").to_pylist()]


def outcomes_of(found: eventlog_spark.Captures) -> list[tuple[object, ...]]:
    told = found.outcomes.where("position IS NOT NULL").orderBy("position")
    return [tuple(row) for row in told.select("source_position", "status", "reason", "note").collect()]


@pytest.mark.in_turn
def test_a_capture_of_gbase_is_told_as_by_the_local_engine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In several files that are cut anywhere, in a folder whose name needs quoting, in small chunks."""
    monkeypatch.setattr(capturing, "CHUNK_BYTES", 1000)
    place = tmp_path / "a capture, 100%"
    place.mkdir()
    size = -(-len(STREAM) // 3)
    for number in range(3):
        (place / f"{number}.bin").write_bytes(STREAM[number * size : (number + 1) * size])
    expected = here(place, tmp_path / "xds", SHOP, part_events=1)
    found = eventlog_spark.captures(spark, str(place), SHOP).persisted()
    written = eventlog_spark.documents(found.changes, found.catalog())
    assert bodies(written) == [part.read_bytes() for part in sorted((tmp_path / "xds").glob("part-*.xml"))]
    assert outcomes_of(found) == expected
    assert found.damage.isEmpty()
    here(place, tmp_path / "tables", SHOP, format=TableFiles())
    tables = eventlog_spark.change_tables(found.changes, found.catalog()).persisted()
    assert rows_of_frames(tables.tables()) == rows_in(tmp_path / "tables")
    told = found.changes.selectExpr("count(captured.transaction)", "count(captured.committed)", "count(*)").first()
    assert told is not None
    assert told[0] == told[1] == told[2] > 0


def test_captures_stand_side_by_side_and_a_damaged_one_says_so(spark: SparkSession, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.bin", tmp_path / "cut.bin"
    good = table_record(T1) + begin(1) + insert(2, 1) + commit(3)
    whole.write_bytes(good)
    cut.write_bytes(good + begin(4) + insert(5, 2)[:-3])
    found = eventlog_spark.captures(spark, [str(cut), str(whole)], OWN).persisted()
    keys = [tuple(row) for row in found.changes.select("capture", "table_key").orderBy("position").collect()]
    assert keys == [(str(cut), "c1=1"), (str(whole), "c1=1")]
    [damage] = found.damage.collect()
    assert damage.capture == str(cut)
    assert str(cut) in damage.note
    assert damage.note.endswith("Everything before it is there.")
    counts = {tuple(row) for row in found.outcomes.groupBy("capture", "status").count().collect()}
    assert counts == {(str(cut), "S", 1), (str(cut), "E", 1), (str(whole), "S", 1)}


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_queue_of_linter_is_told_as_by_the_local_engine(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    settings, catalog = LinterSettings(code_page="cp1251"), SCHEMA
    place = tmp_path / f"queue.{kind}"
    if kind == "jsonl":
        place.write_text("".join(json.dumps(row) + "\n" for row in QUEUE))
    else:
        import pyarrow as pa

        parquet.write_table(pa.Table.from_pylist(QUEUE), place)
    expected = here(place, tmp_path / "xds", settings, part_events=1, catalog=catalog)
    found = eventlog_spark.captures(spark, f"file:{place}", settings, catalog)
    written = eventlog_spark.documents(found.changes, catalog)
    assert bodies(written) == [part.read_bytes() for part in sorted((tmp_path / "xds").glob("part-*.xml"))]
    assert outcomes_of(found) == expected
    assert [row.note for row in found.notes.collect()] == ["The queue ends with 1 open transaction: left out."]


def test_what_is_no_capture_is_told_in_a_sentence(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(STREAM)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="There is no file at "):
        eventlog_spark.captures(spark, str(tmp_path / "empty"), SHOP)
    with pytest.raises(UsageError, match="only numbers of tables"):
        eventlog_spark.captures(spark, str(tmp_path), LinterSettings())
    with pytest.raises(DataError, match="does not say where a read ends"):
        eventlog_spark.captures(spark, str(tmp_path / "a.bin"), GBaseSettings(dirty=True))
