"""Plain JSON lines: one object for each change, with the key, the row before and the row after."""

from __future__ import annotations

from typing import Any

from eventlog.core.model import Change
from eventlog.core.schema import Table
from eventlog.core.who import who_fields
from eventlog.qlik.change_seq import time_of, utc
from eventlog.sinks.events.rows import RowEvent, TableRows, encode, json_field
from eventlog.sinks.events.settings import JsonLinesSettings
from eventlog.sinks.events.write import EventBytes


class JsonLinesTable:
    """Writes the lines of one table."""

    def __init__(self, table: Table, settings: JsonLinesSettings, *, who: bool = False) -> None:
        self.rows = TableRows(table, json_field)
        self._who = who

    def write(self, change: Change, event: RowEvent) -> EventBytes:
        key = None if event.key is None else encode(event.key)  # a table without a key has none
        return EventBytes(key=key, value=encode(record(change, event, who=self._who)))


def record(change: Change, event: RowEvent, *, who: bool = False) -> dict[str, Any]:
    """Return the object of a change.

    `id` is unique in the log and the same each time; with `who`, add who made the change.
    """
    transaction = change.transaction
    return {
        "id": change.event_id,
        "op": event.op,
        "schema": change.row.schema,
        "table": change.row.table,
        "time": time_text(change),
        "transaction": None if transaction is None else str(transaction.id),
        **(who_fields(change.who) if who else {}),
        "key": event.key,
        "before": event.before,
        "after": event.after,
    }


def time_text(change: Change) -> str | None:
    """Return the commit time, else the time of the change, in RFC 3339; None if unreadable."""
    moment = utc(time_of(change))
    if moment is None:
        return None
    return f"{moment.isoformat()}Z"
