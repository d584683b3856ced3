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

MIXED: Final = ("XDS files", "message files", "change tables", *HTTP)

FAULTY: Final = ("XDS files", "HTTP", "change tables")

OUTPUTS: Final = {"local": LOCAL, "http": HTTP, "kafka": KAFKA, "mixed": MIXED}
"""Outputs that one publisher serves together; each group has its own way of being slow. In the mixed one the receiver is away
again and again, and lags behind the others, which go on."""

CAMPAIGN: Final = ("XDS files", "change files", "change tables", "HTTP", "Kafka messages", DEAD)

BY_NAME: Final = {
    **OUTPUTS,
    "scim": ("SCIM",),
    "campaign": CAMPAIGN,
    "faulty": FAULTY,
    "faulty-kafka": (*FAULTY[:2], KAFKA[1]),
}
"""Those, and those that are only there where they are asked for: each of their outputs is away now and then, by itself."""

MOODS: Final = dict.fromkeys(("mixed", "faulty", "faulty-kafka"), "success warning silent retry away away")
"""What a receiver may be like, where it is not of all kinds: what it refuses would be at the other outputs all the same."""

OBJECTS: Final = {"local": 300, "http": 150, "kafka": 400, "mixed": 150}
FEW_OBJECTS: Final = 60
"""What a large transaction writes while one of these outputs publishes, so that a handover comes in its middle."""

HISTORIES: Final = ("late", "big", "requeue", "hold", "future")
ABREAST: Final = (("polite stop", "kill"), ("freeze", "once"), ("cut", "crash"))
"""Handovers that come one after the other, where cases are chosen at random."""

CELLS: Final = (
    ("sqlite", "local", ("big", "requeue", "hold", "future"), ("kill", "polite stop", "freeze", "once")),
    ("postgresql", "http", ("hold", "big", "requeue", "late"), ("freeze", "once", "kill", "polite stop")),
    ("postgresql", "mixed", ("late", "hold", "requeue", "big"), ("kill", "freeze", "polite stop", "once")),
    ("mariadb", "kafka", ("hold", "requeue", "future", "big"), ("polite stop", "freeze", "once", "kill")),
    ("crash", "local", ("late", "hold"), ("crash", "cut")),
    ("crash", "http", ("future", "requeue"), ("cut", "crash")),
    ("crash", "kafka", ("late", "big"), ("crash", "cut")),
    ("crash", "mixed", ("future", "late"), ("cut", "crash")),
)
"""Where, which outputs, and what happens one after the other: a history is begun with the handover that stands in its place.

What it has held, put off or sent back stays so while the next ones come. A cell costs time before its first handover and
after its last one, so what can share a cell does.
"""

DATABASES: Final = ("sqlite", "postgresql", "mariadb")
TOGETHER: Final = 4
"""Handovers of one case, where cases are chosen at random."""

OPERATED: Final = ("late", "big", "requeue", "hold", "release", "pause", "pause")

CAMPAIGN_KILLS: Final = 25
"""Kills of one case of the campaign, which has conversions and other accidents besides."""

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
        steps = [*self.cell.handovers, *self.cell.histories]
        return f"{self.outputs}-{'+'.join(steps)}-{self.database}".replace(" ", "_")

    def pairs(self) -> set[tuple[str, str]]:
        """What meets what in it."""
        histories, handovers = self.cell.histories, self.cell.handovers
        return {*product([self.outputs], [*histories, *handovers]), *product(histories, handovers)}


def cases(seed: int = 1) -> list[Case]:
    """The cells that every run of the tests has."""
    found = [
        case(CRASHING if place == "crash" else place, outputs, histories, handovers, seed)
        for place, outputs, histories, handovers in CELLS
    ]
    return [replace(one, cell=replace(one.cell, objects=FEW_OBJECTS)) for one in found]


def campaign(database: str, seed: int, kills: int) -> Case:
    """Six outputs, of which each fails now and then and one mostly; publishers are killed, and operators and conversions
    are at work beside.
    """
    dice = random.Random(seed)
    handovers = ["kill"] * kills + ["convert"] * (kills // 6 + 1) + ["freeze"] * (kills // 12)
    if database == "postgresql" and kills >= CAMPAIGN_KILLS:
        handovers.append("convert by Spark")
    dice.shuffle(handovers)
    cell = Cell(
        outputs=CAMPAIGN,
        handovers=handovers,
        histories=[dice.choice(OPERATED) for _ in handovers],
        seed=seed,
        objects=FEW_OBJECTS,
        moods=f"{MOODS['faulty']} garbled garbled",
        faulty=True,
    )
    return Case(database=database, outputs="campaign", cell=cell)


def case(database: str, outputs: str, histories: Sequence[str], handovers: Sequence[str], seed: int) -> Case:
    """A cell with as much to write as its outputs take in a few seconds."""
    objects = OBJECTS.get(outputs, FEW_OBJECTS)
    cell = Cell(outputs=BY_NAME[outputs], handovers=handovers, histories=histories, seed=seed, objects=objects)
    cell = replace(cell, moods=MOODS.get(outputs, cell.moods), faulty=outputs.startswith("faulty"))
    return Case(database=database, outputs=outputs, cell=cell)


def at_random(seed: int, handovers: int, kills: int, outputs: str = "") -> list[Case]:
    """Cases until there were so many handovers and so many kills, each with a seed of its own; `outputs` of one group only."""
    dice = random.Random(seed)
    groups = [outputs] if outputs else list(OUTPUTS)
    databases = [name for name in DATABASES if name != "sqlite" or not outputs.startswith("faulty")]
    found: list[Case] = []
    while handovers > 0:
        mine = [dice.choice(dice.choice(ABREAST)) for _ in range(min(TOGETHER, handovers))]
        server = "cut" in mine or "crash" in mine
        found.append(_chosen(CRASHING if server else dice.choice(databases), mine, groups, dice))
        handovers -= len(mine)
    while outputs == "campaign" and kills > 0:
        found.append(campaign(dice.choice(databases), dice.getrandbits(32), min(CAMPAIGN_KILLS, kills)))
        kills -= CAMPAIGN_KILLS
    while kills > 0:
        found.append(_chosen(dice.choice(databases), ["kill"] * min(KILLS, kills), groups, dice))
        kills -= KILLS
    return found


def _chosen(database: str, handovers: Sequence[str], groups: Sequence[str], dice: random.Random) -> Case:
    outputs, history = dice.choice(groups), dice.choice(HISTORIES)
    return case(database, outputs, [history], handovers, dice.getrandbits(32))
