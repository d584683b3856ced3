"""A stream whose batches `convert_batches` converts: each row once, whatever stops it when; to a lake, and to folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from eventlog.core.errors import EventlogError, UsageError
from eventlog.sources.stream.claim import Claim
from eventlog_spark import EventLogSource, convert_batches
from eventlog_spark.batches import LOCK, LOG
from eventlog_spark.faults import arriving
from tests.conformance.event_logs import LogTable, installed
from tests.support.converting import elements_of, outcomes_of
from tests.support.lakes import LAKES, Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SCHEMA = """{"tables": [{"name": "usr", "columns": [
    {"name": "idu", "type": "integer", "key": 1}, {"name": "fname", "type": "varchar(8)"}]}]}"""


def words(folder: Path, kind: str) -> tuple[Lake, dict[str, str]]:
    """A lake, and the words by which a stream goes there."""
    lake = LAKES[kind](folder / "lake", "mirror")
    (folder / "schema.json").write_text(SCHEMA)
    catalog = getattr(lake.settings, "catalog", {})
    said = f'catalog = {{ type = "sql", uri = "{catalog["uri"]}" }}' if catalog else ""
    (folder / "eventlog.toml").write_text(
        f'[[output]]\nname = "lake"\nsink = "{kind}"\npath = "{lake.settings.path}"\nmode = "mirror"\n{said}\n'
    )
    given = {"to": "change-tables", "output": "lake", "config": str(folder / "eventlog.toml")}
    return lake, given | {"schema": str(folder / "schema.json")}


def run(spark: SparkSession, log: LogTable, checkpoint: Path, out: Path, **words: str) -> None:
    """A stream of batches of three rows, until nothing is left."""
    rows = spark.readStream.format("eventlog").option("url", str(log.engine.url)).option("rows", "3").load()
    writer = rows.writeStream.foreachBatch(convert_batches(str(out), **words))
    query: StreamingQuery = writer.option("checkpointLocation", str(checkpoint)).start()
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
    lake, given = words(tmp_path, kind)
    for number in (1, 2, 3, 4):
        log.write(number, f"idu={number}", column_name="fname", new_value=f"n{number}")
    run(spark, log, tmp_path / "checkpoint", tmp_path / "sent", **given)
    log.write(5, "idu=2", event_type=4, column_name=None, new_value=None)
    log.write(6, "idu=3", event_type=2, column_name="fname", old_value="n3", new_value="new")
    log.write(7, "idu=7", event_type=9)
    run(spark, log, tmp_path / "checkpoint", tmp_path / "sent", **given)
    assert [(row["idu"], row["fname"]) for row in lake.rows("usr")] == [(1, "n1"), (3, "new"), (4, "n4")]
    done = sorted(tmp_path.glob("sent/batch-*"))
    assert [row["position"] for folder in done for row in outcomes_of(folder)] == [*range(1, 8)]
    assert not list(tmp_path.glob("sent/_rows/*"))


def test_a_batch_whose_number_has_a_digit_more_is_a_later_one(
    spark: SparkSession, log: LogTable, tmp_path: Path
) -> None:
    """As texts the names would be in the other order, and the batch would be taken for one that is done."""
    convert = convert_batches(str(tmp_path / "out"), to="xds", schema=str(tmp_path / "schema.json"))
    (tmp_path / "schema.json").write_text(SCHEMA)
    for number in (99_999_999, 100_000_000):
        log.write(number, f"idu={number % 7}", column_name="fname", new_value="Ada")
        rows = spark.read.format("eventlog").option("url", str(log.engine.url)).load()
        convert(rows.filter(f"record_id = {number}"), number)
    done = sorted(folder.name for folder in (tmp_path / "out").glob("batch-*"))
    assert done == ["batch-100000000", "batch-99999999"]


def test_a_stream_gives_what_the_command_gives(spark: SparkSession, log: LogTable, tmp_path: Path) -> None:
    # A log's tables lie beside it, tracked or not; the command reads there what they look like.
    log.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(8))")
    for number in (1, 2):
        log.write(number, f"idu={number}", event_time="2026-01-02 03:04:05.678901", new_value=f"n{number}")
    run(spark, log, tmp_path / "checkpoint", tmp_path / "out", to="xds")
    assert (
        exit_code(
            ["convert", "database", str(log.engine.url), "--out", str(tmp_path / "there"), "--engine", "local[1]"]
        )
        == 0
    )
    assert elements_of(tmp_path / "out" / "batch-00000000") == elements_of(tmp_path / "there")


@pytest.mark.parametrize(
    "name, content, said",
    [("else", "x", "is not empty"), (LOG, "the stream other", "has what was converted of the stream other")],
)
def test_a_folder_of_somebody_else_is_refused(
    spark: SparkSession, log: LogTable, tmp_path: Path, name: str, content: str, said: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).write_text(content)
    log.write(1)
    with pytest.raises(UsageError, match=said):
        run(spark, log, tmp_path / "checkpoint", out)
    assert not list(out.glob("batch-*"))


def test_two_streams_at_once_are_told_apart(spark: SparkSession, log: LogTable, tmp_path: Path) -> None:
    claim = Claim(tmp_path / LOCK)
    assert claim.take()
    log.write(1)
    with pytest.raises(EventlogError, match="Another command or stream writes into"):
        run(spark, log, tmp_path / "checkpoint", tmp_path)
    claim.leave()


@pytest.mark.parametrize(
    "words, said",
    [
        ({"overwrite": True}, "--overwrite means nothing for the batches of a stream"),
        ({"to": "documents"}, "documents"),
        ({"to_lak": "x"}, "--to-lak"),
    ],
)
def test_words_that_mean_nothing_are_refused_before_the_stream_begins(words: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        convert_batches("out", **words)


@pytest.mark.parametrize("way", ["write", "writeStream"])
def test_who_writes_into_a_log_is_told_what_to_do(spark: SparkSession, log: LogTable, tmp_path: Path, way: str) -> None:
    def write() -> None:
        if way == "write":
            spark.range(1).write.format("eventlog").mode("append").save()
        else:
            rows = spark.readStream.format("eventlog").option("url", str(log.engine.url)).load()
            writer = rows.writeStream.format("eventlog").option("out", "sent/")
            writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().processAllAvailable()

    with pytest.raises(UsageError, match=rf"{way}.* writes nothing: only triggers .*convert_batches"), arriving():
        write()
