"""Logs and targets that are as they were some commits ago, and live on: a failover to a standby that lagged behind.

What a publisher knew, and what the others have, is of a time that never was. The numbers of rows that the log has lost
come again, with other rows. Rows that a target may have are held until somebody resumes: then they may come twice.
"""

from __future__ import annotations

from copy import copy
from random import Random
from typing import TYPE_CHECKING, Final

from eventlog.care.outputs import resume
from eventlog.config.settings import PublisherConfig
from eventlog.publisher.restored import LACKS
from tests.publisher.forgetting import copy_tables, write_tables
from tests.publisher.sharing import uid_in
from tests.publisher.targets import ASKABLE

if TYPE_CHECKING:
    from tests.publisher.targets import Target
    from tests.publisher.world import World

SEEDS: Final = 6, 2
"""Of so many histories one is of this, the one with this remainder."""

AT_ONCE: Final = 18, 14
"""The same of those in which the log and targets are restored at once."""

MOST_COMMITS: Final = 30
"""So many commits a standby lags behind at most."""


class Standbys:
    """What a failover would bring back, of the log and of each target."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = chance = Random(f"standby {world.seed}")
        every, remainder = SEEDS
        what = chance.choice(["log", "log", "targets"]) if world.seed % every == remainder else ""
        every, remainder = AT_ONCE
        if world.seed % every == remainder:
            what = "both"
        self.of_log = 0.04 if what in ("log", "both") else 0.0
        """How likely the log fails over behind a commit."""
        self.of_targets = 0.04 if what == "targets" else 0.0
        """The same of each target that can be asked."""
        self._at_once = 0.5 if what == "both" else 0.0
        """How likely each of these fails over when the log does."""
        self._log: Log | None = None
        self._targets: dict[str, tuple[int, Target]] = {}
        self._commits = 0
        self.told: set[str] = set()
        """Targets that lost plans which no journal knows, since both were restored: somebody is told."""
        self._fell: set[str] = set()
        """Targets that failed over."""
        self._witnesses: dict[str, object] = {}
        """Who published when the log failed over: it alone knows what it had sent to whom it cannot ask."""
        self._unknown: set[str] = set()
        if what:
            _only_writes(world)
        if self.of_targets or self._at_once:
            world.real = {}  # nobody can take from a folder what a test has seen there

    @property
    def happened(self) -> bool:
        """Return True if rows came in the order of more than one log."""
        return bool(self._world.counts["the log failed over"] or self._world.counts["a target failed over"])

    def end(self) -> None:
        """Commit a transaction: the standbys get it now or later, or take over without it."""
        world, chance = self._world, self._chance
        if world.quiet or not (self.of_log or self.of_targets):
            return
        self._commits += 1
        if self.of_log:
            if self._log is None or self._commits - self._log.commit > MOST_COMMITS or chance.random() < 0.1:
                self._log = Log(world, self._commits)
            elif not world.inside and chance.random() < self.of_log:
                self._promote(self._log)
        for name, target in world.targets.items():
            if name[0] in ASKABLE and (self.of_targets or self._at_once):
                self._end_at(name, target)

    def _end_at(self, name: str, target: Target) -> None:
        world, chance = self._world, self._chance
        commit, kept = self._targets.get(name, (0, None))
        if kept is None or self._commits - commit > MOST_COMMITS or chance.random() < 0.1:
            if target.is_busy:
                return
            self._targets[name] = self._commits, keep(target)
        elif self.of_targets and not (world.inside or target.is_busy) and chance.random() < self.of_targets:
            self._restore(name, target, kept)

    def _restore(self, name: str, target: Target, kept: Target) -> None:
        world = self._world
        self._fell.add(name)
        world.counts["a target failed over"] += 1
        world.trace.append((world.now, "fails over", name, [one.uid for one in target.came[len(kept.came) :]]))
        keep(kept, target)
        # The publisher forgets holds of rows that wait no longer.
        waiting = {record for (record,) in world.ask("SELECT record_id FROM event_log WHERE status = 'N'")}
        world.held_late |= {*world.held} - waiting
        target.is_cut_off = self._chance.random() < 0.5

    def _promote(self, log: Log) -> None:
        world = self._world
        world.counts["the log failed over"] += 1
        plans = set(world.ask("SELECT output, plan FROM event_log_planned"))
        log.restore(world)
        plans |= set(world.ask("SELECT output, plan FROM event_log_planned"))
        here = {uid_in(value) for (value,) in world.ask("SELECT new_value FROM event_log")}
        lost = [row for uid, row in world.rows.items() if uid not in here and not row.gone]
        for row in lost:
            row.gone = True  # what is on its way just now arrives
        world.trace.append((world.now, "the log fails over", [row.uid for row in lost]))
        world.next = log.next_number + self._chance.choice([0, 0, 5])
        world.writers.end(world.busy)
        world.open.clear()
        world.busy.clear()
        world.disk.settle()
        held = [record for (record,) in world.ask("SELECT record_id FROM event_log_hold")]
        world.held = {record: world.held.get(record, set()) | plans for record in held}
        world.retried, world.stopped_until, world.clock_set = {}, {}, len(world.trace)
        for row in world.rows.values():
            row.carried |= plans
            if row.uid in here:
                world.live[row.record] = row.alike
        self._log = None
        for name, target in world.targets.items():
            if name in self._targets and not target.is_busy and self._chance.random() < self._at_once:
                world.counts["both were restored at once"] += 1
                self._restore(name, target, self._targets[name][1])
            if self._is_unknown(name):
                self._unknown.add(name)
            self._witnesses[name] = None if world.frozen else world.publisher

    def excuses(self, target: Target) -> bool:
        """Return True if nobody knows any more what a target was sent, and it cannot be asked."""
        name = target.name
        return name[0] not in ASKABLE and (name in self._unknown or self._is_unknown(name))

    def _is_unknown(self, name: str) -> bool:
        return name in self._witnesses and self._witnesses[name] is not self._world.publisher

    def resume(self) -> None:
        """Resume the outputs paused by a restore: their rows may come twice."""
        world = self._world
        warned = "SELECT name, restored, warning FROM event_log_output WHERE warning IS NOT NULL"
        for name, restored, warning in world.ask(warned):
            target, highest = world.targets[str(name)], restored or 0
            if restored is None and not self._at_once:
                world.fail("told, and one was restored alone", name)
            if name in self._fell and LACKS in warning:
                self.told.add(str(name))
            waiting = world.ask(f"SELECT new_value FROM event_log WHERE status = 'N' AND record_id <= {highest}")
            may_come = {uid_in(value) for (value,) in waiting}
            world.trace.append((world.now, "resumes", name, sorted(may_come)))
            world.counts["resumed"] += 1
            world.counts["told as restored"] += len(
                world.ask(f"SELECT 1 FROM event_log_parked WHERE output = '{name}' AND reason = 'restored'")
            )
            for uid in may_come & {one.uid for one in target.came}:
                target.repeats[uid] += 1
            was, world.inside = world.inside, True
            assert resume(world.log, PublisherConfig(), str(name), [str(name)])
            world.inside = was


class Log:
    """What a standby has of a log."""

    def __init__(self, world: World, commit: int) -> None:
        self.commit, self.next_number = commit, world.next
        self._tables = copy_tables(world)

    def restore(self, world: World) -> None:
        write_tables(world, self._tables)


def keep(target: Target, kept: Target | None = None) -> Target:
    """Copy a target's content, but not its owner or the rows it may be sent."""
    kept = kept or copy(target)
    kept.came, kept.last, kept.begun = list(target.came), target.last, target.begun
    kept.hidden, kept.manifest, kept.answers = dict(target.hidden), dict(target.manifest), dict(target.answers)
    return kept


def _only_writes(world: World) -> None:
    """Switch off everything a standby would not know of, but for holds."""
    world.restless, world.keepers, world.hesitant, world.strangers, world.undoing = 0, 0, 0, 0, 0
    world.max_attempts, world.late_back, world.deletes, world.shares = 0, False, False, 0.0
    world.jumps, world.next = 0, min(world.next, 2**63 - 2_000)  # each time some numbers may be lost
    world.operations = [*["hold"] * 3, *["release"] * 2]
    world.total = max(world.total, 60)
