"""`eventlog convert` on a YARN, with an environment that travels as an archive and an HDFS for input and output."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark
import pytest
from pyarrow import parquet

from eventlog.cli.main import exit_code
from eventlog.convert import local
from eventlog.convert.commit import SUCCESS
from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.core.schema_file import catalog_to_json
from tests.spark.hadoop import hadoop, packed_environment
from tests.spark.inputs import order, output, write_rows
from tests.spark.processes import JAVA_OPTIONS
from tests.support.strategies import CATALOG

SMALL = {
    "spark.executor.instances": "1",
    "spark.executor.memory": "512m",
    "spark.yarn.am.memory": "512m",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    **{f"spark.{who}.extraJavaOptions": JAVA_OPTIONS for who in ("driver", "executor", "yarn.am")},
}


@pytest.mark.long
def test_a_packed_environment_and_an_hdfs_give_the_same_bytes(java: None, tmp_path: Path) -> None:
    """Neither the driver nor a container has another eventlog than that of the archive."""
    (tmp_path / "in").mkdir()
    for name, first in (("a.parquet", 1), ("b.csv.gz", 2)):
        rows = [
            (n, "N", 1, "2026-01-01", "app", "usr", f"idu={n % 70}", "fname", None, f"é{n}")
            for n in range(first, 3_000, 2)
        ]
        write_rows(tmp_path / "in" / name, rows)
    (tmp_path / "schema.json").write_bytes(catalog_to_json(CATALOG))
    local.convert(order(tmp_path / "in", tmp_path / "here", part_events=1_000), jobs=1)
    python, archive = packed_environment(tmp_path)
    jars = f"local:{Path(pyspark.__file__).parent}/jars/*"  # every node has them; else 400 MB would travel
    conf = SMALL | {"spark.archives": f"{archive}#environment", "spark.yarn.jars": jars}
    conf |= {"spark.pyspark.python": "./environment/bin/python"}
    with hadoop(tmp_path) as cluster:
        cluster.put(tmp_path / "in", "/in")
        words = [
            f"{cluster.address}/in",
            "--schema",
            "schema.json",
            "--out",
            f"{cluster.address}/out",
            "--master",
            "yarn",
        ]
        words += [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        surroundings = {**os.environ, "HADOOP_CONF_DIR": str(cluster.conf), "SPARK_LOCAL_IP": "127.0.0.1"}
        surroundings.pop("PYTHONPATH", None)
        done = subprocess.run(
            [str(python), "-m", "eventlog", "convert", *words, "--part-events", "1000", "--engine", "spark"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=surroundings,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, "2,999 rows, 2,999 changes, 3 parts (S 2999).\n"), done.stderr[
            -3000:
        ]
        cluster.get("/out", tmp_path / "there")
    expected, written = output(tmp_path / "here"), output(tmp_path / "there")
    assert parquet.read_table(tmp_path / "there" / OUTCOMES_FILE).equals(
        parquet.read_table(tmp_path / "here" / OUTCOMES_FILE)
    )
    assert {**written, OUTCOMES_FILE: b"", SUCCESS: b""} == {**expected, OUTCOMES_FILE: b"", SUCCESS: b""}


def test_a_yarn_that_nobody_names_is_a_sentence(
    java: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    monkeypatch.setattr("eventlog_spark.cluster._running", lambda: None)
    write_rows(tmp_path / "a.csv", [])
    words = [str(tmp_path / "a.csv"), "--out", str(tmp_path / "out"), "--engine", "spark", "--master", "yarn"]
    assert exit_code(["convert", *words]) == 78
    assert (
        "Nobody says where YARN is. Name the folder of its yarn-site.xml in HADOOP_CONF_DIR." in capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()
