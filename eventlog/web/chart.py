"""Charts: where the parts of a curve over a range of time stand; templates/charts.html draws them as SVG. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from eventlog.core.plural import duration
from eventlog.web.reading import RANGES, ChartRange

SECONDS: Final = "s"
"""The unit of a length of time, which is written as people say it."""

ROUND_SECONDS: Final = tuple(
    [step * size for size, steps in ((60, (2, 4, 10, 20, 60)), (3600, (2, 6, 12, 24, 48))) for step in steps]
)
"""Where a scale of minutes or hours may end, so that its half is a whole number too; beyond it
counts days.
"""

DAY_SECONDS: Final = 86_400

LONG_SECONDS: Final = 120
"""From here on a time is shown in minutes, hours or days."""

WIDTH_PIXELS: Final = 400
HEIGHT_PIXELS: Final = 100
"""Of the drawing, which is stretched to its card: what is written stands beside it, in statuses of one size."""

EDGE_PIXELS: Final = 1
"""Above and below the curve, so that its line is not cut."""

GAP_SECONDS: Final = 120.0
"""Seconds without a sample that break the curve: nobody measured then."""

LEAST_VALUES: Final = 1e-9
"""Less than this is nothing."""

MOST_VALUES: Final = 240
"""As many as a chart can show: a page stays small. Of several the highest is shown."""

Points = Sequence[tuple[float, float]]
"""Moments in seconds since 1970, and values."""


class CurvePart(Struct, frozen=True, kw_only=True):
    """Points without a pause between them: a line and the area below it, or one dot."""

    line: str = ""
    values: str = ""
    """The figures at the points of the line with their unit, for whoever points at one; a bar
    stands between two.
    """
    area: str = ""
    dot: tuple[float, float] | None = None


class Chart(Struct, frozen=True, kw_only=True):
    """A curve, and what it shows in words for those who do not see it."""

    title: str
    summary: str
    span: ChartRange
    levels: tuple[tuple[str, float], ...]
    """What stands beside the lines of the scale, from the top down, and how high they are drawn."""

    pieces: tuple[CurvePart, ...]
    width: int = WIDTH_PIXELS
    height: int = HEIGHT_PIXELS


def curve(title: str, unit: str, points: Points, now: float, span: ChartRange = RANGES[0]) -> Chart:
    points = [(at, value) for at, value in points if now - span.seconds <= at <= now]
    top = ceiling(unit, max((value for _, value in points), default=0.0))
    parts = [_draw_piece(piece, unit, now, top, span.seconds) for piece in _split_at_gaps(points, span)]
    return Chart(
        title=title,
        summary=_in_words(unit, points),
        span=span,
        levels=tuple([(beside_axis(unit, part * top, top), _y(part * top, top)) for part in (1.0, 0.5, 0.0)]),
        pieces=tuple(parts),
    )


def ceiling(unit: str, value: float) -> float:
    """Round up for a scale: 1, 2 or 5 with zeros; long times to minutes, hours or days."""
    if value < LEAST_VALUES:
        return 1.0
    if unit == SECONDS and value > 100:
        if value > ROUND_SECONDS[-1]:
            return 2 * DAY_SECONDS * ceiling("d", value / DAY_SECONDS / 2)
        return float(next(step for step in ROUND_SECONDS if value <= step))
    # A float may lie a little above the number that it stands for.
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if value <= step * power * (1 + 1e-9))


def short(value: float) -> str:
    """Write a number for an axis: in full up to 9,999, then as 12.3k."""
    for unit, size, least in (("G", 1e9, 999_950_000), ("M", 1e6, 999_950), ("k", 1e3, 9_999.5)):
        if value >= least:
            return f"{value / size:,.1f}".removesuffix(".0") + unit
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def beside_axis(unit: str, value: float, top: float) -> str:
    """Write a figure for an axis ending at `top`, with a unit only for long times."""
    return duration(value) if unit == SECONDS and top >= LONG_SECONDS and value else short(value)


def in_full(unit: str, value: float) -> str:
    if unit == SECONDS and value >= LONG_SECONDS:
        return duration(value)
    return f"{short(value)} {'row' if unit == 'rows' and value == 1 else unit}"


def _in_words(unit: str, points: Points) -> str:
    if not points:
        return "not measured yet"
    values = [value for _, value in points]
    return f"now {in_full(unit, values[-1])}, highest {beside_axis(unit, max(values), max(values))}"


def _split_at_gaps(points: Points, span: ChartRange) -> Iterator[list[tuple[float, float]]]:
    """Yield the points, split at gaps in measuring and thinned for the chart."""
    piece: list[tuple[float, float]] = []
    gap = max(GAP_SECONDS, 3 * span.step)
    for at, value in points:
        if piece and at - piece[-1][0] > gap:
            yield thin_out(piece)
            piece = []
        piece.append((at, value))
    if piece:
        yield thin_out(piece)


def thin_out(points: Points, most: int = MOST_VALUES) -> list[tuple[float, float]]:
    """Return as many points as a chart can show: the highest of each few, and the last one always."""
    # Rounded up, so that there are no more of them than that.
    some = -(-len(points) // most)
    if some <= 1:
        return list(points)
    # The highest, not their mean: a peak of a minute is what somebody looks for.
    highest = [max(points[at : at + some], key=lambda point: point[1]) for at in range(0, len(points) - 1, some)]
    # The last point is what it is now, and may be the highest of its few.
    if highest[-1][0] >= points[-1][0]:
        return [*highest[:-1], points[-1]]
    return [*highest, points[-1]]


def _draw_piece(
    points: list[tuple[float, float]],
    unit: str,
    now: float,
    top: float,
    seconds: float,
) -> CurvePart:
    places: list[tuple[float, float]] = []
    for at, value in points:
        x = WIDTH_PIXELS * (1 + (at - now) / seconds)
        places.append((round(x, 1), _y(value, top)))
    # A line of one point cannot be seen.
    if len(places) == 1:
        return CurvePart(dot=places[0])
    line = " ".join(f"{x},{y}" for x, y in places)
    ground = _y(0.0, top)
    return CurvePart(
        line=line,
        values="|".join(in_full(unit, value) for _, value in points),
        area=f"{places[0][0]},{ground} {line} {places[-1][0]},{ground}",
    )


def _y(value: float, top: float) -> float:
    return round(EDGE_PIXELS + (HEIGHT_PIXELS - 2 * EDGE_PIXELS) * (1 - value / top), 1)
