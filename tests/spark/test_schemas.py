"""What Spark makes of the log of random work on sample schemas is what the tables hold, in every format."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from eventlog.capture import Style
from eventlog_spark.convert import convert
from tests.hardening.schemas.running import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = 60


def test_a_receiver_has_what_the_tables_have(spark: SparkSession, postgresql: Engine, tmp_path: Path) -> None:
    with closing(Run(postgresql, tmp_path, Style.FIELD, seed=3)) as run:
        run.work(STEPS)
        assert run.convert(convert) == []
