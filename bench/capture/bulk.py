"""One statement over many rows: the contestants of the three benchmarks that measure it, and what they promise."""

from __future__ import annotations

from functools import partial
from typing import Final

from bench.capture.ground import Ground
from bench.capture.ways import (
    AUDIT,
    FIELD,
    FIELD_KEPT,
    IMAGE,
    NONE,
    OF_EVERY_COLUMN,
    PGQ,
    ROW_BACK,
    ROW_BACK_ROWS,
    grounds,
)
from bench.measure import Benchmark, Contestant, Target, Timings

ROWS: Final = 100_000
QUICK: Final = 500
OF_THE_QUEUE: Final = 0.4
"""What row-back takes at most of the time of a queue's trigger that is written in C."""
NOISE: Final = 1.15
"""How far apart two medians of the same thing lie on a machine that does other things besides."""

Limits = dict[str, float]


def bulk(
    verb: str,
    statement: str,
    limits: Limits,
    *,
    full: bool,
    kept: bool,
    quick: bool,
    every: str = "",
    image: float | None = None,
) -> Benchmark:
    """One statement; `full` says that it needs rows, `kept` that a plan could be kept from single rows before it.

    `every` is a statement that changes every column: then as many rows are logged as fields as with images. `image` is
    what images take at most of the time of fields.
    """
    rows = QUICK if quick else ROWS
    names = (NONE, ROW_BACK, ROW_BACK_ROWS, FIELD, IMAGE, *([FIELD_KEPT] if kept else []), PGQ, AUDIT)
    found, missing = grounds((*names, *(OF_EVERY_COLUMN if every else ())), rows)
    return Benchmark(
        name=f"capture.{verb}",
        question=f"what does capturing cost one {verb.upper()} of {rows:,} rows?",
        unit="row",
        contestants=[
            Contestant(
                name=name,
                run=partial(ground.execute, (every if name in OF_EVERY_COLUMN else statement).format(rows=rows)),
                prepare=partial(ground.refill, full=full),
                units=rows,
                floor=name == NONE,
            )
            for name, ground in found.items()
        ],
        targets=partial(_targets, verb=verb, limits=limits, image=image, grounds=found),
        note=(
            "PostgreSQL with its own settings (fsync on), seven columns, each contestant in a fresh database and session,"
            f" tables vacuumed and a checkpoint before each run.{missing}"
        ),
    )


def _targets(
    timings: Timings, *, verb: str, limits: Limits, image: float | None, grounds: dict[str, Ground]
) -> list[Target]:
    for ground in grounds.values():
        ground.close()
    floor = timings[NONE].median
    found = [
        _limit(
            f"{verb.upper()} with {name}: at most {limit:g}× the statement alone", timings[name].median / floor, limit
        )
        for name, limit in limits.items()
    ]
    if PGQ in timings:
        share = timings[ROW_BACK].median / timings[PGQ].median
        found.append(_limit(f"row-back at most {OF_THE_QUEUE:g}× of {PGQ}", share, OF_THE_QUEUE))
    if FIELD_KEPT in timings:
        share = timings[FIELD_KEPT].median / timings[FIELD].median
        promise = f"no plan kept from single rows slows the statement down (at most {NOISE:g}× a fresh session)"
        found.append(_limit(promise, share, NOISE))
    if image is not None:
        found += _of_images(timings, verb, image)
    return [*found, *_sizes(timings, grounds)]


def _of_images(timings: Timings, verb: str, limit: float) -> list[Target]:
    """What images cost beside fields: for the statement, and where it changes every column."""
    pairs = {"with image": (IMAGE, FIELD)}
    if OF_EVERY_COLUMN[0] in timings:
        pairs["of every column with image"] = OF_EVERY_COLUMN
    return [
        _limit(
            f"{verb.upper()} {what}: at most {limit:g}× of field", timings[ours].median / timings[fields].median, limit
        )
        for what, (ours, fields) in pairs.items()
    ]


def _limit(promise: str, measured: float, limit: float) -> Target:
    return Target(promise=promise, measured=f"{measured:.2f}×", reached=measured <= limit)


def _sizes(timings: Timings, grounds: dict[str, Ground]) -> list[Target]:
    """Not promised, but said: bytes of the log for each row that changed."""
    sizes = {name: ground.stored() / timings[name].units for name, ground in grounds.items() if ground.way.fills}
    told = ", ".join(f"{name} {size:,.0f}" for name, size in sizes.items())
    others = [size for name, size in sizes.items() if name in (PGQ, AUDIT)]
    return [
        Target(promise="row-back stores less than any other", measured=told, reached=sizes[ROW_BACK] <= min(others))
    ]
