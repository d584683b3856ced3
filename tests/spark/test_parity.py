"""Spark writes what the local engine writes, byte for byte, however the input is cut, mixed and ordered."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.convert import local
from eventlog.convert.settings import Conversion, FilesInput, MessageFiles, SnapshotRows, TableFiles
from eventlog.core.errors import ConfigError
from eventlog.core.outputs import PlaceKind
from eventlog.core.rules import Options
from eventlog.policies.bound import Policy
from eventlog.policies.steps import place_steps
from eventlog.sql.names import NEW_ORDER, STANDARD
from eventlog.xds.write import XdsFormat
from eventlog_spark import cutting
from eventlog_spark.convert import convert
from tests.spark.inputs import Row, many_histories, order, output, rows_of, write_rows, write_snapshot
from tests.spark.test_parity_formats import FORMS
from tests.support.converting import files_of
from tests.support.daily import daily
from tests.support.strategies import CATALOG, History, policies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = (".parquet", ".jsonl", ".csv", ".jsonl.gz", ".csv.gz")
PLACES: dict[type, PlaceKind] = {XdsFormat: "folder", TableFiles: "table", MessageFiles: "topic"}
pieces = st.lists(st.sampled_from(KINDS), min_size=1, max_size=6)


@st.composite
def conversions(draw: st.DrawFn) -> Conversion:
    """Any format behind any policies; from where and to where is said later."""
    form = draw(st.sampled_from([XdsFormat(), *FORMS]))
    steps = draw(st.just(()) | policies())
    try:
        Policy(steps, CATALOG)
    except ConfigError:
        assume(False)
    told = order(Path(), Path(), part_events=draw(st.sampled_from([1, 3, 100])), format=form)
    options = Options(coalesce=draw(st.booleans()))
    return replace(told, options=options, steps=place_steps(steps, PLACES[type(form)], "a conversion"))


@pytest.mark.in_turn
@daily
@settings(max_examples=6)
@given(many_histories(), conversions(), st.integers(0, 2**32), pieces, st.booleans())
def test_random_histories_in_shuffled_files_of_any_kind(
    spark: SparkSession, history: History, told: Conversion, seed: int, kinds: list[str], read_back: bool
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutting, "BUCKET_ROWS", 4)
        patch.setattr(cutting, "CORE_TASKS", 1)  # so that a task has several buckets
        place = Path(folder)
        snapshot = SnapshotRows(folder=write_snapshot(place / "snapshot", history)) if read_back else None
        rows = rows_of(history.events)
        one = FilesInput(places=(str(write_rows(place / "all.parquet", rows)),))
        many = FilesInput(places=(str(place / "many"),))
        write_shuffled(place / "many", rows, kinds, Random(seed))
        told = replace(told, read_back=snapshot)
        here = local.convert(replace(told, input=one, destination=place / "here"), jobs=1)
        assert convert(replace(told, input=many, destination=place / "there")) == here
        assert files_of(place / "there") == files_of(place / "here")


def write_shuffled(folder: Path, rows: list[Row], kinds: list[str], mix: Random) -> None:
    """The rows in files of these kinds, dealt out at random, each with its columns in an order of its own."""
    folder.mkdir()
    dealt: list[list[Row]] = [[] for _ in kinds]
    for row in rows:
        mix.choice(dealt).append(row)
    for number, (kind, some) in enumerate(zip(kinds, dealt, strict=True)):
        mix.shuffle(some)
        write_rows(folder / f"{mix.randrange(10**6)}-{number}{kind}", some, mix.choice([STANDARD, NEW_ORDER]))


def test_an_input_without_rows_has_outcomes_and_no_part(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "empty.parquet", [])
    assert convert(order(tmp_path / "in", tmp_path / "there")).rows == 0
    local.convert(order(tmp_path / "in", tmp_path / "here"), jobs=1)
    assert output(tmp_path / "there") == output(tmp_path / "here")


def test_rows_that_stand_twice_and_rows_that_contradict_each_other(spark: SparkSession, tmp_path: Path) -> None:
    def row(number: int, key: str, new: str) -> Row:
        return number, "N", 1, "2026-01-01 00:00:00", "app", "usr", key, "fname", None, new

    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.csv", [row(1, "idu=1", "a"), row(2, "idu=2", "b"), row(3, "idu=3", "c")])
    write_rows(tmp_path / "in" / "b.jsonl", [row(1, "idu=1", "a"), row(2, "idu=2", "B"), row(3, "idu=33", "c")])
    done = convert(order(tmp_path / "in", tmp_path / "there"))
    assert (done.rows, done.duplicates, done.statuses) == (6, 1, {"E": 4, "S": 1})
    assert local.convert(order(tmp_path / "in", tmp_path / "here"), jobs=1) == done
    assert output(tmp_path / "there") == output(tmp_path / "here")


def test_one_object_with_more_rows_than_are_held_at_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(2):
        numbers = range(number + 1, 60_001, 2)
        rows = [(n, "N", 2, "2026-01-01 00:00:00", "app", "usr", "idu=1", "fname", f"{n - 1}", f"{n}") for n in numbers]
        write_rows(tmp_path / "in" / f"{number}.parquet", rows)
    done = convert(order(tmp_path / "in", tmp_path / "there", part_events=25_000))
    assert (done.changes, done.parts) == (60_000, 3)
    local.convert(order(tmp_path / "in", tmp_path / "here", part_events=25_000), jobs=1)
    assert output(tmp_path / "there") == output(tmp_path / "here")


def test_what_spark_reads_elsewhere_and_writes_as_parquet_is_input(spark: SparkSession, tmp_path: Path) -> None:
    """As JDBC gives rows: numbers as decimals, times as timestamps."""
    rows = [
        (number, "N", 1, "2026-01-01 00:00:00", "app", "usr", f"idu={number % 9}", "fname", None, f"{number}")
        for number in range(1, 200)
    ]
    names = [name.upper() for name in STANDARD]
    found = spark.createDataFrame(rows, ", ".join(f"{name} string" for name in names))
    types = {"RECORD_ID": "decimal(38,10)", "EVENT_TYPE": "decimal(2,0)", "EVENT_TIME": "timestamp"}
    cast = found.selectExpr(*[f"CAST({name} AS {types.get(name, 'string')}) AS {name}" for name in names])
    cast.repartition(3).write.parquet(str(tmp_path / "in"))
    (tmp_path / "plain").mkdir()
    write_rows(tmp_path / "plain" / "all.parquet", rows)
    convert(order(tmp_path / "in", tmp_path / "there"))
    local.convert(order(tmp_path / "plain", tmp_path / "here"), jobs=1)
    assert output(tmp_path / "there") == output(tmp_path / "here")
