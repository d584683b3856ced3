"""What a full load tells, and how fast it may be.

Stretches are kept back while too many rows wait in the log, for all jobs of a load together, and once it is to end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event, Lock
from typing import Final

from msgspec import Struct
from sqlalchemy import Engine

from eventlog.core.schema import Table
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes
from eventlog.sql.triggers import installed, plan
from eventlog.sql.triggers.clauses import logged_name

CHUNK_ROWS: Final = 10_000
"""Rows of a transaction, unless somebody says otherwise."""


class Load(Struct, frozen=True, kw_only=True):
    """What is to be told: a class under the name that the log has for it, the rows for which the conditions hold.

    `tracked` says that the class has triggers of this log; `when` is the condition that they have, `where` one more.
    `only` is the one output that is told, if not all are.
    """

    table: Table
    called: str
    tracked: bool = False
    when: str | None = None
    where: str | None = None
    only: str = ""

    @property
    def mark(self) -> str:
        """What its marks are called after."""
        return f"{self.called} for {self.only}" if self.only else self.called


class RefreshPace(Struct, frozen=True, kw_only=True):
    """How many rows a transaction writes, and how many may wait in the log when it begins; 0 is no bound."""

    chunk: int = CHUNK_ROWS
    backlog: int = 0


def loads(
    engine: Engine, names: LogNames, tables: Sequence[str], schema: str | None, where: str | None, only: str = ""
) -> list[Load]:
    """The loads of classes by their names, for one output `only` if it is said; InstallError where a table is missing or
    has no key.
    """
    found = []
    with engine.connect() as connection:
        options = {trigger.marker.table: trigger.marker.options for trigger in installed(connection, names)}
        classes = Classes(connection, schema)
        for named in classes.named(tables):
            asked = options.get(named.whole)
            table = classes.one(named.whole, (), asked.key) if asked is not None and asked.key else named
            found.append(
                Load(
                    table=table,
                    called=logged_name(plan(table), names),
                    tracked=asked is not None,
                    when=asked.when if asked is not None else None,
                    where=where,
                    only=only,
                )
            )
    return found


LOOK_SECONDS: Final = 1.0
"""Seconds between two looks at a backlog that is too long."""


class Gate:
    """Who has entered may write one stretch and then leaves. `waiting` counts rows that wait, up to so many."""

    def __init__(
        self, pace: RefreshPace, waiting: Callable[[int], int], pause: Callable[[float], object] | None = None
    ) -> None:
        self._pace = pace
        self._waiting = waiting
        self._closed = Event()
        self._pause = pause or self._closed.wait
        self._turn = Lock()
        self._count = Lock()
        self._inside = 0

    def close(self) -> None:
        """Lets nobody enter from now on."""
        self._closed.set()

    def enter(self) -> bool:
        """Whether a stretch may be written; returns when few enough rows wait or are being written by others."""
        most = self._pace.backlog
        with self._turn:
            while most and not self._closed.is_set() and self._ahead(most) >= most:
                self._pause(LOOK_SECONDS)
            if self._closed.is_set():
                return False
            with self._count:
                self._inside += 1
        return True

    def leave(self) -> None:
        """What was written is counted with the rows that wait."""
        with self._count:
            self._inside -= 1

    def _ahead(self, most: int) -> int:
        writing = self._inside * self._pace.chunk  # before the log is looked at, so that no stretch escapes both
        return writing + self._waiting(most)
