"""What all connections to one receiver know of it: what it can do, what it calls our objects, what is under way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from threading import Lock
from time import monotonic
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from eventlog.core.associations import Associations
from eventlog.sinks.scim.client import ScimClient
from eventlog.sinks.scim.paths import Path, read_path
from eventlog.sinks.scim.requests import ScimRequest, Unique
from eventlog.sinks.scim.server import Abilities, read_abilities
from eventlog.sinks.scim.settings import ResourceSettings, ScimSettings, list_columns

LOCK_SLOTS: Final = 256
"""Objects that are asked for at the same time; more of them share a lock."""


class Doubt(Struct, frozen=True):
    """When a resource was asked for, and by what it is found; `several` requests may be under way."""

    began: float
    unique: Unique
    several: bool = False


class ScimReceiver:
    """What all connections to one receiver know of it."""

    def __init__(self, settings: ScimSettings, patch: Literal["auto", "always", "never"], seconds: float = 0.0) -> None:
        """Know no resource yet; a request is under way for so many seconds at most."""
        self.associations = Associations()
        self.expected: frozenset[str] = frozenset()
        """Objects that come with this plan: who refers to them waits for no longer than that."""
        self.ending: set[str] = set()
        """Objects whose end is still to come in this plan."""
        self._coming: dict[str, list[ScimRequest]] = {}
        """By their objects, the requests of this plan that are still to be carried."""
        self._leaving = frozenset[str]()
        self._seconds = seconds
        self._began = -math.inf
        self._doubts: dict[str, Doubt] = {}
        """What was asked for of which nobody knows whether it was made; before all times where it was not."""
        self._patch = patch
        self._abilities: Abilities | None = None
        self._asking = Lock()
        self._stripes = [Lock() for _ in range(LOCK_SLOTS)]
        self._name_stripes = [Lock() for _ in range(LOCK_SLOTS)]
        self.mappings = settings.tables
        self.paths = {name: _paths_of(table, name) for name, table in settings.tables.items()}
        self.unique = {name: read_path(table.unique_path, "unique") for name, table in settings.tables.items()}

    def announce(self, requests: Iterable[ScimRequest]) -> None:
        """Know the requests of a plan, before the first is carried."""
        self._coming = {}
        for request in requests:
            self._coming.setdefault(request.object, []).append(request)
        self._leaving = frozenset(name for name, several in self._coming.items() if several[-1].method == "DELETE")
        every = [request for requests in self._coming.values() for request in requests]
        self.expected = frozenset(request.object for request in every if not request.ends)
        self.ending = {request.object for request in every if request.ends}

    def is_announced(self, name: str | None) -> bool:
        """Tell whether the plan has a request for an object, be it carried or not; so may one that nobody knows."""
        return name is None or name in self._coming

    def list_coming(self, name: str) -> list[ScimRequest]:
        """List what is still to be carried for an object; exact for who has the object's turn."""
        return self._coming.get(name, [])

    def count_called(self, mapping: str, value: str) -> int:
        """Count the objects of this plan that are to be called so, and of which the receiver's id is not known."""
        called = (
            name
            for name, several in self._coming.items()
            if any(one.mapping == mapping and value in one.unique.values and not one.ends for one in [*several])
        )
        return sum(self.associations.find(name) is None for name in called)

    def is_leaving(self, name: str) -> bool:
        """Tell whether an object is not there any more in the end of this plan."""
        return name in self._leaving

    def is_replaced(self, name: str) -> bool:
        """Tell whether an object is still to be deleted and made again, under another id, in this plan."""
        coming = iter(self._coming.get(name, ()))
        return any(request.method == "DELETE" for request in coming) and any(not request.ends for request in coming)

    def end_coming(self, request: ScimRequest) -> None:
        """Know that the first request of its object is carried."""
        del self._coming.get(request.object, [])[:1]
        if request.ends:
            self.ending.discard(request.object)

    def take_over(self) -> None:
        """Begin after another publisher, whose requests may be under way; the receiver may be another one, too."""
        self._abilities = None
        self._began = monotonic()
        self._doubts.clear()

    def doubt(self, request: ScimRequest, *, is_open: bool) -> None:
        """Know whether a request that makes a resource may still be done; one before it may be still, too."""
        if is_open:
            several = self.find_doubt(request.object) is not None
            self._doubts[request.object] = Doubt(monotonic(), request.unique, several)
        else:
            self._doubts.setdefault(request.object, Doubt(-math.inf, request.unique))

    def end_doubt(self, name: str) -> None:
        """Know that an object's resource is there; a request that is late may make another one when that has gone."""
        if not self.doubt_seconds(name, is_new=True):
            self._doubts.pop(name, None)

    def end_doubt_of_one(self, name: str) -> None:
        """Know that an object's resource was made since nobody had it: by the request in doubt, if that is the only one."""
        if name in self._doubts and not self._doubts[name].several:
            del self._doubts[name]

    def find_doubt(self, name: str) -> Unique | None:
        """Find by what a resource is found that a request may still make; None where none may."""
        return self._doubts[name].unique if self.doubt_seconds(name, is_new=True) else None

    def doubt_seconds(self, name: str, *, is_new: bool) -> float:
        """Return for how long an earlier request may still make an object's resource."""
        doubt = self._doubts.get(name)
        began = doubt.began if doubt is not None else -math.inf if is_new else self._began
        return max(0.0, began + self._seconds - monotonic())

    def abilities(self, client: ScimClient) -> Abilities:
        """Say what it can do; asked once."""
        with self._asking:
            if self._abilities is None:
                found = read_abilities(client)
                patches = found.patches if self._patch == "auto" else self._patch == "always"
                self._abilities = msgspec.structs.replace(found, patches=patches)
            return self._abilities

    def cannot_patch(self) -> None:
        """Know that it does not take PATCH, whatever it says."""
        with self._asking:
            if self._abilities is not None and self._patch == "auto":
                self._abilities = msgspec.structs.replace(self._abilities, patches=False)

    def turn_of(self, *names: str) -> AbstractContextManager[Any]:
        """Let one connection at a time tell something of these objects."""
        return _lock_in_order(self._stripes, names)

    def turn_to_name(self, request: ScimRequest) -> AbstractContextManager[Any]:
        """Let one connection at a time find, make or end what is called by a request's names, or was when in doubt.

        Two objects of ours may be called alike, and one may have the name of one that ends: nobody takes or deletes
        what another connection has made and not yet noted.
        """
        doubt = self._doubts.get(request.object)
        names = request.unique.values + (() if doubt is None else doubt.unique.values)
        return _lock_in_order(self._name_stripes, names)


def _lock_in_order(stripes: Sequence[Lock], names: Iterable[str]) -> AbstractContextManager[Any]:
    """Lock what names share; in one order, so that no two wait for each other."""
    turn = ExitStack()
    for slot in sorted({hash(name) % LOCK_SLOTS for name in names}):
        turn.enter_context(stripes[slot])
    return turn


def _paths_of(table: ResourceSettings, name: str) -> list[Path]:
    paths = [column.path for column in list_columns(table, name)]
    if table.enables:
        paths.append(Path("active"))
    return paths
