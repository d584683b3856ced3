"""What several answers say of one event: the worst of them, whichever came first."""

from __future__ import annotations

from itertools import permutations

import pytest

from eventlog.core.model import Outcome, Position, Reason, Status
from eventlog.delivery.answers import keep_worse

ANSWERS = [
    Outcome(position=(1,)),
    Outcome(position=(1,), status=Status.WARNING, note="odd"),
    Outcome(position=(1,), status=Status.ERROR, reason=Reason.REFUSED, note="no"),
]


@pytest.mark.parametrize("order", [*permutations(ANSWERS)])
def test_the_worst_answer_stays(order: tuple[Outcome, ...]) -> None:
    kept: dict[Position, Outcome] = {}
    for answer in order:
        keep_worse(kept, (1,), answer)
    assert kept == {(1,): ANSWERS[-1]}
