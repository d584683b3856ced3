"""Breaks off the statements that engines run at this moment, as far as their drivers can be asked
to.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sqlalchemy import Engine

WAYS: Final = ("cancel", "interrupt")
"""How drivers call it that another thread may ask: psycopg and oracledb, and sqlite3. PyMySQL has
no such thing.
"""


class Breaker:
    """Knows the connections that are in use of some engines."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._used: list[Any] = []

    def watch(self, engine: Engine) -> Engine:
        """Watch an engine, to break its statements off with the others."""
        from sqlalchemy import event

        # From its pool and back: only then does a connection belong to somebody.
        event.listen(engine, "checkout", self._note_taken)
        event.listen(engine, "checkin", self._note_returned)
        return engine

    def break_off(self) -> None:
        """Ends every statement under way; whoever runs it meets an error of its driver."""
        with self._lock:
            used = [*self._used]
        for connection in used:
            # A driver may ask the server over a connection of its own, and wait for it.
            ending = Thread(target=self._end, args=[connection], name="eventlog-breaker", daemon=True)
            ending.start()

    def _note_taken(self, connection: Any, _record: Any, _proxy: Any) -> None:
        with self._lock:
            self._used.append(connection)

    def _note_returned(self, connection: Any, _record: Any) -> None:
        with self._lock:
            # By identity: connections of some drivers cannot be compared.
            self._used = [used for used in self._used if used is not connection]

    def _end(self, connection: Any) -> None:
        for name in WAYS:
            if hasattr(connection, name):
                # It may be closed by now.
                with suppress(Exception):
                    getattr(connection, name)()
                return
