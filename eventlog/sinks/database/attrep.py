"""Control tables that tell operators of a task: its status, its history, tables that are left out,
rows that were refused.

They have the columns that readers of the product's tables know. What eventlog has no facts for is
NULL; times are UTC.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, MetaData, Table

from eventlog.sinks.database.settings import ControlTable

SLOT_SECONDS: Final = 300
RUNNING: Final = "CHANGE PROCESSING"
ENDED: Final = "NOT RUNNING"
Whose = tuple[str, str]
"""The owner and the name of a source table."""


def utc_now() -> dt.datetime:
    """Return the current time in UTC, without a zone as the tables store it."""
    return dt.datetime.now(dt.UTC).replace(tzinfo=None)


class Attrep:
    """Those of the tables that were chosen, for one task."""

    def __init__(
        self,
        chosen: Collection[ControlTable],
        tables: MetaData,
        whose: dict[str, str],
        now: Callable[[], dt.datetime] = utc_now,
    ) -> None:
        self._whose = whose
        self._now = now
        self._status = _status(tables) if "status" in chosen else None
        self._history = _history(tables) if "history" in chosen else None
        self._suspended = _define_suspended(tables) if "suspended_tables" in chosen else None
        self._exceptions = _exceptions(tables) if "apply_exceptions" in chosen else None

    def status(self, connection: Connection, status: str, applied: dt.datetime | None) -> None:
        """Says what the task does, and the time of the last change that is there."""
        if self._status is not None:
            values: dict[str, Any] = {"task_status": status, "status_time": self._now()}
            if applied is not None:
                values["source_timestamp_applied"] = applied
            self._put_row(connection, self._status, self._whose, values)

    def history(self, connection: Connection, rows: int, applied: dt.datetime | None) -> None:
        """Counts the rows in the range of time that it is."""
        if self._history is None:
            return
        now = self._now()
        # The beginning of the range, counted from the year 1 so that all tasks have the same
        # ones.
        slot = now - (now - dt.datetime.min) % dt.timedelta(seconds=SLOT_SECONDS)
        which = {**self._whose, "timeslot_type": RUNNING, "timeslot": slot}
        columns = self._history.c
        same = [columns[name] == which[name] for name in which]
        former = connection.execute(self._history.select().where(*same)).first()
        if former is not None:
            rows += former.timeslot_records
        values: dict[str, Any] = {"timeslot_duration": SLOT_SECONDS, "timeslot_records": rows}
        if applied is not None:
            values["timeslot_latency"] = max(0, int((now - applied).total_seconds()))
        self._put_row(connection, self._history, which, values)

    def suspend(self, connection: Connection, table: Whose, why: str) -> None:
        """Says why a table takes no rows; the time is that of the first which it did not take."""
        if self._suspended is not None:
            which = self._which(table)
            columns = self._suspended.c
            query = self._suspended.select().where(*[columns[name] == which[name] for name in which])
            if connection.execute(query).first() is None:
                values = {"suspend_reason": why, "suspend_timestamp": self._now()}
                connection.execute(self._suspended.insert().values(**which, **values))

    def resume(self, connection: Connection, table: Whose) -> None:
        """Says that a table takes rows."""
        if self._suspended is not None:
            which = self._which(table)
            columns = self._suspended.c
            same = [columns[name] == which[name] for name in which]
            connection.execute(self._suspended.delete().where(*same))

    def exceptions(self, connection: Connection, refused: Iterable[tuple[Whose, str]]) -> None:
        """Adds the rows that were refused, and why."""
        rows = [
            # Upper case, as readers of this one table know it.
            {
                "TASK_NAME": self._whose["task_name"],
                "TABLE_OWNER": owner or NOBODY,
                "TABLE_NAME": name,
                "ERROR_TIME": self._now(),
                "ERROR": why,
            }
            for (owner, name), why in refused
        ]
        if self._exceptions is not None and rows:
            connection.execute(self._exceptions.insert(), rows)

    def _which(self, table: Whose) -> dict[str, str]:
        owner, name = table
        return {**self._whose, "table_owner": owner or NOBODY, "table_name": name}

    def _put_row(
        self,
        connection: Connection,
        table: Table,
        which: dict[str, Any],
        values: dict[str, Any],
    ) -> None:
        """Changes the row, or adds it."""
        where = [table.c[name] == which[name] for name in which]
        # Not every database has one statement for both.
        if not connection.execute(table.update().where(*where).values(**values)).rowcount:
            connection.execute(table.insert().values(**which, **values))


NOBODY: Final = " "
"""The owner of a table without a schema: Oracle takes the empty string for NULL."""


def _names(*names: str) -> list[Any]:
    return [sa.Column(name, sa.String(128)) for name in names]


def _status(tables: MetaData) -> Table:
    return sa.Table(
        "attrep_status",
        tables,
        *_names("server_name", "task_name", "task_status"),
        sa.Column("status_time", sa.DateTime()),
        *[sa.Column(name, sa.BigInteger()) for name in ("pending_changes", "disk_swap_size", "task_memory")],
        sa.Column("source_current_position", sa.String(128)),
        sa.Column("source_current_timestamp", sa.DateTime()),
        sa.Column("source_tail_position", sa.String(128)),
        sa.Column("source_tail_timestamp", sa.DateTime()),
        sa.Column("source_timestamp_applied", sa.DateTime()),
    )


def _history(tables: MetaData) -> Table:
    counts = ("timeslot_duration", "timeslot_latency", "timeslot_records", "timeslot_volume")
    return sa.Table(
        "attrep_history",
        tables,
        *_names("server_name", "task_name", "timeslot_type"),
        sa.Column("timeslot", sa.DateTime()),
        *[sa.Column(name, sa.BigInteger()) for name in counts],
    )


def _define_suspended(tables: MetaData) -> Table:
    return sa.Table(
        "attrep_suspended_tables",
        tables,
        *_names("server_name", "task_name", "table_owner", "table_name"),
        sa.Column("suspend_reason", sa.Text()),
        sa.Column("suspend_timestamp", sa.DateTime()),
    )


def _exceptions(tables: MetaData) -> Table:
    return sa.Table(
        "attrep_apply_exceptions",
        tables,
        *_names("TASK_NAME", "TABLE_OWNER", "TABLE_NAME"),
        sa.Column("ERROR_TIME", sa.DateTime()),
        *[sa.Column(name, sa.Text()) for name in ("STATEMENT", "ERROR")],
    )
