"""Publishers of one log that take over from each other, and the ways in which one of them fails."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.hardening.ledger.checking import Finding
from tests.hardening.ledger.publishers import Command, within

TAKEOVER: Final = 60.0
"""Seconds within which somebody else must have taken over. It takes three leases of half a second; a machine that has
ten times more to do than it has cores needed over 20 seconds twice, and says nothing of the protocol by that."""

TRIES: Final = 20
"""How often one is frozen that has locked the database with which it works."""


class Team:
    """Two publishers of one log. `config` writes a configuration and gives the file; `cut` cuts the sessions of one.

    `locks` says whether nobody else can write to the log's database because of one.
    """

    def __init__(
        self,
        config: Callable[[str], Path],
        start: Callable[[Path], Command],
        cut: Callable[[Command], None],
        locks: Callable[[Command], bool],
        dice: random.Random,
    ) -> None:
        self._config = config
        self._start = start
        self.cut = cut
        self.locks = locks
        self.dice = dice
        self.members: list[Command] = []
        self.found: list[Finding] = []
        self.times: list[float] = []
        """How long takeovers took, in seconds."""

    def grow(self, size: int = 2) -> None:
        """Starts publishers until there are so many, and waits until each knows whether it works or stands by."""
        while len(self.members) < size:
            self.members.append(self._start(self._config(f"eventlog{len(self.members)}")))
        for member in self.members:
            known = {"lock_taken", "standing_by"}
            ready = within(lambda: not member.alive or known & {str(one["action"]) for one in member.journal})  # noqa: B023  # used at once
            assert ready, f"{member.name} neither publishes nor stands by: {member.said}"

    def active(self) -> Command | None:
        """Who has the lock, of those who are not frozen."""
        holders = [one for one in self.members if one.alive and not one.frozen and one.holds]
        return max(holders, key=lambda one: one.holds, default=None)

    def one(self) -> Command:
        """Who publishes now."""
        assert within(self.active, TAKEOVER), f"nobody publishes: {[one.said for one in self.members]}"
        found = self.active()
        assert found is not None
        return found

    def taken_over(self, former: Command, what: str) -> bool:
        """Whether somebody else has come in time."""
        began = time.monotonic()
        others = [one for one in self.members if one is not former]
        if within(lambda: any(one.holds for one in others if one.alive), TAKEOVER):
            self.times.append(round(time.monotonic() - began, 2))
            return True
        why = "; ".join(f"{one.name} said {one.said}" for one in others)
        self.found.append(Finding(what=f"nobody took over from one that was {what}", why=why))
        return False

    def shrink(self) -> None:
        """Leaves one, the one that publishes if there is such a one; where there is none, one is started."""
        stays = self.active() or next(iter(self.members), None)
        self._end([one for one in self.members if one is not stays])
        self.grow(1)

    def leave(self, former: Command, size: int = 2) -> None:
        """Another one takes the place of one that has ended, if there are fewer than so many."""
        self.members.remove(former)
        self.grow(size)

    def fallen(self, size: int = 2) -> None:
        """Notes who has ended though nobody asked for it, and replaces them."""
        for one in [one for one in self.members if not one.alive]:
            if not one.asked:
                why = f"exit code {one.process.returncode}: {one.said}"
                self.found.append(Finding(what=f"{one.name} ended by itself", why=why))
            self.leave(one, size)

    def end(self) -> None:
        """Ends all politely, those who stand by first."""
        self._end(sorted(self.members, key=lambda member: bool(member.holds)))

    def _end(self, some: Sequence[Command]) -> None:
        for one in some:
            one.tell(signal.SIGTERM)
            if one.end() is None:
                self.found.append(Finding(what=f"{one.name} does not end when it is told to", why=one.said))
                one.kill()
            self.members.remove(one)

    def kill(self) -> None:
        for one in self.members:
            one.kill()


def polite(team: Team) -> None:
    """The one that publishes is told to stop."""
    former = team.one()
    former.tell(signal.SIGTERM)
    team.taken_over(former, "told to stop")
    code = former.end()
    if code != 0:
        team.found.append(Finding(what=f"{former.name} ended with {code} when it was told to stop", why=former.said))
    team.leave(former)


def kill(team: Team) -> None:
    """The one that publishes is killed."""
    former = team.one()
    former.kill()
    team.taken_over(former, "killed")
    team.leave(former)


def freeze(team: Team) -> None:
    """The one that publishes is frozen for longer than its lease, replaced, and wakes while the other is at work.

    Nobody can replace one that has locked an SQLite file (docs/explanation/delivery.md): that one is frozen once more.
    """
    former = team.one()
    former.freeze()
    for _ in range(TRIES):
        if not team.locks(former):
            break
        former.wake()
        time.sleep(team.dice.uniform(0.01, 0.1))
        former = team.one()
        former.freeze()
    if team.taken_over(former, "frozen"):
        time.sleep(team.dice.uniform(0.3, 0.8))
    former.wake()
    within(lambda: len([one for one in team.members if one.alive and one.holds]) <= 1, 5)


def cut(team: Team) -> None:
    """The sessions of the one that publishes are cut, and then those of its heir: the first may come back."""
    for _ in range(2):
        former = team.one()
        journal = len(former.journal)
        team.cut(former)
        within(lambda: len(former.journal) > journal, 5)  # noqa: B023  # used at once
        team.one()
        time.sleep(team.dice.uniform(0.1, 0.4))


HANDOVERS: Final[Mapping[str, Callable[[Team], None]]] = {
    "polite stop": polite,
    "kill": kill,
    "freeze": freeze,
    "cut": cut,
}
