"""Filters of Spark's as conditions on the log: which rows need not be read at all.

Law: a condition lets through every row that its filter lets through, and may let through more;
Spark looks at the rows once more. So texts may be compared as the database compares them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

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

DAY: Final = dt.timedelta(days=1)


def choose_by(filters: Iterable[Filter]) -> Chosen:
    """Choose rows by the filters on numbers, letters, tables and times, all of them together."""
    chosen = Chosen()
    for condition in filters:
        column = ".".join(getattr(condition, "attribute", ()))
        value: Any = getattr(condition, "value", None)
        if isinstance(condition, EqualTo | EqualNullSafe | In):
            values = tuple(value) if isinstance(condition, In) else (value,)
            # A NULL is equal to nothing, or is asked for alone, and then all rows are read.
            chosen = _among(chosen, column, tuple(each for each in values if each is not None))
        elif isinstance(condition, GreaterThan | GreaterThanOrEqual):
            chosen = _from(chosen, column, value)
        elif isinstance(condition, LessThan | LessThanOrEqual):
            chosen = _upto(chosen, column, value)
    return chosen


def _among(chosen: Chosen, column: str, values: tuple[Any, ...]) -> Chosen:
    """Choose only rows with one of these values."""
    if not values:
        return chosen
    if column in ("record_id", "event_time"):
        return _upto(_from(chosen, column, min(values)), column, max(values))
    # No database takes a text with a zero byte, so such a condition stays Spark's.
    if column not in ("status", "table_name") or any("\0" in value for value in values):
        return chosen
    if column == "status":
        return replace(chosen, statuses=_both(chosen.statuses, values))
    return replace(chosen, tables=_both(chosen.tables, values))


def _both(former: tuple[str, ...] | None, values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values allowed by both conditions."""
    if former is None:
        return values
    return tuple(value for value in former if value in values)


def _from(chosen: Chosen, column: str, value: Any) -> Chosen:
    if column == "record_id" and (chosen.first is None or value > chosen.first):
        return replace(chosen, first=value)
    bound = _find_bound(value, -DAY) if column == "event_time" else None
    if bound is None or (chosen.since is not None and bound <= chosen.since):
        return chosen
    return replace(chosen, since=bound)


def _upto(chosen: Chosen, column: str, value: Any) -> Chosen:
    if column == "record_id" and (chosen.last is None or value < chosen.last):
        return replace(chosen, last=value)
    bound = _find_bound(value, 2 * DAY) if column == "event_time" else None
    if bound is None or (chosen.upto is not None and bound >= chosen.upto):
        return chosen
    return replace(chosen, upto=bound)


def _find_bound(value: Any, margin: dt.timedelta) -> str | None:
    """Return the text to compare the log's times with: a date for a time, because the log may say
    the same one in a zone a day ahead, or with other signs between date and hour.
    """
    if isinstance(value, str):
        return None if "\0" in value else value
    if not isinstance(value, dt.datetime):
        return None
    # A time at the end of the calendar has no day behind it.
    with suppress(OverflowError):
        return (value.astimezone(dt.UTC) + margin).date().isoformat()
    return None
