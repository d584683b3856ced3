"""Which cells a run has: every pair of an output, a handover, a history and a database that there can be."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from typing import Final

from msgspec import Struct

from tests.hardening.ledger.runs import HTTP, KAFKA, LOCAL, Cell

OUTPUTS: Final = {"local": LOCAL, "http": HTTP, "kafka": KAFKA}
"""Outputs that one publisher serves together; each group has its own way of being slow."""

HISTORIES: Final = ("late", "big", "requeue", "hold", "future")
ABREAST: Final = (("polite stop", "kill"), ("freeze", "once"), ("cut", "crash"))
"""Handovers that come one after the other in a cell."""

DATABASES: Final = ("sqlite", "postgresql", "mariadb")
TOGETHER: Final = 4
"""Handovers of one case, where cases are chosen at random."""

KILLS: Final = 10
"""Kills of one case that does nothing else."""

CRASHING: Final = "postgresql that crashes"
"""A server of its own, which others do not use meanwhile."""


class Case(Struct, frozen=True, kw_only=True):
    """A cell and where it runs."""

    database: str
    outputs: str
    cell: Cell

    def __str__(self) -> str:
        return f"{self.outputs}-{'+'.join(self.cell.handovers)}-{self.cell.history}-{self.database}".replace(" ", "_")

    def pairs(self) -> set[tuple[str, str]]:
        """What meets what in it."""
        place = self.database.split(" ", maxsplit=1)[0]
        fixed = [place, self.outputs, self.cell.history]
        return set(combinations(fixed, 2)) | {(fact, handover) for fact in fixed for handover in self.cell.handovers}


def cases(seed: int = 1) -> list[Case]:
    """Every history with every group of outputs, and two handovers in each, so that all pairs are there."""
    return [
        case(_database(row, turn), outputs, history, ABREAST[turn], seed)
        for row, history in enumerate(HISTORIES)
        for column, outputs in enumerate(OUTPUTS)
        for turn in [(row + column) % len(ABREAST)]
    ]


def _database(row: int, turn: int) -> str:
    """A database on which the handovers of this turn can be made."""
    return CRASHING if "crash" in ABREAST[turn] else DATABASES[(2 * row + turn) % len(DATABASES)]


def case(database: str, outputs: str, history: str, handovers: Sequence[str], seed: int) -> Case:
    """A cell with as much to write as its outputs take in a few seconds."""
    objects = {"local": 300, "http": 150, "kafka": 400}[outputs]
    cell = Cell(outputs=OUTPUTS[outputs], handovers=handovers, history=history, seed=seed, objects=objects)
    return Case(database=database, outputs=outputs, cell=cell)


def at_random(seed: int, handovers: int, kills: int) -> list[Case]:
    """Cases until there were so many handovers and so many kills, each with a seed of its own."""
    dice = random.Random(seed)
    found: list[Case] = []
    while handovers > 0:
        mine = [dice.choice(dice.choice(ABREAST)) for _ in range(min(TOGETHER, handovers))]
        server = "cut" in mine or "crash" in mine
        found.append(_chosen(CRASHING if server else dice.choice(DATABASES), mine, dice))
        handovers -= len(mine)
    while kills > 0:
        found.append(_chosen(dice.choice(DATABASES), ["kill"] * min(KILLS, kills), dice))
        kills -= KILLS
    return found


def _chosen(database: str, handovers: Sequence[str], dice: random.Random) -> Case:
    outputs, history = dice.choice(list(OUTPUTS)), dice.choice(HISTORIES)
    return case(database, outputs, history, handovers, dice.getrandbits(32))
