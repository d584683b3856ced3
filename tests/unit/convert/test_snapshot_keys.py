"""Keys of a snapshot's rows: as triggers write them, whatever the file has the values in."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from eventlog.convert.snapshot import key_text
from eventlog.core.sql_types import Category


@pytest.mark.parametrize(
    "value, category, text",
    [
        (7, Category.INT, "7"),
        (True, Category.STATE, "1"),
        (False, Category.STATE, "0"),
        (b"\xff\x00", Category.OCTET, "/wA="),
        ("/wA=", Category.OCTET, "/wA="),
        (5.0, Category.NUMBER, "5"),
        (0.1, Category.NUMBER, "0.1"),
        (1e20, Category.NUMBER, "1e+20"),
        (Decimal("1.50"), Category.NUMBER, "1.50"),
        (dt.date(1948, 12, 8), Category.DATE, "1948-12-08"),
        (dt.datetime(2025, 3, 23, 10, 57, 19, 250000), Category.TIMESTAMP, "2025-03-23 10:57:19.250000000"),
        (dt.datetime(2025, 3, 23, 12, 57, tzinfo=dt.timezone(dt.timedelta(hours=2))), Category.TIMESTAMP,
         "2025-03-23 10:57:00.000000000"),
        ("2025-03-23T10:57:19Z", Category.TIMESTAMP, "2025-03-23 10:57:19.000000000"),
        ("2025-03-23 10:57:19.123456789", Category.TIMESTAMP, "2025-03-23 10:57:19.123456789"),
        ("infinity", Category.TIMESTAMP, "infinity"),
        ("2025-03-23T10:57:19Z", Category.STRING, "2025-03-23T10:57:19Z"),
    ],
)  # fmt: skip
def test_a_key_is_spelled_as_its_trigger_spells_it(value: Any, category: Category, text: str) -> None:
    assert key_text(value, category) == text
