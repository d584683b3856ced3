"""Charts: where the parts of a curve over the last hour stand; templates/charts.html draws them as SVG. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from eventlog.web.reading import CHART_SECONDS

WIDTH_PIXELS: Final = 600
HEIGHT_PIXELS: Final = 170
LEFT_PIXELS: Final = 54
BOTTOM_PIXELS: Final = 26
TOP_PIXELS: Final = 8
GAP_SECONDS: Final = 120.0
"""Seconds without a sample that break the curve: nobody measured then."""

LEAST_VALUES: Final = 1e-9
"""Less than this is nothing."""

MINUTES: Final = (60, 45, 30, 15, 0)

Points = Sequence[tuple[float, float]]
"""Moments in seconds since 1970, and values."""


class GridLine(Struct, frozen=True, kw_only=True):
    """A level line of the grid."""

    left: float
    right: float
    y: float


class Label(Struct, frozen=True, kw_only=True):
    """A text beside an axis."""

    text: str
    x: float
    y: float
    anchor: str


class CurvePart(Struct, frozen=True, kw_only=True):
    """Points without a pause between them: a line and the area below it, or one dot."""

    line: str = ""
    area: str = ""
    dot: tuple[float, float] | None = None


class Chart(Struct, frozen=True, kw_only=True):
    """A curve, and what it shows in words for those who do not see it."""

    title: str
    said: str
    lines: tuple[GridLine, ...]
    labels: tuple[Label, ...]
    stretches: tuple[CurvePart, ...]
    width: int = WIDTH_PIXELS
    height: int = HEIGHT_PIXELS


def curve(title: str, unit: str, points: Points, now: float) -> Chart:
    """The last hour as a curve."""
    top = ceiling(max((value for _, value in points), default=0.0))
    heights = [(part * top, _y(part * top, top)) for part in (0.0, 0.5, 1.0)]
    return Chart(
        title=title,
        said=_in_words(unit, points),
        lines=tuple([GridLine(left=LEFT_PIXELS, right=WIDTH_PIXELS, y=y) for _, y in heights]),
        labels=(
            *(Label(text=short(value), x=LEFT_PIXELS - 6, y=y + 5, anchor="end") for value, y in heights),
            *_minutes(),
        ),
        stretches=tuple([_stretch(stretch, now, top) for stretch in _stretches(points, now)]),
    )


def ceiling(value: float) -> float:
    """The next round number from which a scale can be read: 1, 2 or 5 with noughts."""
    if value < LEAST_VALUES:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if value <= step * power * (1 + 1e-9))


def short(value: float) -> str:
    """A number that fits beside an axis."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:.3g}"


def _in_words(unit: str, points: Points) -> str:
    if not points:
        return "not measured yet"
    values = [value for _, value in points]
    return f"now {short(values[-1])} {unit}, at most {short(max(values))}"


def _minutes() -> Iterator[Label]:
    for minutes in MINUTES:
        anchor = "end" if minutes == 0 else "middle" if minutes < 60 else "start"
        said = "now" if minutes == 0 else f"{minutes} min"
        yield Label(text=said, x=_x(-60.0 * minutes, 0.0), y=HEIGHT_PIXELS - 4, anchor=anchor)


def _stretches(points: Points, now: float) -> Iterator[list[tuple[float, float]]]:
    """The points of the last hour, parted where nobody measured."""
    stretch: list[tuple[float, float]] = []
    for at, value in points:
        if not now - CHART_SECONDS <= at <= now:
            continue
        if stretch and at - stretch[-1][0] > GAP_SECONDS:
            yield stretch
            stretch = []
        stretch.append((at, value))
    if stretch:
        yield stretch


def _stretch(points: list[tuple[float, float]], now: float, top: float) -> CurvePart:
    places = [(_x(at, now), _y(value, top)) for at, value in points]
    if len(places) == 1:
        return CurvePart(dot=places[0])
    line = " ".join(f"{x},{y}" for x, y in places)
    ground = _y(0.0, top)
    return CurvePart(line=line, area=f"{places[0][0]},{ground} {line} {places[-1][0]},{ground}")


def _x(at: float, now: float) -> float:
    return round(LEFT_PIXELS + (WIDTH_PIXELS - LEFT_PIXELS) * (1 + (at - now) / CHART_SECONDS), 1)


def _y(value: float, top: float) -> float:
    return round(TOP_PIXELS + (HEIGHT_PIXELS - BOTTOM_PIXELS - TOP_PIXELS) * (1 - value / top), 1)
