"""How many connections an address serves: when all are taken, the one that keeps us waiting longest makes room.

Law: who comes and asks at once is answered, however many others have come and ask nothing. So whoever watches a
publisher hears from it whatever visitors do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol, TypeVar

MOST_CONNECTIONS: Final = 200
"""Connections at once."""

ADDRESS_CONNECTIONS: Final = 100
"""Connections at once from one address: whoever floods us is in nobody's way but their own."""

PATIENCE_SECONDS: Final = 10.0
"""How long we wait for a request to be there, or for an answer to be taken, before a connection ends."""


class Guest(Protocol):
    """A connection."""

    @property
    def peer(self) -> str:
        """The address that it comes from."""

    @property
    def waits_since(self) -> float | None:
        """Since when we wait for it, by a clock that goes steadily; None while it waits for us."""


AnyGuest = TypeVar("AnyGuest", bound=Guest)


def leaving(guests: Collection[AnyGuest], newcomer: AnyGuest) -> list[AnyGuest]:
    """Who has to go now that another one has come: those that we have waited for longest, and nobody whom we serve.

    Where we are at work for all, nobody goes: what is worked on at once has a bound of its own, and is done soon.
    """
    own = [guest for guest in guests if guest.peer == newcomer.peer]
    return _longest(own, len(own) - ADDRESS_CONNECTIONS, newcomer) or _longest(
        guests, len(guests) - MOST_CONNECTIONS, newcomer
    )


def _longest(guests: Collection[AnyGuest], count: int, newcomer: AnyGuest) -> list[AnyGuest]:
    if count <= 0:
        return []
    waiting = [(guest.waits_since, guest) for guest in guests if guest is not newcomer]
    idle = [(since, guest) for since, guest in waiting if since is not None]
    return [guest for _, guest in sorted(idle, key=lambda one: one[0])[:count]]


def is_late(guest: Guest, now: float) -> bool:
    """Whether we have waited long enough."""
    return guest.waits_since is not None and now - guest.waits_since >= PATIENCE_SECONDS
