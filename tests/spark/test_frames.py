"""The rules on DataFrames give what the local engine gives: documents byte for byte, and the outcome of every row."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from sqlalchemy import Engine

import eventlog_spark
from eventlog.convert import local
from eventlog.convert.settings import DatabaseRows, SnapshotRows
from eventlog.core.errors import DataError, UsageError
from eventlog.core.rules import Options
from eventlog.policies import steps
from eventlog.sql.names import STANDARD
from eventlog.sql.reflect import reflect
from eventlog_spark import frames
from tests.spark.inputs import Row, many_histories, order, rows_of, write_rows, write_snapshot
from tests.support.strategies import CATALOG, History

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TYPES = ", ".join(f"{name} {'bigint' if name in ('record_id', 'event_type') else 'string'}" for name in STANDARD)
TIME = "2026-01-01 00:00:00"


def bodies(documents: DataFrame) -> list[bytes]:
    return [row.body.encode() for row in documents.where("body IS NOT NULL").orderBy("position").collect()]


def outcomes(decided: eventlog_spark.Decisions) -> list[tuple[object, ...]]:
    return sorted(map(tuple, decided.outcomes.collect()), key=repr)


def locally(folder: Path, rows: list[Row], **told: object) -> tuple[list[bytes], list[tuple[object, ...]]]:
    """The documents and outcomes of the local engine, a change in each document."""
    (folder / "in").mkdir()
    write_rows(folder / "in" / "all.parquet", rows)
    local.convert(order(folder / "in", folder / "here", part_events=1, **told), jobs=1)
    ended = parquet.read_table(folder / "here" / "outcomes.parquet").to_pylist()
    parts = sorted((folder / "here").glob("part-*.xml"))
    return [part.read_bytes() for part in parts], sorted((tuple(row.values()) for row in ended), key=repr)


@pytest.mark.in_turn
@settings(max_examples=4)
@given(many_histories(), st.integers(0, 2**32), st.booleans(), st.booleans())
def test_random_histories_in_any_order(
    spark: SparkSession, history: History, seed: int, coalesce: bool, known: bool
) -> None:
    rows = rows_of(history.events)
    catalog, options = (CATALOG if known else None), Options(coalesce=coalesce)
    with TemporaryDirectory() as folder:
        documents, ended = locally(Path(folder), rows, catalog=catalog, options=options)
        mixed = write_rows(Path(folder) / "mixed.parquet", Random(seed).sample(rows, len(rows)))
        found = eventlog_spark.events(spark.read.parquet(str(mixed)))
        decided = eventlog_spark.decide(found, catalog, options=options).persisted()
        written = eventlog_spark.documents(decided.changes, decided.catalog)
        assert bodies(written) == documents
        # The outcomes are the rules'; what a format cannot write stands in its own frame.
        refused = {one: one[3] for one in ended if one[2] in ("refused", "altered")}
        assert {row.note for row in written.where("note IS NOT NULL").collect()} == set(refused.values())
        assert outcomes(decided) == sorted(
            [(one[0], "S", "published", None) if one in refused else one for one in ended], key=repr
        )


def test_rows_that_stand_twice_and_rows_that_contradict_each_other(spark: SparkSession, tmp_path: Path) -> None:
    def row(number: int | None, key: str, new: str) -> Row:
        return number, "N", 1, TIME, "app", "usr", key, "fname", None, new

    rows = [row(1, "idu=1", "a"), row(2, "idu=2", "b"), row(3, "idu=3", "c"), row(1, "idu=1", "a")]
    rows += [row(2, "idu=2", "B"), row(3, "idu=33", "c"), row(None, "idu=4", "d"), row(5, 'idu="1"', "e")]
    decided = eventlog_spark.decide(eventlog_spark.events(spark.createDataFrame(rows, TYPES)), CATALOG).persisted()
    documents, ended = locally(tmp_path, rows)
    assert bodies(eventlog_spark.documents(decided.changes, decided.catalog)) == documents
    assert outcomes(decided) == ended


def test_columns_of_other_types_and_in_another_order(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[Row] = [
        (number, "N", 1, TIME, "app", "usr", f"idu={number}", "fname", None, "x") for number in range(1, 9)
    ]
    types = {"record_id": "decimal(38,10)", "event_type": "string", "event_time": "timestamp"}
    frame = spark.createDataFrame(rows, TYPES)
    names = [*reversed(STANDARD)]
    frame = frame.selectExpr(*[f"CAST({name} AS {types.get(name, 'string')}) AS {name.upper()}" for name in names])
    decided = eventlog_spark.decide(eventlog_spark.events(frame), CATALOG)
    documents, _ = locally(tmp_path, rows)
    assert bodies(eventlog_spark.documents(decided.changes, decided.catalog)) == documents


def test_read_backs_are_answered_by_a_database_and_policies_act_before_anybody_sees_a_value(
    spark: SparkSession, sqlite: Engine, tmp_path: Path
) -> None:
    with sqlite.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT, lname TEXT)")
        connection.exec_driver_sql("CREATE TABLE usr_phone (idu INTEGER, phoneno TEXT)")
        connection.exec_driver_sql("INSERT INTO usr VALUES (1, 'Ann', 'Secret'), (2, 'Bob', 'Secret')")
        connection.exec_driver_sql("INSERT INTO usr_phone VALUES (1, '12'), (1, '34')")
    rows: list[Row] = [(n, "N", 5, TIME, "app", "usr", f"idu={n}", None, None, None) for n in (1, 2, 3)]
    told = (steps.Drop(attributes=("lname",)), steps.Rename(class_name="User", attributes={"fname": "Name"}))
    found = eventlog_spark.events(spark.createDataFrame(rows, TYPES))
    decided = eventlog_spark.decide(found, CATALOG, rows=str(sqlite.url), policies=told, unique=True).persisted()
    documents, ended = locally(tmp_path, rows, read_back=DatabaseRows(url=str(sqlite.url)), steps=told)
    assert bodies(eventlog_spark.documents(decided.changes, decided.catalog)) == documents
    assert outcomes(decided) == ended
    assert [row[2] for row in ended] == ["published", "published", "vanished"]
    assert "Secret" not in repr(decided.changes.collect())


def test_a_reference_is_spelled_as_the_row_that_it_names(spark: SparkSession, sqlite: Engine, tmp_path: Path) -> None:
    """As the local engine does, which makes documents of changes in the same process."""
    with sqlite.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE p (k TEXT COLLATE NOCASE PRIMARY KEY NOT NULL, v TEXT)")
        connection.exec_driver_sql("CREATE TABLE t (id INTEGER PRIMARY KEY, r TEXT REFERENCES p (k))")
        connection.exec_driver_sql("INSERT INTO p VALUES ('Ab', 'x')")
    catalog = reflect(sqlite, ["p", "t"])
    rows: list[Row] = [(1, "N", 1, TIME, "app", "t", "id=1", "r", None, "aB")]
    found = eventlog_spark.events(spark.createDataFrame(rows, TYPES))
    decided = eventlog_spark.decide(found, catalog, rows=str(sqlite.url), unique=True).persisted()
    documents, _ = locally(tmp_path, rows, catalog=catalog, read_back=DatabaseRows(url=str(sqlite.url)))
    assert bodies(eventlog_spark.documents(decided.changes, decided.catalog)) == documents
    assert b'association-ref="k=Ab,table=p"' in documents[0]


def test_what_is_missing_is_told_in_a_sentence(spark: SparkSession) -> None:
    with pytest.raises(DataError, match="The frame has no column status, "):
        eventlog_spark.events(spark.createDataFrame([(1,)], "record_id bigint"))
    with pytest.raises(UsageError, match="There is no format csv"):
        eventlog_spark.documents(spark.createDataFrame([(1,)], "position bigint"), format="csv")


@settings(max_examples=3)
@given(many_histories(), st.integers(0, 2**32), st.booleans())
def test_read_backs_are_answered_by_frames_of_tables(
    spark: SparkSession, history: History, seed: int, children: bool
) -> None:
    """As by a snapshot of the same tables, also where batches and chunks are small."""
    rows = rows_of(history.events)
    with TemporaryDirectory() as folder:
        snapshot = write_snapshot(Path(folder) / "snapshot", history)
        if not children:
            (snapshot / "usr_phone.jsonl").unlink()
        documents, ended = locally(Path(folder), rows, read_back=SnapshotRows(folder=snapshot))
        tables = {"usr": spark.read.parquet(str(snapshot / "usr.parquet"))}
        if children:
            tables["usr_phone"] = spark.read.schema("idu bigint, phoneno string").json(f"{snapshot}/*.jsonl")
        mixed = write_rows(Path(folder) / "mixed.parquet", Random(seed).sample(rows, len(rows)))
        found = eventlog_spark.events(spark.read.parquet(str(mixed)))
        decided = eventlog_spark.decide(found, CATALOG, rows=tables, unique=True).persisted()
        assert bodies(eventlog_spark.documents(decided.changes, decided.catalog)) == documents
        assert {one[:3] for one in outcomes(decided)} == {
            (*one[:1], "S", "published") if one[2] in ("refused", "altered") else one[:3] for one in ended
        }


def test_there_are_as_many_buckets_as_the_input_is_worth(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """512 of them for a few rows cost seven times as much as the rules."""
    small = spark.range(100)
    assert frames._buckets(small) == 1
    monkeypatch.setattr(frames, "BUCKET_BYTES", 1)
    # At most several for each task of Spark's.
    assert frames._buckets(small) == 2 << int(spark.conf.get("spark.sql.shuffle.partitions") or 1).bit_length()
