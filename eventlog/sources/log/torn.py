"""Where a batch may end: not within a change, whose field rows may lie among those of others.

Sessions that write at the same time draw their numbers in turn, so the rows of one change need not be neighbours.
"""

from __future__ import annotations

from collections.abc import Collection
from operator import itemgetter
from typing import Any, Final

from eventlog.core.rules.meaning import MEANING
from eventlog.sources.log.rows import OBJECT, TRANSACTION_COLUMNS, Rows

NEAR_ROWS: Final = 32
"""So many rows behind the end of a batch are looked at for those of a change that has rows as near before it."""

_kind, _column, _transaction = itemgetter(1), itemgetter(4), itemgetter(11)


def torn_places(rows: Rows, end: int) -> set[int]:
    """Places before `end` of field rows whose change goes on behind it, among rows of others; empty where that is all.

    Where a change ends is what the rules say of these rows: its object's next one has another kind, or a column again.
    """
    behind: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows[end : end + NEAR_ROWS]:
        behind.setdefault(row[OBJECT], row)
    near = {row[OBJECT] for row in rows[max(0, end - NEAR_ROWS) : end]}
    objects = {key: row for key, row in behind.items() if key in near and _column(row) is not None}
    if not objects:
        return set()
    last: dict[tuple[Any, ...], dict[str, int]] = {key: {} for key in objects}
    kinds: dict[tuple[Any, ...], object] = {}
    for place, row in enumerate(rows[:end]):
        key = row[OBJECT]
        if key in objects:
            if _begins(row, last[key], kinds.get(key)):
                last[key] = {}
            last[key][_column(row)] = place
            kinds[key] = _said_by(row)
    torn: set[int] = set()
    for key, row in objects.items():
        if not _begins(row, last[key], kinds[key]):
            torn.update(last[key].values())
    return torn if len(torn) < end else set()


def _begins(row: tuple[Any, ...], columns: Collection[str | None], said: object) -> bool:
    """Whether a row is of another change than the one that has these columns."""
    return _column(row) is None or None in columns or _column(row) in columns or _said_by(row) != said


def _said_by(row: tuple[Any, ...]) -> tuple[object, object]:
    """What all rows of a change have in common: what they do, and the transaction where it is known."""
    meaning = MEANING.get(_kind(row))
    return meaning and meaning.op, _transaction(row) if len(row) == TRANSACTION_COLUMNS else None
