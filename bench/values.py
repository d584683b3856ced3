"""What one frozen value costs: the ground of the decision to make the domain's words msgspec structs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.core.model import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenDataclass:
    """An Event as the standard library would have it."""

    position: tuple[int, ...]
    kind: int | None
    table: str | None
    key: str | None
    column: str | None = None
    old: str | None = None
    new: str | None = None
    time: str | None = None
    perpetrator: str | None = None


class Named(NamedTuple):
    """An Event as a named tuple: quick, but its fields can be mixed up and it equals any tuple."""

    position: tuple[int, ...]
    kind: int | None
    table: str | None
    key: str | None
    column: str | None = None
    old: str | None = None
    new: str | None = None
    time: str | None = None
    perpetrator: str | None = None


def benchmark(*, quick: bool) -> Benchmark:
    """The same nine fields by keyword, made and dropped."""
    number = 10_000 if quick else 500_000
    kinds: dict[str, Callable[..., object]] = {
        "named tuple": Named,
        "frozen dataclass": FrozenDataclass,
        "msgspec struct": Event,
    }
    made = [Contestant(name=name, run=partial(_make, kind, number), units=number) for name, kind in kinds.items()]
    floor = Contestant(name="dict", run=partial(_make, dict, number), units=number, floor=True)
    return Benchmark(
        name="values",
        question="what does a frozen value of nine fields cost?",
        unit="value",
        contestants=[floor, *made],
        targets=_targets,
    )


def _targets(timings: Timings) -> list[Target]:
    times = timings["frozen dataclass"].each / timings["msgspec struct"].each
    promise = "a frozen dataclass costs more than twice as much as a struct"
    return [Target(promise=promise, measured=f"{times:.1f} times", reached=times > 2)]


def _make(kind: Callable[..., object], number: int) -> None:
    position = (1740,)
    for _ in range(number):
        kind(
            position=position,
            kind=2,
            table="usr",
            key="idu=1",
            column="fname",
            old="Jack",
            new="John",
            time="2025-03-23 10:57:19",
            perpetrator="app",
        )
