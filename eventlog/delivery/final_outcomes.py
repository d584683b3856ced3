"""How events end: what the rules decided, together with what formats and receivers said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from eventlog.core.model import Outcome, Position, Reason, Status, exceptional


def counted(outcomes: Sequence[Outcome]) -> Mapping[Status, int]:
    """How many events end with each letter."""
    found = Counter(outcome.status for outcome in exceptional(outcomes))
    found[Status.SUCCESS] += len(outcomes) - found.total()
    return +found


def settled_outcomes(decided: Sequence[Outcome], answers: Mapping[Position, Outcome]) -> Sequence[Outcome]:
    """The rules' outcomes with what formats and receivers said. A superseded event waits as long as its winner."""
    if not answers:
        return decided
    outcomes = []
    for outcome in decided:
        winner = answers.get(outcome.winner) if outcome.winner is not None else None
        if winner is not None and winner.status is Status.NEW:
            outcomes.append(replace(outcome, status=Status.NEW, reason=winner.reason))
        else:
            outcomes.append(answers.get(outcome.position, outcome))
    return outcomes


def given_up(outcomes: Sequence[Outcome], attempts: Mapping[Position, int], most: int) -> Sequence[Outcome]:
    """The outcomes, with errors for what was offered often enough; what such an event had superseded is settled."""
    if not most:
        return outcomes
    lost = {
        outcome.position
        for outcome in exceptional(outcomes)
        if outcome.reason is Reason.RETRY and outcome.winner is None and attempts.get(outcome.position, 0) + 1 >= most
    }
    if not lost:
        return outcomes
    return [
        _given_up(outcome, most) if (outcome.winner or outcome.position) in lost else outcome for outcome in outcomes
    ]


def _given_up(outcome: Outcome, most: int) -> Outcome:
    if outcome.winner is not None:
        return replace(outcome, status=Status.SUCCESS, reason=Reason.SUPERSEDED)
    note = f"Given up after {most} attempts. {outcome.note or ''}".rstrip()
    return replace(outcome, status=Status.ERROR, reason=Reason.REFUSED, note=note)
