"""How a publisher of a history begins: perhaps with the configuration of others, which it must not."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import TYPE_CHECKING

from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.core.seams import Tenure
from eventlog.publisher.places import admit
from eventlog.sql.log import Log
from tests.publisher.actors import TestLock
from tests.publisher.breaking import Statements
from tests.publisher.forgetting import Disk
from tests.publisher.looking import Looks
from tests.publisher.restoring import Standbys
from tests.publisher.targets import ASKABLE
from tests.publisher.writing import OpenWriters

if TYPE_CHECKING:
    from tests.publisher.world import World


def take_lock(world: World, tenure: Tenure) -> TestLock:
    """Take the lock with all outputs, perhaps after a try with the configuration of others."""
    places = {str(name): paused for name, paused in world.ask("SELECT name, paused FROM event_log_output")}
    world.served = None
    if not world.quiet and world.stranger.random() < world.strangers:
        named = [name for name in places if world.stranger.random() < 0.5]
        missing = [name for name, paused in places.items() if name not in named and paused is None]
        world.trace.append((world.now, "another configuration", named))
        try:
            TestLock(
                world.log, tenure, partial(admit, log=world.log, outputs=[(name, ()) for name in [*named, "peek"]])
            )
        except ConfigError:
            world.counts["refused another configuration"] += 1
            if not missing:
                world.fail("the lock is refused though every place is named or paused", named)
        else:
            if missing:
                world.fail("the lock was taken without the place of", missing)
            # Somebody has paused the others: what goes on without them they get when they are resumed.
            world.served, world.counts["another configuration"] = named, world.counts["another configuration"] + 1
    if world.served is None:
        return TestLock(world.log, tenure, partial(admit, log=world.log, outputs=[(name, ()) for name in places]))
    return TestLock(world.log, tenure, partial(admit, log=world.log, outputs=[(name, ()) for name in world.served]))


def draw_shapes(world: World, more: Random) -> None:
    """Draw the subjects of some histories."""
    if more.random() < 0.15:
        # Nearly every object is held, and what came behind goes in the end, a few rows each time. Nothing else touches
        # a row: of its transaction not much could be judged.
        world.operations, world.busy_operator, world.last_key = [*["hold"] * 8, "release"], 1, 3
        world.limit, world.commits, world.transaction_rows = 3, 0.25, [2, 4, 6]
        world.keepers, world.hesitant, world.takes_rights, world.late_back = 0, 0, 0, False
        world.first = [name for name in world.first if name != "r"] or ["f"]
    if more.random() < 0.2:
        # Documents of two objects, so that one is behind another that is itself behind what comes again.
        world.mixed, world.largest, world.on_retry, world.last_key = True, 2, "object", 3
        world.limit, world.commits, world.transaction_rows, world.several = 20, 0.25, [9, 20], 0
        world.first = ["r", *[name for name in world.first if name != "r"]]
    world.raises = world.seed % 4 == 1 and not world.real
    """Whether formats fail with some values, in a way that nobody has foreseen."""
    world.stranger = Random(world.seed + 1)
    world.strangers = world.stranger.choice([0, 0, 0.3])
    """How likely somebody begins with a configuration of other outputs."""
    world.served = None
    """The outputs of the configuration that a publisher has begun with; all where it is the right one."""
    world.redefined = more.choice([0, 0, 0.03])
    """How likely tables are looked at anew."""
    # Often both in some: else hardly any row is refused by one output and warned of by another.
    world.refused, world.odd = (0.4, 0.4) if world.seed % 5 == 2 else (0.06, 0.05)
    """How likely targets refuse a document, and receivers warn of its last change."""
    if world.seed % 20 == 7:
        # Documents have several changes of one object, not side by side: where a receiver wants
        # one again, what it took behind that one comes again, too.
        world.first = ["r", *[name for name in world.first if name != "r"]]
        world.mixed, world.limit, world.largest, world.on_retry = True, 3, 3, "stop"
        world.commits, world.transaction_rows, world.busiest, world.last_key = 0.25, [2, 3, 4], 0, 1
        world.stubborn, world.unreadable, world.several = 0.6, 0.05, 0
        world.keepers, world.hesitant, world.max_attempts = 0, 0, 0
    if world.seed % 20 == 13:
        # One output alone is behind, and little is in its way: its next plan is made beside the delivery of the one before.
        world.first = [ASKABLE[world.seed // 20 % len(ASKABLE)]]
        world.limit, world.commits, world.transaction_rows, world.several = 3, 0.1, [9, 20], 0
        world.total, world.restless, world.takes_rights, world.keepers = max(60, world.total), 0, 0, 0
        world.busiest, world.last_key, world.hesitant, world.deletes = 0, 20, 0, False
        world.operations = ["hold", "letter", "delete", "back", *["release"] * 4]
    world.undoing = 0.3 if world.seed % 7 == 3 else 0.0
    """How likely a receiver has undone a document that comes again, and wants it once more."""
    if world.undoing:
        # Many documents are at the receiver when the publisher dies before it enters an answer.
        world.kills, world.faults, world.limit, world.slow = 0.03, 0, 20, ""
        world.commits, world.transaction_rows = 0.25, [9, 20]
        world.first = ["r", *[name for name in world.first if name != "r"]]
    if world.engine.dialect.name != "postgresql" and more.random() < 0.5:
        world.names = replace(world.names, transaction=None)
    world.shares = 0.0
    """How likely a row gets the number of another one: no key of the log forbids it."""
    if world.engine.dialect.name == "sqlite" and world.names.transaction is None and world.seed % 2 == 0:
        world.shares = more.choice([0.2, 0.5])
    world.log = Log(world.engine, world.names)


def draw_latest(world: World) -> None:
    """Draw the kit's latest features apart, so histories without them stay as they were."""
    world.latest = latest = Random(f"latest {world.seed}")
    world.next = latest.choice([*[1] * 6, 2**62 - 20, 2**63 - 200])
    """The number of the first row: some logs come near the end of all numbers."""
    world.shift = 10**9
    """By how much the database's clock is ahead of the publisher's own, in milliseconds."""
    world.clock_set = 0
    """Where in the trace somebody has set it last."""
    world.jumps = latest.choice([0, 0, 0, 0.05])
    """How likely somebody sets the database's clock."""
    world.writers = OpenWriters(world)
    world.asks_writers = Random(f"writers {world.seed}").random() < 0.5
    """Whether the publisher asks who writes as often as it can, where the database can say it; else never again."""
    world.disk = Disk(world, latest, latest.choice([0, 0, 0, 0.05]))
    world.standbys = Standbys(world)
    world.looks = Looks(world)
    world.statements = Statements(world)
    world.calls_objects = Random(f"names {world.seed}").random() < 0.5
    """Whether receivers call objects by names of their own."""
    world.later = Random(f"later {world.seed}")
    world.answers_later = world.seed % 6 == 5 and not (world.shares or world.real)
    """Whether receivers first accept, and say later what became of it; a number is that of one row then."""
    if world.answers_later:
        world.calls_objects = True
        world.first = ["r", *[name for name in world.first if name != "r"]]
    world.imaged = imaged = Random(f"images {world.seed}")
    world.images = imaged.choice([0, 0, 0.5, 1])
    """How likely a change of one row is written as the image of a row."""
    _draw_mute(world, Random(f"mute {world.seed}"))
    if not world.mute and Random(f"chains {world.seed}").random() < 0.1:
        _draw_chains(world)


