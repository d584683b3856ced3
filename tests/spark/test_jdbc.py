"""A log in a database that eventlog does not know is read by Spark's own source of JDBC, under the names that it has there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from eventlog.core.errors import UsageError
from eventlog_spark import decide, events
from tests.support.strategies import CATALOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = ("NR", "STATE", "KIND", "MOMENT", "WHO", "TAB", "WHERE_KEY", "COL", "FORMER", "VALUE_NOW")
TABLE = (
    "CREATE TABLE JOURNAL (NR BIGINT PRIMARY KEY, STATE CHAR(1), KIND SMALLINT, MOMENT TIMESTAMP, WHO VARCHAR(30),"
    " TAB VARCHAR(60), WHERE_KEY VARCHAR(200), COL VARCHAR(60), FORMER CLOB, VALUE_NOW CLOB, STATUS INT)"
)
"""A column with one of the standard names means something else here."""


def test_rows_are_decided_whatever_their_columns_are_called(spark: SparkSession, tmp_path: Path) -> None:
    url = f"jdbc:derby:{tmp_path}/db;create=true"
    jvm: Any = spark._jvm  # the driver of the database is Java's
    connection = jvm.org.apache.derby.jdbc.EmbeddedDriver().connect(url, jvm.java.util.Properties())
    statement = connection.createStatement()
    statement.executeUpdate(TABLE)
    for number in range(1, 7):
        values = f"{number}, 'N', 1, TIMESTAMP('2026-01-0{number} 10:00:00'), 'app', 'usr', 'idu={number}', 'fname'"
        statement.executeUpdate(f"INSERT INTO JOURNAL VALUES ({values}, NULL, 'é{number}', 7)")
    statement.executeUpdate("INSERT INTO JOURNAL (NR, STATE, KIND, TAB, WHERE_KEY) VALUES (8, 'N', 9, 'usr', 'idu=1')")
    connection.close()
    reader = spark.read.format("jdbc").options(
        url=url, dbtable="JOURNAL", driver="org.apache.derby.jdbc.EmbeddedDriver"
    )
    parted = reader.options(partitionColumn="NR", lowerBound="1", upperBound="8", numPartitions="2").load()
    found = decide(events(parted, columns=[name.lower() for name in NAMES]), CATALOG, unique=True).persisted()
    outcomes = {row["position"]: row["status"] for row in found.outcomes.collect()}
    assert outcomes == {**dict.fromkeys(range(1, 7), "S"), 8: "E"}
    told = {row["position"]: row["edits"][0]["new"] for row in found.changes.collect()}
    assert told == {number: [f"é{number}"] for number in range(1, 7)}
    with pytest.raises(UsageError, match="The frame has no column NUMBER"):
        events(parted, columns=["NUMBER", *NAMES[1:]])
    with pytest.raises(UsageError, match="`columns` has 9 names"):
        events(parted, columns=NAMES[1:])
