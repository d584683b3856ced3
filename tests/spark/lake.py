"""Runs what the page about Spark shows of lake tables, and reads what outputs have written, on the Spark of the level
`lakes`: a folder, the jars, what to do, and the places.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from eventlog_spark.java import find_java

os.environ.update(find_java(os.environ).environment())

from pyspark.sql import SparkSession  # Java is chosen before

import eventlog_spark
from tests.spark.inputs import Row
from tests.support.strategies import CATALOG

TYPES = (
    "record_id bigint, status string, event_type bigint, event_time string, perpetrator string,"
    " table_name string, table_key string, column_name string, old_value string, new_value string"
)


def row(
    number: int, kind: int, key: int, column: str | None = None, new: str | None = None, old: str | None = None
) -> Row:
    return number, "N", kind, "2026-01-01", "app", "usr", f"idu={key}", column, old, new


BATCHES = [
    [row(1, 1, 1, "fname", "Ann"), row(2, 1, 1, "lname", "A"), row(3, 1, 2, "fname", "Bob")],
    [row(4, 2, 1, "fname", "Anna", "Ann"), row(5, 4, 2), row(6, 1, 3, "fname", "Cid")],
]


def session(folder: Path, jars: str) -> SparkSession:
    """A Spark that has Delta Lake and Iceberg."""
    conf = {
        "spark.master": "local[2]",
        "spark.driver.extraClassPath": jars,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(folder / "ice"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def written(spark: SparkSession, code: str) -> None:
    """Two batches into tables of both kinds; the second one comes twice."""
    known: dict[str, object] = {"spark": spark, "eventlog_spark": eventlog_spark, "catalog": CATALOG}
    exec(code, known)  # noqa: S102  # the page's own words
    for lake, using in (("", "delta"), ("ice.app.", "iceberg")):
        if lake:
            spark.sql("CREATE NAMESPACE ice.app")
        users, history = f"{lake}users", f"{lake}history"
        spark.sql(f"CREATE TABLE {users} (idu BIGINT, fname STRING, lname STRING) USING {using}")
        for number in (0, 1, 1):
            found = eventlog_spark.events(spark.createDataFrame(BATCHES[number], TYPES))
            changes = eventlog_spark.decide(found, CATALOG, unique=True).persisted().changes
            known["merged"](changes, users)  # type: ignore[operator]  # the page defines it
            known["appended"](changes, history, using)  # type: ignore[operator]  # and this one
        told = spark.table(users).orderBy("idu").collect()
        columns = ("header__change_seq", "header__change_oper", "header__stream_position", "idu", "fname", "lname")
        rows = spark.table(history).select(*columns).orderBy(*columns).collect()
        sys.stdout.write(json.dumps({"users": told, "history": rows}) + "\n")


def shown(spark: SparkSession, *places: str) -> None:
    """The rows of each place in a line, which an output has written."""
    for kind, place in zip(places[::2], places[1::2], strict=True):
        rows = spark.read.format(kind).load(place).orderBy("idu")
        told = rows.selectExpr("idu", "fname", "pay", "hex(photo)", "since").collect()
        sys.stdout.write(f"{json.dumps([list(map(str, row)) for row in told])}\n")


def main(folder: Path, jars: str, what: str, *places: str) -> None:
    spark = session(folder, jars)
    if what == "written":
        written(spark, Path(places[0]).read_text())
    else:
        shown(spark, *places)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
