"""Short ways for texts that stand as they are wanted: they say what the long ways say, or leave it to them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pytest

from eventlog.core.limits import ColumnLimits
from eventlog.core.schema import Column
from eventlog.qlik.change_seq import read_time
from eventlog.qlik.limits import _exact, _fraction, _text, limit_of
from eventlog.qlik.messages.jsonvalues import _ready_date, _ready_instant
from eventlog.qlik.readings import read_column


@pytest.mark.parametrize(
    "text, date, instant",
    [
        ("2026-01-31", "2026-01-31", None),
        ("2026-02-31", None, None),
        ("20260131", None, None),
        ("2026-01-31 10:00:00", None, "2026-01-31 10:00:00.000000"),
        ("2026-01-31 25:00:00", None, None),
    ],
)
def test_days_and_times_that_are_ready(text: str, date: str | None, instant: str | None) -> None:
    assert (_ready_date(text), _ready_instant(text)) == (date, instant)


def test_a_time_that_is_none_is_read_as_none() -> None:
    assert read_time("2026-02-31 10:00:00") is None
    assert read_time("2026-01-31 10:00:00") == dt.datetime(2026, 1, 31, 10)


@pytest.mark.parametrize(
    "kind, texts, values",
    [
        ("integer", ["1", "22"], [1, 22]),
        ("integer", ["-1", "22"], [-1, 22]),
        ("date", ["2026-01-31", "2026-02-01"], [dt.date(2026, 1, 31), dt.date(2026, 2, 1)]),
        ("date", ["0026-01-31"], [dt.date(26, 1, 31)]),
        ("varchar(9)", ["a", "b"], ["a", "b"]),
    ],
)
def test_a_column_of_texts_is_read_at_once(kind: str, texts: list[str], values: list[Any]) -> None:
    assert [*read_column(Column(name="c", type=kind), texts)] == values


def test_what_a_column_of_fractions_holds() -> None:
    limit = _fraction(ColumnLimits(), single=True)
    assert limit is not None
    finite = ColumnLimits(nan=False, infinite=False)
    strict = _fraction(finite, single=False)
    assert strict is not None
    assert strict.problem(math.nan) == "no number that the column holds"
    assert strict.problem(1.5) is None
    assert limit.problem(1e39) == "too large for a number of single precision"
    assert limit.holds([1.0, None])
    assert not limit.holds([1e39])
    assert _fraction(ColumnLimits(nan=True, infinite=True), single=False) is None


def test_what_a_column_of_texts_holds() -> None:
    limit = _text(nul=True)
    assert (limit.problem("é"), limit.problem("\0")) == (None, None)
    assert "half a character" in str(limit.problem("\ud800"))
    assert (limit.holds(["a", None, "\0"]), limit.holds(["\ud800"])) == (True, False)
    read = limit.quick(lambda _: "long")
    assert (read("a"), read("é"), read("\0"), read(1)) == ("a", "long", "\0", "long")


def test_a_text_with_a_nul_is_refused_before_postgresql_does() -> None:
    limit = _text(nul=False)
    assert "NUL" in str(limit.problem("a\0"))
    assert (limit.holds(["a"]), limit.holds(["a\0"])) == (True, False)
    assert limit.quick(lambda _: "long")("a\0") == "long"


def test_an_exact_number_is_read_shortly_where_it_has_the_digits_of_its_column() -> None:
    limit = _exact(5, 2, nan=False)
    read = limit.quick(lambda _: "long")
    assert (read("1.50"), read("1.5"), read("a.bc")) == (Decimal("1.50"), "long", "long")
    assert limit_of("integer", ColumnLimits(sized=False)) is None
