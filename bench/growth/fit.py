"""How fast cost grows with size: a straight line through logarithms, and what n log n would look like beside it.

Law: small sizes pay what every run pays once, so a line is laid only through the sizes from the cheapest one on;
what comes before it would make a bad end look good.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import linear_regression
from typing import Final

from msgspec import Struct

NOISE: Final = 0.05
"""What two neighbouring medians that lie a tenth apart look like as an exponent; there is always that much."""

Point = tuple[float, float]
"""A size, and what one unit costs at that size."""


class Growth(Struct, frozen=True, kw_only=True):
    """Time as a power of size: 1 is linear. `allowed` is what n log n comes to over the same sizes, noise included."""

    power: float
    allowed: float

    @property
    def bearable(self) -> bool:
        return self.power <= self.allowed


def growth(points: Sequence[Point], apart: float = 0.0) -> Growth:
    """How the time of all units together grows; `apart` is how much medians of the same differ, as a part of them."""
    rising = from_the_cheapest(points)
    logarithm = [(size, math.log(size + 1)) for size, _ in rising]
    differing = [(size, 1.0) for size, _ in rising[:-1]] + [(size, 1 + apart) for size, _ in rising[-1:]]
    noise = max(NOISE, slope(differing))
    return Growth(power=1 + slope(rising), allowed=1 + slope(logarithm) + noise)


def from_the_cheapest(points: Sequence[Point]) -> list[Point]:
    """The points in the order of their sizes, without those that come before the lowest cost."""
    ordered = sorted(points)
    costs = [cost for _, cost in ordered]
    return ordered[costs.index(min(costs)) :]


def slope(points: Sequence[Point]) -> float:
    """The slope of cost against size when both are logarithms; a single point has none."""
    if len(points) < 2:
        return 0.0
    return linear_regression([math.log(size) for size, _ in points], [math.log(cost) for _, cost in points]).slope
