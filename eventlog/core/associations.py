"""What a receiver calls our objects: known while a publisher runs, and kept by the log.

Law: what a receiver has said is entered in the log by the transaction that enters its answers. Who asks for an
object that the receiver does not know yet waits for it here, and is told once, by who makes it known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from threading import RLock
from typing import Final

from msgspec import Struct

MOST_KNOWN_KEYS: Final = 100_000
"""So many are remembered; others are read again."""


class Awaiting(Struct, frozen=True, array_like=True):
    """What is to be told of `object` as soon as another object is known; `place` says where it stands."""

    object: str
    place: str
    request: str


class Association(Struct, frozen=True):
    """What a receiver calls an object, None where it is not known there; and who waits for it.

    One that is `over` is there still, though our object is gone: nobody else's may take its place.
    """

    id: str | None = None
    awaiting: tuple[Awaiting, ...] = ()
    over: bool = False

    @property
    def is_empty(self) -> bool:
        """Return True if nothing is to be kept."""
        return self.id is None and not self.awaiting


NOTHING: Final = Association()


class AssociationTable:
    """What the log keeps of one output. One that keeps nothing, until there is a log."""

    def read(self, objects: Collection[str]) -> Mapping[str, Association]:
        """Read the associations of these objects."""
        return {}

    def read_awaited(self) -> Mapping[str, Association]:
        """Read all objects with something waiting for them."""
        return {}

    def find(self, id: str) -> str | None:  # noqa: A002  # as SCIM calls it
        """Find the object with this id at the receiver."""
        return None


class Associations:
    """What one receiver calls our objects. Several threads may use it at the same time."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._table = AssociationTable()
        self._known: dict[str, Association] = {}
        self._objects: dict[str, str] = {}
        """The objects by their ids, of those that are known."""
        self._awaited: set[str] = set()
        """Objects for which somebody waits."""
        self._waits: dict[str, set[str]] = {}
        """For which objects an object waits."""
        self._unwritten: dict[str, Association] = {}

    def serve(self, table: AssociationTable) -> None:
        """Begin anew with the log's associations: another publisher may have had the lock, or the
        log was restored.
        """
        with self._lock:
            self._table = table
            for memory in (self._known, self._objects, self._awaited, self._waits, self._unwritten):
                memory.clear()
            for name, kept in table.read_awaited().items():
                self._remember(name, kept)

    def read(self, objects: Collection[str]) -> None:
        """Read the associations of these objects at once, so that nobody reads them one by one."""
        with self._lock:
            unknown = [name for name in objects if name not in self._known]
            if not unknown:
                return
            if len(self._known) > MOST_KNOWN_KEYS:
                self._known = {name: self._known[name] for name in {*self._unwritten, *self._awaited}}
                self._objects = {known.id: name for name, known in self._known.items() if known.id is not None}
            kept = self._table.read(unknown)
            for name in unknown:
                self._remember(name, kept.get(name, NOTHING))

    def find(self, name: str) -> str | None:
        """Return an object's id at the receiver; None if unknown."""
        with self._lock:
            self.read([name])
            return self._known[name].id

    def find_object(self, id: str) -> str | None:  # noqa: A002  # as SCIM calls it
        """Find the object with this id at the receiver."""
        with self._lock:
            name = self._objects.get(id)
            if name is None:
                name = self._table.find(id)
                # What the log says may be older than what is known.
                if name is not None and self.find(name) != id:
                    return None
            return name

    def keep(self, name: str, id: str | None, *, over: bool = False) -> None:  # noqa: A002  # as SCIM calls it
        """Keep an object's id at the receiver, None for none; `over`: the object has ended."""
        with self._lock:
            self.read([name])
            former = self._known[name]
            if (former.id, former.over) != (id, over):
                self._write(name, Association(id, former.awaiting, over))

    def find_or_await(self, name: str, awaiting: Awaiting, *, is_old: bool = False) -> str | None:
        """Return an object's id at the receiver, or let `awaiting` wait for it; an old one is soon another one."""
        with self._lock:
            self.read([name])
            known = self._known[name]
            if known.id is None or is_old:
                same = (awaiting.object, awaiting.place)
                others = [other for other in known.awaiting if (other.object, other.place) != same]
                self._write(name, Association(known.id, (*others, awaiting), known.over))
            return None if is_old else known.id

    def await_answer(self, name: str, awaiting: Awaiting, revise: Callable[[Awaiting], Awaiting | None]) -> None:
        """Have something wait for the receiver's word on an object, behind what waits already; `revise` makes of
        each of these what is left of it, None for nothing.
        """
        with self._lock:
            self.read([name])
            known = self._known[name]
            others = [left for other in known.awaiting if (left := revise(other)) is not None]
            self._write(name, Association(known.id, (*others, awaiting), known.over))

    def list_awaited(self) -> list[tuple[str, tuple[Awaiting, ...]]]:
        """List the objects for which something waits, with what does."""
        with self._lock:
            return [(name, self._known[name].awaiting) for name in sorted(self._awaited)]

    def end_waiting(self, name: str, awaiting: Awaiting) -> None:
        """Let nobody wait for this any more: it was told, or is out of date."""
        with self._lock:
            self.read([name])
            known = self._known[name]
            if awaiting in known.awaiting:
                left = tuple(other for other in known.awaiting if other != awaiting)
                self._write(name, Association(known.id, left, known.over))

    def waiting_of(self, name: str) -> list[tuple[str, Awaiting]]:
        """List the objects an object waits for."""
        with self._lock:
            others = sorted(self._waits.get(name, ()))
            waited = [(other, awaiting) for other in others for awaiting in self._known[other].awaiting]
            return [(other, awaiting) for other, awaiting in waited if awaiting.object == name]

    def awaiting(self, name: str) -> tuple[Awaiting, ...]:
        """List those waiting for an object."""
        with self._lock:
            return self._known.get(name, NOTHING).awaiting if name in self._awaited else ()

    def unwritten(self) -> dict[str, Association]:
        """Return associations not yet in the log."""
        with self._lock:
            return dict(self._unwritten)

    def note_entered(self, written: Mapping[str, Association]) -> None:
        """Note that the log has these associations."""
        with self._lock:
            for name, association in written.items():
                if self._unwritten.get(name) == association:
                    del self._unwritten[name]

    def _write(self, name: str, association: Association) -> None:
        self._remember(name, association)
        self._unwritten[name] = association

    def _remember(self, name: str, association: Association) -> None:
        former = self._known.get(name, NOTHING)
        if former.id is not None and self._objects.get(former.id) == name:
            del self._objects[former.id]
        self._known[name] = association
        if association.id is not None:
            self._objects[association.id] = name
        for awaiting in former.awaiting:
            self._waits.get(awaiting.object, set()).discard(name)
        for awaiting in association.awaiting:
            self._waits.setdefault(awaiting.object, set()).add(name)
        if association.awaiting:
            self._awaited.add(name)
        else:
            self._awaited.discard(name)
