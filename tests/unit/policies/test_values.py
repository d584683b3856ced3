"""Values as policies see them: one text each, however they came."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from eventlog.core.model import ABSENT
from eventlog.core.sql_types import Category
from eventlog.policies.values import each, plain_of, text_of


@pytest.mark.parametrize(
    "value, category, text",
    [
        ("1.50", Category.NUMBER, "1.5"),
        (1.5, Category.NUMBER, "1.5"),
        (Decimal("1E+3"), Category.NUMBER, "1000"),
        ("007", Category.INT, "7"),
        ("x", Category.INT, "x"),
        ("NaN", Category.NUMBER, "NaN"),
        ("1e999", Category.NUMBER, "1e999"),
        ("T", Category.STATE, "true"),
        ("no", Category.STATE, "false"),
        (1, Category.STATE, "true"),
        ("?", Category.STATE, "?"),
        (b"ab", Category.OCTET, "YWI="),
        ("2025-03-23 10:57:19", Category.TIMESTAMP, "2025-03-23T10:57:19Z"),
        (dt.datetime(2025, 3, 23, 10, 57, 19), Category.TIMESTAMP, "2025-03-23T10:57:19Z"),
        ("soon", Category.TIMESTAMP, "soon"),
        (dt.date(2025, 3, 23), Category.DATE, "2025-03-23"),
        ("a ", Category.STRING, "a "),
        (1.5, Category.STRING, "1.5"),
    ],
)
def test_a_value_has_one_text(value: Any, category: Category, text: str) -> None:
    assert text_of(value, category) == text


def test_cells_are_changed_one_by_one() -> None:
    assert each(("a", None), repr) == ("'a'", None)
    assert each(None, str) is None
    assert each(ABSENT, str) is ABSENT
    assert plain_of(True, Category.STATE) is True
    assert plain_of(" x ", Category.STRING) == " x "
