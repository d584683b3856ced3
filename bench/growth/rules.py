"""What a log row costs the rules and the XDS writer: with more rows, objects, columns, tables, and longer values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from bench.growth.series import powers, targets
from bench.measure import Benchmark, Contestant
from bench.rules import LogRow, published
from eventlog.schema import Catalog, Column, Table

ROWS: Final = 100_000
QUICK: Final = 300
BATCH_SIZE: Final = 128
CHARACTERS: Final = 100
"""Where values grow the unit is so many characters of them: that longer values cost more is no surprise."""


class Shape(Struct, frozen=True, kw_only=True):
    """So many rows, so many for each object, which take turns; the first of an object insert its columns, others update."""

    rows: int
    each: int = 8
    columns: int = 6
    tables: int = 1
    characters: int = 10

    @property
    def catalog(self) -> Catalog:
        key, columns = Column(name="idu", type="integer", key=1), [Column(name=f"c{n}") for n in range(self.columns)]
        return Catalog(
            [Table(schema="bench", name=f"t{number}", columns=(key, *columns)) for number in range(self.tables)]
        )

    def log_rows(self) -> Iterator[LogRow]:
        """Rows in the order of the log's columns."""
        objects = max(1, self.rows // self.each)
        former, latter = ("x" * (self.characters - 1) + last for last in "&z")
        for number in range(self.rows):
            place, which = divmod(number, objects)
            first = place < self.columns
            kind, old = (1, None) if first else (2, former)
            column, table = f"c{place % self.columns}", f"t{which % self.tables}"
            yield number + 1, f"idu={which}", "N", kind, "2025-03-23 10:57:19", "app", table, column, old, latter


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
    return Benchmark(
        name="growth.rules",
        question="what does a row cost the rules and the XDS writer, the more of everything there is?",
        unit="row",
        contestants=[
            _contestant(series, size, shape) for series, sizes in shapes(quick=quick).items() for size, shape in sizes
        ],
        targets=targets,
        note=(
            f"From plain tuples to the bodies of documents, {BATCH_SIZE} changes in each. Objects take turns, row by row. Where it"
            f" is not the rows that grow there are {ROWS:,} of them. For values the unit is {CHARACTERS} characters."
        ),
    )


def shapes(*, quick: bool) -> dict[str, list[tuple[int, Shape]]]:
    """What grows, and how the rows look at each of its sizes."""
    rows = QUICK if quick else ROWS
    most, many, few, long = (2, 2, 2, 2) if quick else (6, 5, 3, 4)
    least = 1 if quick else 3
    return {
        "waiting rows": [(n, Shape(rows=n)) for n in powers(least, most)],
        "objects, each in one row": [(n, Shape(rows=n, each=1)) for n in powers(least, most)],
        "rows of one object": [(n, Shape(rows=rows, each=n)) for n in powers(0, many)],
        "columns of a table": [(n, Shape(rows=rows, each=n, columns=n)) for n in powers(1, few)],
        "tables": [(n, Shape(rows=rows, tables=n)) for n in powers(0, few)],
        "characters of a value": [(n, Shape(rows=rows // 50, characters=n)) for n in powers(1, long)],
    }


def _contestant(series: str, size: int, shape: Shape) -> Contestant:
    ready, grows = Ready(shape), series.startswith("characters")

    return Contestant(
        name=f"{series}: {size:,}",
        prepare=ready.make,
        run=ready.publish,
        done=ready.drop,
        units=max(1, shape.rows * size // CHARACTERS) if grows else shape.rows,
        series=f"{series}, for each {CHARACTERS}" if grows else series,
        size=size,
    )
