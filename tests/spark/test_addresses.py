"""What a conversion writes to an address is what the local engine writes to a folder: on files and an HDFS."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from pyarrow import parquet

from eventlog.convert import local
from eventlog.convert.commit import SUCCESS, WORK, Summary
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.convert.settings import MessageFiles, SentMessages, SnapshotRows, StreamInput, TableFiles, Target
from eventlog.core.errors import UsageError
from eventlog.core.model import RowId
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.change_files.settings import RowFileSettings
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog_spark import cutting, storing
from eventlog_spark.addresses import Addresses, convert_at
from eventlog_spark.hadoop import HadoopFolder
from tests.spark.inputs import Row, order, write_rows, write_snapshot
from tests.support.changerows import CSV
from tests.support.converting import files_of
from tests.support.fetching import fetched
from tests.support.servers import found, free_port
from tests.support.strategies import PHONE, History

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S3A = "fs.s3a"
ROWS: list[Row] = [
    (
        number,
        "N",
        (1, 2, 5)[number % 3],
        f"2026-01-0{number % 3 + 1}",
        "app",
        "usr",
        f"idu={number % 7}",
        "fname",
        None,
        "é",
    )
    for number in range(1, 13)  # each change is a task of Spark where a part holds one
]
ROWS += [
    (40, "N", 9, None, None, "usr", "idu=1", None, None, None),
    (3, "N", 1, "2026-01-01", "app", "usr", "idu=9", "fname", None, "x"),
]


@pytest.fixture(autouse=True)
def several_buckets_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "OUTCOME_ROWS", 5)
    monkeypatch.setattr(cutting, "BUCKET_ROWS", 2)
    monkeypatch.setattr(cutting, "CORE_TASKS", 1)


def inputs(folder: Path) -> None:
    """Rows in two kinds of files, and a table that answers read-backs."""
    history = History()
    for number in range(5):
        history.rows[RowId(None, "usr", f"idu={number}")] = {"fname": f"F{number}", "lname": "L", PHONE: set()}
    (write_snapshot(folder / "snapshot", history) / "usr_phone.jsonl").unlink()
    (folder / "in").mkdir()
    write_rows(folder / "in" / "a.parquet", ROWS[::3])
    write_rows(folder / "in" / "b.csv.gz", ROWS[1::3])
    write_rows(folder / "in" / "c é+.csv", ROWS[2::3])


def told(folder: Path, form: Target | None = None) -> dict[str, Any]:
    """What both engines are ordered to do."""
    return {"part_events": 3, "read_back": SnapshotRows(folder=folder / "snapshot")} | (
        {"format": form} if form else {}
    )


@contextmanager
def hdfs(spark: SparkSession, folder: Path) -> Iterator[str]:
    """A name node and a data node in the JVM of the session."""
    found("hadoop", "hadoop")
    jvm: Any = spark._jvm  # a small cluster has no other door
    conf = jvm.org.apache.hadoop.conf.Configuration()
    builder = getattr(jvm.org.apache.hadoop.hdfs, "MiniDFSCluster$Builder")(
        conf, jvm.java.io.File(str(folder / "hdfs"))
    )
    cluster = builder.numDataNodes(1).build()
    try:
        yield f"{cluster.getURI().toString()}/data"
    finally:
        cluster.shutdown(True)


@contextmanager
def hdfs_apart(spark: SparkSession, folder: Path) -> Iterator[str]:
    """The same, and workers that do not see the folder of the driver: something else is mounted there, for them alone."""
    alone = ["unshare", "--mount", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"']
    if subprocess.run([*alone, str(folder), "true"], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces: only root may make them, and not in every container")
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.join(alone)} {folder} {sys.executable} "$@"\n')
    python.chmod(0o755)
    context = spark.sparkContext
    with hdfs(spark, folder) as address, pytest.MonkeyPatch.context() as patch:
        patch.setattr(context, "pythonExec", str(python))
        seen = context.range(1).map(lambda _: os.listdir(folder)).collect()  # noqa: PTH208  # a Path would be no less
        assert seen == [[]]
        yield address


@contextmanager
def s3a(spark: SparkSession, folder: Path) -> Iterator[str]:
    """A bucket of a server on the loopback that speaks S3. It answers 100 to whoever expects that, which S3A is told not to."""
    found("s3", "s3")
    packages = found("s3", "moto")
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    surroundings = {**os.environ, "PYTHONPATH": str(packages)}
    with (
        (folder / "moto.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=surroundings) as server,
    ):
        try:
            _make_bucket(f"http://127.0.0.1:{port}/bucket", server)
            jvm: Any = spark._jvm  # a bucket has no other door
            jsc: Any = spark._jsc  # where Spark's own file systems look
            settings = {"endpoint": f"http://127.0.0.1:{port}", "endpoint.region": "us-east-1"}
            settings |= {"path.style.access": "true", "connection.expect.continue": "false"}
            settings |= {"input.stream.type": "classic"}  # the other one remembers what was overwritten since
            for key, value in {**settings, "access.key": "test", "secret.key": "test"}.items():
                jsc.hadoopConfiguration().set(f"{S3A}.{key}", value)
            try:
                yield "s3a://bucket/data"
            finally:
                # Hadoop keeps what it has opened of a bucket, with the port of this server.
                jvm.org.apache.hadoop.fs.Path("s3a://bucket").getFileSystem(jsc.hadoopConfiguration()).close()
        finally:
            server.terminate()


def settings_of(spark: SparkSession) -> list[str]:
    """What a Spark of its own must be told to find the same systems."""
    jsc: Any = spark._jsc  # where Spark's own file systems look
    names = ("endpoint", "endpoint.region", "path.style.access", "connection.expect.continue", "input.stream.type")
    conf = {name: jsc.hadoopConfiguration().get(f"{S3A}.{name}") for name in (*names, "access.key", "secret.key")}
    jars = [f"{folder}/*" for folder in map(fetched, ("hadoop", "s3")) if folder is not None]
    told = {f"spark.hadoop.{S3A}.{name}": value for name, value in conf.items() if value}
    told["spark.driver.extraClassPath"] = os.pathsep.join(jars)
    return [f"{key}={value}" for key, value in told.items()]


def _make_bucket(address: str, server: subprocess.Popen[bytes]) -> None:
    """Makes a bucket as soon as the server answers."""
    while server.poll() is None:
        try:
            urllib.request.urlopen(urllib.request.Request(address, method="PUT"), timeout=60).close()  # noqa: S310  # our own
        except OSError:
            time.sleep(0.1)  # a server that starts tells nobody
            continue
        return
    raise AssertionError("moto has ended")


@contextmanager
def files(spark: SparkSession, folder: Path) -> Iterator[str]:
    yield f"file:{folder}/data"


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "system", [hdfs_apart, *[pytest.param(one, marks=pytest.mark.long) for one in (files, hdfs, s3a)]]
)
def test_documents_on_every_file_system(spark: SparkSession, tmp_path: Path, system: Any) -> None:
    inputs(tmp_path)
    conversion = order(tmp_path / "in", tmp_path / "here", **told(tmp_path))
    here = local.convert(conversion, jobs=1)
    with system(spark, tmp_path) as base:
        folder = HadoopFolder(spark, base)
        brought(spark, tmp_path / "in", f"{base}/in")
        brought(spark, tmp_path / "snapshot", f"{base}/snapshot")
        places = Addresses(destination=f"{base}/out", inputs=(f"{base}/in/*",), snapshot=f"{base}/snapshot")
        left = f"{base}/out/{WORK}/output-0/left.parquet"  # by a driver that was killed
        brought(spark, tmp_path / "in" / "a.parquet", left)
        assert convert_at(replace(conversion, part_events=1), places).parts == here.changes
        with pytest.raises(UsageError, match="is not empty"):
            convert_at(conversion, places)
        assert convert_at(replace(conversion, overwrite=True), places) == here
        folder.copy_out("out", str(tmp_path / "there"))
    expected, written = files_of(tmp_path / "here"), without_sums(tmp_path / "there")
    assert outcomes_at(tmp_path / "there") == parquet.read_table(tmp_path / "here" / OUTCOMES_FILE).to_pylist()
    assert {name: content for name, content in written.items() if not name.startswith(OUTCOMES_FILE)} == {
        name: content for name, content in expected.items() if name != OUTCOMES_FILE
    }
    assert {"eventlog: deciding", "eventlog: writing"} <= jobs(spark)


def brought(spark: SparkSession, file: Path, address: str) -> None:
    """Copies a file or a folder of this machine to an address."""
    jvm: Any = spark._jvm  # the file systems of Hadoop
    jsc: Any = spark._jsc  # the same
    place = jvm.org.apache.hadoop.fs.Path
    place(address).getFileSystem(jsc.hadoopConfiguration()).copyFromLocalFile(place(f"file:{file}"), place(address))


def without_sums(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in files_of(folder).items() if not name.endswith(".crc")}


def outcomes_at(folder: Path) -> list[dict[str, Any]]:
    """The outcomes: full files of them in their order, and one with the rest."""
    found = [parquet.read_table(file).to_pylist() for file in sorted((folder / OUTCOMES_FILE).glob("part-*.parquet"))]
    assert [len(rows) for rows in found[:-1]] == [storing.OUTCOME_ROWS] * (len(found) - 1)
    assert len(found) > 1
    return [row for rows in found for row in rows]


def jobs(spark: SparkSession) -> set[str]:
    """The names of all jobs, as Spark's UI shows them."""
    jsc: Any = spark._jsc  # what the UI asks
    listed = jsc.sc().statusStore().jobsList(None)
    described = [listed.apply(place).description() for place in range(listed.size())]
    return {str(one.get()) for one in described if one.isDefined()}


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "form",
    [
        TableFiles(settings=ChangeTableSettings(mask="hex", partition_every=60)),
        MessageFiles(settings=MessageSettings(topic="{table}", mode="metadata", metadata_topic="meta")),
        TableFiles(files=CSV),
    ],
    ids=["change tables", "messages", "csv"],
)
def test_rows_and_messages(spark: SparkSession, tmp_path: Path, form: Target) -> None:
    inputs(tmp_path)
    conversion = order(tmp_path / "in", tmp_path / "here", **told(tmp_path, form))
    here = local.convert(conversion, jobs=1)
    there = tmp_path / "there"
    places = Addresses(
        destination=f"file:{there}", inputs=(f"file:{tmp_path}/in",), snapshot=f"file:{tmp_path}/snapshot"
    )
    assert convert_at(conversion, places) == here
    assert outcomes_at(there) == parquet.read_table(tmp_path / "here" / OUTCOMES_FILE).to_pylist()
    written = {name: one for name, one in without_sums(there).items() if not name.startswith(OUTCOMES_FILE)}
    expected = files_of(tmp_path / "here")
    expected = {name: one for name, one in expected.items() if "_dfm" not in name and name != OUTCOMES_FILE}
    for name in [name for name in expected if name.endswith(".parquet")]:
        assert parquet.read_table(there / name).to_pylist() == parquet.read_table(tmp_path / "here" / name).to_pylist()
        assert expected.pop(name)
        assert written.pop(name)
    for name in [name for name in expected if name.endswith(".dfm")]:
        assert json.loads(written.pop(name)) == json.loads(expected.pop(name)), "Spark ends it with a line break"
    assert {**written, SUCCESS: b""} == {**expected, SUCCESS: b""}


