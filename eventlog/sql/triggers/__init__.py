"""Triggers as values: planned from a table, rendered for a database, compared with what stands there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.names import LogNames


def remove_all(connection: Connection, names: LogNames) -> None:
    """Takes off every trigger of a log."""
