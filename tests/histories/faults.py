"""Faults that an audit found in the publisher before the journal, each with the accidents by which the kit showed it.

`issue 35 A1` is the first item of part A of the issue "Trust".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.histories.accidents import CALM, Accidents
from tests.histories.world import Profile, World

DOUBLED: Final = r"came to .* 2 times, and was set back 0 times"


class Fault(Struct, frozen=True, kw_only=True):
    """What is wrong, what is found of it, and the accidents of histories of which some show it.

    It is looked for in several, because a seed tells another history as soon as there is one step more.
    """

    item: str
    finding: str
    profile: Profile
    seed: int
    seeds: int = 30


def _profile(kinds: str, publisher: dict[str, object] | None = None, *, rows: int = 30, **accidents: float) -> Profile:
    calm: Accidents = replace(CALM, interruptions=0.02, **accidents)
    return Profile(accidents=calm, kinds=kinds, exactly=True, rows=(rows, rows), publisher=publisher or {})


def _empties_a(world: World) -> Iterator[None]:
    """Somebody deletes what waits of the first table."""
    for record in world.book.waiting():
        row = world.book.rows[world.book.live[record]]
        if row.table == "a":
            world.operators.delete(record, row)
    yield


def _holds_one(world: World) -> Iterator[None]:
    """Somebody holds the first row that waits; each output is paused and resumed; then the row is
    released.
    """
    record = world.book.waiting()[0]
    world.operators.hold(record, world.book.rows[world.book.live[record]])
    yield from _turns(60)
    for name in world.names:
        world.heart.outputs.pause(world.log, name, world.names, by="an operator")
        yield from _turns(40)
        world.heart.outputs.resume(world.log, world.config.publisher, name, world.names)
        yield from _turns(40)
    world.operators.release(record)


def _turns(count: int) -> Iterator[None]:
    for _ in range(count):
        yield


_STOP: Final = {"on_retry": "stop", "batch_size": 1, "query_limit": 20, "delete_from_log": False}
_OBJECT: Final = {**_STOP, "on_retry": "object"}

FAULTS: Final = {
    "an answer that cannot be read, in a repeat": Fault(
        item="issue 35 A1: what is not sent in a repeat is taken for what is not at the target",
        finding=DOUBLED,
        profile=_profile("h", _STOP, kills=0.01, unreadable=0.1, retry=0.05),
        seed=5,
    ),
    "held after it was written everywhere": Fault(
        item="issue 35 A2: notes are dropped where nothing is in hand",
        finding=DOUBLED,
        profile=replace(
            _profile("md", _OBJECT, rows=60), dies_at="before UPDATE event_log SET status", story=_holds_one
        ),
        seed=0,
    ),
    "change files whose first try stays": Fault(
        item="issue 35 A3: a repeat numbers its blocks anew, and the files of the first try stay",
        finding=DOUBLED,
        profile=replace(_profile("c", _OBJECT), dies_at="before replace c1/_position.json", story=_empties_a),
        seed=9,
    ),
    "an answer that is cut off": Fault(
        item="issue 35 A4: a document whose answer cannot be read comes again under another plan",
        finding=DOUBLED,
        profile=_profile("h", _OBJECT, cut_off_taken=0.1, unreadable_taken=0.1),
        seed=0,
    ),
    "one output lags and another says retry": Fault(
        item="issue 35 A5: rows that are S keep the record 'N, retry'",
        finding=r"is S, and its record says N, retry",
        profile=_profile("hxm", _STOP, retry=0.15, pauses=0.1),
        seed=0,
    ),
    "a purge leaves records": Fault(
        item="issue 35 A5: a purge deletes the row and leaves its record",
        finding="outlives its row",
        profile=_profile("x", _OBJECT, holds=0.15, purges=0.05),
        seed=0,
    ),
    "held rows that an output caught up with": Fault(
        item="issue 35 D17: rows that waited behind a held one and came by a lagging output keep 'held'",
        finding=r"is S, and its record says N, held",
        profile=_profile("xm", _OBJECT, holds=0.15, pauses=0.08),
        seed=2,
    ),
    "requeued while others are held": Fault(
        item="found by this kit: a row that is requeued does not come, for notes of a held one say that it is there",
        finding=r"has S, came to .* 1 times and not 2",
        profile=_profile("c", _OBJECT, holds=0.15, setbacks=0.15),
        seed=0,
    ),
}
