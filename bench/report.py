"""What a benchmark found, as a Markdown table for people and as JSON for what is generated from it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bench.machine import Machine
from bench.measure import Benchmark, Target, Timing, Timings

RESULTS = Path(__file__).resolve().parent / "results"


class Report(Struct, frozen=True, kw_only=True):
    """One benchmark on one machine on one day."""

    name: str
    question: str
    unit: str
    note: str
    day: dt.date
    machine: Machine
    timings: list[Timing]
    targets: list[Target]


def report(benchmark: Benchmark, timings: Timings, machine: Machine) -> Report:
    """Puts together what was measured and holds it against the targets."""
    return Report(
        name=benchmark.name,
        question=benchmark.question,
        unit=benchmark.unit,
        note=benchmark.note,
        day=dt.datetime.now(tz=dt.UTC).date(),
        machine=machine,
        timings=list(timings.values()),
        targets=benchmark.targets(timings),
    )


def markdown(found: Report) -> str:
    """The report as a heading, a table and a line for each target."""
    return "\n".join(_lines(found))


def save(found: Report, folder: Path = RESULTS) -> Path:
    """Writes the report into the folder as JSON; the newest stands under the benchmark's name."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{found.name}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(_told(found)), indent=2) + b"\n")
    return path


def _told(found: Report) -> dict[str, Any]:
    """The report with the median and the spread of every contestant, which follow from its runs."""
    told: dict[str, Any] = msgspec.to_builtins(found)
    for timing, written in zip(found.timings, told["timings"], strict=True):
        written |= {"median": timing.median, "spread": timing.spread}
    return told


def duration(seconds: float) -> str:
    """A duration in the unit that leaves one to three digits before the point."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _lines(found: Report) -> Iterator[str]:
    yield f"### {found.name}: {found.question}\n"
    yield f"| contestant | {found.unit}s | median | spread | per {found.unit} | {found.unit}s/s | against the floor |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    floor = next((timing for timing in found.timings if timing.floor), None)
    for timing in found.timings:
        yield _row(timing, floor)
    if found.note:
        yield f"\n{found.note}"
    yield ""
    for target in found.targets:
        yield f"* {'reached' if target.reached else 'NOT REACHED'}: {target.promise}; measured {target.measured}"
    runs = max(len(timing.seconds) for timing in found.timings)
    yield f"\n{found.day}, {runs} run(s) each, in turn, on {found.machine}"


def _row(timing: Timing, floor: Timing | None) -> str:
    against = "" if floor is None else "floor" if timing is floor else f"{timing.each / floor.each:.2f}×"
    return (
        f"| {timing.name} | {timing.units:,} | {duration(timing.median)} | {_spread(timing)} "
        f"| {duration(timing.each)} | {timing.rate:,.0f} | {against} |"
    )


def _spread(timing: Timing) -> str:
    return f"{timing.spread:.0%}" if len(timing.seconds) > 1 else "one run"
