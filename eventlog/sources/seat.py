"""One publisher a log: who has the seat publishes, everybody else stands by.

Law: whoever loses the seat settles nothing more. The lock of a session (or a lease, where sessions have no locks)
decides who may sit down; the mark that he writes then is checked in every transaction of the others, so that one who
has not noticed yet is stopped by the database.
"""

from __future__ import annotations

import os
import secrets
import socket
from typing import TYPE_CHECKING

from eventlog.errors import OccupiedError
from eventlog.sources.lease import LeaseKeeper
from eventlog.sql.access import in_our_words

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log


class Seat:
    """The seat at one log, as one process sees it. `lease` is in seconds, where the database needs one."""

    def __init__(self, log: Log, lease: float) -> None:
        self.log = log
        self.lease = lease
        self.token = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(8)}".replace(" ", "_")
        self.taken = False
        self._session: Connection | None = None
        self._keeper: LeaseKeeper | None = None

    @property
    def session(self) -> Connection:
        """The session that holds the lock; what else is asked in it costs no transaction."""
        if self._session is None:
            with in_our_words(self.log.engine, f"The event log {self.log.name}"):
                self._session = self.log.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        return self._session

    def take(self) -> bool:
        """Whether this process has the seat now."""
        if not self.taken and self._lock() and self._enter():
            self.taken = True
            if not self._locks_sessions:
                self._keeper = LeaseKeeper(self.lease / 3, self._renew)
        return self.taken

    def confirm(self, mark: str | None) -> None:
        """OccupiedError when the mark, as it was read, is somebody else's."""
        if self.taken and mark is not None and mark.endswith(f" {self.token}"):
            return
        self._lose()

    def assure(self, connection: Connection) -> None:
        """OccupiedError when somebody else has the seat; nobody takes it before the caller's transaction ends."""
        if not self.taken or not self._touch(connection):
            self._lose()

    def mark(self, connection: Connection, name: str, value: str, *, soon: bool = False) -> None:
        """Makes or replaces a mark if this process still has the seat, else OccupiedError.

        `soon` lets the caller's transaction return before it is on disk; the next one takes it along.
        """
        statement = self.log.query("seat_mark_soon" if soon else "seat_mark")
        values = {"name": name, "value": value, "token": self.token}
        if not self.taken or connection.execute(statement, values).rowcount == 0:
            self._lose()

    def take_in_hand(self, connection: Connection, value: str, holding: str) -> bool:
        """Notes a batch unless the seat is lost, or rows were held or released since the mark `holding` was read.

        The caller's transaction returns before it is on disk.
        """
        values = {"value": value, "holding": holding, "token": self.token}
        return self.taken and connection.execute(self.log.query("seat_take_in_hand"), values).rowcount > 0

    def leave(self) -> None:
        """Gives the seat to whoever waits for it."""
        if self.taken:
            self.taken = False
            self._stop_keeper()
            with self.log.transaction() as connection:
                connection.execute(self.log.query("seat_leave"), {"token": self.token})
        self.drop()

    def drop(self) -> None:
        """Closes the session, which may be broken, and with it the lock."""
        self.taken = False
        self._stop_keeper()
        session, self._session = self._session, None
        if session is not None:
            session.invalidate()
            session.close()

    @property
    def _locks_sessions(self) -> bool:
        return bool(self.log.query("seat_lock").text)

    def _lock(self) -> bool:
        if not self._locks_sessions:
            return True
        name = self.log.dialect.qualified(self.log.names.schema, self.log.names.table)
        with in_our_words(self.log.engine, f"The event log {self.log.name}"):
            return bool(self.session.execute(self.log.query("seat_lock"), {"log": name}).scalar())

    def _enter(self) -> bool:
        with self.log.transaction() as connection:
            return self._changes(connection, "seat_enter")

    def _touch(self, connection: Connection) -> bool:
        return self._changes(connection, "seat_keep")

    def _changes(self, connection: Connection, query: str) -> bool:
        statement = self.log.query(query)
        parameters = {"token": self.token, "lease": self.lease}
        asked = {name: value for name, value in parameters.items() if f":{name}" in statement.text}
        return connection.execute(statement, asked).rowcount > 0

    def _renew(self) -> None:
        with self.log.transaction() as connection:
            self._touch(connection)

    def _stop_keeper(self) -> None:
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.stop()

    def _lose(self) -> None:
        self.taken = False
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.end()  # not waited for: it may wait for the transaction in which this is noticed
        hint = "This one stands by and publishes nothing until that one ends."
        raise OccupiedError(f"Another publisher works on the event log {self.log.name}.", hint=hint)
