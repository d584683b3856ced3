"""How a row ends: the worst that outputs have said of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from eventlog.core.model import SEVERITY, Outcome, Position, Reason


def worst_of(number: int, several: Sequence[Outcome], outputs: int) -> Outcome | None:
    """What a row ends with; None where it was simply published. Left out by policies it is only where all say so."""
    filtered = [one for one in several if one.reason is Reason.FILTERED]
    counted = several if len(filtered) == outputs else [one for one in several if one not in filtered]
    if not counted:
        return None
    worst = max(counted, key=lambda one: SEVERITY[one.status])
    return replace(worst, position=(number,))


def by_position(outcomes: Iterable[Outcome]) -> dict[Position, Outcome]:
    """The worst that was said of each event."""
    found: dict[Position, Outcome] = {}
    for outcome in outcomes:
        former = found.get(outcome.position)
        if former is None or SEVERITY[outcome.status] > SEVERITY[former.status]:
            found[outcome.position] = outcome
    return found


def by_number(outcomes: Iterable[Outcome]) -> dict[int, Outcome]:
    """The worst that was said of the rows with each number; what a database cannot tell apart ends alike."""
    found: dict[int, Outcome] = {}
    for outcome in outcomes:
        former = found.get(outcome.position[0])
        if former is None or SEVERITY[outcome.status] > SEVERITY[former.status]:
            found[outcome.position[0]] = outcome
    return found
