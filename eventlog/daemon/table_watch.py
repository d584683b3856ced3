"""Watches the tracked tables: asks the catalog once a poll, with one query, whether one of them has changed.

A trigger is the text of one day. A column that is added later goes by unseen; one that is renamed
or dropped makes the trigger fail, and with it every write of the application. What compares triggers
with their tables, and makes them anew, is loaded when there is something to compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Final

from sqlalchemy.exc import SQLAlchemyError
from structlog.stdlib import BoundLogger

from eventlog.core.errors import EventlogError
from eventlog.sql.findlog import with_schema
from eventlog.sql.history import latest, moment_text, newest_number, read_history
from eventlog.sql.log import Log
from eventlog.tracked.stamp import Stamp, read_current, read_stamp

if TYPE_CHECKING:
    from eventlog.sql.definitions import Shape

UNTRACKED_SECONDS: Final = 60.0
"""Seconds between two comparisons where nothing is tracked. What a trigger is made for has a stamp at once."""


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
        self.log, self.follow, self.looked, self.journal = log, follow, looked, journal
        self.since: str | None = None
        self.newest: int | None = None
        """The newest row of the log when it looked last."""
        self.shapes: Mapping[str, Shape] = {}
        """Those that the classes had when it looked last."""
        self.reported: Mapping[str, str] = {}
        """Why tables could not be followed, as it was logged last."""
        self._stamp: Stamp | None = None
        self._untracked_until = 0.0
        self._last_error = ""

    def look(self) -> bool:
        """Look at the tables; return True for news since the last look.

        A catalog that cannot be read is logged once, and keeps nobody from publishing.
        """
        now, before, changed = moment_text(), self.since, False
        try:
            # The first look changes nothing: the rules have just been made from these tables.
            changed = self._look() and before is not None
            self._last_error = ""
        except (EventlogError, SQLAlchemyError) as error:
            # PostgreSQL puts the text of the statement into further lines.
            message = str(getattr(error, "orig", error)).partition("\n")[0]
            if message != self._last_error:
                self.journal.warning("tables_not_seen", error=message)
            self._last_error = message
        self.since = now
        return changed

    def _look(self) -> bool:
        with self.log.engine.connect() as connection:
            names = with_schema(connection, self.log.names)
            # Before the catalog, so that nothing of a gap is missed.
            newest = newest_number(connection, names) or 0
            stamp = read_stamp(connection, names)
            # Without triggers, or where they are hidden, it says nothing.
            if stamp == self._stamp if stamp else monotonic() < self._untracked_until:
                self.newest = newest
                return False
            triggers = None if self.since is not None else read_current(connection, self.log, names, stamp)
            if triggers is not None:
                self.looked(triggers, 0)
                known = latest(read_history(connection, names))
                self.shapes = {owner: version.columns for owner, version in known.items()}
                self._stamp, self.newest = stamp, newest
                return True
        from eventlog.capture.schema_watch import compare_tables

        found = compare_tables(self, names, stamp)
        self._untracked_until = 0.0 if found.is_tracked else monotonic() + UNTRACKED_SECONDS
        new = stamp != self._stamp or found.changed
        self._stamp, self.newest = None if found.again else stamp, newest
        return new
