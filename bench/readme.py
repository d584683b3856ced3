"""What is generated from the results that pages quote: the section on performance, and the page beside them.

The section says how many promises are kept; the page has one line for each benchmark, every promise that was missed and
what bounds it, and each contestant. What no page quotes is printed by `./dev bench`, and not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.measure import Target
from bench.report import RESULTS, Report, markdown

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
FIGURES = ROOT / "docs" / "explanation" / "performance.md"
"""The page that says how many promises are kept; the README shows one plot only."""

PAGE = RESULTS / "README.md"
PROFILES = ROOT / "bench" / "profiles"
BEGIN: Final = "<!-- figures: written by `./dev bench` from bench/results -->\n"
END: Final = "<!-- end of the figures -->\n"
SHOWN: Final = "capture.update"
"""The benchmark whose plot the README shows: what writers pay is what people ask first."""


QUOTED: Final = ("capture.four_clients", SHOWN, "latency", "peers.publish")
"""The benchmarks whose figures pages quote: docs/explanation/compared.md, and the README."""


def kept(folder: Path = RESULTS) -> list[Report]:
    """The newest result of every benchmark that has one, by name."""
    return [msgspec.json.decode(path.read_bytes(), type=Report) for path in sorted(folder.glob("*.json"))]


def section(reports: Sequence[Report]) -> str:
    """What stands between the marks."""
    return "\n".join(_lines(reports))


def page(reports: Sequence[Report]) -> str:
    """Every result."""
    return "\n".join(_page(reports))


def written(page: str, figures: str) -> str:
    """The page with these figures between its marks."""
    head, _, rest = page.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise SystemExit("The page has no place for the figures: the two marks are missing.")
    return f"{head}{BEGIN}{figures}{END}{tail}"


def write() -> None:
    """Writes the section and the page anew, from the kept results."""
    FIGURES.write_text(written(FIGURES.read_text(encoding="utf-8"), section(kept())), encoding="utf-8")
    PAGE.write_text(page(kept()), encoding="utf-8")


def _lines(reports: Sequence[Report]) -> Iterator[str]:
    targets = [target for report in reports for target in report.targets]
    yield (
        f"\nThe benchmarks below keep {sum(target.reached for target in targets)} of {len(targets)} promises. "
        f"`bench/results/{PAGE.name}` has them, and what limits the others.\n"
    )


def _first(report: Report) -> str:
    """The promise that stands for its benchmark, and how many it makes."""
    first, kept_ones = report.targets[0], sum(target.reached for target in report.targets)
    return f"| `{report.name}` | {_cells(first)} | {kept_ones} of {len(report.targets)} |"


def _missed(reports: Sequence[Report]) -> Iterator[str]:
    missed = [(report, target) for report in reports for target in report.targets if not target.reached]
    if missed:
        yield "\nMissed, and what bounds it:\n"
        yield "| benchmark | promise | measured | profile |"
        yield "| --- | --- | --- | --- |"
    for report, target in missed:
        yield f"| `{report.name}` | {_cells(target)} | {_profile(report.name)} |"


def _profile(name: str) -> str:
    """Where the time of a benchmark goes is told under its name, or a part of it."""
    found = [part for part in (name, *name.split(".")) if (PROFILES / f"{part}.txt").exists()]
    return f"[{found[0]}](../profiles/{found[0]}.txt)" if found else "none yet"


def _page(reports: Sequence[Report]) -> Iterator[str]:
    yield "# What was measured\n"
    yield (
        "Written by `./dev bench` from the results beside it: those that pages quote. The others are printed."
        " How to read them: [performance](../../docs/explanation/performance.md). `./dev docs` draws them into that page.\n"
    )
    yield "The first promise of each benchmark:\n"
    yield "| benchmark | promise | measured | kept |"
    yield "| --- | --- | --- | --- |"
    for report in reports:
        if report.targets:
            yield _first(report)
    yield from _missed(reports)
    yield ""
    for machine, days in _machines(reports).items():
        yield f"Medians of five or more runs in turn, on {machine}; {days}."
    yield ""
    for report in reports:
        yield markdown(report)
        yield ""


def _cells(target: Target) -> str:
    return " | ".join(text.replace("|", "\\|") for text in (target.promise, target.measured))


def _machines(reports: Sequence[Report]) -> dict[str, str]:
    """Each machine without its load of the moment, and the days on which it was used."""
    found: dict[str, set[str]] = {}
    for report in reports:
        found.setdefault(str(report.machine).rpartition(", load")[0], set()).add(report.day.isoformat())
    return {machine: ", ".join(sorted(days)) for machine, days in found.items()}