def _draw_mute(world: World, chance: Random) -> None:
    """Draw objects of which nobody can read what receivers answer until all others have come to rest."""
    world.mute = frozenset()
    if chance.random() >= 0.12:
        return
    world.last_key, world.limit, world.on_retry, world.mixed = 3, 3, "object", False
    world.mute = frozenset(chance.sample([f"{table}/id={key}" for table in "AB" for key in range(4)], 4))
    # An answer given up, or a row that speaks of every object, would let others go or hold them up.
    world.max_attempts, world.nameless, world.shares, world.real = 0, 0, 0, {}
    world.first = ["r", *[name for name in world.first if name != "r"]]


def _draw_chains(world: World) -> None:
    """Have a receiver lag and get many documents at once: behind one that comes again is another of two objects, and
    behind that one others of its second object.
    """
    world.mixed, world.largest, world.on_retry, world.last_key = True, 2, "object", 3
    world.limit, world.commits, world.transaction_rows, world.busiest = 20, 0.6, [1, 2], 0
    world.slow, world.stubborn, world.unreadable, world.real = "r", 0.25, 0.02, {}
    # Else hardly any document would have others behind it.
    world.busy_operator, world.keepers, world.hesitant, world.takes_rights, world.freezes = 0, 0, 0, 0, False
    world.kills, world.faults, world.statements.fails, world.total = 0, 0, 0, 100
    world.first = ["r", *[name for name in world.first if name != "r"]]
