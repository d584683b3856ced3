"""What the page about Spark shows of Spark's declarative pipelines is what these take: SCD 1 and 2 by `create_auto_cdc_flow`.

No connector with row-level operations is released for this Spark, so a pipeline is looked through and not run.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import eventlog_spark
from tests.spark.test_connect import ROOT, connect_port
from tests.spark.test_page import PAGE
from tests.spark.test_typed import changes, event
from tests.support.servers import absent
from tests.support.strategies import CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPEC = "name: {0}\nstorage: {1}\nlibraries:\n  - glob:\n      include: {0}.py\n"


@pytest.mark.in_turn
def test_auto_cdc_takes_typed_changes(spark: SparkSession, tmp_path: Path) -> None:
    if find_spec("grpc") is None or find_spec("yaml") is None:
        absent("spark", "a client of Spark Connect needs grpcio, and pipelines need PyYAML")
    append, pipeline = PAGE.split("### Spark's pipelines\n")[1].split("```python\n")[1:3]
    rows = [event(1, 1, "idu=1", "fname", None, "Ann"), event(2, 4, "idu=1", None, None, None)]
    known: dict[str, Any] = {"eventlog_spark": eventlog_spark, "catalog": CATALOG}
    known["changes"] = changes(spark, rows, CATALOG)
    typed = eventlog_spark.typed_changes(known["changes"], CATALOG)["usr"]
    # It lies here, and not in Spark's own folder.
    typed.limit(0).write.option("path", str(tmp_path / "usr_changes")).saveAsTable("usr_changes")
    try:
        exec(append.split("```")[0], known)  # noqa: S102  # the page's own words
        assert spark.table("usr_changes").count() == 2
        code = pipeline.split("```")[0]
        files = {
            "shown": code,
            "other_key": code.replace('keys=["idu"]', 'keys=["id"]'),
            "other_column": code.replace('"after.lname"', '"after.surname"'),
        }
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
            (tmp_path / f"{name}.yml").write_text(SPEC.format(name, (tmp_path / "storage").as_uri()))
        address = f"sc://127.0.0.1:{connect_port(spark)}"
        command = [sys.executable, "-m", "tests.spark.pipeline", address, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    finally:
        spark.sql("DROP TABLE usr_changes")
    assert done.returncode == 0, done.stderr
    told = dict(line.split() for line in done.stdout.splitlines() if line.split()[0] in files)
    assert told["shown"] == "fits", done.stdout + done.stderr
    assert told["other_key"] == "AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA"
    assert told["other_column"] != "fits"
