"""Looks for new rows between the turns of a history, which the database may refuse, and nothing else.

Law: a look changes nothing but what is known. Where every look is refused, turns alone bring all rows, also those that
somebody sets back and tells nobody.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

from sqlalchemy import event

if TYPE_CHECKING:
    from tests.publisher.world import World


class RefusedLookError(Exception):
    """The database refuses what a look asks, and nothing else."""


class Looks:
    """How often it is looked between two turns, and how many of the looks are refused."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = chance = Random(f"looks {world.seed}")
        self._often, self._refused = chance.choice([0, 0.3]), chance.choice([0, 0.5, 1])

    def between_turns(self) -> None:
        """Look at random."""
        if self._chance.random() < self._often:
            self._look()

    def rest(self) -> None:
        """Look where all is quiet, a second after the last look at everything."""
        journal = None if self._world.publisher is None else self._world.publisher.journal
        if journal is not None and journal._memory is not None:
            journal._memory.proven.next_whole_look = 0.0
            self._look()

    def _look(self) -> None:
        world = self._world
        if world.publisher is None:
            return
        is_refused = bool(self._often) and self._chance.random() < self._refused
        was, world.inside = world.inside, True
        try:
            with world.engine.connect() as connection:
                if not is_refused:
                    found = world.publisher.journal.anything(connection)
                    world.trace.append((world.now, "look", found))
                    return
                world.counts["looks refused"] += 1
                with self._refusing(connection, after=self._chance.randint(0, 3)):
                    world.publisher.journal.anything(connection)
        except RefusedLookError:
            world.trace.append((world.now, "a look is refused"))
        finally:
            world.inside = was

    @contextmanager
    def _refusing(self, connection: Any, after: int) -> Iterator[None]:
        """Refuse what is asked in this session after so many statements."""
        left = [after]

        def refuse(asking: Any, *_: Any) -> None:
            left[0] -= 1
            if asking is connection and left[0] < 0:
                raise RefusedLookError

        event.listen(self._world.engine, "before_cursor_execute", refuse)
        try:
            yield
        finally:
            event.remove(self._world.engine, "before_cursor_execute", refuse)
