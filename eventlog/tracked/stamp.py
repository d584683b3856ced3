"""The stamp of a log's tracked tables, which is another as soon as one of them or a trigger changes; and the last
stamp at which somebody has found every trigger to be as eventlog would make it today.

Who finds that stamp again need not compare a trigger, nor load what plans and writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection

from eventlog.sources.marks import CURRENT_AT, Marks, as_text, value_of
from eventlog.sql.access import fetch, verbatim
from eventlog.sql.dialect import dialect_of, log_holes, statement
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.version import VERSION

Stamp = list[tuple[Any, ...]]


class CurrentTriggers(Struct, frozen=True, kw_only=True):
    """How many triggers are in which state at a stamp: all of them are current."""

    stamp: str
    triggers: Mapping[str, int]


def read_stamp(connection: Connection, names: LogNames) -> Stamp:
    """Read the stamp; empty without triggers, and where the connected user may not see them."""
    dialect = dialect_of(connection)
    rows = fetch(connection, verbatim(statement(dialect, "table_stamp", **log_holes(dialect, names))))
    return [tuple(row) for row in rows]


def read_current(connection: Connection, log: Log, names: LogNames, stamp: Stamp) -> Mapping[str, int] | None:
    """Return how many triggers are in which state if all were current at this stamp; None if nobody knows."""
    noted = value_of(Marks(log).get(connection, CURRENT_AT), CurrentTriggers)
    if not stamp or noted is None or noted.stamp != _shorten(connection, names, stamp):
        return None
    return noted.triggers


def note_current(connection: Connection, log: Log, names: LogNames, stamp: Stamp, triggers: Mapping[str, int]) -> None:
    """Note that all triggers were current at this stamp, in the caller's transaction."""
    marks, noted = Marks(log), CurrentTriggers(stamp=_shorten(connection, names, stamp), triggers=triggers)
    # Read before, for nearly every look has nothing to say and need not write.
    if stamp and marks.get(connection, CURRENT_AT) != as_text(noted):
        marks.set(connection, CURRENT_AT, as_text(noted))


def _shorten(connection: Connection, names: LogNames, stamp: Stamp) -> str:
    """Hash all that a trigger is made from: the tables, the log, this version of eventlog, and the server."""
    server = connection.dialect.server_version_info
    return sha256(repr((VERSION, server, names, stamp)).encode()).hexdigest()
