"""A log's database that fails in the middle of a publisher's transaction: what was written in it until then is undone.

Law: nothing that a publisher knows is of a transaction that was not committed.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.publisher.actors import PassingError

if TYPE_CHECKING:
    from tests.publisher.world import World


class Statements:
    """How likely a statement fails that a publisher writes with."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = chance = Random(f"breaking {world.seed}")
        # Where a receiver undoes documents, publishers die and nothing else goes wrong.
        self.fails = 0 if world.undoing else chance.choice([0, 0, 0.01])

    def write_one(self) -> None:
        """Fail at random before a statement."""
        world = self._world
        if not (world.inside or world.quiet or world.dead) and self._chance.random() < self.fails:
            world.counts["errors"] += 1
            world.trace.append((world.now, "a statement fails"))
            raise PassingError("statement")
