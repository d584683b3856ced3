"""A model of decisions that outputs share, small enough to look at every state: one object, which is read back.

Two outputs of one publisher take turns, each in a thread of its own. A turn is two steps: an output takes rows, and uses
what was decided of them for the other one; where it may not, it reads the object and decides. Between two steps rows are
written, held and released. `eventlog.publisher.decide` is what is modelled here.

`Sharing` switches single rules off: then the search must find what goes wrong, or it proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.publisher.model import Rows, search_states

KEPT_DECISIONS = 2
"""As many as the program keeps."""


class Sharing(NamedTuple):
    """The rules of what outputs share."""

    later_only: bool = True
    """A decision counts only where its reading began after all that the output got."""
    none_parked: bool = True
    """A take of which rows have to wait shares nothing,"""
    none_waited: bool = True
    """nor does one with rows that had waited."""


class Decided(NamedTuple):
    """What was decided of a batch: the version of the object, and between which moments it was read."""

    rows: Rows
    version: int
    began: int
    ended: int


class Turn(NamedTuple):
    """The rows that an output has taken and is about to read, and whether it may share what it decides."""

    rows: Rows
    shared: bool
    began: int


class Reader(NamedTuple):
    """One output, and what it got: rows, and the version that was read for them."""

    position: int = 0
    parked: Rows = ()
    turn: Turn | None = None
    latest: int = 0
    came: tuple[tuple[Rows, int], ...] = ()


class World(NamedTuple):
    """Everything. Each row is a change of the object, whose version is the number of its rows."""

    rows: int
    holds: int
    written: int = 0
    held: Rows = ()
    batches: tuple[Rows, ...] = ()
    moment: int = 0
    kept: tuple[Decided, ...] = ()
    given_though_held: Rows = ()
    readers: tuple[Reader, Reader] = (Reader(), Reader())


def search_readings(rows: int, holds: int, rules: Sharing) -> tuple[int, list[str], str]:
    """Search all states; return their number, the shortest way to a forbidden one, and its fault."""
    return search_states(World(rows, holds), lambda world: following(world, rules), wrong, unfinished)


def following(world: World, rules: Sharing) -> Iterator[tuple[str, World]]:
    """Yield each possible next step, with its name."""
    if world.written < world.rows:
        yield f"row {world.written} is written", world._replace(written=world.written + 1)
    for row in range(world.written):
        if row in world.held:
            yield f"row {row} is released", world._replace(held=tuple(other for other in world.held if other != row))
        elif world.holds and not any(reader.turn and row in reader.turn.rows for reader in world.readers):
            # A turn that is under way would begin anew: its plan sees that holds have changed.
            yield f"row {row} is held", world._replace(held=(*world.held, row), holds=world.holds - 1)
    for number, reader in enumerate(world.readers):
        if reader.turn is not None:
            yield f"{number} reads and decides", _read(world, number, reader, reader.turn)
        elif (after := _take(world, number, reader, rules)) is not None:
            yield f"{number} takes", after


def _take(world: World, number: int, reader: Reader, rules: Sharing) -> World | None:
    """Take parked rows and the batch ahead; seal all new rows as one batch. Return None if there are none."""
    if reader.position == len(world.batches):
        new = range(sum(map(len, world.batches)), world.written)
        world = world._replace(batches=(*world.batches, tuple(new))) if new else world
    ahead = world.batches[reader.position] if reader.position < len(world.batches) else ()
    # All rows are of one object: from the first on that somebody holds, all wait.
    rows = sorted({*reader.parked, *ahead})
    first_held = min({*world.held} & {*rows}, default=world.rows)
    going = tuple(row for row in rows if row < first_held)
    parked = tuple(row for row in rows if row >= first_held)
    if not (going or ahead):
        return None
    has_waited, has_to_wait = bool({*going} & {*reader.parked}), bool({*parked} - {*reader.parked})
    reader = reader._replace(position=reader.position + bool(ahead), parked=parked)
    if not going:
        return _put(world, number, reader)
    shared = not (rules.none_waited and has_waited) and not (rules.none_parked and has_to_wait)
    decided = next((kept for kept in world.kept if shared and kept.rows == ahead), None)
    if decided is not None:  # it is let go of: nobody else asks for it
        world = world._replace(kept=tuple(kept for kept in world.kept if kept != decided))
        if decided.began >= reader.latest or not rules.later_only:
            return _give(world, number, reader, decided)
    world = world._replace(moment=world.moment + 1)
    return _put(world, number, reader._replace(turn=Turn(going, shared, world.moment)))


def _read(world: World, number: int, reader: Reader, turn: Turn) -> World:
    """Read the object back, and keep the decision for the other output."""
    moment = world.moment + 1
    decided = Decided(turn.rows, world.written, turn.began, moment)
    kept = (*world.kept, decided)[-KEPT_DECISIONS:] if turn.shared else world.kept
    return _give(world._replace(moment=moment, kept=kept), number, reader._replace(turn=None), decided)


def _give(world: World, number: int, reader: Reader, decided: Decided) -> World:
    held = tuple(row for row in decided.rows if row in world.held)
    came = (*reader.came, (decided.rows, decided.version))
    return _put(world._replace(given_though_held=held), number, reader._replace(latest=decided.ended, came=came))


def wrong(world: World) -> str | None:
    """Describe a forbidden state; None for an allowed one."""
    if world.given_though_held:
        return f"rows {world.given_though_held} go, and somebody holds them"
    for number, reader in enumerate(world.readers):
        rows = [row for came, _ in reader.came for row in came]
        versions = [version for _, version in reader.came]
        if versions != sorted(versions):
            return f"{number} gets an earlier reading after a later one"
        if rows != sorted({*rows}):
            return f"{number} gets a row twice, or behind a later one"
    return None


def unfinished(world: World) -> str | None:
    """Describe the fault of a state nothing follows."""
    for number, reader in enumerate(world.readers):
        if [row for came, _ in reader.came for row in came] != [*range(world.rows)]:
            return f"{number} never gets all rows"
    return None


def _put(world: World, number: int, reader: Reader) -> World:
    first, second = world.readers
    return world._replace(readers=(reader, second) if number == 0 else (first, reader))
