"""What goes wrong on Spark: the output is complete or absent, and who runs it again gets the same bytes."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from eventlog.convert import local
from eventlog.convert.commit import Summary
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


def truncated(folder: Path) -> None:
    write_rows(folder / "a.parquet", rows(100))
    whole = gzip.compress(b'{"record_id": 101}\n' * 10_000)
    (folder / "b.jsonl.gz").write_bytes(whole[: len(whole) // 2])


def damaged(folder: Path) -> None:
    path = write_rows(folder / "a.parquet", rows(20_000))
    content = bytearray(path.read_bytes())
    content[1_000:30_000] = bytes(29_000)
    path.write_bytes(content)


def never_closed(folder: Path) -> None:
    text = write_rows(folder / "a.csv", rows(50)).read_text()
    (folder / "a.csv").write_text(text.replace(",new 30\n", ',"new 30\n', 1))


def without_columns(folder: Path) -> None:
    (folder / "a.csv").write_text("record_id,status\n1,N\n")


@pytest.mark.parametrize(
    "made, said",
    [
        (truncated, r"b\.jsonl\.gz cannot be read"),
        (damaged, r"a\.parquet cannot be read"),
        (never_closed, r"a\.csv, line 31: a quote"),
        (without_columns, r"a\.csv has no column event_type"),
    ],
)
def test_an_input_that_cannot_be_read_is_named_and_nothing_is_published(
    spark: SparkSession, tmp_path: Path, made: Callable[[Path], None], said: str
) -> None:
    (tmp_path / "in").mkdir()
    made(tmp_path / "in")
    with pytest.raises(DataError, match=said):
        convert(order(tmp_path / "in", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(4))
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        convert(order(tmp_path / "in", tmp_path / "out"))
    assert output(tmp_path / "out") == {"mine.txt": b"mine"}


@pytest.mark.parametrize("where", ["in a folder", "at an address"])
def test_a_killed_worker_leaves_nothing_that_looks_complete(spark: SparkSession, tmp_path: Path, where: str) -> None:
    (tmp_path / "in").mkdir()
    write_rows(tmp_path / "in" / "a.parquet", rows(60_000))
    places = Addresses(destination=f"file:{tmp_path}/out", inputs=(f"file:{tmp_path}/in",))
    ended: list[EventlogError] = []

    def converted() -> Summary:
        if where == "at an address":
            return convert_at(order(tmp_path / "in", tmp_path / "unused"), places)
        return convert(order(tmp_path / "in", tmp_path / "out"))

    def converting() -> None:
        try:
            converted()
        except EventlogError as error:
            ended.append(error)

    run = Thread(target=converting)
    run.start()
    _kill_workers(run, tmp_path / "out")
    run.join()
    assert [type(error) for error in ended] == [MachineError]
    assert not list((tmp_path / "out").glob("[!_.]*"))
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert converted() == local.convert(order(tmp_path / "in", tmp_path / "here"), jobs=1)
    made, expected = output(tmp_path / "out"), output(tmp_path / "here")
    # Hadoop has sums beside its files, and outcomes are a folder there.
    names = {"part-00000.xml"} if where == "at an address" else {*made, *expected}
    assert {name: made.get(name) for name in names} == {name: expected.get(name) for name in names}


def _kill_workers(run: Thread, destination: Path) -> None:
    """Kills the Python workers of this process's Spark, again and again while it converts."""
    while run.is_alive():
        if (destination / "_temporary-eventlog").exists():
            kill_workers(os.getpid())
        time.sleep(0.05)
