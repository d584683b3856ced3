"""Draws what is kept as JSON: results of benchmarks, and of the soak. Only the README's plot is kept in git."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.curves import draw_growth
from bench.plot import draw
from bench.readme import kept
from bench.report import RESULTS, Report

SOAK = RESULTS / "hardening" / "soak.json"


class Sample(Struct, frozen=True, kw_only=True):
    """What the soak saw at one moment, as far as it is drawn."""

    seconds: float
    megabytes: float
    files: float
    connections: float
    log_megabytes: float
    waiting: float
    lag: float


class Soak(Struct, frozen=True, kw_only=True):
    """A run of the soak, as tests/hardening/test_soak.py keeps it."""

    samples: list[Sample]


def draw_all(folder: Path) -> Iterator[Path]:
    """Every plot, newly drawn into the folder."""
    for report in kept():
        yield draw_result(report, folder / f"{report.name}.svg")
    if SOAK.exists():
        yield draw_soak(msgspec.json.decode(SOAK.read_bytes(), type=Soak), folder / "soak.svg")


def draw_result(found: Report, path: Path) -> Path:
    """A benchmark: curves where something grows, else a bar for each contestant."""
    grows = any(timing.series for timing in found.timings)
    return draw_growth(found, path) if grows else draw(found, path)


def draw_soak(found: Soak, path: Path) -> Path:
    """What the publisher takes and how far it is behind, minute by minute."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = {"memory, MB": "megabytes", "open files": "files", "connections": "connections"}
    shown |= {"log, MB": "log_megabytes", "rows waiting": "waiting", "lag, s": "lag"}
    with mpl.rc_context({"svg.hashsalt": "eventlog", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(10, 5), layout="constrained")
        axes = figure.subplots(2, 3)
        for axis, (title, name) in zip(axes.flat, shown.items(), strict=True):
            axis.plot([one.seconds / 60 for one in found.samples], [getattr(one, name) for one in found.samples])
            axis.set(title=title, xlabel="minutes", ylim=(0, None))
        figure.savefig(path, format="svg", metadata={"Date": None})
    return path
