"""What executors do, one step after the other and without Spark, makes the files of the local engine of any rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyarrow import parquet

from eventlog.convert import local, partitions, plan
from eventlog.convert.collecting import WrittenChanges
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.inputs import units
from eventlog.convert.plan import PartSpan, part_spans
from eventlog.convert.reading import read
from eventlog.convert.settings import Conversion, FilesInput, MessageFiles, TableFiles, Target
from eventlog.convert.writing import PartTasks
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.xds.write import XdsFormat
from eventlog_spark import exchange, parting
from eventlog_spark.deciding import CHANGES, ENDED, ENDS, BucketRules, decide_buckets, gather_changes, together
from eventlog_spark.exchange import NOTES, scatter_rows
from eventlog_spark.parting import outcomes_in_order, part_files, rows_of_blobs
from eventlog_spark.storing import part_count
from tests.spark.inputs import order
from tests.support.converting import files_of, write_parquet
from tests.support.writers import COLUMNS, Writers, rows_of

BUCKETS = 8
TASKS = 3
FILE_ROWS = 33
FORMS: list[Target] = [
    XdsFormat(),
    TableFiles(settings=ChangeTableSettings(partition_every=60)),
    MessageFiles(settings=MessageSettings(topic="{table}", mode="metadata", metadata_topic="meta")),
]


@pytest.fixture(autouse=True)
def _many_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "SAMPLED_CHANGES", 7)
    monkeypatch.setattr(parting, "PIECE_BYTES", 300)
    for module in (plan, exchange):
        monkeypatch.setattr(module, "RANGE_ROWS", 20)


@pytest.mark.parametrize("transactions", ["mixed", "whole"])
@pytest.mark.parametrize("form", FORMS, ids=["documents", "partitioned tables", "messages"])
def test_the_files_are_those_of_the_local_engine(
    tmp_path: Path, form: Target, transactions: Literal["mixed", "whole"]
) -> None:
    rows = rows_of(Writers(9).write(120))
    source = write_parquet(tmp_path / "a.parquet", Random(2).sample(rows, len(rows)), COLUMNS)
    conversion = order(source, tmp_path / "here", format=form, part_events=30, transactions=transactions)
    here = local.convert(conversion, jobs=1)
    made = decided_rows(conversion)
    told = together(row.column("content")[0].as_py() for row in made[NOTES])
    assert len(told.boundaries) > 2
    changes, written = made[CHANGES], list[WrittenChanges](told.buckets)
    if conversion.gathers:
        found = several(made[CHANGES] + made[ENDS], lambda row: value(row, "bucket") % TASKS)
        step = [row for rows in found.values() for row in each(gather_changes(conversion, told.boundaries, iter(rows)))]
        by_kind = several(step, lambda row: value(row, "kind"))
        changes = by_kind[CHANGES]
        written = [msgspec.json.decode(value(row, "content"), type=WrittenChanges) for row in by_kind[NOTES]]
    assert files_in_parts(conversion, changes, written) == contents(tmp_path / "here", here.parts)
    ended = Counter[int]()
    for bucket in told.buckets:
        ended.update(bucket.ended.counted())
    spans = list(part_spans(ended, FILE_ROWS, 1))
    files = [
        [row for batch in outcomes_in_order(spans, iter(rows)) for row in batch.to_pylist()]
        for rows in by_task(made[ENDED], spans)
    ]
    assert {len(rows) for rows in files[:-1]} == {FILE_ROWS}
    assert [row for rows in files for row in rows] == (
        parquet.read_table(tmp_path / "here" / OUTCOMES_FILE).to_pylist()
    )


def decided_rows(conversion: Conversion) -> dict[int, list[pa.RecordBatch]]:
    """What the tasks make that decide the buckets, by its kind."""
    source = conversion.input
    assert isinstance(source, FilesInput)
    rows = (batch for unit in units(source) for batch in read(unit))
    blobs = each(scatter_rows(conversion.catalog, BUCKETS, TASKS, rows))
    rules = BucketRules(conversion=conversion)
    tasks = several(blobs, lambda row: value(row, "bucket") % TASKS).values()
    return several(
        (row for blobs in tasks for row in each(decide_buckets(rules, iter(blobs)))), lambda row: value(row, "kind")
    )


def files_in_parts(
    conversion: Conversion, changes: Sequence[pa.RecordBatch], written: Sequence[WrittenChanges]
) -> dict[str, Any]:
    """The files of all parts, and how many parts they are of."""
    tasks = PartTasks(conversion=conversion, changes=tuple(written), tables=None, folder="", staged="")
    wanted = list(tasks.each(at_once=1) if isinstance(conversion.format, TableFiles) else tasks.each())
    pieces: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for blobs in by_task(changes, [task.span for task in wanted]):
        for row in each(part_files([replace(task, rendered=()) for task in wanted], iter(blobs))):
            pieces[value(row, "path")] += row.to_pylist()
    return {name: whole(name, found) for name, found in pieces.items()} | {
        "parts": part_count([("", name) for name in pieces])
    }


def whole(name: str, pieces: list[dict[str, Any]]) -> Any:
    """A file of its pieces; a table's as rows, in the order that they say."""
    if pieces[0]["layout"] is None:
        return b"".join(piece["text"].encode() + b"\n" for piece in pieces)
    columns = [pa.array([name] * len(pieces)), pa.array([piece["content"] for piece in pieces], pa.binary())]
    batch = pa.RecordBatch.from_arrays(columns, names=["path", "content"])
    rows = pa.Table.from_batches(list(rows_of_blobs("path_", "row", iter([batch]))))
    assert rows.column("row").to_pylist() == list(range(len(rows)))
    assert set(rows.column("path_").to_pylist()) == {name}
    return rows.drop_columns(["path_", "row"]).to_pylist()


def contents(folder: Path, parts: int) -> dict[str, Any]:
    """The files that the local engine made of changes; a table's as rows."""
    names = [name for name in files_of(folder) if Path(name).suffix in (".xml", ".jsonl", ".parquet")]
    found = {
        name: parquet.read_table(folder / name).to_pylist() if name.endswith("parquet") else files_of(folder)[name]
        for name in names
        if name != OUTCOMES_FILE
    }
    return found | {"parts": parts}


def by_task(blobs: Sequence[pa.RecordBatch], spans: Sequence[PartSpan]) -> Iterator[list[pa.RecordBatch]]:
    """The blobs for each task, in no order, as Spark brings them."""
    for number, span in enumerate(spans):
        meant = [blob for blob in blobs if span.range <= value(blob, "bucket") <= span.until]
        yield [
            pa.RecordBatch.from_arrays(
                [pa.array([number], pa.int32()), blob.column("bucket"), blob.column("content")],
                names=["task", "label", "content"],
            )
            for blob in Random(number).sample(meant, len(meant))
        ]


def each(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows, one by one."""
    return (batch.slice(place, 1) for batch in batches for place in range(len(batch)))


def several(rows: Iterable[pa.RecordBatch], key: Callable[[pa.RecordBatch], Any]) -> dict[Any, list[pa.RecordBatch]]:
    found: dict[Any, list[pa.RecordBatch]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return found


def value(row: pa.RecordBatch, name: str) -> Any:
    return row.column(name)[0].as_py()
