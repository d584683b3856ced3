"""How a publisher of a history begins: perhaps with the configuration of others, which it must not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from eventlog.core.errors import ConfigError
from eventlog.core.seams import Tenure
from eventlog.publisher.places import admit
from tests.publisher.actors import TestLock

if TYPE_CHECKING:
    from tests.publisher.world import World


def take_lock(world: World, tenure: Tenure) -> TestLock:
    """Take the lock with all outputs, perhaps after a try with the configuration of others."""
    places = {str(name): paused for name, paused in world.ask("SELECT name, paused FROM event_log_output")}
    world.served = None
    if not world.quiet and world.more.random() < world.strangers:
        named = [name for name in places if world.more.random() < 0.5]
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
