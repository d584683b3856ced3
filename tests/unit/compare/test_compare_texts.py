"""Canonical texts: different values never share one, and what drivers hand over in several ways has one text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.compare.texts import canonical, plain_text, read_cell, row_text, same
from eventlog.qlik.readings import reading_of

TYPES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8) | st.just("x" * 1001),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "numeric(20,4)": st.decimals(allow_nan=False, allow_infinity=False, places=4),
    "double precision": st.floats(allow_nan=True),
    "boolean": st.booleans(),
    "bytea": st.binary(max_size=8),
    "date": st.dates(),
    "time": st.times(),
    "timestamp": st.datetimes(),
}


@given(st.data(), st.sampled_from(sorted(TYPES)))
def test_two_values_have_one_text_exactly_when_they_are_the_same(data: st.DataObject, sql_type: str) -> None:
    values = TYPES[sql_type] | st.none()
    left, right = data.draw(values), data.draw(values)
    text = canonical(sql_type)
    assert (text(left) == text(right)) is (
        same(left, right) and str(left) == str(right) if left == 0 else same(left, right)
    )


@given(st.data(), st.sampled_from(sorted(TYPES)))
def test_a_value_is_read_again_from_its_text(data: st.DataObject, sql_type: str) -> None:
    value = data.draw(TYPES[sql_type])
    assert same(read_cell(reading_of(sql_type), plain_text(value)), value)


@given(st.lists(st.none() | st.text(alphabet="~|:1a", max_size=4), min_size=2, max_size=4), st.data())
def test_texts_side_by_side_are_never_taken_for_others(row: list[str | None], data: st.DataObject) -> None:
    cells = st.none() | st.text(alphabet="~|:1a", max_size=4)
    other = data.draw(st.lists(cells, min_size=len(row), max_size=len(row)))
    text = canonical("text")
    assert (row_text([text(one) for one in row]) == row_text([text(one) for one in other])) is (row == other)


@pytest.mark.parametrize(
    "sql_type, cells",
    [
        ("numeric(10,2)", ["1.50", Decimal("1.5"), 1.5, Decimal("1.500")]),
        ("numeric(10,0)", ["7", 7, Decimal(7)]),
        ("boolean", [True, 1, "t", "1", "true"]),
        (
            "timestamp",
            [
                "2024-02-29 10:00:00.5",
                "2024-02-29T10:00:00.500000",
                dt.datetime(2024, 2, 29, 10, 0, 0, 500_000),
            ],
        ),
        (
            "timestamp with time zone",
            [
                "2024-02-29 10:00:00+00",
                "2024-02-29 12:00:00+02:00",
                dt.datetime(2024, 2, 29, 10, tzinfo=dt.UTC),
            ],
        ),
        ("bytea", [b"ab", bytearray(b"ab"), memoryview(b"ab"), "YWI="]),
        ("double precision", [100.0, "100", Decimal(100)]),
    ],
)
def test_ways_to_hand_over_one_value(sql_type: str, cells: list[Any]) -> None:
    assert len({canonical(sql_type)(cell) for cell in cells}) == 1
