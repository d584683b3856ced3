"""Watches the tables under the triggers: says when one has changed, and makes its triggers anew.

A trigger is the text of one day. A column that is added later goes by unseen; one that is renamed
or dropped makes the trigger fail, and with it every write of the application. So a publisher asks
the catalog once a poll, with one query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from structlog.stdlib import BoundLogger

from eventlog.capture.follow import Followed, behind, follow
from eventlog.capture.installed import TriggerCondition, TriggerState, find_unseen, list_tracked, states
from eventlog.capture.track import locate_log
from eventlog.core.errors import EventlogError
from eventlog.core.schema import Table
from eventlog.sources.marks import NOT_FOLLOWED, Marks, as_text
from eventlog.sql.access import verbatim
from eventlog.sql.definitions import Shape
from eventlog.sql.dialect import log_holes, statement
from eventlog.sql.history import (
    differing,
    latest,
    moment_text,
    newest_number,
    note_versions,
    read_history,
    shape_of,
)
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames


class SchemaWatch:
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
        self._stamp: list[tuple[Any, ...]] | None = None
        self._shapes: dict[str, Shape] = {}
        self._reported: dict[str, str] = {}
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
            names = locate_log(connection, self._log.names)
            # Before the catalog, so that nothing of a gap is missed.
            newest = newest_number(connection, names) or 0
            holes = log_holes(self._log.dialect, names)
            stamp = self._log.rows(connection, verbatim(statement(self._log.dialect, "table_stamp", **holes)))
            # Without triggers, or where they are hidden, it says nothing.
            if stamp and stamp == self._stamp:
                self._newest = newest
                return False
            triggers = states(connection, names)
            known = latest(read_history(connection, names))
            former = {owner: version.columns for owner, version in known.items()} | self._shapes
        outdated = behind(triggers) if self._follow else []
        followed = [follow(self._log.engine, names, owner, self._newest) for owner in outdated]
        with self._log.engine.connect() as connection:
            if any(table.error is None for table in followed):
                triggers = states(connection, names)
            tables = list_tracked(connection, names)
            hidden = find_unseen(connection, names)
        changes = self._changes(tables, former, names)
        for owner, change in changes.items():
            self._journal.info("table_changed", table=owner, since=self._since, **change)
            if owner in hidden:
                why = (
                    f"This login cannot see the triggers of {owner}, so it cannot follow, nor say"
                    f" whether writers fail. Run `eventlog track {owner}` with a login that may."
                )
                self._journal.warning("triggers_behind", table=owner, why=why)
        self._report(triggers, followed)
        by_state = Counter(trigger.state.value for trigger in triggers)
        counts = {state.value: by_state[state.value] for state in TriggerCondition}
        self._looked(counts, sum(trigger.fails for trigger in triggers))
        new = stamp != self._stamp or bool(changes)
        look_again = any(table.again for table in followed)
        self._stamp, self._newest = None if look_again else stamp, newest
        return new

    def _changes(
        self,
        tables: Sequence[Table],
        former: Mapping[str, Shape],
        names: LogNames,
    ) -> dict[str, dict[str, list[str]]]:
        """Enter the changes of each class since the last look into the history, and return them."""
        with self._log.transaction() as connection:
            note_versions(connection, names, tables)
        self._shapes = {table.whole: shape_of(table) for table in tables}
        return {
            owner: differing(former[owner], shape)
            for owner, shape in self._shapes.items()
            if owner in former and former[owner] != shape
        }

    def _report(self, triggers: Iterable[TriggerState], followed: Iterable[Followed]) -> None:
        """Log followed tables, and once those not followed; keep these for `eventlog check`."""
        errors = {table.owner: table.error for table in followed if table.error is not None}
        for table in followed:
            if table.error is None:
                self._journal.warning("triggers_followed", table=table.owner, since=self._since)
        outdated = [trigger for trigger in triggers if trigger.state is TriggerCondition.OUTDATED or trigger.fails]
        waiting = {trigger.owner: trigger.note for trigger in outdated}
        failing = {trigger.owner for trigger in outdated if trigger.fails}
        reasons = {owner: errors.get(owner) or note or "" for owner, note in waiting.items()} | errors
        for owner, why in reasons.items():
            if self._reported.get(owner) == why:
                continue
            fails = owner in failing
            say = self._journal.error if fails else self._journal.warning
            reason = why or "The table has changed since."
            say("triggers_behind", table=owner, why=reason, writers_fail=fails)
        self._reported = reasons
        marks = Marks(self._log)
        with self._log.transaction() as connection:
            if errors:
                marks.set(connection, NOT_FOLLOWED, as_text(errors))
            # Read before, for nearly every look has nothing to say and need not write.
            elif marks.get(connection, NOT_FOLLOWED) is not None:
                marks.clear(connection, NOT_FOLLOWED)
