"""How an application says who is behind its changes, and how a session of a pool stops saying it."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, text

SAY: Final = {
    "postgresql": "SELECT set_config('eventlog.context', :who, true)",
    "mysql": "SET @eventlog_context = :who",
    "sqlite": "INSERT INTO event_log_context (value) VALUES (:who)",
}
LEAVE: Final = {"mysql": "SET @eventlog_context = NULL", "sqlite": "DELETE FROM event_log_context"}


def kind(connection: Any) -> str:
    """Name the database of a connection or an engine."""
    name = str(connection.dialect.name)
    return {"mariadb": "mysql"}.get(name, name)


def say(connection: Connection, who: Any) -> None:
    """Say who is behind what the transaction changes."""
    connection.execute(text(SAY[kind(connection)]), {"who": who})


def leave(connection: Connection) -> None:
    """Stop saying it, where it does not end with the transaction."""
    if kind(connection) in LEAVE:
        connection.execute(text(LEAVE[kind(connection)]))
