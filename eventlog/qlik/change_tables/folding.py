"""Changes of a table folded into the least that a copy of it has to do.

Doing the steps in their order gives the rows that the changes one by one would give.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from eventlog.core.schema import WHOLE_ROW

Key = tuple[Any, ...]
Values = dict[str, Any]


class ChangeRow(Struct, frozen=True, kw_only=True):
    """One row of a change table: its letter, its data, and the columns that it is about."""

    oper: str
    values: Values
    changed: frozenset[str]


class NetRow(Struct, kw_only=True):
    """What becomes of one row: it goes, it is made anew from the values, or only these values
    change in it.
    """

    values: Values | None
    whole: bool = False


class Nets(Struct, frozen=True, kw_only=True):
    """What becomes of rows that have nothing to do with each other."""

    rows: dict[Key, NetRow]


class Moved(Struct, frozen=True, kw_only=True):
    """A row gets another key, and new values with it."""

    former: Key
    values: Values


class Emptied(Struct, frozen=True, kw_only=True):
    """All rows go."""


class CountedRow(Struct, kw_only=True):
    """How many rows more there are of one text, or fewer."""

    values: Values
    more: int = 0


class RowCounts(Struct, frozen=True, kw_only=True):
    """What becomes of rows that have no key: equal ones are counted."""

    rows: dict[Key, CountedRow]


Step = Nets | Moved | Emptied


def fold(rows: Iterable[ChangeRow], key: tuple[str, ...]) -> Iterator[Step]:
    """Fold rows in order of change_seq, before images first, to steps."""
    nets: dict[Key, NetRow] = {}
    before: Values | None = None
    # A before image comes right before its row, as `U` alone cannot tell the former key.
    for row in rows:
        if row.oper == "B":
            before = row.values
            continue
        moved = row.oper == "U" and not row.changed.isdisjoint(key) and before is not None
        if row.oper == "T" or moved:
            # What was folded so far must be done first: the step concerns rows that it changes too.
            if nets:
                yield Nets(rows=nets)
                nets = {}
            yield _move_row(row, before or {}, key) if moved else Emptied()
        else:
            _enter(nets, row, key)
        before = None
    if nets:
        yield Nets(rows=nets)


def count(rows: Iterable[ChangeRow]) -> RowCounts:
    """Count rows without a key, in any order."""
    counted: dict[Key, CountedRow] = {}
    for row in rows:
        counted_row = counted.setdefault((row.values[WHOLE_ROW],), CountedRow(values=row.values))
        counted_row.more += {"I": 1, "D": -1}.get(row.oper, 0)
    return RowCounts(rows=counted)


def _move_row(row: ChangeRow, before: Values, key: tuple[str, ...]) -> Moved:
    values = {name: row.values[name] for name in row.values if name in row.changed}
    return Moved(former=tuple(before[name] for name in key), values=values)


def _enter(nets: dict[Key, NetRow], row: ChangeRow, key: tuple[str, ...]) -> None:
    """Adds what a row says to what is known of its key already."""
    identity = tuple(row.values[name] for name in key)
    former = nets.get(identity)
    if row.oper == "D":
        nets[identity] = NetRow(values=None)
    elif former is not None and former.values is not None:
        former.values.update({name: row.values[name] for name in row.changed if name in row.values})
    else:
        # What is inserted, or comes after a delete, owes nothing to what was there before.
        whole = row.oper == "I" or former is not None
        known = row.values
        if row.oper != "I":
            # The other columns of an update are NULL only because nobody gave them.
            given = row.changed.union(key)
            known = {name: value for name, value in known.items() if name in given}
        nets[identity] = NetRow(values=dict(known), whole=whole)
