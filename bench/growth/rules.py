"""What a log row costs the rules and the XDS writer: with more rows, objects, columns, tables, and longer values."""

from __future__ import annotations

from typing import Final

from bench.growth.series import contestant, targets
from bench.growth.shape import CHARACTERS, Shape, shapes
from bench.measure import Benchmark, Contestant
from bench.rules import LogRow, published

ROWS: Final = 100_000
QUICK: Final = 300
BATCH_SIZE: Final = 128


class Ready:
    """The rows of a shape, made before each run and dropped after it, so that no contestant carries another's."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._catalog = shape.catalog
        self._rows: list[LogRow] = []

    def make(self) -> None:
        """Makes the rows."""
        self._rows = list(self._shape.log_rows())

    def publish(self) -> None:
        """From rows to the bodies of documents."""
        if not published(self._rows, BATCH_SIZE, self._catalog):
            raise AssertionError(f"{self._shape} made no documents")

    def drop(self) -> None:
        """Forgets the rows."""
        self._rows = []


def benchmark(*, quick: bool) -> Benchmark:
    """One series for each thing that there can be more of."""
    found = shapes(QUICK, most=2, least=1) if quick else shapes(ROWS, most=6)
    return Benchmark(
        name="growth.rules",
        question="what does a row cost the rules and the XDS writer, the more of everything there is?",
        unit="row",
        contestants=[_contestant(series, shape) for series, sizes in found.items() for shape in sizes],
        targets=targets,
        note=(
            f"From plain tuples to the bodies of documents, {BATCH_SIZE} changes in each. Objects take turns, row by row. Where it"
            f" is not the rows that grow there are {ROWS:,} of them. For values the unit is {CHARACTERS} characters. A"
            " publisher's cycle has 10,000 rows; a million at once is what rules are asked for one object of a million rows."
        ),
    )


def _contestant(series: str, shape: Shape) -> Contestant:
    ready = Ready(shape)
    return contestant(series, shape, prepare=ready.make, run=ready.publish, done=ready.drop)
