"""Rows that their receiver did not take: how often they were offered, and when they are offered again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.core.model import Position
from eventlog.sql.log import id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log


FAR: Final = 1.0
"""Seconds beyond the longest wait from which on a wait is none that somebody asked for."""


class Retry(Struct, frozen=True, kw_only=True, gc=False):
    """One row that waits for its next attempt, in `seconds` from now; the object as it is written in the row."""

    number: int
    table: str | None
    key: str | None
    attempts: int
    seconds: float


class Retries(Struct, frozen=True, kw_only=True):
    """All of them in one log."""

    rows: Sequence[Retry] = ()

    @property
    def waiting(self) -> list[Retry]:
        """Those whose time has not come."""
        return [row for row in self.rows if row.seconds > 0]

    @property
    def earliest(self) -> float | None:
        """Seconds until the first of them is offered again."""
        return min((row.seconds for row in self.waiting), default=None)

    @property
    def latest(self) -> float | None:
        """Seconds until none of them waits any more."""
        return max((row.seconds for row in self.waiting), default=None)

    @property
    def attempts(self) -> Mapping[Position, int]:
        """How often each was offered."""
        return {(row.number,): row.attempts for row in self.rows}


def read_retries(connection: Connection, log: Log, numbers: Sequence[int], longest: float | None = None) -> Retries:
    """What became of the rows that were offered before: those that somebody settled or sent off meanwhile are gone.

    None waits for more than the `longest` time from now on, where that is said: the database's clock was set back, or
    the configuration was changed.
    """
    if not numbers:
        return Retries()
    found = log.rows(connection, log.query("retried_rows"), {"ids": id_list(numbers)})
    rows = [_retry(*row) for row in found]
    far = [] if longest is None else [row.number for row in rows if row.seconds > longest + FAR]
    if not far:
        return Retries(rows=rows)
    connection.execute(log.query("attempts_sooner"), {"ids": id_list(far), "delay": longest})
    return read_retries(connection, log, numbers)


def _retry(number: Any, table: str | None, key: str | None, attempts: Any, seconds: Any) -> Retry:
    return Retry(number=int(number), table=table, key=key, attempts=int(attempts or 0), seconds=float(seconds))
