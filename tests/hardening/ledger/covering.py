"""Which cells a run has: every output meets every handover and every history, and
each history shares a cell with each handover.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.hardening.ledger.runs import DEAD, HTTP, KAFKA, LOCAL, Cell

OUTPUTS: Final = {
    "local": LOCAL,
    "http": HTTP,
    "kafka": KAFKA,
    "mixed": ("XDS files", "message files", "change tables", *HTTP),
}
"""Outputs that one publisher serves together; each group has its own way of being slow. In the mixed one the receiver is away
again and again, and lags behind the others, which go on."""

CAMPAIGN: Final = ("XDS files", "change files", "change tables", "HTTP", "Kafka messages", DEAD)
REFUSES_NOTHING: Final = "success warning silent retry away away"
"""What a receiver may be like beside other outputs: what it refuses would be there all the same."""

OBJECTS: Final = {"local": 300, "http": 150, "kafka": 400, "mixed": 150}
FEW_OBJECTS: Final = 60
"""What a large transaction writes while one of these outputs publishes, so that a handover comes in its middle."""

HISTORIES: Final = ("late", "big", "requeue", "hold", "future")
ABREAST: Final = (("polite stop", "kill"), ("freeze", "once"), ("cut", "crash"))
"""Handovers that come one after the other, where cases are chosen at random."""

CRASHING: Final = "postgresql that crashes"
"""A server of its own, which others do not use meanwhile."""

CELLS: Final = (
    ("sqlite", "local", ("big", "requeue", "hold", "future"), ("kill", "polite stop", "freeze", "once")),
    ("postgresql", "http", ("hold", "big", "requeue", "late"), ("freeze", "once", "kill", "polite stop")),
    ("postgresql", "mixed", ("late", "hold", "requeue", "big"), ("kill", "freeze", "polite stop", "once")),
    ("mariadb", "kafka", ("hold", "requeue", "future", "big"), ("polite stop", "freeze", "once", "kill")),
    (CRASHING, "local", ("late", "hold"), ("crash", "cut")),
    (CRASHING, "http", ("future", "requeue"), ("cut", "crash")),
    (CRASHING, "kafka", ("late", "big"), ("crash", "cut")),
    (CRASHING, "mixed", ("future", "late"), ("cut", "crash")),
)
"""Where, which outputs, and what happens one after the other: a history is begun with the handover that stands in its place.

What it has held, put off or sent back stays so while the next ones come. A cell costs time before its first handover and
after its last one, so what can share a cell does.
"""

DATABASES: Final = ("sqlite", "postgresql", "mariadb")
TOGETHER: Final = 4
"""Handovers of one case, where cases are chosen at random."""

KILLS: Final = 10
"""Kills of one case that does nothing else."""

OPERATED: Final = ("late", "big", "requeue", "hold", "release", "pause", "pause")


class Case(Struct, frozen=True, kw_only=True):
    """A cell and where it runs."""

    database: str
    outputs: str
    cell: Cell

    def __str__(self) -> str:
        steps = [*self.cell.handovers, *self.cell.histories]
        return f"{self.outputs}-{'+'.join(steps)}-{self.database}".replace(" ", "_")

    @property
    def needs_broker(self) -> bool:
        return not set(KAFKA).isdisjoint(self.cell.outputs)

    def pairs(self) -> set[tuple[str, str]]:
        """What meets what in it."""
        histories, handovers = self.cell.histories, self.cell.handovers
        return {*product([self.outputs], [*histories, *handovers]), *product(histories, handovers)}


def cases(seed: int = 1) -> list[Case]:
    """The cells that every run of the tests has."""
    found = [case(place, outputs, histories, handovers, seed) for place, outputs, histories, handovers in CELLS]
    return [replace(one, cell=replace(one.cell, objects=FEW_OBJECTS)) for one in found]


def asked_again(seed: int) -> Case:
    """A publisher is killed each time a receiver has asked for a document again: the document keeps its place."""
    found = case("postgresql", "http", ["late"], ["retry and kill"] * 2, seed)
    return replace(found, cell=replace(found.cell, moods="retry"))


def campaign(database: str, seed: int, kills: int) -> Case:
    """Six outputs, of which each fails now and then and one mostly; publishers are killed, and operators and conversions
    are at work beside.
    """
    dice = random.Random(seed)
    handovers = ["kill"] * kills + ["convert"] * (kills // 6 + 1) + ["freeze"] * (kills // 12)
    dice.shuffle(handovers)
    cell = Cell(
        outputs=CAMPAIGN,
        handovers=handovers,
        histories=[dice.choice(OPERATED) for _ in handovers],
        seed=seed,
        objects=FEW_OBJECTS,
        moods=f"{REFUSES_NOTHING} garbled garbled",
        faulty=True,
    )
    return Case(database=database, outputs="campaign", cell=cell)


def case(database: str, outputs: str, histories: Sequence[str], handovers: Sequence[str], seed: int) -> Case:
    """A cell with as much to write as its outputs take in a few seconds."""
    cell = Cell(outputs=OUTPUTS[outputs], handovers=handovers, histories=histories, seed=seed, objects=OBJECTS[outputs])
    if outputs == "mixed":
        cell = replace(cell, moods=REFUSES_NOTHING)
    return Case(database=database, outputs=outputs, cell=cell)


def at_random(seed: int, handovers: int, kills: int) -> list[Case]:
    """Cells until there were so many handovers and so many kills, each with a seed of its own."""
    dice = random.Random(seed)
    found: list[Case] = []
    while handovers > 0:
        mine = [dice.choice(dice.choice(ABREAST)) for _ in range(min(TOGETHER, handovers))]
        is_crashing = "cut" in mine or "crash" in mine
        found.append(_chosen(CRASHING if is_crashing else dice.choice(DATABASES), mine, dice))
        handovers -= len(mine)
    while kills > 0:
        found.append(_chosen(dice.choice(DATABASES), ["kill"] * min(KILLS, kills), dice))
        kills -= KILLS
    return found


def _chosen(database: str, handovers: Sequence[str], dice: random.Random) -> Case:
    outputs, history = dice.choice(list(OUTPUTS)), dice.choice(HISTORIES)
    return case(database, outputs, [history], handovers, dice.getrandbits(32))
