"""Rows that somebody holds: later rows of their objects wait behind them, for order within an object is promised."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from eventlog.sources.marks import HELD, HOLDING, Marks, read_runs, write_runs
from eventlog.sql.log import id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log

Held = list[tuple[int, str | None, str | None]]
"""record_id, table_name and table_key of held rows."""

MOST_NOTED: Final = 10_000
"""Of so many rows that have waited longest it is recorded which row they wait behind."""

NEVER_HELD: Final = "-"
"""Stands for the mark `holding` of a log of which no row was ever held."""


def note_held(connection: Connection, log: Log) -> None:
    """Keeps the numbers of all held rows in a mark, so that a cycle need not look for them, and lets readers notice."""
    note_change(connection, log)
    numbers = [int(number) for (number,) in log.rows(connection, log.query("held_numbers"))]
    if numbers:
        Marks(log).set(connection, HELD, write_runs(numbers))
    else:
        Marks(log).clear(connection, HELD)


class Holds:
    """What of a log was held when its marks were read, and whether that is still so."""

    def __init__(self, log: Log) -> None:
        self.mark: str | None = None
        self.stamp = NEVER_HELD
        self._log = log

    def learn(self, marks: Mapping[str, str]) -> None:
        """Takes over what the marks say."""
        self.mark, self.stamp = marks.get(HELD), marks.get(HOLDING, NEVER_HELD)

    def numbers(self) -> list[int]:
        """The record_ids that are held."""
        return read_runs(self.mark or "")

    def rows(self, connection: Connection) -> Held:
        """The held rows that still wait."""
        return read_held(connection, self._log, self.mark)

    def stand(self, connection: Connection) -> bool:
        """Whether nobody has held or released rows since the marks were read.

        Else one statement may have left out a held row that another, which was to look for it, did not know of.
        """
        return stamp_of(connection, self._log) == self.stamp


def stamp_of(connection: Connection, log: Log) -> str:
    """What changes each time that rows are held, released or requeued."""
    return Marks(log).get(connection, HOLDING) or NEVER_HELD


def note_change(connection: Connection, log: Log) -> None:
    """Lets readers notice that what they know of rows is old."""
    Marks(log).set(connection, HOLDING, secrets.token_hex(8))


def read_held(connection: Connection, log: Log, mark: str | None) -> Held:
    """The held rows that still wait."""
    if not mark:
        return []
    found = log.rows(connection, log.query("held_rows"), {"ids": id_list(read_runs(mark))})
    return [(int(number), table, key) for number, table, key in found]


def note_behind(connection: Connection, log: Log, numbers: Iterable[int]) -> None:
    """Records of rows that wait behind these ones, and have no record yet, which one; of others `explain` can tell."""
    connection.execute(log.query("note_behind"), {"ids": id_list(sorted(set(numbers))), "most": MOST_NOTED})
