"""Watches the tracked tables: asks the catalog once a poll, with one query, whether one of them has changed.

A trigger is the text of one day. A column that is added later goes by unseen; one that is renamed
or dropped makes the trigger fail, and with it every write of the application. What compares triggers
with their tables, and makes them anew, is loaded when there is something to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError
from structlog.stdlib import BoundLogger

from eventlog.core.errors import EventlogError
from eventlog.sql.findlog import with_schema
from eventlog.sql.history import latest, moment_text, newest_number, read_history
from eventlog.sql.log import Log
from eventlog.tracked.stamp import Stamp, read_current, read_stamp

if TYPE_CHECKING:
    from eventlog.capture.schema_watch import SchemaWatch
    from eventlog.sql.definitions import Shape


class TableWatch:
    """What one publisher knows of the tables that are tracked for its log, and when it looked last.

    `follow` says whether it may make triggers anew. `looked` gets how many triggers are in which
    state, and how many of them fail; what happened is logged to the publisher's `journal`.
    """

    def __init__(
        self,
        log: Log,
        *,
        follow: bool,
        looked: Callable[[Mapping[str, int], int], None],
        journal: BoundLogger,
    ) -> None:
        self._log = log
        self._follow = follow
        self._looked = looked
        self._journal = journal
        self._since: str | None = None
        self._stamp: Stamp | None = None
        self._shapes: Mapping[str, Shape] = {}
        self._schema: SchemaWatch | None = None
        self._last_error = ""
        self._newest: int | None = None
        """The newest row of the log when it looked last."""

    def look(self) -> bool:
        """Look at the tables; return True for news since the last look.

        A catalog that cannot be read is logged once, and keeps nobody from publishing.
        """
        now, before, changed = moment_text(), self._since, False
        try:
            # The first look changes nothing: the rules have just been made from these tables.
            changed = self._look() and before is not None
            self._last_error = ""
        except (EventlogError, SQLAlchemyError) as error:
            # PostgreSQL puts the text of the statement into further lines.
            message = str(getattr(error, "orig", error)).partition("\n")[0]
            if message != self._last_error:
                self._journal.warning("tables_not_seen", error=message)
            self._last_error = message
        self._since = now
        return changed

    def _look(self) -> bool:
        with self._log.engine.connect() as connection:
            names = with_schema(connection, self._log.names)
            # Before the catalog, so that nothing of a gap is missed.
            newest = newest_number(connection, names) or 0
            stamp = read_stamp(connection, names)
            # Without triggers, or where they are hidden, it says nothing.
            if stamp and stamp == self._stamp:
                self._newest = newest
                return False
            triggers = None if self._since is not None else read_current(connection, self._log, names, stamp)
            if triggers is not None:
                self._looked(triggers, 0)
                known = latest(read_history(connection, names))
                self._shapes = {owner: version.columns for owner, version in known.items()}
                self._stamp, self._newest = stamp, newest
                return True
        found = self._load_schema().compare(names, stamp, self._newest, self._since)
        new = stamp != self._stamp or found.changed
        self._stamp, self._newest = None if found.again else stamp, newest
        return new

    def _load_schema(self) -> SchemaWatch:
        if self._schema is None:
            from eventlog.capture.schema_watch import SchemaWatch

            self._schema = SchemaWatch(
                self._log, follow=self._follow, looked=self._looked, journal=self._journal, shapes=self._shapes
            )
        return self._schema
