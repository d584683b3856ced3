"""Charts as SVG, drawn where the figures are: a curve over the last hour, and bars. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from eventlog.web.html import Markup, element
from eventlog.web.reading import HOUR

WIDTH: Final = 600
HEIGHT: Final = 170
LEFT: Final = 54
BOTTOM: Final = 26
TOP: Final = 8
GAP: Final = 120.0
"""Seconds without a sample that break the curve: nobody measured then."""

TINY: Final = 1e-9
"""Less than this is nothing."""

MINUTES: Final = (60, 45, 30, 15, 0)

Points = Sequence[tuple[float, float]]
"""Moments in seconds since 1970, and values."""


def curve(title: str, unit: str, points: Points, now: float) -> Markup:
    """The last hour as a curve, with what it shows in words for those who do not see it."""
    top = ceiling(max((value for _, value in points), default=0.0))
    said = _in_words(unit, points)
    drawn = [*_grid(top), *(_stretch(stretch, now, top) for stretch in _stretches(points, now))]
    return element(
        "figure",
        element("figcaption", title, element("span", said, class_="quiet")),
        element(
            "svg",
            drawn,
            viewBox=f"0 0 {WIDTH} {HEIGHT}",
            role="img",
            aria_label=f"{title}, the last hour: {said}",
            class_="chart",
        ),
        class_="card",
    )


def bar(part: float) -> Markup:
    """A bar that is as long as the part, from 0 to 1; the figure stands beside it."""
    length = round(100 * min(max(part, 0.0), 1.0), 2)
    rect = element("rect", width=length, height=8, rx=1, class_="bar")
    return element("svg", rect, viewBox="0 0 100 8", class_="bars", aria_hidden="true", preserveAspectRatio="none")


def ceiling(value: float) -> float:
    """The next round number from which a scale can be read: 1, 2 or 5 with noughts."""
    if value < TINY:
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


def _grid(top: float) -> Iterator[Markup]:
    for part in (0.0, 0.5, 1.0):
        y = _y(part * top, top)
        yield element("line", x1=LEFT, x2=WIDTH, y1=y, y2=y, class_="grid")
        yield element("text", short(part * top), x=LEFT - 6, y=y + 5, text_anchor="end")
    for minutes in MINUTES:
        x, anchor = _x(-60.0 * minutes, 0.0), "end" if minutes == 0 else "middle" if minutes < 60 else "start"
        yield element("text", "now" if minutes == 0 else f"{minutes} min", x=x, y=HEIGHT - 4, text_anchor=anchor)


def _stretches(points: Points, now: float) -> Iterator[list[tuple[float, float]]]:
    """The points of the last hour, parted where nobody measured."""
    stretch: list[tuple[float, float]] = []
    for at, value in points:
        if not now - HOUR <= at <= now:
            continue
        if stretch and at - stretch[-1][0] > GAP:
            yield stretch
            stretch = []
        stretch.append((at, value))
    if stretch:
        yield stretch


def _stretch(points: list[tuple[float, float]], now: float, top: float) -> Markup:
    line = " ".join(f"{_x(at, now)},{_y(value, top)}" for at, value in points)
    first, last, ground = _x(points[0][0], now), _x(points[-1][0], now), _y(0.0, top)
    area = element("polygon", points=f"{first},{ground} {line} {last},{ground}", class_="area")
    if len(points) == 1:
        return element("circle", cx=last, cy=_y(points[0][1], top), r=2.5, class_="dot")
    return element("g", area, element("polyline", points=line, class_="line"))


def _x(at: float, now: float) -> float:
    return round(LEFT + (WIDTH - LEFT) * (1 + (at - now) / HOUR), 1)


def _y(value: float, top: float) -> float:
    return round(TOP + (HEIGHT - BOTTOM - TOP) * (1 - value / top), 1)
