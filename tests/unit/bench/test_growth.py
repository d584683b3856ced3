"""How growth is judged: n log n passes, anything worse does not, and neither fixed costs nor noise decide."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.growth.fit import Point, growth
from bench.growth.logs import COUNTED, FILL
from bench.growth.series import by_series, powers, targets
from bench.growth.shape import Shape
from bench.measure import Timing

SIZES = powers(3, 6)


def points(power: float, fixed: float = 0.0) -> list[Point]:
    return [(size, fixed / size + size ** (power - 1)) for size in SIZES]


def timing(series: str, size: int, each: float) -> Timing:
    return Timing(name=f"{series}: {size}", units=size, seconds=(each * size,), series=series, size=size)


@given(st.floats(1.15, 3))
def test_what_grows_faster_is_not_bearable(power: float) -> None:
    grown = growth(points(power))
    assert grown.power == pytest.approx(power)
    assert not grown.bearable


@given(st.floats(1e-9, 1e3))
def test_n_log_n_is_bearable(factor: float) -> None:
    assert growth([(size, factor * math.log(size)) for size in SIZES]).bearable


def test_fixed_costs_hide_no_bad_end() -> None:
    grown = growth(points(2.0, fixed=1e8))
    assert grown.power > 1.5
    assert not grown.bearable


def test_what_two_runs_of_the_same_differ_by_is_no_growth() -> None:
    found = [(10_000.0, 1.0), (100_000.0, 0.8), (1_000_000.0, 1.1)]
    assert not growth(found).bearable
    assert growth(found, apart=0.4).bearable
    assert not growth(points(1.5), apart=0.4).bearable


def test_every_series_has_its_target_and_contestants_without_one_have_none() -> None:
    timings = [timing("flat", size, 1.0) for size in SIZES] + [timing("steep", size, float(size)) for size in SIZES]
    beside = Timing(name="floor", units=1, seconds=(1.0,))
    assert list(by_series([*timings, beside])) == ["flat", "steep"]
    flat, steep = targets({one.name: one for one in [*timings, beside]})
    assert (flat.reached, steep.reached) == (True, False)
    assert steep.measured == "n^2.00"


@given(
    st.builds(
        Shape, rows=st.integers(1, 40), each=st.integers(1, 9), columns=st.integers(1, 5), tables=st.integers(1, 3)
    )
)
def test_statements_fill_a_log_with_the_rows_of_the_shape(shape: Shape) -> None:
    former, latter = shape.texts
    sizes = {"objects": shape.objects, "columns": shape.columns, "tables": shape.tables, "table": shape.table}
    values = {"status": "N", "former": former, "latter": latter, "first": 0, "last": shape.rows}
    columns = "table_key, status, event_type, event_time, perpetrator, table_name, column_name, old_value, new_value"
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE log (record_id INTEGER PRIMARY KEY, {columns})")
        connection.execute(FILL.format(log="log", counted=COUNTED["sqlite"]), sizes | values)
        filled = connection.execute("SELECT * FROM log ORDER BY record_id").fetchall()
    assert [(*row[:4], *row[5:]) for row in filled] == [(*row[:4], *row[5:]) for row in shape.log_rows()]
