"""What rows really were, commit after commit: a value that is read back may be late, and is never old and never made up.

It imports nothing of eventlog. Of the log it asks which rows a commit has brought, and which of them are read back.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from tests.hardening.schemas.replaying import Object, Shape, Store, entered, rows_of

WHOLE = (5, 6)
"""Event types that read back a row; 7 and 8 read back a column."""

numbers = re.compile(r"\d+").findall


@dataclass
class History:
    """The tables after every commit. One thread commits, and notes it before anything else does."""

    engine: Engine
    shapes: Sequence[Shape]
    states: list[Store] = field(default_factory=list)
    _rows: dict[str, list[Any]] = field(default_factory=dict)
    _seen: dict[int, tuple[int, int, str | None]] = field(default_factory=dict)
    """Of each row of the log the state in which it was there first, its type and its column."""

    def note(self, *, changed: bool = True) -> None:
        """Takes in what somebody has committed; a full load has changed no table."""
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            if changed:
                for shape in self.shapes:
                    self._read(connection, shape)
                self.states.append(entered(self._rows, self.shapes))
            last = len(self.states) - 1
            query = text("SELECT record_id, event_type, column_name, old_value, new_value FROM event_log")
            for number, kind, column, *images in connection.execute(query):
                # What a row of the log says itself is not read back.
                type_read = 0 if images != [None, None] else int(kind)
                self._seen.setdefault(int(number), (last, type_read, column))

    def _read(self, connection: Connection, shape: Shape) -> None:
        """A table that somebody has truncated is locked, and as it was: nobody else can have changed it since."""
        if self.engine.dialect.name == "postgresql":
            connection.execute(text("SET lock_timeout = '20ms'"))
        try:
            self._rows[shape.name] = rows_of(connection, shape)
        except DBAPIError:
            self._rows.setdefault(shape.name, [])
        finally:
            if self.engine.dialect.name == "postgresql":
                connection.execute(text("SET lock_timeout = 0"))

    def read_back(self, event_id: str) -> tuple[int, set[str | None]]:
        """From which state on an event may have been read back, and what of it was; None is the row."""
        found = [self._seen[int(number)] for number in numbers(event_id)]
        names = {None if kind in WHOLE else column for _, kind, column in found if kind >= min(WHOLE)}
        return max(state for state, _, _ in found), names

    def had(self, place: Object, name: str, values: set[str], since: int) -> bool:
        """Whether an object had exactly these values in a state."""
        states = [state[place] for state in self.states[since:] if place in state]
        return any(state.get(name, set()) == values for state in states)
