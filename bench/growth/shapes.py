"""What publishing a row costs when there is more of everything but rows: of one object, columns, tables, characters."""

from __future__ import annotations

from typing import Final

from bench.growth.logs import CYCLES, published
from bench.growth.series import targets
from bench.growth.shape import CHARACTERS, OBJECTS, WAITING, shapes
from bench.measure import Benchmark

ROWS: Final = 100_000
QUICK: Final = 40
ONCE: Final = 1_000_000


def benchmark(*, quick: bool) -> Benchmark:
    """From one to a thousand columns and tables, to a million rows of one object, to ten million characters."""
    found = shapes(QUICK, most=2, least=1) if quick else shapes(ROWS, most=7, once_from=ONCE)
    return Benchmark(
        name="growth.shapes",
        question="what does publishing a row cost, whatever it looks like?",
        unit="row",
        contestants=list(
            published("PostgreSQL", {name: sizes for name, sizes in found.items() if name not in (WAITING, OBJECTS)})
        ),
        targets=targets,
        note=(
            f"{CYCLES} There are {ROWS:,} rows; for values the unit is {CHARACTERS} characters. Rows of one object are never cut in two:"
            " a million of them, which ran once, are one batch, and ten million have no room in memory."
        ),
    )
