"""Draws what a benchmark found: a bar for each contestant, the floor in grey, the spread as a line across its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.measure import Timing
from bench.report import Report, duration

OURS, FLOOR, INK = "#2a6fdb", "#9aa3ad", "#1d2127"
LONGEST_LABEL: Final = 48


def draw(found: Report, path: Path) -> Path:
    """Writes the plot as SVG; the same figures give the same bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "eventlog", "svg.fonttype": "none", "font.size": 9, "text.color": INK}):
        figure = Figure(figsize=(8, 0.9 + 0.42 * len(found.timings)), layout="constrained")
        axes = figure.add_subplot()
        _bars(axes, found.timings)
        axes.set_title(f"{found.name}: {found.question}", loc="left", fontsize=10, wrap=True)
        axes.set_xlabel(
            f"time for each {found.unit}, median of {len(found.timings[0].seconds)} runs; shorter is better"
        )
        figure.savefig(path, format="svg", metadata={"Date": None})
    return path


def _bars(axes: object, timings: Sequence[Timing]) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    names = [timing.name[:LONGEST_LABEL] for timing in timings]
    each = [timing.each for timing in timings]
    errors = [
        [timing.each - min(timing.seconds) / timing.units for timing in timings],
        [max(timing.seconds) / timing.units - timing.each for timing in timings],
    ]
    colours = [FLOOR if timing.floor else OURS for timing in timings]
    bars = axes.barh(range(len(timings)), each, xerr=errors, color=colours, error_kw={"ecolor": INK, "capsize": 2})
    axes.bar_label(bars, [f" {duration(one)}" for one in each], padding=3)
    axes.set_yticks(range(len(timings)), names)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.xaxis.set_major_formatter(lambda value, _place: duration(value) if value > 0 else "0")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
