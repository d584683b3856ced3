"""The ledger: every version of every object that was committed, in the order in which its object had them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Literal

from msgspec import Struct

Place = tuple[str, int]
"""A table, and the key of an object in it."""

Op = Literal["I", "U", "D"]


class Version(Struct, frozen=True, kw_only=True):
    """What a committed transaction made of an object; a deletion has a number too, and no text.

    `who` is what the transaction said of who is behind it.
    """

    place: Place
    number: int
    op: Op
    text: str = ""
    who: str = ""


class Ledger:
    """What was committed, by object; each object is written by one writer, who notes its versions in their order."""

    def __init__(self) -> None:
        self._versions: dict[Place, list[Version]] = {}
        self._lock = Lock()

    def keep(self, versions: Iterable[Version]) -> None:
        """Notes what a transaction has committed."""
        with self._lock:
            for version in versions:
                self._versions.setdefault(version.place, []).append(version)

    def objects(self) -> Mapping[Place, list[Version]]:
        """The versions of each object, oldest first."""
        with self._lock:
            return {place: list(versions) for place, versions in self._versions.items()}

    def __iter__(self) -> Iterator[Version]:
        return (version for versions in self.objects().values() for version in versions)

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._versions.values()))
