"""A script of a virtual environment that is not activated: its workers have its own Python, and errors are sentences."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from eventlog.core.errors import ConfigError
from eventlog_spark.this_python import refuse_other_spark
from tests.spark.processes import JAVA_OPTIONS

SCRIPT = f"""
import eventlog_spark
from eventlog_spark.java import find_java
import os
os.environ |= find_java(os.environ).environment()
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.driver.extraJavaOptions", {JAVA_OPTIONS!r}).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
spark.dataSource.register(eventlog_spark.EventLogSource)
for options in ({{"statsu": "x"}}, {{"url": "sqlite:////nowhere/at/all"}}):
    try:
        spark.read.format("eventlog").options(**{{"url": "sqlite://"}} | options).load().count()
    except Exception as error:
        print(error)
os.kill(spark.sparkContext._gateway.proc.pid, 9)
try:
    with eventlog_spark.faults.arriving():
        spark.range(3).count()
except Exception as error:
    print(error)
"""


@pytest.mark.usefixtures("java")
@pytest.mark.in_turn
def test_a_script_reads_what_is_wrong_and_what_to_do() -> None:
    bare = {"PATH": "/usr/bin:/bin", "SPARK_LOCAL_HOSTNAME": "localhost"}
    told = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=bare, capture_output=True, text=True, timeout=600, check=False
    )
    assert "There is no option statsu. Did you mean status?" in told.stdout, told
    assert "/nowhere/at/all" in told.stdout
    assert "7b22" not in told.stdout
    assert "Spark's Java ended by the signal SIGKILL while it worked. Its memory may" in told.stdout


@pytest.mark.parametrize("version, fits", [("4.1.0", True), ("4.3.0.dev1", True), ("4.0.2", False), ("5.0.0", False)])
def test_a_spark_of_another_age_is_refused_where_it_is_imported(
    monkeypatch: pytest.MonkeyPatch, version: str, fits: bool
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__=version))
    with nullcontext() if fits else pytest.raises(ConfigError, match=f"PySpark {version} is installed"):
        refuse_other_spark()
