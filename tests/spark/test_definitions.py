"""Spark reads rows by the definitions of their time, and writes the bytes of the local engine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.config.build import catalog_of, with_definitions
from eventlog.config.settings import Config
from eventlog.convert import local
from eventlog.convert.settings import Conversion, DatabaseRows, LogInput, MessageFiles, TableFiles
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style
from eventlog.xds.write import XdsFormat
from eventlog_spark.convert import convert
from tests.support.altered_logs import altered_log, url_of
from tests.support.changerows import CSV
from tests.support.converting import files_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.in_turn
@pytest.mark.parametrize("style", [Style.IMAGE, Style.FIELD_BACK])
def test_a_log_with_alterations_gives_the_same_bytes(
    spark: SparkSession, postgresql: Engine, tmp_path: Path, style: Style
) -> None:
    altered_log(postgresql, style)
    catalog = with_definitions(postgresql, LogNames(), catalog_of(postgresql, LogNames(), Config()))
    assert catalog.former
    order = Conversion(
        input=LogInput(url=url_of(postgresql)),
        destination=tmp_path,
        catalog=catalog,
        read_back=DatabaseRows(url=url_of(postgresql)),
        part_events=4,
    )
    for name, target in (("xds", XdsFormat()), ("messages", MessageFiles()), ("tables", TableFiles(files=CSV))):
        here = replace(order, format=target, destination=tmp_path / f"{name}-here")
        there = replace(order, format=target, destination=tmp_path / f"{name}-there")
        assert convert(there) == local.convert(here, jobs=1)
        assert files_of(there.destination) == files_of(here.destination)
        assert any(b"aa" in content for content in files_of(here.destination).values())
