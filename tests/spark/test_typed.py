"""Changes with the types of their tables, and the histories that a page makes of them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import eventlog_spark
from eventlog.core.schema import Catalog, Column, Table
from tests.spark.inputs import Row
from tests.spark.test_frames import TYPES
from tests.spark.test_page import PAGE
from tests.support.strategies import CATALOG

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PAY = Catalog(
    [
        Table(
            name="pay",
            columns=(
                Column(name="n", type="integer", key=1),
                Column(name="amount", type="numeric(8,2)"),
                Column(name="day", type="date"),
                Column(name="note", type="varchar(20)"),
            ),
        )
    ]
)


def event(number: int, kind: int, key: str, column: str | None, old: str | None, new: str | None) -> Row:
    table = "usr" if key.startswith("idu") else "pay"
    return number, "N", kind, f"2026-01-01 00:00:{number:02}", "app", table, key, column, old, new


def changes(spark: SparkSession, rows: list[Row], catalog: Catalog) -> DataFrame:
    found = eventlog_spark.events(spark.createDataFrame(rows, TYPES))
    return eventlog_spark.decide(found, catalog, unique=True).changes


def test_rows_before_and_after_have_the_types_of_the_table(spark: SparkSession) -> None:
    rows = [
        event(1, 1, "n=1", "amount", None, "1.50"),
        event(2, 1, "n=1", "day", None, "2026-01-02"),
        event(3, 2, "n=1", "amount", "1.50", "2"),
        event(4, 2, "n=2", "amount", None, "none"),
        event(5, 2, "n=1", "note", "x", None),
        event(6, 4, "n=1", None, None, None),
    ]
    frames = eventlog_spark.typed_changes(changes(spark, rows, PAY), PAY)
    assert [*frames] == ["pay"]
    assert dict(frames["pay"].dtypes)["after"] == "struct<n:int,amount:decimal(8,2),day:date,note:string>"
    told = [row.asDict(recursive=True) for row in frames["pay"].orderBy("position").collect()]
    nothing: dict[str, Any] = {"n": 1, "amount": None, "day": None, "note": None}
    first = {**nothing, "amount": Decimal("1.50"), "day": dt.date(2026, 1, 2)}
    assert [(row["op"], row["before"], row["after"], row["changed"], row["known"]) for row in told] == [
        ("add", None, first, ["n", "amount", "day"], ["n", "amount", "day"]),
        ("modify", None, None, None, None),
        (
            "modify",
            nothing | {"amount": Decimal("1.50"), "note": "x"},
            nothing | {"amount": Decimal(2)},
            ["amount", "note"],
            ["n", "amount", "note"],
        ),
        ("delete", nothing, None, ["n"], []),
    ]
    assert [bool(row["note"]) for row in told] == [False, True, False, False]
    assert told[0]["event_time"].replace(tzinfo=None) == dt.datetime(2026, 1, 1, 0, 0, 2)


def test_the_page_makes_the_versions_of_each_row(spark: SparkSession) -> None:
    rows = [
        event(1, 1, "idu=1", "fname", None, "Ann"),
        event(2, 1, "idu=2", "fname", None, "Bob"),
        event(3, 2, "idu=1", "lname", None, "A"),
        event(4, 4, "idu=2", None, None, None),
        event(5, 2, "idu=1", "fname", "Ann", None),
        event(6, 1, "idu=2", "lname", None, "B"),
    ]
    code = PAGE.split("### Typed changes, SCD 1 and 2\n")[1].split("```python\n")[1].split("```")[0]
    found: dict[str, Any] = {
        "eventlog_spark": eventlog_spark,
        "catalog": CATALOG,
        "changes": changes(spark, rows, CATALOG),
    }
    exec(code, found)  # noqa: S102  # the page's own words
    versions = (
        found["versions"].orderBy("key", "since").selectExpr("key", "fname", "lname", "second(since)", "second(until)")
    )
    assert [tuple(row) for row in versions.collect()] == [
        (1, "Ann", None, 1, 5),
        (1, None, "A", 5, None),
        (2, "Bob", None, 2, 4),
        (2, None, "B", 6, None),
    ]
