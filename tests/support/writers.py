"""Rows of a log that several transactions wrote at the same time, one with the rows of others between its own."""

from __future__ import annotations

from random import Random

from eventlog.core.model import Event, Kind, Transaction
from eventlog.sql.names import STANDARD, TRANSACTION
from tests.support.converting import LogRow, row_of

COLUMNS = (*STANDARD, TRANSACTION)


class Writers:
    """Three that write at the same time: who has changed an object keeps others from it until its transaction ends."""

    def __init__(self, seed: int, *, unknown: float = 0.1) -> None:
        self.dice = Random(seed)
        self.events: list[Event] = []
        self._unknown = unknown
        self._free = set(range(8))
        self._mine: list[set[int]] = [set(), set(), set()]
        self._numbers = [101, 102, 103]

    def write(self, rows: int) -> list[Event]:
        """Make rows of a log in order; now and then one lacks its transaction."""
        while len(self.events) < rows:
            writer = self.dice.randrange(3)
            theirs = self._mine[writer]
            if self.dice.random() < 0.25 or not self._free | theirs:
                self._free |= theirs
                theirs.clear()
                self._numbers[writer] = max(self._numbers) + 1
                continue
            key = self.dice.choice(sorted(self._free | theirs))
            self._free.discard(key)
            theirs.add(key)
            self.events.append(self._event(key, self._numbers[writer]))
        return self.events

    def _event(self, key: int, transaction: int) -> Event:
        dice, number = self.dice, len(self.events)
        kind = dice.choice([Kind.INSERT_FIELD, Kind.UPDATE_FIELD, Kind.REPLACE_FIELD, Kind.DELETE_ROW])
        is_delete = kind is Kind.DELETE_ROW
        return Event(
            position=(number * 3 + dice.randrange(1, 4),),
            kind=kind,
            table="usr",
            key=f"idu={key}",
            column=None if is_delete else dice.choices(["fname", "lname", "idu", "nothing"], [9, 9, 1, 1])[0],
            old="a" if kind is Kind.UPDATE_FIELD else None,
            new=None if is_delete else f"{number}",
            time=f"2026-01-01 00:00:{dice.randrange(60):02d}",
            transaction=None if dice.random() < self._unknown else Transaction(id=transaction),
        )


def rows_of(events: list[Event]) -> list[LogRow]:
    return [row_of(one) | {TRANSACTION: one.transaction and str(one.transaction.id)} for one in events]
