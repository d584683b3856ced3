"""How growth is judged: n log n passes, anything worse does not, and neither fixed costs nor noise decide."""

from __future__ import annotations

import gc
import math
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.curves import draw_growth, short
from bench.growth.capture import written
from bench.growth.fit import Point, from_the_cheapest, growth, slope
from bench.growth.logs import COUNTED, FILL
from bench.growth.series import by_series, noise_of, powers, targets
from bench.growth.shape import CHARACTERS, Shape, long_values, shapes
from bench.machine import this_machine
from bench.measure import Benchmark, Contestant, Timing, measure
from bench.names import NAMES, chosen
from bench.report import report
from eventlog.capture import Style

SIZES = powers(3, 6)


def points(power: float, fixed: float = 0.0) -> list[Point]:
    return [(size, fixed / size + size ** (power - 1)) for size in SIZES]


def timing(series: str, size: int, each: float) -> Timing:
    return Timing(name=f"{series}: {size}", units=size, seconds=(each * size,), series=series, size=size)


@given(st.floats(0.5, 3), st.floats(1e-9, 1e3))
def test_the_slope_is_the_power(power: float, factor: float) -> None:
    assert slope([(size, factor * size**power) for size in SIZES]) == pytest.approx(power)


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


def test_what_only_gets_cheaper_is_linear() -> None:
    grown = growth(points(1.0, fixed=1e3))
    assert (grown.power, grown.bearable) == (1.0, True)


def test_what_two_runs_of_the_same_differ_by_is_no_growth() -> None:
    found = [(10_000.0, 1.0), (100_000.0, 0.8), (1_000_000.0, 1.1)]
    assert not growth(found).bearable
    assert growth(found, apart=0.4).bearable
    assert not growth(points(1.5), apart=0.4).bearable


def test_noise_is_half_of_what_the_runs_of_most_sizes_spread_over() -> None:
    runs = [Timing(name=str(size), units=1, seconds=(1.0, 1.0, 1.0 + size / 10)) for size in (1, 4, 9)]
    assert noise_of(runs) == pytest.approx(0.2)


def test_sizes_before_the_cheapest_are_left_out_in_whatever_order_they_come() -> None:
    assert from_the_cheapest([(100, 3.0), (1, 5.0), (10, 2.0)]) == [(10, 2.0), (100, 3.0)]


def test_every_series_has_its_target_and_contestants_without_one_have_none() -> None:
    timings = [timing("flat", size, 1.0) for size in SIZES] + [timing("steep", size, float(size)) for size in SIZES]
    beside = Timing(name="floor", units=1, seconds=(1.0,))
    assert list(by_series([*timings, beside])) == ["flat", "steep"]
    flat, steep = targets({one.name: one for one in [*timings, beside]})
    assert (flat.reached, steep.reached) == (True, False)
    assert steep.measured == "n^2.00"


@given(
    st.builds(
        Shape,
        rows=st.integers(1, 200),
        each=st.integers(1, 20),
        columns=st.integers(1, 9),
        tables=st.integers(1, 9),
        characters=st.integers(1, 9),
    )
)
def test_rows_have_the_shape_that_was_asked_for(shape: Shape) -> None:
    rows = list(shape.log_rows())
    assert [row[0] for row in rows] == list(range(1, shape.rows + 1))
    assert len({row[1] for row in rows}) <= shape.objects
    assert all(len(row[9] or "") == shape.characters for row in rows)
    assert {row[6] for row in rows} <= {table.name for table in shape.catalog} == set(shape.names)
    inserted = [(row[1], row[7]) for row in rows if row[3] == 1]
    assert len(inserted) == len(set(inserted))


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


@pytest.mark.parametrize("most", [2, 7])
def test_what_grows_is_what_the_shape_has_more_of(most: int) -> None:
    found = shapes(10, most=most, once_from=1_000_000, least=1)
    rows, objects, one, columns, tables, characters = found.values()
    assert all(shape.rows == shape.size for shape in rows)
    assert all(shape.objects == shape.size for shape in objects)
    assert all(shape.each == shape.size for shape in one)
    assert all(shape.columns == shape.size for shape in columns)
    assert all(shape.tables == shape.size for shape in tables)
    assert all(shape.characters == shape.size and shape.in_characters for shape in characters)
    for sizes in found.values():
        assert len(sizes) >= 2
        assert [shape.size for shape in sizes] == sorted({shape.size for shape in sizes})
    assert [shape.size for shape in rows if shape.once] == [size for size in (10**6, 10**7) if size <= 10**most]


def test_where_values_grow_characters_are_counted() -> None:
    shape = long_values(10_000_000)
    assert (shape.rows, shape.units) == (2, 2 * 10_000_000 // CHARACTERS)
    assert long_values(10).units == long_values(10).rows * 10 // CHARACTERS


def test_what_runs_once_is_neither_warmed_up_nor_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "collect", int)  # with thousands of tests behind it that takes seconds
    ran: list[str] = []
    contestants = [Contestant(name=name, run=partial(ran.append, name), once=name == "l") for name in "sl"]
    timings = measure(contestants, runs=3)
    assert "".join(ran) == "s" + "sl" + "s" + "s"
    assert {name: len(one.seconds) for name, one in timings.items()} == {"s": 3, "l": 1}


@pytest.mark.parametrize("style,logged", [(Style.FIELD, 2), (Style.ROW_BACK, 1)])
def test_what_a_statement_writes_is_what_grows(style: Style, logged: int) -> None:
    rows, columns, long = written(style, quick=True).values()
    assert [(one.rows, one.units) for one in rows] == [(one.size, one.size * logged) for one in rows]
    assert all(one.columns == one.size and one.rows * one.columns == one.units for one in columns)
    assert all(one.characters == one.size for one in long)


def test_a_word_before_a_point_means_all_that_follow_it() -> None:
    assert chosen([]) == list(NAMES)
    assert chosen(["growth"]) == [name for name in NAMES if name.startswith("growth.")]
    assert len(chosen(["growth"])) > 2
    assert chosen(["spark.growth"]) == ["spark.growth"]
    assert chosen(["grow"]) == []


def test_growth_is_drawn_a_panel_for_each_series_and_the_same_each_time(tmp_path: Path) -> None:
    timings = {f"{name} {size}": timing(name, size, 1e-6) for name in ("rows", "tables") for size in SIZES}
    benchmark = Benchmark(name="x", question="why?", unit="row", contestants=[], targets=targets)
    found = report(benchmark, timings, this_machine())
    first, second = (draw_growth(found, tmp_path / f"{number}.svg").read_text() for number in (1, 2))
    assert first == second
    assert ">rows<" in first
    assert ">tables<" in first
    assert "1 µs" in first


@pytest.mark.parametrize(
    "size,said", [(1, "1"), (100, "100"), (1_000, "1 k"), (100_000, "100 k"), (10_000_000, "10 M")]
)
def test_sizes_are_written_short(size: int, said: str) -> None:
    assert short(size) == said
