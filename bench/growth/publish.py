"""What publishing a row costs when there is more of everything, on PostgreSQL, and when more rows wait, on SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bench.growth.logs import GrownLog, addresses
from bench.growth.series import powers, targets
from bench.growth.shape import CHARACTERS, Series, Shape, shapes
from bench.measure import Benchmark, Contestant

ROWS: Final = 100_000
QUICK: Final = 40
ONCE: Final = 1_000_000


def benchmark(*, quick: bool) -> Benchmark:
    """From a thousand rows to ten million; SQLite to one million, which takes it as long."""
    rows = shapes(QUICK, most=2, least=1) if quick else shapes(ROWS, most=7, once_from=ONCE)
    fewer = [Shape(rows=n, size=n, once=n >= ONCE) for n in (powers(1, 2) if quick else powers(3, 6))]
    found = {"PostgreSQL": rows, "SQLite": {"waiting rows": fewer}}
    return Benchmark(
        name="growth.publish",
        question="what does publishing a row cost, the more of everything there is?",
        unit="row",
        contestants=[one for database, series in found.items() for one in _contestants(database, series)],
        targets=targets,
        note=(
            "Per-field rows into XDS files, by a publisher that has seen the tables, in cycles of 10,000 rows. Objects take turns, row"
            f" by row. Where it is not the rows that grow there are {ROWS:,}; for values the unit is {CHARACTERS} characters."
            f" {ONCE:,} and more ran once. PostgreSQL is vacuumed and has written a checkpoint before each run. Rows of one object are"
            " never cut in two: a million of them are one batch, and ten million have no room in memory."
        ),
    )


def _contestants(database: str, series: Series) -> Iterator[Contestant]:
    for number, (name, sizes) in enumerate(series.items()):
        for shape in sizes:
            log = GrownLog(addresses()[database], f"grown{number}_{shape.size}", shape)
            yield Contestant(
                name=f"{name}, {database}: {shape.size:,}",
                prepare=log.ready,
                run=log.publish,
                done=log.close,
                units=shape.units,
                series=f"{name}, {database}",
                size=shape.size,
                once=shape.once,
            )
