"""The settings in spark/submit: Spark knows each of them; those of the cluster that no test has are looked at nowhere else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUBMIT = Path(__file__).resolve().parents[2] / "spark" / "submit"
CONFIGURATIONS = ("internal.config.package$", "deploy.k8s.Config$", "deploy.yarn.config.package$")
"""What registers settings, as soon as it is loaded."""

NAMED_BY_USERS = re.compile(
    r"spark\.master"
    r"|spark\.(yarn\.appMasterEnv|executorEnv)\.\w+"
    r"|spark\.kubernetes\.(driver|executor)\.volumes\.persistentVolumeClaim\.[a-z-]+\.(options\.claimName|mount\.path)"
).fullmatch


@pytest.mark.parametrize("file", sorted(SUBMIT.glob("*.conf")), ids=lambda file: file.stem)
def test_spark_knows_every_setting(spark: SparkSession, file: Path) -> None:
    jvm: Any = spark._jvm  # settings have no other door
    for name in CONFIGURATIONS:
        jvm.java.lang.Class.forName(f"org.apache.spark.{name}")
    lines = [line.split() for line in file.read_text().splitlines() if line and not line.startswith("#")]
    keys = [key for key, *_ in lines]
    known = jvm.org.apache.spark.internal.config.ConfigEntry
    assert [key for key in keys if known.findEntry(key) is None and not NAMED_BY_USERS(key)] == []
    assert all(len(words) == 2 for words in lines)
    assert len(keys) == len(set(keys))
