"""A worker that is killed: the output is complete or absent, and who runs it again gets the same bytes."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from eventlog.convert import local
from eventlog.convert.commit import Summary
from eventlog.core.errors import EventlogError, MachineError
from eventlog_spark.addresses import Addresses, convert_at
from eventlog_spark.convert import convert
from tests.spark.inputs import Row, order, output, write_rows
from tests.spark.processes import kill_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("where", ["in a folder", "at an address"])
def test_a_killed_worker_leaves_nothing_that_looks_complete(spark: SparkSession, tmp_path: Path, where: str) -> None:
    (tmp_path / "in").mkdir()
    rows: list[Row] = [
        (number, "N", 1, "2026-01-01 00:00:00", "app", "usr", f"idu={number // 4}", "fname", None, f"new {number}")
        for number in range(1, 60_001)
    ]
    write_rows(tmp_path / "in" / "a.parquet", rows)
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
