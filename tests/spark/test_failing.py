"""What goes wrong on Spark: the output is complete or absent, and who runs it again gets the same bytes."""

from __future__ import annotations

import gzip
import os
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from eventlog.convert import local
from eventlog.core.errors import DataError, EventlogError, MachineError, UsageError
from eventlog_spark.addresses import Addresses, convert_at
from eventlog_spark.convert import convert
from tests.spark.inputs import Row, order, output, write_rows
from tests.spark.processes import kill_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rows(count: int) -> list[Row]:
    return [
        (number, "N", 1, "2026-01-01 00:00:00", "app", "usr", f"idu={number // 4}", "fname", None, f"new {number}")
        for number in range(1, count + 1)
    ]


def test_a_truncated_file_is_named_and_nothing_is_published(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(100))
    whole = gzip.compress(b'{"record_id": 101}\n' * 10_000)
    (tmp_path / "in" / "b.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"b\.jsonl\.gz cannot be read"):
        convert(order(tmp_path / "in", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_damage_inside_parquet_is_named_and_nothing_is_published(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = write_rows(tmp_path / "in" / "a.parquet", rows(20_000))
    content = bytearray(path.read_bytes())
    content[1_000:30_000] = bytes(29_000)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.parquet cannot be read"):
        convert(order(tmp_path / "in", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_quote_that_is_never_closed_is_named_with_its_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    text = write_rows(tmp_path / "in" / "a.csv", rows(50)).read_text().replace(",new 30\n", ',"new 30\n', 1)
    (tmp_path / "in" / "a.csv").write_text(text)
    with pytest.raises(DataError, match=r"a\.csv, line 31: a quote"):
        convert(order(tmp_path / "in", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_missing_column_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("record_id,status\n1,N\n")
    with pytest.raises(DataError, match=r"a\.csv has no column event_type"):
        convert(order(tmp_path / "in", tmp_path / "out"))


def test_a_folder_that_holds_something_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(4))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        convert(order(tmp_path / "in", tmp_path / "out"))
    assert output(tmp_path / "out") == {"mine.txt": b"mine"}


def test_a_killed_worker_leaves_nothing_that_looks_complete(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(60_000))
    ended: list[EventlogError] = []

    def converting() -> None:
        try:
            convert(order(tmp_path / "in", tmp_path / "out"))
        except EventlogError as error:
            ended.append(error)

    run = Thread(target=converting)
    run.start()
    _kill_workers(run, tmp_path / "out")
    run.join()
    assert [type(error) for error in ended] == [MachineError]
    assert not list((tmp_path / "out").glob("[!_]*"))
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    convert(order(tmp_path / "in", tmp_path / "out"))
    local.convert(order(tmp_path / "in", tmp_path / "here"), jobs=1)
    assert output(tmp_path / "out") == output(tmp_path / "here")


@pytest.mark.in_turn
def test_a_killed_worker_leaves_nothing_complete_at_an_address(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(60_000))
    places = Addresses(destination=f"file:{tmp_path}/out", inputs=(f"file:{tmp_path}/in",))
    conversion = order(tmp_path / "in", tmp_path / "here")
    ended: list[EventlogError] = []

    def converting() -> None:
        try:
            convert_at(conversion, places)
        except EventlogError as error:
            ended.append(error)

    run = Thread(target=converting)
    run.start()
    _kill_workers(run, tmp_path / "out")
    run.join()
    assert [type(error) for error in ended] == [MachineError]
    assert not list((tmp_path / "out").glob("[!_.]*"))
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert convert_at(conversion, places) == local.convert(conversion, jobs=1)
    name = "part-00000.xml"
    assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def _kill_workers(run: Thread, destination: Path) -> None:
    """Kills the Python workers of this process's Spark, again and again while it converts."""
    while run.is_alive():
        if (destination / "_temporary-eventlog").exists():
            kill_workers(os.getpid())
        time.sleep(0.05)
