"""The values that cells of every type become, and what is refused in words."""

from __future__ import annotations

import datetime as dt
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.schema import Column
from eventlog.qlik.messages.render import timestamp
from eventlog.qlik.readings import reading
from tests.support.shares import met, shares

UTC = dt.UTC


READ: list[tuple[str, Any, Any]] = [
    ("varchar(9)", "x", "x"),
    ("varchar(9)", True, "true"),
    ("varchar(9)", False, "false"),
    ("varchar(9)", Decimal("1E+2"), "100"),
    ("varchar(9)", 1.5, "1.5"),
    ("integer", " 7.00 ", 7),
    ("integer", True, 1),
    ("integer", 7.0, 7),
    ("numeric(20,0)", Decimal(7), 7),
    ("numeric(5,2)", "1.50", Decimal("1.50")),
    ("numeric(5,2)", 1.5, Decimal("1.5")),
    ("numeric", Decimal(1), Decimal(1)),
    ("double precision", "1.5", 1.5),
    ("float8", 2.5, 2.5),
    ("real", Decimal("1.5"), 1.5),
    ("boolean", "T", True),
    ("boolean", 0, False),
    ("boolean", True, True),
    ("bit(1)", b"\1", True),
    ("bytea", "qqo=", b"\xaa\xaa"),
    ("bytea", "qq\r\no=", b"\xaa\xaa"),
    ("blob", b"\xaa", b"\xaa"),
    ("date", "2026-01-02", dt.date(2026, 1, 2)),
    ("date", "2026-01-02 00:00:00", dt.date(2026, 1, 2)),
    ("date", dt.date(2026, 1, 2), dt.date(2026, 1, 2)),
    ("time", "10:57:19.25", dt.time(10, 57, 19, 250_000)),
    ("time", "10:57", dt.time(10, 57)),
    ("time", dt.time(1), dt.time(1)),
    ("timestamp", "2026-01-02 03:04:05.123456789", dt.datetime(2026, 1, 2, 3, 4, 5, 123_456)),
    ("timestamp", "2026-01-02 03:04:05+02", dt.datetime(2026, 1, 2, 1, 4, 5)),
    ("timestamp", dt.datetime(2026, 1, 2, tzinfo=UTC), dt.datetime(2026, 1, 2)),
    ("timestamp", dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 2)),
    ("timestamp", dt.date(2026, 1, 2), dt.datetime(2026, 1, 2)),
    ("timestamptz", "2026-01-02 03:04:05+02", dt.datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
    ("timestamp with time zone", dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 2, tzinfo=UTC)),
]


def typed(cell: Any, column: Column) -> Any:
    return None if cell is None else reading(column)(cell)


@pytest.mark.parametrize("kind, cell, value", READ)
def test_a_cell_becomes_the_value_of_its_columns_type(kind: str, cell: Any, value: Any) -> None:
    found = typed(cell, Column(name="c", type=kind))
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    "kind, cell, words",
    [
        ("varchar", b"x", "binary data (1 bytes) is not text"),
        ("integer", "1.5", "'1.5' is not a whole number"),
        ("integer", 1.5, "1.5 is not a whole number"),
        ("integer", float("inf"), "inf is not a whole number"),
        ("numeric", True, "True is not a number"),
        ("numeric", "x", "'x' is not a number"),
        ("float8", "x", "'x' is not a number"),
        ("float8", b"x", "binary data (1 bytes) is not a number"),
        ("boolean", "maybe", "'maybe' is not a truth value (1, t, true, y, yes or 0, f, false, n, no)"),
        ("boolean", 2, "2 is not a truth value (1, t, true, y, yes or 0, f, false, n, no)"),
        ("boolean", b"x", "binary data (1 bytes) is not a truth value (1, t, true, y, yes or 0, f, false, n, no)"),
        ("bytea", "no base 64!", "'no base 64!' is not binary data in Base64"),
        ("bytea", 7, "7 is not binary data in Base64"),
        (
            "date",
            "2026-01-02 03:04:05",
            "'2026-01-02 03:04:05' is not a day without a time; call the column's type timestamp in the schema",
        ),
        ("time", "25:00:00", "'25:00:00' is not a time of day, as hh:mm:ss"),
        ("time", 7, "7 is not a time of day, as hh:mm:ss"),
        ("timestamp", 7, "7 is not a time; write it as yyyy-mm-dd hh:mm:ss.ffffff"),
        ("timestamp", "2026-02-30", "'2026-02-30' is not a time; write it as yyyy-mm-dd hh:mm:ss.ffffff"),
        (
            "timestamp",
            dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=14))),
            " is not a time whose zone stays within the calendar",
        ),
        ("integer", "9" * 5000, " is not a whole number"),
    ],
)
def test_what_is_no_such_value_is_refused(kind: str, cell: Any, words: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        typed(cell, Column(name="c", type=kind))
    said = str(refused.value)
    assert said == words or (words.startswith(" ") and said.endswith(words))


def test_times_are_turned_to_utc_wherever_the_machine_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        zoned = "2026-01-02 03:04:05+02"
        assert typed(zoned, Column(name="c", type="timestamp")) == dt.datetime(2026, 1, 2, 1, 4, 5)
        assert typed(zoned, Column(name="c", type="timestamptz")).tzinfo is UTC
        assert timestamp(zoned) == "2026-01-02T01:04:05.000"
    finally:
        monkeypatch.undo()
        time.tzset()


cells: st.SearchStrategy[Any] = (
    st.none() | st.text() | st.integers() | st.floats() | st.decimals() | st.booleans() | st.binary()
)
cells = st.one_of(cells, st.datetimes(), st.dates(), st.times())
kinds = st.sampled_from(
    ["varchar", "integer", "numeric(5,2)", "float8", "boolean", "bytea", "date", "time", "timestamp"]
)


@shares(read=0.1, refused=0.2)
@given(kinds, cells)
def test_a_value_is_read_as_itself_or_refused(kind: str, cell: Any) -> None:
    column = Column(name="c", type=kind)
    try:
        value = typed(cell, column)
    except ExpressionError:
        met(refused=True)
        return
    met(read=value is not None)
    again = typed(value, column)
    assert again == value or again != again  # noqa: PLR0124  # what differs from itself is NaN


def test_a_value_is_shown_short_and_without_what_is_binary() -> None:
    assert value_shown(10**5000) == "a number of thousands of digits"
    assert value_shown(b"\x1b[2J") == "binary data (4 bytes)"
