"""What publishing a row costs when more rows wait, of few objects or of many, on PostgreSQL and on SQLite."""

from __future__ import annotations

from typing import Final

from bench.growth.logs import CYCLES, published
from bench.growth.series import powers, targets
from bench.growth.shape import OBJECTS, WAITING, Shape, shapes
from bench.measure import Benchmark

ONCE: Final = 1_000_000


def benchmark(*, quick: bool) -> Benchmark:
    """From a thousand rows to ten million; of an object each, and on SQLite, to one million, which take as long."""
    rows = shapes(1, most=2, least=1) if quick else shapes(1, most=7, once_from=ONCE)
    found = {WAITING: rows[WAITING], OBJECTS: [shape for shape in rows[OBJECTS] if shape.rows <= ONCE]}
    fewer = {WAITING: [Shape(rows=n, size=n, once=n >= ONCE) for n in (powers(1, 2) if quick else powers(3, 6))]}
    return Benchmark(
        name="growth.publish",
        question="what does publishing a row cost, the more wait?",
        unit="row",
        contestants=[*published("PostgreSQL", found), *published("SQLite", fewer)],
        targets=targets,
        note=f"{CYCLES} {ONCE:,} rows and more ran once.",
    )
