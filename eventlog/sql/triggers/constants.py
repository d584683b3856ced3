"""What is the same for every row that a statement logs: a constant of the trigger where it may have such, else its text."""

from __future__ import annotations

import re
from typing import Final

from eventlog.core.model import Kind, Status
from eventlog.sql.dialect import Dialect, statement
from eventlog.sql.names import LogNames

PREFIX: Final = "eventlog_"
"""Begins the names of constants, which must not be those of columns that a condition speaks of."""

_mentioned = re.compile(rf"\b{PREFIX}(now|user|waiting|kind_[1-8])\b")
_columns = {"now": "event_time", "user": "perpetrator", "waiting": "status"}


def common_holes(dialect: Dialect) -> dict[str, str]:
    """What fills the holes of every row of the log alike."""
    return {what: _named(dialect, what) for what in _columns}


def kind_text(dialect: Dialect, kind: Kind) -> str:
    """The number of a kind as a trigger writes it."""
    return _named(dialect, f"kind_{int(kind)}")


def declarations(dialect: Dialect, names: LogNames, body: str) -> str:
    """Declares the constants that a trigger's body speaks of, in the types of the log's columns.

    So they are worked out, and judged by the domains of the log, once a statement instead of once a row.
    """
    if not dialect.declared_constants:
        return ""
    mentioned = sorted({match[1] for match in _mentioned.finditer(body)})
    return "\n".join(f"{_declaration(dialect, names, what)};" for what in mentioned)


def _declaration(dialect: Dialect, names: LogNames, what: str) -> str:
    log = dialect.qualified(names.schema, names.table)
    column = dialect.quoted(names.column(_columns.get(what, "event_type")))
    return statement(dialect, "constant", name=PREFIX + what, column=f"{log}.{column}", value=_value(dialect, what))


def _named(dialect: Dialect, what: str) -> str:
    return PREFIX + what if dialect.declared_constants else _value(dialect, what)


def _value(dialect: Dialect, what: str) -> str:
    values = {"now": dialect.now, "user": dialect.user, "waiting": dialect.literal(Status.NEW)}
    return values.get(what) or what.removeprefix("kind_")
