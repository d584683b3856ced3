"""Draws how cost grows: a panel for each series, both axes logarithmic, and n log n in grey beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.growth.fit import from_the_cheapest
from bench.growth.series import by_series
from bench.measure import Timing
from bench.plot import FLOOR, INK, OURS
from bench.report import Report, duration

MOST_ACROSS: Final = 3
ROOM: Final = 2.5
"""So many times below the lowest cost and above the highest, so that noise looks as small as it is."""


def draw_growth(found: Report, path: Path) -> Path:
    """Writes the plot as SVG; the same figures give the same bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    series = by_series(found.timings)
    across = min(MOST_ACROSS, math.ceil(math.sqrt(len(series))))
    down = math.ceil(len(series) / across)
    costs = [timing.each for timing in found.timings if timing.series]
    with mpl.rc_context({"svg.hashsalt": "eventlog", "svg.fonttype": "none", "font.size": 9, "text.color": INK}):
        figure = Figure(figsize=(9, 0.8 + 2.3 * down), layout="constrained")
        for number, (name, timings) in enumerate(series.items(), 1):
            _panel(figure.add_subplot(down, across, number, ylim=(min(costs) / ROOM, max(costs) * ROOM)), name, timings)
        figure.suptitle(
            f"{found.name}: {found.question}\ntime for each {found.unit}; grey: n log n; flat is linear", fontsize=10
        )
        figure.savefig(path, format="svg", metadata={"Date": None})
    return path


def short(size: float) -> str:
    """A size in as few letters as an axis has room for."""
    for letter, unit in (("M", 1e6), ("k", 1e3)):
        if size >= unit:
            return f"{size / unit:g} {letter}"
    return f"{size:g}"


def _panel(axes: object, name: str, timings: Sequence[Timing]) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    points = [(timing.size, timing.each) for timing in timings]
    rising = from_the_cheapest(points)
    axes.loglog([size for size, _ in rising], _allowed(rising), color=FLOOR, linestyle="--")
    axes.loglog(*zip(*points, strict=True), color=OURS, marker="o", markersize=4)
    falls = len(points) > 1 and points[-1][1] < points[-2][1]
    place = (0, -16 if falls else 8)
    axes.annotate(duration(points[-1][1]), points[-1], xytext=place, textcoords="offset points", ha="right")
    axes.set_title(name, loc="left", fontsize=9)
    axes.yaxis.set_major_formatter(lambda value, _place: duration(value))
    axes.xaxis.set_major_formatter(lambda value, _place: short(value))
    axes.minorticks_off()  # they would be most of the time that drawing takes
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _allowed(rising: Sequence[tuple[float, float]]) -> list[float]:
    """What a unit would cost at each size if the cheapest were the first step of n log n."""
    size, cost = rising[0]
    return [cost * math.log(n + 1) / math.log(size + 1) for n, _ in rising]
