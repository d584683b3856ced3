"""The README's section on performance, made from the results that are kept: the promises, what was measured, and a plot."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.measure import Target
from bench.report import RESULTS, Report

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN: Final = "<!-- figures: written by `./dev bench --readme` from bench/results -->\n"
END: Final = "<!-- end of the figures -->\n"
SHOWN: Final = "capture.update"
"""The benchmark whose plot the README shows: what writers pay is what people ask first."""


def kept(folder: Path = RESULTS) -> list[Report]:
    """The newest result of every benchmark that has one, by name."""
    return [msgspec.json.decode(path.read_bytes(), type=Report) for path in sorted(folder.glob("*.json"))]


def section(reports: Sequence[Report]) -> str:
    """What stands between the marks."""
    return "\n".join(_lines(reports))


def written(readme: str, figures: str) -> str:
    """The README with these figures between its marks."""
    head, _, rest = readme.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise SystemExit("README.md has no place for the figures: the two marks are missing.")
    return f"{head}{BEGIN}{figures}{END}{tail}"


def main() -> int:
    """Writes the section anew."""
    README.write_text(written(README.read_text(encoding="utf-8"), section(kept())), encoding="utf-8")
    return 0


def _lines(reports: Sequence[Report]) -> Iterator[str]:
    if any(report.name == SHOWN for report in reports):
        yield f"\n![What a trigger costs those who write](bench/results/{SHOWN}.svg)"
    yield "\n| benchmark | promise | measured | |"
    yield "| --- | --- | --- | --- |"
    for report in reports:
        for target in report.targets:
            yield f"| `{report.name}` | {_cell(target.promise)} | {_cell(target.measured)} | {_verdict(target)} |"
    yield ""
    for machine, days in _machines(reports).items():
        yield f"Medians of five or more runs in turn, on {machine}; {days}."
    yield ""


def _verdict(target: Target) -> str:
    return "reached" if target.reached else "**missed**"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _machines(reports: Sequence[Report]) -> dict[str, str]:
    """Each machine without its load of the moment, and the days on which it was used."""
    found: dict[str, set[str]] = {}
    for report in reports:
        found.setdefault(str(report.machine).rpartition(", load")[0], set()).add(report.day.isoformat())
    return {machine: ", ".join(sorted(days)) for machine, days in found.items()}


if __name__ == "__main__":
    sys.exit(main())
