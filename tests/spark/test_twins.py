"""Spark may run a task twice at the same time, and takes what one of the two says: pure parts, without a Spark."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert import local
from eventlog.convert.commit import SUCCESS
from eventlog.convert.inputs import units
from eventlog.convert.partitions import PartitionFile
from eventlog.convert.plan import PartSpan
from eventlog.convert.reading import read
from eventlog.convert.settings import Conversion, FilesInput
from eventlog.convert.writing import PartTasks, Write, WriteOutcomes, produce
from eventlog_spark.deciding import BucketResult, BucketRules, decide_buckets, do_tasks, pack_tasks, unpack_tasks
from eventlog_spark.exchange import scatter_rows, unbundle_blobs
from tests.spark.inputs import order, output, write_rows
from tests.support.strategies import CATALOG

TWINS = 2


@given(st.lists(st.text(), min_size=1), st.data())
def test_tasks_come_in_their_order_about_as_many_in_each_part(names: list[str], data: st.DataObject) -> None:
    conversion, file = (
        Conversion(input=FilesInput(places=()), destination=Path()),
        PartitionFile(path="a", batches=b"b"),
    )
    tasks: list[Any] = [
        WriteOutcomes(name=name, ended=(file,), folder="", staged="", refused={1: name}) for name in names
    ]
    tasks[0] = part(conversion)
    parts = data.draw(st.integers(1, len(tasks)))
    batches = pack_tasks(tasks, parts).to_batches()
    assert len(batches) == parts
    assert {len(batch) for batch in batches} <= {len(tasks) // parts, -(-len(tasks) // parts)}
    assert list(unpack_tasks(conversion, iter(batches))) == tasks


def part(conversion: Conversion) -> Write:
    """Some of the parts of a conversion, with a table of a stream."""
    span = PartSpan(first=1, last=2, range=0, until=1, skipped=0)
    tables = {7: CATALOG.tables[0]}
    return Write(name="part", conversion=conversion, rendered=(), span=span, tables=tables, folder="", staged="")


def twice(attempt: Callable[[], Any]) -> list[Any]:
    """What two attempts say that begin at one time."""
    begin = Barrier(TWINS)

    def one() -> Any:
        begin.wait()
        return attempt()

    with ThreadPoolExecutor(TWINS) as pool:
        return [future.result() for future in [pool.submit(one) for _ in range(TWINS)]]


def test_two_attempts_of_each_task_leave_the_output_of_one(tmp_path: Path) -> None:
    rows = [(n, "N", 1, "2026-01-01", "app", "usr", f"idu={n % 9}", "fname", None, f"{n}") for n in range(1, 60)]
    conversion = order(write_rows(tmp_path / "rows.parquet", [*rows]), tmp_path / "here", part_events=10)
    local.convert(conversion, jobs=1)
    folder, staged = tmp_path / "work", tmp_path / "work" / "output"
    staged.mkdir(parents=True)
    chosen, other = twice(partial(_decided, conversion, folder))
    assert chosen != other  # each has files of its own
    tasks = PartTasks(
        conversion=conversion, changes=(chosen.decided,), tables=None, folder=str(folder), staged=str(staged)
    )
    outcomes = WriteOutcomes(name="outcomes", ended=(chosen.decided.ended,), folder=str(folder), staged=str(staged))
    several: list[Write | WriteOutcomes] = [outcomes, *tasks.each(at_once=1)]
    for task in several:
        first, second = twice(partial(_written, conversion, task))
        assert first == second
    expected = output(tmp_path / "here")
    assert expected.pop(SUCCESS)
    assert output(staged) == expected


def _decided(conversion: Conversion, folder: Path) -> BucketResult:
    """What an attempt says of the one bucket."""
    source = conversion.input
    assert isinstance(source, FilesInput)
    found = (batch for unit in units(source) for batch in read(unit))
    work = BucketRules(conversion=conversion, tables=(), folder=str(folder))
    answers = [
        blob for batch in decide_buckets(work, scatter_rows(CATALOG, 1, 1, found)) for blob in unbundle_blobs(batch)
    ]
    return msgspec.json.decode(answers[-1].content, type=BucketResult)


def _written(conversion: Conversion, task: Write | WriteOutcomes) -> list[bytes]:
    return [
        bytes(batch.column(0)[0].as_py())
        for batch in do_tasks(produce, conversion, iter(pack_tasks([task]).to_batches()))
    ]
