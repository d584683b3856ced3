"""The transactions of a state: one at a time, and whoever asks inside of one sees what it has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from eventlog.sql.access import transaction
from eventlog.sql.dialect import dialect_of


class StateTransactions:
    """Those of one database. `fence` is called first in each that changes something: it stops who has been replaced."""

    def __init__(self, engine: Engine, what: str, fence: Callable[[Connection], None] = lambda _: None) -> None:
        self.engine = engine
        self.what = what
        self._fence = fence
        self._begin = dialect_of(engine).ddl.begin_ddl
        self._open: Connection | None = None

    @contextmanager
    def step(self) -> Iterator[Connection]:
        """Begin a writing transaction, durable when it ends; a nested one joins it."""
        if self._open is not None:
            yield self._open
            return
        with transaction(self.engine, self.what) as connection:
            if self._begin is not None:
                connection.exec_driver_sql(self._begin)
            self._fence(connection)
            self._open = connection
            try:
                yield connection
            finally:
                self._open = None

    @contextmanager
    def look(self) -> Iterator[Connection]:
        """Begin a reading transaction."""
        if self._open is not None:
            yield self._open
            return
        with transaction(self.engine, self.what) as connection:
            yield connection
