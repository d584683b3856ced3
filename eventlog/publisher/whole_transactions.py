"""Whole transactions: all changes of one together, in the order in which transactions ended.

A transaction ends behind its last row, and who writes to a row that another transaction has changed
waits for the end of that one. So of two that changed the same object the one whose last row has the
smaller number was committed first. Where the server keeps the time of each commit, that is the
order. A conversion has no such times.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from eventlog.core.model import Change, Position

Placed = tuple[int, Change]
"""A change, and the part of the take that it is of."""


class GoingOn(Struct, frozen=True, kw_only=True):
    """Transactions that are not over with a take. What is left of those that go on `soon` waits."""

    every: frozenset[int]
    soon: frozenset[int]


def in_transactions(
    changes: Sequence[Placed], going_on: Collection[int], most: int
) -> tuple[list[Placed], set[Position]]:
    """Order the changes of whole transactions; return also the events for the next take.

    Those are of transactions continuing behind the take, and of later ones. With more than `most`
    events they are cut: nobody can hold a transaction of any length.
    """
    names = [_name(change) for _, change in changes]
    left = _find_left(changes, names, going_on)
    left_changes = [change for (_, change), name in zip(changes, names, strict=True) if name in left]
    positions = {position for change in left_changes for position in change.positions}
    if most and len(positions) > most:
        positions, left = set(), set()
    going = [placed for placed, name in zip(changes, names, strict=True) if name not in left]
    ends: Ends = {}
    for _, change in going:
        note_end(ends, change)
    transactions = [change.transaction for _, change in going]
    # By time only if all have one: with some without, the order would depend on who lacks it.
    timed = all(known is not None and known.time is not None for known in transactions)

    def end(placed: Placed) -> tuple[str, Position, Position]:
        change = placed[1]
        position, transaction = change.positions[-1], change.transaction
        if transaction is None:
            return "", position, position
        time = ""
        if timed and transaction.time:
            time = transaction.time.isoformat(timespec="microseconds")
        return time, ends[transaction.mark], position

    return sorted(going, key=end), positions


Ends = dict[int, Position]
"""The last row of each transaction that has a part in a change."""


def note_end(ends: Ends, change: Change) -> None:
    """Note that the transaction of a change does not end before it."""
    if change.transaction is not None:
        mark, position = change.transaction.mark, change.positions[-1]
        ends[mark] = max(position, ends.get(mark, position))


Left = set[int | Position]
"""Transactions by their marks, and changes of no known transaction by their positions."""


def _find_left(changes: Sequence[Placed], names: Sequence[int | Position], going_on: Collection[int]) -> Left:
    left: Left = set(going_on)
    # Until none is added: a transaction that is left because of one object has changed others, too.
    while True:
        before = len(left)
        objects = set()
        for (_, change), name in zip(changes, names, strict=True):
            if name in left:
                objects.add(change.row)
            elif change.row in objects:
                left.add(name)
        if len(left) == before:
            return left


def _name(change: Change) -> int | Position:
    if change.transaction is None:
        return change.positions[-1]
    return change.transaction.mark
