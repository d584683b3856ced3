"""One Spark session for all tests of this level; where there can be none they are skipped, or fail if it is required."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from eventlog.core.errors import ConfigError, MachineError
from tests.support.servers import absent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = {
    # A session of tests lives for seconds, in which the second compiler costs more than it gains.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
}


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this level run in one process, which has the session."""
    for item in items:
        if "tests/spark" in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def java() -> None:
    """Spark is installed, and there is a Java."""
    if find_spec("pyspark") is None:
        absent("spark", "pyspark is not installed")
    from eventlog_spark.java import find_java

    try:
        find_java(os.environ)
    except ConfigError as error:
        absent("spark", str(error))


@pytest.fixture(scope="session")
def spark(java: None) -> Iterator[SparkSession]:
    """A session on two cores."""
    from eventlog_spark.session import Cluster, start

    try:
        session = start(Cluster(master="local[2]", conf=QUICK))
    except MachineError as error:
        absent("spark", str(error))
    yield session
    session.stop()
