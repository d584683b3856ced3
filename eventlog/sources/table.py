"""The log source: waiting rows of an event log table, handed out in batches and marked with what became of them.

A row is picked by its status and never by its number: record_ids are drawn before commit, so a lower one may appear
after a higher one was read. For the same reason nothing is marked that is not in the batch, however the batch's
numbers lie.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.errors import SourceError
from eventlog.marks import IN_HAND, Marks, read_runs, write_runs
from eventlog.model import Event, Outcome
from eventlog.rules.identity import Identities
from eventlog.schema import Catalog
from eventlog.seams import Batch
from eventlog.sources.settlement import settle
from eventlog.sql.log import ALL, Log, id_list
from eventlog.sql.names import LogNames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Engine

LOOKAHEAD: Final = 32
"""Rows read past the limit to see whether the last object goes on; four times as many each time that it still does."""

_Rows = list[tuple[Any, ...]]
_OBJECT = slice(2, 4)
"""Where table_name and table_key stand in the rows."""


class LogSettings(Struct, frozen=True, kw_only=True):
    """How a log is read and marked.

    `clock` is SQL for the time that event_time is compared with (default: the database's, in UTC); `retry_delay` is
    how many seconds rows wait after their receiver asked for another time.
    """

    handle_future_events: bool = False
    delete_from_log: bool = False
    clock: str | None = None
    retry_delay: float = 0.0


class LogSource:
    """Reads and settles the log `names`. InstallError when the log, one of its columns or a companion is missing."""

    def __init__(
        self,
        engine: Engine,
        names: LogNames | None = None,
        catalog: Catalog | None = None,
        settings: LogSettings | None = None,
    ) -> None:
        self.settings = settings or LogSettings()
        self.log = Log(engine, names or LogNames(), clock=self.settings.clock)
        self.marks = Marks(self.log)
        self._catalog = catalog
        self.log.check()

    def read(self, limit: int) -> Batch:
        """The batch in hand if there is one, else the next rows, noted durably before they are handed out."""
        with self._transaction() as connection:
            noted = self.marks.get(connection, IN_HAND)
            events = self._noted(connection, read_runs(noted)) if noted else []
            if events:
                return Batch(events=events, repeated=True)
            events = [event_of(row) for row in self._next(connection, limit)]
            if events:
                self.marks.set(connection, IN_HAND, write_runs([event.position[0] for event in events]))
            elif noted:
                self.marks.clear(connection, IN_HAND)
            return Batch(events=events, now=self._now(connection))

    def settle(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Marks, deletes and records in one transaction, and lets go of the batch; rows with status NEW stay N."""
        if not batch.events:
            return
        with self._transaction() as connection:
            settle(connection, self.log, outcomes, self.settings)
            self.marks.clear(connection, IN_HAND)

    def _next(self, connection: Connection, limit: int) -> _Rows:
        """The first `limit` rows, and those after them that belong to the object of the last."""
        if limit <= 0:
            return self._waiting(connection, ALL)
        ahead = LOOKAHEAD
        while True:
            rows = self._waiting(connection, limit + ahead)
            end = _end_of_object(rows, limit, Identities(self._catalog))
            if end < len(rows) or len(rows) < limit + ahead:
                return rows[:end]
            ahead *= 4

    def _waiting(self, connection: Connection, limit: int) -> _Rows:
        future = self.settings.handle_future_events
        among, order = ("among_due", "order_by_time") if future else ("among_all", "order_by_number")
        return self.log.rows(connection, self.log.query("waiting_rows", among=among, order=order), {"limit": limit})

    def _noted(self, connection: Connection, numbers: Sequence[int]) -> list[Event]:
        """The events of the batch in hand in the order in which they were handed out, without those that are gone."""
        query = self.log.query("waiting_rows", among="among_noted", order="order_by_number")
        rows = self.log.rows(connection, query, {"ids": id_list(numbers), "limit": ALL})
        events = {event.position[0]: event for event in map(event_of, rows)}
        return [events[number] for number in numbers if number in events]

    def _now(self, connection: Connection) -> dt.datetime | None:
        """The database's clock, where events are held until their time; read after them, so that none is ahead of it."""
        if not self.settings.handle_future_events:
            return None
        now = connection.execute(self.log.query("clock_now")).scalar_one()
        return now if isinstance(now, dt.datetime) else dt.datetime.fromisoformat(str(now))

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """A transaction; when it fails because the log has lost a column meanwhile, the error says so."""
        try:
            with self.log.transaction() as connection:
                yield connection
        except SourceError:
            self.log.check()
            raise


def _end_of_object(rows: _Rows, limit: int, identities: Identities) -> int:
    """Where the object of row number `limit` ends among the neighbouring rows."""
    if len(rows) <= limit:
        return len(rows)
    last = identities.row_id(*rows[limit - 1][_OBJECT])
    end = limit
    while last is not None and end < len(rows) and identities.row_id(*rows[end][_OBJECT]) == last:
        end += 1
    return end


def event_of(row: tuple[Any, ...]) -> Event:
    """A row of `waiting_rows`; nothing in it is judged here."""
    number, kind, table, key, column, old, new, time, perpetrator = row
    return Event(
        position=(int(number),),
        kind=kind,
        table=table,
        key=key,
        column=column,
        old=old,
        new=new,
        time=time,
        perpetrator=perpetrator,
    )
