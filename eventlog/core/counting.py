"""Counting what is published of a transaction: which number each change has in it, and which is
the last.

Only what is published counts, so there are no holes; and one that is published is called the last,
so there is an end. A batch that cuts a transaction leaves the last such change of it for the next
batch: whatever becomes of the events behind the cut, a change is left then that can be the last
one. Nothing overtakes what is left: later changes of its object wait with it. See
docs/decisions/0055.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from eventlog.core.model import Change, Count, CutTransaction, Op, Position
from eventlog.core.seams import Countable

MOST_LEFT_EVENTS: Final = 1_000
"""At most so many events are left because their transactions go on, or as many as a batch has."""

MOST_UNFINISHED_NUMBERS: Final = 1000
"""So many transactions are remembered with how much was published, the latest ones."""

TransactionCounts = Mapping[int, Count]
"""How many changes were published of each transaction whose last one was not."""

UNKNOWN_TABLE: Final = ""
"""Stands for the tables of changes that were counted without them."""

Written = TypeVar("Written", bound=Countable)


def count_written(
    written: Sequence[Written],
    before: TransactionCounts,
    going_on: Collection[int],
) -> tuple[list[Written], dict[int, Count]]:
    """Give each written change its number in its transaction; return also how much of each is published
    then.

    Transactions that are `going_on` have no last change here. Changes with a `collection` are counted
    in each of these too.
    """
    number_of = _number_change
    if written and hasattr(written[0], "collection"):
        number_of = _number_by_table
    # Later ones overwrite earlier ones: what stays is the last place of each transaction.
    lasts = {change.transaction: index for index, change in enumerate(written)}
    counts = dict(before)
    numbered: list[Written] = []
    for index, change in enumerate(written):
        transaction = change.transaction
        if transaction is None:
            numbered.append(change)
            continue
        last = lasts[transaction] == index and transaction not in going_on
        # Taken out and put in again, so that those published last stand last.
        count, with_number = number_of(change, counts.pop(transaction, 0), last)
        if not last:
            counts[transaction] = count
        numbered.append(with_number)
    if len(counts) > MOST_UNFINISHED_NUMBERS:
        counts = dict([*counts.items()][-MOST_UNFINISHED_NUMBERS:])
    return numbered, counts


def total_of(count: Count) -> int:
    """Sum the changes of all tables."""
    return count if isinstance(count, int) else sum(count.values())


def _number_change(change: Any, former: Count, last: bool) -> tuple[Count, Any]:
    number = total_of(former) + 1
    return number, change.counted(number, last)


def _number_by_table(change: Any, former: Count, last: bool) -> tuple[Count, Any]:
    # An output whose format did not count by table until now has one number.
    if isinstance(former, int):
        tables = {UNKNOWN_TABLE: former} if former else {}
    else:
        tables = dict(former)
    tables[change.collection] = tables.get(change.collection, 0) + 1
    return tables, change.count_by_table(tables, last)


def counts_after(before: TransactionCounts, cut: Iterable[CutTransaction]) -> dict[int, Count]:
    """Return the counts of each transaction after a document that cuts these."""
    counts = dict(before)
    for part in cut:
        counts.pop(part.id, None)
        if not part.ends:
            counts[part.id] = part.after
    return counts


def find_left_over(
    changes: Iterable[Change], written_by_output: Sequence[Sequence[Countable]], going_on: Collection[int]
) -> list[Change]:
    """Find the changes left for the next batch: the last published one of each open transaction.

    `written_by_output` has the changes written for each output that counts. Later changes of the
    same objects are left with them.
    """
    lasts: set[Position] = set()
    for written in written_by_output:
        last_of = {item.transaction: item.positions[-1] for item in written if item.transaction in going_on}
        lasts.update(last_of.values())
    left: list[Change] = []
    if not lasts:
        return left
    # What is left holds back later changes of its object; a TRUNCATE is about all objects of its
    # table, so it waits for each of them, and each waits for it.
    rows, tables, emptied = set(), set(), set()
    for change in changes:
        row, table = change.row, (change.row.schema, change.row.table)
        empties = change.op is Op.TRUNCATE
        is_last = change.positions[-1] in lasts
        if is_last or row in rows or table in emptied or (empties and table in tables):
            left.append(change)
            rows.add(row)
            tables.add(table)
            if empties:
                emptied.add(table)
    return left
