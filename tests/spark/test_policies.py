"""Spark tells what the local engine tells behind the same policies, byte for byte."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.convert import local
from eventlog.convert.settings import MessageFiles, SnapshotRows, TableFiles
from eventlog.core.errors import ConfigError
from eventlog.core.outputs import PlaceKind
from eventlog.policies.bound import Policy
from eventlog.policies.steps import Steps, placed
from eventlog.xds.write import XdsFormat
from eventlog_spark.convert import convert
from tests.spark.inputs import many_histories, order, rows_of, write_rows, write_snapshot
from tests.support.changerows import CSV
from tests.support.converting import files_of
from tests.support.daily import daily
from tests.support.strategies import CATALOG, History, policies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from eventlog.convert.settings import Target

PLACES: dict[type, PlaceKind] = {XdsFormat: "folder", TableFiles: "table", MessageFiles: "topic"}
formats = st.sampled_from([XdsFormat(), TableFiles(files=CSV), MessageFiles()])


@pytest.mark.in_turn
@daily
@settings(max_examples=3)
@given(many_histories(), policies(), formats)
def test_random_policies_on_random_histories(
    spark: SparkSession, history: History, steps: Steps, target: Target
) -> None:
    try:
        Policy(steps, CATALOG)
    except ConfigError:
        assume(False)
    with TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "in").mkdir()
        write_rows(place / "in" / "all.parquet", rows_of(history.events))
        snapshot = SnapshotRows(folder=write_snapshot(place / "snapshot", history))
        there_are = placed(steps, PLACES[type(target)], "a conversion")
        ordered = replace(order(place / "in", place / "here", read_back=snapshot), steps=there_are, format=target)
        here = local.convert(ordered, jobs=1)
        there = convert(replace(ordered, destination=place / "there"))
        assert there == here
        assert files_of(place / "there") == files_of(place / "here")
