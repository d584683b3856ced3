"""Counting what is told of a transaction: which number each change has in it, and which is the last.

Only what is told counts, so there are no holes; and the last one is said of a change that is told, so there is an end. A
batch that cuts a transaction leaves the last told change of it for the next batch: whatever becomes of the events behind
the cut, a change is left then that can be the last one. Nothing overtakes what is left: later changes of its object wait
with it. See docs/decisions/0055.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from eventlog.core.model import Change, CutTransaction, Op
from eventlog.core.seams import Countable

MOST_LEFT_EVENTS: Final = 1_000
"""So many events at most are left for the next batch because their transactions go on, or as many as a batch has."""

MOST_UNFINISHED_NUMBERS: Final = 1000
"""Of so many transactions it is remembered how much was told of them before; of more only of those told last."""

Told = Mapping[int, int]
"""How many changes were told of each transaction whose last one was not."""

One = TypeVar("One", bound=Countable)


def counted(written: Sequence[One], told: Told, going_on: Collection[int]) -> tuple[list[One], dict[int, int]]:
    """What was written, each with its number in its transaction; and how much of which was told then.

    Transactions that are `going_on` have no last one here.
    """
    lasts = {one.transaction: number for number, one in enumerate(written)}
    counts = dict(told)
    found: list[One] = []
    for number, one in enumerate(written):
        transaction = one.transaction
        if transaction is None:
            found.append(one)
            continue
        place = counts.pop(transaction, 0) + 1
        last = lasts[transaction] == number and transaction not in going_on
        if not last:
            counts[transaction] = place
        found.append(one.counted(place, last))
    if len(counts) > MOST_UNFINISHED_NUMBERS:
        counts = dict([*counts.items()][-MOST_UNFINISHED_NUMBERS:])
    return found, counts


def told_after(told: Told, cut: Iterable[CutTransaction]) -> dict[int, int]:
    """How much was told of which transaction once a document is there that cuts these."""
    counts = dict(told)
    for part in cut:
        counts.pop(part.id, None)
        if not part.ends:
            counts[part.id] = part.after
    return counts


def left_over(
    changes: Iterable[Change], told: Sequence[Sequence[Countable]], going_on: Collection[int]
) -> list[Change]:
    """The changes that are left for the next batch: of each transaction that goes on the last told one.

    `told` is what was written for each output that counts. Later changes of their objects are left with them.
    """
    lasts = {
        position
        for written in told
        for position in {one.transaction: one.positions[-1] for one in written if one.transaction in going_on}.values()
    }
    found: list[Change] = []
    if not lasts:
        return found
    rows, tables, emptied = set(), set(), set()
    for change in changes:
        row, table = change.row, (change.row.schema, change.row.table)
        empties = change.op is Op.TRUNCATE
        if change.positions[-1] in lasts or row in rows or table in emptied or (empties and table in tables):
            found.append(change)
            rows.add(row)
            tables.add(table)
            if empties:
                emptied.add(table)
    return found
