"""Charts: points stay on the sheet, scales are round, what nobody measured is no line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.web.chart import HEIGHT_PIXELS, MOST_VALUES, WIDTH_PIXELS, beside_axis, ceiling, short, thin_out
from eventlog.web.chart import curve as curve_of
from eventlog.web.drawing import environment
from eventlog.web.reading import RANGES, History, OutputSample, Sample

HOUR_SECONDS = 3600.0
NOW = 1_800_000_000.0
values = st.floats(min_value=0, max_value=1e12, allow_nan=False)
points = st.lists(st.tuples(st.floats(min_value=NOW - 2 * HOUR_SECONDS, max_value=NOW), values), max_size=30).map(
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
    top = ceiling("rows", value)
    assert top >= value * (1 - 1e-6)
    assert f"{top:e}"[0] in "125"
    assert value == 0 or top <= 10.01 * value or top == 1.0


def test_a_pause_in_measuring_breaks_the_line() -> None:
    steady = [(NOW - 60 + step, 1.0) for step in range(0, 60, 10)]
    assert curve("a", "rows", steady, NOW).count("<polyline") == 1
    broken = [(NOW - 900 + step, 1.0) for step in range(0, 60, 10)] + steady
    assert curve("a", "rows", broken, NOW).count("<polyline") == 2
    assert 'class="dot"' in curve("a", "rows", [(NOW, 1.0)], NOW)


def test_a_chart_says_in_words_what_it_shows() -> None:
    assert "Lag, the last hour: now 2 s, highest 40" in curve("Lag", "s", [(NOW - 9, 40.0), (NOW, 2.0)], NOW)
    assert "not measured yet" in curve("Lag", "s", [], NOW)
    assert "now 3 h, highest 325 d" in curve("Lag", "s", [(NOW - 9, 325 * 86_400.0), (NOW, 10_800.0)], NOW)


@given(values)
def test_a_scale_of_time_ends_at_a_round_number_of_minutes_hours_or_days(value: float) -> None:
    top = ceiling("s", value)
    assert top >= value * (1 - 1e-6)
    assert top <= 10.01 * value or top == 1.0
    if top >= 120:
        assert beside_axis("s", top / 2, top) != beside_axis("s", top, top)
        assert float(beside_axis("s", top / 2, top).split()[0]) in (top / 2, top / 120, top / 7200, top / 172_800)


@pytest.mark.parametrize(
    "seconds, half, said",
    [
        (90, "50", "100"),
        (119, "60 s", "2 min"),
        (130, "2 min", "4 min"),
        (1900, "30 min", "60 min"),
        (4000, "60 min", "2 h"),
        (100_000, "24 h", "2 d"),
        (200_000, "2 d", "4 d"),
    ],
)
def test_a_scale_of_time_reads_well(seconds: float, half: str, said: str) -> None:
    top = ceiling("s", seconds)
    assert (beside_axis("s", top / 2, top), beside_axis("s", top, top)) == (half, said)


@pytest.mark.parametrize(
    "number, written",
    [
        (0, "0"),
        (0.25, "0.25"),
        (99.6, "99.6"),
        (999, "999"),
        (4724, "4,724"),
        (9999, "9,999"),
        (12_345, "12.3k"),
        (12_500, "12.5k"),
        (999_960, "1M"),
        (3e6, "3M"),
        (2.5e9, "2.5G"),
    ],
)
def test_numbers_fit_beside_an_axis(number: float, written: str) -> None:
    assert short(number) == written


@pytest.mark.parametrize("part, width", [(0.5, "50.0"), (-1, "0.0"), (7, "100.0")])
def test_a_bar_is_never_longer_than_its_place(part: float, width: str) -> None:
    assert f'width="{width}"' in bar(part)


@given(st.lists(st.floats(min_value=0, max_value=3 * HOUR_SECONDS), min_size=1, max_size=50))
def test_an_hour_of_samples_is_kept_in_order(times: list[float]) -> None:
    history = History()
    for at in times:
        history = history.with_sample(sample(at))
    found = [one.at for one in history.of(RANGES[0])]
    assert found == sorted(set(found))
    assert found[-1] == times[-1]
    assert found[-1] - found[0] <= HOUR_SECONDS


def sample(at: float, waiting: int = 1, lag: float | None = None, behind: int = 0) -> Sample:
    return Sample(
        at=at, waiting=waiting, oldest=None, lag=lag, rate=0.0, outputs={"near": OutputSample(behind=behind, rate=1.0)}
    )


def test_of_a_longer_range_each_step_has_its_highest_figures() -> None:
    history = History()
    for second, waiting in ((0, 5), (20, 90), (40, 7), (60, 3)):
        history = history.with_sample(sample(NOW + second, waiting, lag=None if second else 4.0, behind=waiting))
    assert [one.waiting for one in history.of(RANGES[0])] == [5, 90, 7, 3]
    assert [one.waiting for one in history.of(RANGES[1])] == [90, 3]
    assert [one.waiting for one in history.of(RANGES[2])] == [90]
    assert history.of(RANGES[1])[0].lag == 4.0
    assert history.of(RANGES[1])[0].outputs["near"].behind == 90


def test_a_chart_of_a_day_says_so() -> None:
    made = environment().from_string('{% import "charts.html" as charts %}{{ charts.curve(chart) }}')
    drawn = made.render(chart=curve_of("Lag", "s", [(NOW - 80_000, 3.0), (NOW - 79_950, 1.0)], NOW, RANGES[1]))
    assert "Lag, the last 24 hours: now 1 s, highest 3" in drawn
    assert "<li>12 h</li>" in drawn
    assert 'data-values="3 s|1 s"' in drawn


@given(st.lists(values, max_size=2 * MOST_VALUES + 7))
def test_of_many_points_the_highest_are_shown_and_the_last(heights: list[float]) -> None:
    points = [(float(at), value) for at, value in enumerate(heights)]
    found = thin_out(points)
    assert len(found) <= MOST_VALUES + 1
    assert found == sorted(set(found) & set(points))
    if points:
        assert found[-1] == points[-1]
        assert max(value for _, value in found) == max(heights)


def test_of_many_points_the_last_one_is_there_once_whether_or_not_it_is_the_highest() -> None:
    rising = [(float(number), float(number)) for number in range(MOST_VALUES * 3)]
    falling = [(at, -value) for at, value in rising]
    for points in (rising, falling):
        assert thin_out(points).count(points[-1]) == 1
