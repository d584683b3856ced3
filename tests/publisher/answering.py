"""A receiver that first accepts, and says later what became of it, as Entra's upload does.

Law: a row has no status that a later answer has denied. What waits for an answer is told until nothing waits for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from msgspec.structs import replace

from eventlog.core.associations import Associations, Awaiting
from eventlog.core.model import Document, Outcome, Status
from eventlog.core.seams import LateAnswer

if TYPE_CHECKING:
    from tests.publisher.targets import Surroundings, Target

SAID = [*[Status.SUCCESS] * 3, Status.WARNING, Status.ERROR]
RANK = "SWE"


def _unless_same(request: str, former: Awaiting) -> Awaiting | None:
    return None if former.request == request else former


class LateModel:
    """Asks one receiver what became of what it has accepted; `known` is what the log keeps of it."""

    seconds = 0.0

    def __init__(self, target: Target, world: Surroundings, known: Associations) -> None:
        self._target, self._world, self._known = target, world, known

    def accept(self, plan: str, document: Document, answer: Sequence[Outcome]) -> None:
        """Have the rows that were taken wait for what the receiver says later."""
        refused = {outcome.position for outcome in answer if outcome.status is not Status.WARNING}
        for positions, object_name, uids, *_ in json.loads(document.body):
            if tuple(positions[0]) not in refused:
                # As for Entra: rows that are sent again wait for the answer to their last request alone.
                request = json.dumps([[record for record, *_ in positions], uids])
                self._known.await_answer(
                    object_name, Awaiting(object_name, plan, request), partial(_unless_same, request)
                )

    def read(self) -> Sequence[LateAnswer]:
        """Tell some of what is waited for, in quiet all."""
        self._world.point("asked later")
        return [*self._read()]

    def _read(self) -> Iterator[LateAnswer]:
        chance: Random = self._world.later
        for name, several in self._known.list_awaited():
            for awaiting in several:
                if self._world.quiet or chance.random() < 0.2:
                    records, uids = json.loads(awaiting.request)
                    status = self._say(awaiting, uids)
                    note = "" if status is Status.SUCCESS else "later"
                    yield LateAnswer(object=name, awaiting=awaiting, records=tuple(records), status=status, note=note)

    def _say(self, awaiting: Awaiting, uids: Sequence[int]) -> Status:
        target, request = self._target, (awaiting.place, awaiting.request)
        if request not in target.later:
            target.later[request] = status = self._world.later.choice(SAID)
            for place, one in enumerate(target.came):
                if one.uid in uids and one.plan == awaiting.place:
                    target.came[place] = replace(one, status=max(one.status, status.value, key=RANK.index))
            target.denied.update(() if status is Status.SUCCESS else uids)
        return target.later[request]
