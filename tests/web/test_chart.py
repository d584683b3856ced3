"""Charts: points stay on the sheet, scales are round, what nobody measured is no line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.web.chart import HEIGHT_PIXELS, WIDTH_PIXELS, ceiling, short
from eventlog.web.chart import curve as curve_of
from eventlog.web.pages import environment
from eventlog.web.reading import CHART_SECONDS, Sample, kept

NOW = 1_800_000_000.0
values = st.floats(min_value=0, max_value=1e12, allow_nan=False)
points = st.lists(st.tuples(st.floats(min_value=NOW - 2 * CHART_SECONDS, max_value=NOW), values), max_size=30).map(
    sorted
)


def curve(title: str, unit: str, points: list[tuple[float, float]], now: float) -> str:
    """The chart as its template draws it."""
    made = environment().from_string('{% import "charts.html" as charts %}{{ charts.curve(chart) }}')
    return made.render(chart=curve_of(title, unit, points, now))


def bar(part: float) -> str:
    return environment().from_string('{% import "charts.html" as charts %}{{ charts.bar(part) }}').render(part=part)


@given(points)
def test_every_point_lies_on_the_sheet(points: list[tuple[float, float]]) -> None:
    drawn = curve("Lag", "s", points, NOW)
    for found in re.findall(r'points="([^"]+)"', drawn):
        for pair in found.split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= WIDTH_PIXELS
            assert 0 <= y <= HEIGHT_PIXELS
    assert "nan" not in drawn
    assert "inf" not in drawn


@given(values)
def test_a_scale_ends_at_a_round_number_above_the_figures(value: float) -> None:
    top = ceiling(value)
    assert top >= value * (1 - 1e-6)
    assert f"{top:e}"[0] in "125"
    assert value == 0 or top <= 10.01 * value or top == 1.0


def test_a_pause_in_measuring_breaks_the_line() -> None:
    steady = [(NOW - 60 + step, 1.0) for step in range(0, 60, 10)]
    assert curve("a", "rows", steady, NOW).count("<polyline") == 1
    broken = [(NOW - 900 + step, 1.0) for step in range(0, 60, 10)] + steady
    assert curve("a", "rows", broken, NOW).count("<polyline") == 2
    assert "<circle" in curve("a", "rows", [(NOW, 1.0)], NOW)


def test_a_chart_says_in_words_what_it_shows() -> None:
    assert "Lag, the last hour: now 2 s, at most 40" in curve("Lag", "s", [(NOW - 9, 40.0), (NOW, 2.0)], NOW)
    assert "not measured yet" in curve("Lag", "s", [], NOW)


@pytest.mark.parametrize("number, written", [(0, "0"), (0.25, "0.25"), (999, "999"), (12_500, "12.5k"), (3e6, "3M")])
def test_numbers_fit_beside_an_axis(number: float, written: str) -> None:
    assert short(number) == written


@pytest.mark.parametrize("part, width", [(0.5, "50.0"), (-1, "0.0"), (7, "100.0")])
def test_a_bar_is_never_longer_than_its_place(part: float, width: str) -> None:
    assert f'width="{width}"' in bar(part)


@given(st.lists(st.floats(min_value=0, max_value=3 * CHART_SECONDS), min_size=1, max_size=50))
def test_an_hour_of_samples_is_kept_in_order(times: list[float]) -> None:
    samples: tuple[Sample, ...] = ()
    for at in times:
        samples = kept(samples, Sample(at=at, waiting=1, oldest=None, lag=None, rate=0.0))
    found = [sample.at for sample in samples]
    assert found == sorted(set(found))
    assert found[-1] == times[-1]
    assert found[-1] - found[0] <= CHART_SECONDS
