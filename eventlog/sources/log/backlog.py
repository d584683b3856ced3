"""What a log holds: how many rows carry each letter, and which has waited longest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from eventlog.core.model import Status
from eventlog.sources.log.unread import read_notes
from eventlog.sources.marks import UNREAD, Marks
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.sql.names import LogNames

_letters = {status.value: status for status in Status}


class Backlog(Struct, frozen=True, kw_only=True):
    """Rows by status; `other` are letters that the publisher neither reads nor writes, such as 'n' or 'X'."""

    by_status: Mapping[Status, int]
    other: Mapping[str, int]
    oldest: int | None = None
    oldest_time: str | None = None

    @property
    def waiting(self) -> int:
        return self.by_status[Status.NEW]


def unread_tables(engine: Engine, names: LogNames) -> dict[str, str]:
    """Tables that the publisher may not read, as far as it has noticed, and what the database said of them."""
    log = Log(engine, names)
    with log.transaction() as connection:
        return read_notes(Marks(log).get(connection, UNREAD))


def backlog(log: Log) -> Backlog:
    """Counts the log as it is now; reads every row, so it is for people and not for every cycle."""
    with log.transaction() as connection:
        counts = log.rows(connection, log.query("count_by_status"))
        oldest = log.rows(connection, log.query("oldest_waiting"))
    by_status = dict.fromkeys(Status, 0)
    other: dict[str, int] = {}
    for letter, count in counts:
        if letter in _letters:
            by_status[_letters[letter]] = count
        else:
            other["NULL" if letter is None else str(letter)] = count
    number, time = oldest[0] if oldest else (None, None)
    return Backlog(by_status=by_status, other=other, oldest=number, oldest_time=time)
