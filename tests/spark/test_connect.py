"""The rules on DataFrames work through Spark Connect: the client has no JVM, and the server is in the one of this session."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.servers import absent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]


def connect_port(spark: SparkSession) -> int:
    """Where a client of Spark Connect finds a server in the JVM of this session."""
    services: Any = spark._jvm.org.apache.spark.sql.connect.service  # type: ignore[union-attr]  # the JVM is there
    service = getattr(getattr(services, "SparkConnectService$"), "MODULE$")  # Scala's names
    if not service.started():
        service.start(spark.sparkContext._jsc.sc())
    return int(service.localPort())


@pytest.mark.in_turn
def test_a_client_without_a_jvm(spark: SparkSession) -> None:
    if any(find_spec(name) is None for name in ("grpc", "grpc_status", "zstandard")):
        absent("spark", "a client of Spark Connect needs grpcio, grpcio-status and zstandard")
    command = [sys.executable, "-m", "tests.spark.connected", f"sc://127.0.0.1:{connect_port(spark)}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["outcomes"] == [[1, "S"], [2, "S"], [3, "S"], [4, "E"], [4, "E"]]
    assert ["Ann" in told["documents"][0], "Bob" in told["documents"][1], "Cid" in told["documents"][2]] == [True] * 3
    assert len(told["rows"]) == len(told["topics"]) == 3
