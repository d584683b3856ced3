"""The sink `eventlog`: a stream's rows become what `eventlog convert` makes of them, each once, whatever stops it when."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from eventlog.core.errors import ConfigError, DataError, EventlogError, SinkError, UsageError
from eventlog_spark.faults import arriving
from eventlog_spark.sink import NEW, NOTE, ROWS, SinkOptions, StreamFolder, sink_options
from eventlog_spark.source import EventLogSource
from tests.conformance.event_logs import LogTable, installed
from tests.support.converting import log_row, outcomes_of
from tests.support.lakes import LAKES, Lake
from tests.support.sinks import KilledError, dying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SCHEMA = """{"tables": [{"name": "usr", "columns": [
    {"name": "idu", "type": "integer", "key": 1}, {"name": "fname", "type": "varchar(8)"}]}]}"""


def words(folder: Path, kind: str) -> tuple[Lake, dict[str, str]]:
    """A lake, and the options by which a stream goes there."""
    lake = LAKES[kind](folder / "lake", "mirror")
    (folder / "schema.json").write_text(SCHEMA)
    catalog = getattr(lake.settings, "catalog", {})
    said = f'catalog = {{ type = "sql", uri = "{catalog["uri"]}" }}' if catalog else ""
    (folder / "eventlog.toml").write_text(
        f'[[output]]\nname = "lake"\nsink = "{kind}"\npath = "{lake.settings.path}"\nmode = "mirror"\n{said}\n'
    )
    options = {"out": str(folder / "sent"), "to": "change-tables", "to-lake": "lake"}
    return lake, options | {"config": str(folder / "eventlog.toml"), "schema": str(folder / "schema.json")}


def run(spark: SparkSession, log: LogTable, checkpoint: Path, options: dict[str, str]) -> None:
    """A stream until nothing is left."""
    rows = spark.readStream.format("eventlog").option("url", str(log.engine.url)).option("rows", "3").load()
    writer = rows.writeStream.format("eventlog").options(**options).option("checkpointLocation", str(checkpoint))
    query: StreamingQuery = writer.start()
    try:
        with arriving():
            query.processAllAvailable()
    finally:
        query.stop()


@pytest.fixture
def log(sqlite: Engine, spark: SparkSession) -> LogTable:
    spark.dataSource.register(EventLogSource)
    return installed(sqlite)


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", sorted(LAKES))
def test_a_stream_keeps_a_mirror_and_goes_on_from_its_checkpoint(
    spark: SparkSession, log: LogTable, tmp_path: Path, kind: str
) -> None:
    lake, options = words(tmp_path, kind)
    for number in (1, 2, 3, 4):
        log.write(number, f"idu={number}", column_name="fname", new_value=f"n{number}")
    run(spark, log, tmp_path / "checkpoint", options)
    log.write(5, "idu=2", event_type=4, column_name=None, new_value=None)
    log.write(6, "idu=3", event_type=2, column_name="fname", old_value="n3", new_value="new")
    log.write(7, "idu=7", event_type=9)
    run(spark, log, tmp_path / "checkpoint", options)
    assert [(row["idu"], row["fname"]) for row in lake.rows("usr")] == [(1, "n1"), (3, "new"), (4, "n4")]
    done = sorted(tmp_path.glob("sent/batch-*"))
    assert [row["position"] for folder in done for row in outcomes_of(folder)] == [*range(1, 8)]
    assert not list(tmp_path.glob("sent/_rows/*"))


def brought(out: Path, *numbers: int) -> list[str]:
    """A file of rows, as a task leaves it."""
    (out / ROWS).mkdir(parents=True, exist_ok=True)
    name = f"{NEW}{numbers[0]}-{len(list((out / ROWS).iterdir()))}.parquet"
    rows = [log_row(number, table_key=f"idu={number}", new_value=f"n{number}") for number in numbers]
    pq.write_table(pa.Table.from_pylist(rows), out / ROWS / name)
    return [name]


@pytest.mark.in_turn
def test_who_dies_at_any_step_of_a_commit_leaves_each_row_once(tmp_path: Path) -> None:
    """A batch comes again with other files, and the rows of its first time count. Each run asks another third of the steps."""
    for before in count(random.randrange(1, 4), 3):
        folder = tmp_path / str(before)
        folder.mkdir()
        lake, given = words(folder, "delta")
        options = sink_options(given)
        StreamFolder(options).take(0, "q", brought(options.out, 1, 2))
        with dying(before) as died, suppress(KilledError):
            StreamFolder(options).take(1, "q", brought(options.out, 3))
        for _ in range(2):
            StreamFolder(options).take(1, "q", brought(options.out, 3))
        StreamFolder(options).take(2, "q", brought(options.out, 4))
        assert lake.keys("usr") == [1, 2, 3, 4]
        numbers = [row["position"] for place in sorted(options.out.glob("batch-*")) for row in outcomes_of(place)]
        assert numbers == [1, 2, 3, 4]
        shutil.rmtree(folder)
        if not died.happened:
            break
    assert before > 10


@pytest.mark.parametrize(
    "spoil, kind, said",
    [
        (lambda out: (out / "else").write_text("x"), UsageError, "is not empty"),
        (lambda out: (out / NOTE).write_text("{"), DataError, "cannot be read"),
        (lambda out: (out / NOTE).write_text('{"query": "other"}'), UsageError, "another stream"),
    ],
)
def test_a_folder_of_somebody_else_is_refused(
    tmp_path: Path, spoil: Callable[[Path], Any], kind: type[EventlogError], said: str
) -> None:
    options = SinkOptions(out=tmp_path, words=())
    files = brought(tmp_path, 1)
    spoil(tmp_path)
    with pytest.raises(kind, match=said):
        StreamFolder(options).take(0, "q", files)
    assert not list(tmp_path.glob("batch-*"))


def test_two_streams_at_once_are_told_apart(tmp_path: Path) -> None:
    from eventlog.sources.stream.claim import Claim
    from eventlog_spark.sink import LOCK

    claim = Claim(tmp_path / LOCK)
    assert claim.take()
    with pytest.raises(SinkError, match="Another stream writes into"):
        StreamFolder(SinkOptions(out=tmp_path, words=())).take(0, "q", [])
    claim.leave()


@pytest.mark.parametrize(
    "options, said",
    [
        ({}, "must name a folder"),
        ({"out": "s3a://bucket/x"}, "must name a folder"),
        ({"out": "x", "mark": "true"}, "no option mark"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        sink_options(options)


def test_words_that_do_not_go_together_are_told(tmp_path: Path) -> None:
    options = sink_options({"out": str(tmp_path), "to": "documents"})
    with pytest.raises(UsageError, match="documents"):
        StreamFolder(options).take(0, "q", brought(tmp_path, 1))