def test_a_folder_of_others_stands_in_the_way(spark: SparkSession, tmp_path: Path) -> None:
    """An output of ours in its place would take it away."""
    theirs = tmp_path / "there" / "usr__ct" / "theirs.parquet"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"theirs")
    folder = HadoopFolder(spark, f"file:{tmp_path}/there")
    folder.begin(overwrite=True)
    with pytest.raises(UsageError, match="there/usr__ct is there already, and is no output"):
        folder.commit([], Summary(rows=0, folders=("usr__ct",)))
    folder.discard()
    assert files_of(tmp_path / "there") == {"usr__ct/theirs.parquet": b"theirs"}
    theirs.unlink()
    theirs.parent.rmdir()
    for _ in range(2):  # its own output is no stranger to the next one
        folder.begin(overwrite=True)
        folder.commit([], Summary(rows=0, folders=("usr__ct",)))
        theirs.parent.mkdir()
    folder.begin(overwrite=True)
    folder.commit([], Summary(rows=0))
    assert not theirs.parent.exists()


@pytest.mark.parametrize(
    "form, more, said",
    [
        (TableFiles(files=RowFileSettings(gzip=True).choose_files("csv")), {}, r"end with .csv.gz need a folder"),
        (
            SentMessages(settings=MessageSettings(), into=KafkaSettings(servers="k:9092")),
            {},
            "that sends has no address",
        ),
        (
            None,
            {"input": StreamInput(places=("stream.bin",), settings=GBaseSettings())},
            "captured stream needs a folder",
        ),
    ],
    ids=["compressed", "sent", "stream"],
)
def test_what_needs_a_folder_is_said(tmp_path: Path, form: Target | None, more: dict[str, Any], said: str) -> None:
    told = order(tmp_path, tmp_path, **({"format": form} if form else {}))
    with pytest.raises(UsageError, match=said):
        convert_at(replace(told, **more), Addresses(destination="s3a://bucket/out"))
