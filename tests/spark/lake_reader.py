"""Reads tables of a lake that outputs have written, on the Spark of the level `lakes`: the jars,
and kinds with places.
"""

from __future__ import annotations

import json
import os
import sys

from eventlog_spark.java import find_java

os.environ.update(find_java(os.environ).environment())

from pyspark.sql import SparkSession  # Java is chosen before


def main(jars: str, *places: str) -> None:
    """Prints the rows of each place in a line."""
    conf = {
        "spark.master": "local[1]",
        "spark.driver.extraClassPath": jars,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for kind, place in zip(places[::2], places[1::2], strict=True):
        rows = (
            spark.read.format(kind).load(place).orderBy("idu").selectExpr("idu", "fname", "pay", "hex(photo)", "since")
        )
        sys.stdout.write(f"{json.dumps([list(map(str, row)) for row in rows.collect()])}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
