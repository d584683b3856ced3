"""Objects whose rows are passed over: from a held row of theirs on, or all of them while one is to be offered again.

The database leaves their rows out, because there may be a million of them. It compares names and keys as they are
written; a row that writes them in another way is left out here, and the database is told how that one writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from eventlog.core.model import RowId
from eventlog.core.rules.identity import Identities
from eventlog.sources.log.rows import OBJECT, Rows

EVER: Final = -(2**62)
"""A number below that of every row."""

MOST_SPELLINGS: Final = 100
"""Ways of writing one object that are remembered; whoever finds more of them writes its number behind a thousand zeros."""

Ahead = tuple[int, str | None, str | None]
"""From which number on rows are passed over, and the table_name and table_key of their object."""


class Passed:
    """What is passed over in this cycle, and how rows have written it so far."""

    def __init__(self) -> None:
        self._first: dict[RowId, int] = {}
        self._spelled: dict[RowId, set[tuple[str, str]]] = {}

    def __bool__(self) -> bool:
        return bool(self._first)

    def learn(self, ahead: Iterable[Ahead], identities: Identities) -> None:
        """Takes over what is passed over now; how objects are written is remembered of those that still are."""
        self._first = {}
        for number, table, key in ahead:
            row = identities.row_id(table, key)
            if row is None or table is None or key is None:
                continue
            self._first[row] = min(number, self._first.get(row, number))
            self._spelled.setdefault(row, set()).add((table, key))
        self._spelled = {row: spelled for row, spelled in self._spelled.items() if row in self._first}

    def copy(self) -> Passed:
        """The same, which stays as it is when this one learns."""
        other = Passed()
        other._first = dict(self._first)
        other._spelled = {row: set(spelled) for row, spelled in self._spelled.items()}
        return other

    def gone(self, later: Passed) -> frozenset[RowId]:
        """Objects of which rows are passed over here that are not in `later`."""
        return frozenset(row for row, first in self._first.items() if later._first.get(row, first + 1) > first)

    def told(self) -> str:
        """What the database is told: table_name, table_key and the first number that is passed over."""
        spelled = [(*one, self._first[row]) for row, several in self._spelled.items() for one in several]
        return msgspec.json.encode([one for one in spelled if _can_be_told(*one[:2])]).decode()

    def free(self, rows: Rows, identities: Identities) -> tuple[Rows, bool]:
        """The rows that are not passed over, and whether something is to be told of the others."""
        if not self._first:
            return rows, False
        kept: Rows = []
        news = False
        for row in rows:
            place = identities.row_id(*row[OBJECT])
            if place is None or int(row[0]) < self._first.get(place, int(row[0]) + 1):
                kept.append(row)
            elif len(spelled := self._spelled[place]) < MOST_SPELLINGS and row[OBJECT] not in spelled:
                spelled.add(row[OBJECT])
                news = news or _can_be_told(*row[OBJECT])
        return kept, news


def _can_be_told(table: str, key: str) -> bool:
    """Whether every database can read it as JSON; SQLite keeps any bytes as text."""
    if "\0" in table or "\0" in key:
        return False
    return table.isprintable() and key.isprintable()
