"""One Spark session for all tests of this level; where there can be none they are skipped, or fail if it is required."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

from eventlog.core.errors import MachineError
from tests.spark.processes import JAVA_OPTIONS
from tests.support.fetching import fetched
from tests.support.servers import absent, require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = {
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.connect.grpc.binding.port": "0",
    # Java that is written and compiled for each plan costs more than a few rows; the commands of tests have it all the same.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


DAILY: Final = ("test_parity", "test_parity_formats", "test_database", "test_following", "test_page")
"""The files that CI asks every day: each format and input has the bytes of the local engine, a log is followed, and the page
does what it shows. What others ask of a session takes turns.
"""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this level run in one process, which has the session."""
    for item in items:
        if "tests/spark" in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group("spark"))
            if item.path.stem not in DAILY and {"spark", "java"} & {*getattr(item, "fixturenames", ())}:
                item.add_marker(pytest.mark.in_turn)


@pytest.fixture(scope="session")
def java() -> None:
    """Spark is installed, and there is a Java."""
    require_spark()


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[SparkSession]:
    """A session on two cores. A task that fails is not done again: tests of failures want the first one."""
    from eventlog_spark.cluster import Cluster, start

    jars = [f"{folder}/*" for folder in map(fetched, ("hadoop", "s3")) if folder is not None]
    more = {"spark.driver.extraClassPath": os.pathsep.join(jars)} if jars else {}
    try:
        session = start(Cluster(master="local[2]", conf={**QUICK, **more}))
    except MachineError as error:
        absent("spark", str(error))
    yield session
    session.stop()
    _end_java()


def _end_java() -> None:
    """Ends the Java that PySpark keeps until Python exits; a run without worker processes looks before that what it left."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=300)
    SparkContext._gateway = SparkContext._jvm = None
