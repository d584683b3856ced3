"""A client of Spark Connect that has a pipeline looked through, as `spark-pipelines dry-run` does: an address, and its folder."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.pipelines.cli import load_pipeline_spec, register_definitions
from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, handle_pipeline_events, start_run
from pyspark.sql import SparkSession


def main(address: str, folder: str) -> None:
    """Says what is wrong; nothing if it could begin."""
    spark = SparkSession.builder.remote(address).getOrCreate()
    for path in sorted(Path(folder).glob("*.yml")):
        spec = load_pipeline_spec(path)
        graph = create_dataflow_graph(spark, None, None, {})
        try:
            register_definitions(path, SparkConnectGraphElementRegistry(spark, graph), spec, spark, graph)
            handle_pipeline_events(start_run(spark, graph, [], False, [], True, spec.storage))
        except PySparkException as error:
            print(path.stem, error.getCondition())  # noqa: T201  # what it is for
        else:
            print(path.stem, "fits")  # noqa: T201  # the same
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
