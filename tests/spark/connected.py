"""A client of Spark Connect, which has no JVM: it uses the rules on DataFrames and writes what came of them, as JSON."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import eventlog_spark
from tests.spark.inputs import Row
from tests.support.strategies import CATALOG

TYPES = (
    "record_id bigint, status string, event_type bigint, event_time string, perpetrator string,"
    " table_name string, table_key string, column_name string, old_value string, new_value string"
)


def main(address: str) -> None:
    """Everything that works on a DataFrame, on a server's."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    rows: list[Row] = [
        (1, "N", 1, "2026-01-01", "app", "usr", "idu=1", "fname", None, "Ann"),
        (2, "N", 1, "2026-01-01", "app", "usr", 'idu="2"', "fname", None, "Bob"),
        (3, "N", 5, "2026-01-01", "app", "usr", "idu=3", None, None, None),
        (4, "N", 1, "2026-01-01", "app", "usr", "idu=4", "fname", None, "Dan"),
        (4, "N", 1, "2026-01-01", "app", "usr", "idu=5", "fname", None, "Eve"),
    ]
    users = spark.createDataFrame([(3, "Cid", "C")], "idu bigint, fname string, lname string")
    found = eventlog_spark.events(spark.createDataFrame(rows, TYPES))
    decided = eventlog_spark.decide(found, CATALOG, rows={"usr": users}).persisted()
    documents = eventlog_spark.documents(decided.changes, decided.catalog).orderBy("position")
    tables = eventlog_spark.change_tables(decided.changes, CATALOG).tables()
    messages = eventlog_spark.messages(decided.changes, CATALOG).frame
    told = {
        "outcomes": sorted([row.position, row.status] for row in decided.outcomes.collect()),
        "documents": [row.body for row in documents.collect()],
        "rows": [row.header__change_oper for row in tables["usr__ct"].collect()],
        "topics": [row.topic for row in messages.collect()],
    }
    sys.stdout.write(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
