"""Filters of Spark's as conditions on the log: which rows need not be read at all.

Law: a condition lets through every row that its filter lets through, and may let through more;
Spark looks at the rows once more. So texts may be compared as the database compares them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from eventlog_spark.options import Chosen


def chosen_by(filters: Iterable[Filter]) -> Chosen:
    """What filters say of numbers, letters, tables and times, all of them together."""
    chosen = Chosen()
    for one in filters:
        column = ".".join(getattr(one, "attribute", ()))
        value: Any = getattr(one, "value", None)
        if isinstance(one, EqualTo | EqualNullSafe | In):
            values = tuple(value) if isinstance(one, In) else (value,)
            chosen = _among(chosen, column, tuple(each for each in values if each is not None))
        elif isinstance(one, GreaterThan | GreaterThanOrEqual):
            chosen = _from(chosen, column, value)
        elif isinstance(one, LessThan | LessThanOrEqual):
            chosen = _upto(chosen, column, value)
    return chosen


def _among(chosen: Chosen, column: str, values: tuple[Any, ...]) -> Chosen:
    """Only rows with one of these values."""
    if not values:
        return chosen
    if column in ("record_id", "event_time"):
        return _upto(_from(chosen, column, min(values)), column, max(values))
    if column in ("status", "table_name") and not any("\0" in value for value in values):
        former = chosen.letters if column == "status" else chosen.tables
        both = values if former is None else tuple(value for value in former if value in values)
        return replace(chosen, letters=both) if column == "status" else replace(chosen, tables=both)
    return chosen


def _from(chosen: Chosen, column: str, value: Any) -> Chosen:
    if column == "record_id":
        return replace(chosen, first=value if chosen.first is None else max(value, chosen.first))
    if column == "event_time" and "\0" not in value:
        return replace(chosen, since=value if chosen.since is None else max(value, chosen.since))
    return chosen


def _upto(chosen: Chosen, column: str, value: Any) -> Chosen:
    if column == "record_id":
        return replace(chosen, last=value if chosen.last is None else min(value, chosen.last))
    if column == "event_time" and "\0" not in value:
        return replace(chosen, upto=value if chosen.upto is None else min(value, chosen.upto))
    return chosen
