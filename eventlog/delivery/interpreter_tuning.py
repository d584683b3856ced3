"""The interpreter's settings while batches go hand in hand: they belong to the process, and several publishers may share it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from msgspec import Struct

TURN: Final = 0.0001
"""Seconds that a thread which decides keeps one from going on whose disk or database has answered."""

SELDOM: Final = 500_000
"""New values after which garbage is looked for while batches are hand in hand: every dozen of them."""


class Pace(Struct, frozen=True, kw_only=True):
    """How often threads take turns, and after how many new values garbage is looked for."""

    turn: float
    thresholds: tuple[int, int, int]

    @classmethod
    def now(cls) -> Pace:
        """As it is."""
        return cls(turn=sys.getswitchinterval(), thresholds=gc.get_threshold())

    def set(self) -> None:
        """Makes it so."""
        sys.setswitchinterval(self.turn)
        gc.set_threshold(*self.thresholds)

    def hastened(self) -> Pace:
        """Threads go on soon after a disk or a database has answered, and garbage is looked for less often.

        What a batch is made of refers to nothing in circles; looking for them after every 700 values takes a twentieth
        of the time.
        """
        young, *older = self.thresholds
        seldom = max(SELDOM, young) if young else young
        return Pace(turn=min(TURN, self.turn), thresholds=(seldom, older[0], older[1]))


_lock = Lock()
_before: list[Pace] = []
"""What each that hurries found; only the first found how things were, so that one is kept until the last ends."""


@contextmanager
def haste() -> Iterator[None]:
    """Hurries until the block ends; the last one that ends leaves things as the first one found them."""
    with _lock:
        _before.append(Pace.now())
        _before[0].hastened().set()
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            _before.pop()
            if not _before:
                first.set()
