"""A database that forgets what it acknowledged and was not told to keep, and lives on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine, text

if TYPE_CHECKING:
    from tests.publisher.world import World

JOURNAL = ["batch", "output", "planned", "parked", "hold", "answer", "association", "outcome", "mark"]
Tables = Mapping[str, Sequence[dict[str, Any]]]
TABLES = ["event_log", *(f"event_log_{name}" for name in JOURNAL)]


class Disk:
    """What of the log is on the disk. `forgets` is how likely the database crashes behind a commit that need not be."""

    def __init__(self, world: World, chance: Random, forgets: float) -> None:
        self._world, self._chance, self._forgets = world, chance, forgets
        self._soon = False
        """Whether the transaction that is open need not be on disk when it returns."""
        self._kept: Tables = {}
        """What the tables held before the first transaction that is not on disk."""

    def begin(self, *, soon: bool) -> None:
        """Note the begin of a publisher's transaction; copy the tables first if it may be forgotten."""
        self._soon = soon and not self._world.inside
        if self._forgets and self._soon and not self._kept:
            self._kept = copy_tables(self._world)

    def settle(self) -> None:
        """Put all commits on the disk."""
        self._kept = {}

    def end(self) -> None:
        """Commit a transaction: put it on the disk with all before it, or crash the database."""
        world, soon = self._world, self._soon and not self._world.inside
        self._soon = self._soon and world.inside
        if not soon:
            self._kept = {}
        elif self._kept and not world.quiet and self._chance.random() < self._forgets:
            world.counts["forgot what it acknowledged"] += 1
            world.trace.append((world.now, "the database forgets"))
            kept, self._kept = self._kept, {}
            write_tables(world, kept)


def copy_tables(world: World) -> Tables:
    """Read the tables while nobody writes: what came between two of them would be in one alone."""
    was, world.inside = world.inside, True
    tables = read_tables(world.engine)
    world.inside = was
    return tables


def read_tables(engine: Engine) -> Tables:
    """Read all rows of the log and of the tables beside it."""
    with engine.connect() as connection:
        return {
            table: [dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()]
            for table in TABLES
        }


def write_tables(world: World, kept: Tables) -> None:
    """Put these rows into the tables, in the place of all others."""
    was, world.inside = world.inside, True
    put_tables(world.engine, kept)
    world.inside = was


def put_tables(engine: Engine, kept: Tables) -> None:
    """Put these rows into the tables, in the place of all others."""
    with engine.begin() as connection:
        for table, rows in kept.items():
            connection.execute(text(f"DELETE FROM {table}"))
            if rows:
                names, values = ", ".join(rows[0]), ", ".join(f":{name}" for name in rows[0])
                connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), rows)
