"""Filters of Spark's go to the database, which then reads fewer rows; the answers are the same."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from eventlog.core.errors import ConfigError
from eventlog_spark.options import Chosen, read_options
from eventlog_spark.pushdown import choose_by
from eventlog_spark.source import FilteredLogReader
from tests.conformance.event_logs import LogTable, installed
from tests.spark.test_source import loaded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def filled(request: pytest.FixtureRequest, database: str) -> LogTable:
    """A log of 40 rows: two tables, two letters, two days."""
    log = installed(request.getfixturevalue(database))
    log.write_all(range(1, 41))
    log.run("UPDATE event_log SET status = 'S' WHERE record_id > 30")
    log.run("UPDATE event_log SET table_name = 'it''s:%b\\c' WHERE record_id <= 10")
    log.run("UPDATE event_log SET event_time = '2030-01-02 03:04:05' WHERE record_id > 35")
    return log


def url_of(log: LogTable) -> str:
    return log.engine.url.render_as_string(hide_password=False)


NAME = ("table_name",)
CASES = [
    ([EqualTo(("record_id",), 7)], [7]),
    ([GreaterThan(("record_id",), 38)], [38, 39, 40]),
    ([GreaterThanOrEqual(("record_id",), 3), LessThan(("record_id",), 5)], [3, 4, 5]),
    ([In(("record_id",), (4, 2)), LessThanOrEqual(("record_id",), 3)], [2, 3]),
    ([In(("status",), ("S", "E")), EqualTo(("status",), "S")], [*range(31, 41)]),
    ([EqualTo(NAME, "it's:%b\\c"), EqualTo(("status",), "N")], [*range(1, 11)]),
    ([In(NAME, ("it's:%b\\c", None)), GreaterThan(("record_id",), 8)], [8, 9, 10]),
    ([In(("status",), ("S",)), EqualTo(("status",), "N")], []),
    ([GreaterThan(("event_time",), "2030-01-02")], [*range(36, 41)]),
    ([LessThan(("event_time",), "2030"), GreaterThan(("record_id",), 34)], [34, 35]),
    ([GreaterThan(("event_time",), dt.datetime(2029, 12, 30, tzinfo=dt.UTC))], [*range(36, 41)]),
    (
        [LessThan(("event_time",), dt.datetime(2029, 12, 30, tzinfo=dt.UTC)), GreaterThan(("record_id",), 34)],
        [34, 35],
    ),
    ([EqualNullSafe(("record_id",), None), StringStartsWith(NAME, "x"), EqualTo(NAME, "\0")], [*range(1, 41)]),
]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_fewer_rows_are_read(database: str, request: pytest.FixtureRequest) -> None:
    options = read_options({"url": url_of(filled(request, database)), "pushdown": "true", "partitions": "2"})
    for filters, expected in CASES:
        reader = FilteredLogReader(options)
        assert list(reader.pushFilters(filters)) == filters  # type: ignore[arg-type]  # a list is no list of a wider type
        read = [batch.column("record_id").to_pylist() for part in reader.partitions() for batch in reader.read(part)]
        assert sorted(number for several in read for number in several) == expected, filters


def test_it_is_on_by_itself_and_rows_are_the_same_without(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    log = filled(request, "sqlite")
    # A time that is written in another way than the others is no reason to miss a row.
    log.run("UPDATE event_log SET event_time = ' 20260101T000000' WHERE record_id = 20")
    wanted = "record_id BETWEEN 8 AND 33 AND status IN ('N') AND table_name <> 'x' AND event_time < '2029-06-01'"

    def found(**options: str) -> DataFrame:
        return loaded(spark, log.engine, partitions="1", **options).where(wanted).orderBy("record_id")

    plain, pushed = found(pushdown="false"), found()
    assert [row.record_id for row in pushed.collect()] == [*range(8, 31)]
    assert pushed.collect() == plain.collect()
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "true"


def test_several_filters_are_one_choice() -> None:
    filters = [GreaterThan(("record_id",), 3), GreaterThan(("record_id",), 5), LessThan(("event_time",), "b")]
    assert choose_by([*filters, LessThan(("event_time",), "a")]) == Chosen(first=5, upto="a")
    with pytest.raises(ConfigError, match="The option pushdown is 'yes'; it must be true or false"):
        read_options({"url": "sqlite://", "pushdown": "yes"})
