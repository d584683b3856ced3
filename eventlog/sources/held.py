"""Rows that somebody holds: later rows of their objects wait behind them, for order within an object is promised."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from eventlog.marks import HELD, HOLDING, Marks, read_runs, write_runs
from eventlog.model import RowId
from eventlog.rules.identity import Identities
from eventlog.sources.logrows import OBJECT, Rows
from eventlog.sql.log import id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log

Held = list[tuple[Any, ...]]
"""record_id, table_name and table_key of held rows."""

NEVER_HELD: Final = "-"
"""Stands for the mark `holding` of a log of which no row was ever held."""


def note_held(connection: Connection, log: Log) -> None:
    """Keeps the numbers of all held rows in a mark, so that a cycle need not look for them, and lets readers notice."""
    Marks(log).set(connection, HOLDING, secrets.token_hex(8))
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

    def free(self, connection: Connection, rows: Rows, identities: Identities) -> Rows:
        """The rows that do not come after a held one of their object."""
        if not rows or not self.mark:  # there may be very many
            return rows
        return not_behind(rows, read_held(connection, self._log, self.mark), identities)

    def stand(self, connection: Connection) -> bool:
        """Whether nobody has held or released rows since the marks were read.

        Else one statement may have left out a held row that another, which was to look for it, did not know of.
        """
        return (Marks(self._log).get(connection, HOLDING) or NEVER_HELD) == self.stamp


def read_held(connection: Connection, log: Log, mark: str | None) -> Held:
    """The held rows that still wait."""
    if not mark:
        return []
    return log.rows(connection, log.query("held_rows"), {"ids": id_list(read_runs(mark))})


def note_behind(connection: Connection, log: Log, numbers: Iterable[int]) -> None:
    """Records of rows that wait behind these ones, and have no record yet, which one."""
    connection.execute(log.query("note_behind"), {"ids": id_list(sorted(set(numbers)))})


def not_behind(rows: Rows, held: Held, identities: Identities) -> Rows:
    """The rows without those that come after a held row of their object, however they write its key."""
    first: dict[RowId, int] = {}
    for number, table, key in held:
        row = identities.row_id(table, key)
        if row is not None:
            first[row] = min(int(number), first.get(row, int(number)))
    return [row for row in rows if not _is_behind(row, first, identities)]


def _is_behind(row: tuple[Any, ...], first: dict[RowId, int], identities: Identities) -> bool:
    place = identities.row_id(*row[OBJECT])
    return place is not None and place in first and int(row[0]) > first[place]
