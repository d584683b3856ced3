"""Cells of change tables as they are put into their order, and read back."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal

import pyarrow as pa
import pytest

from eventlog.compare.texts import read_cell, same
from eventlog.qlik.readings import reading_of
from eventlog.verify.history import cells_of
from eventlog.verify.lakes import order_rows


def test_rows_come_in_order_and_before_images_first() -> None:
    rows = [(f"{number:03}", letter, number) for number in range(300) for letter in "BU"]
    mixed = random.Random(1).sample(rows, len(rows))
    with order_rows(mixed, 3, [0, 1]) as found:
        assert [*found] == rows


@pytest.mark.parametrize(
    "sql_type, value",
    [
        ("varchar(9)", "1.50"),
        ("numeric(9,2)", Decimal("1.50")),
        ("double", math.nan),
        ("double", 0.1 + 0.2),
        ("double", -math.inf),
        ("boolean", True),
        ("bigint", -(2**63)),
        ("bytea", b"\x00\xff"),
        ("date", dt.date(2024, 2, 29)),
        ("timestamp", dt.datetime(2024, 2, 29, 1, 2, 3, 4)),
        ("timestamptz", dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC)),
        ("time", dt.time(1, 2, 3, 4)),
        ("varchar(9)", None),
    ],
)
def test_a_value_is_the_same_after_it_was_put_in_order(sql_type: str, value: object) -> None:
    with order_rows([("a", value)], 2, [0]) as found:
        [(_, cell)] = found
    assert same(read_cell(reading_of(sql_type), cell), value)


def test_numbers_of_single_precision_are_those_that_somebody_wrote() -> None:
    column = pa.array([0.1, None, 16777216.0, math.inf], pa.float32())
    read = reading_of("real")
    assert [read_cell(read, cell) for cell in cells_of(column)] == [0.1, None, 16777216.0, math.inf]
