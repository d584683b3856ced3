"""Compares the tracked tables with their triggers when something has changed: logs what, enters it into the
history, and makes triggers anew where a publisher may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from structlog.stdlib import BoundLogger

from eventlog.capture.follow import Followed, behind, follow
from eventlog.capture.installed import TriggerCondition, TriggerState, states
from eventlog.core.schema import Table
from eventlog.sources.marks import NOT_FOLLOWED, Marks, as_text
from eventlog.sql.definitions import Shape
from eventlog.sql.history import (
    differing,
    latest,
    note_versions,
    read_history,
    shape_of,
)
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.tracked.classes import find_unseen, list_tracked
from eventlog.tracked.stamp import Stamp, note_current, read_stamp


class SchemaComparison(Struct, frozen=True, kw_only=True):
    """What came of one: whether a class has changed its shape, and whether waiting may help one that could not
    be followed.
    """

    changed: bool
    again: bool


class SchemaWatch:
    """What one publisher knows of the tables that are tracked for its log.

    `follow` says whether it may make triggers anew. `looked` gets how many triggers are in which
    state, and how many of them fail; what happened is logged to the publisher's `journal`. `shapes`
    are those that the classes had so far.
    """

    def __init__(
        self,
        log: Log,
        *,
        follow: bool,
        looked: Callable[[Mapping[str, int], int], None],
        journal: BoundLogger,
        shapes: Mapping[str, Shape],
    ) -> None:
        self._log = log
        self._follow = follow
        self._looked = looked
        self._journal = journal
        self._shapes = shapes
        self._reported: dict[str, str] = {}

    def compare(self, names: LogNames, stamp: Stamp, newest: int | None, since: str | None) -> SchemaComparison:
        """Compare every class with its triggers; `stamp` was read before, `newest` and `since` are the newest row
        of the log and the time at the look before.
        """
        with self._log.engine.connect() as connection:
            triggers = states(connection, names)
            known = latest(read_history(connection, names))
        former = {owner: version.columns for owner, version in known.items()} | {**self._shapes}
        outdated = behind(triggers) if self._follow else []
        followed = [follow(self._log.engine, names, owner, newest) for owner in outdated]
        with self._log.engine.connect() as connection:
            if any(table.error is None for table in followed):
                triggers = states(connection, names)
            tables = list_tracked(connection, names)
            hidden = find_unseen(connection, names)
        changes = self._changes(tables, former, names)
        for owner, change in changes.items():
            self._journal.info("table_changed", table=owner, since=since, **change)
            if owner in hidden:
                why = (
                    f"This login cannot see the triggers of {owner}, so it cannot follow, nor say"
                    f" whether writers fail. Run `eventlog track {owner}` with a login that may."
                )
                self._journal.warning("triggers_behind", table=owner, why=why)
        by_state = Counter(trigger.state.value for trigger in triggers)
        counts = {state.value: by_state[state.value] for state in TriggerCondition}
        self._report(triggers, followed, since)
        self._looked(counts, sum(trigger.fails for trigger in triggers))
        if not (followed or hidden) and by_state.total() == by_state[TriggerCondition.CURRENT.value]:
            with self._log.transaction() as connection:
                # What changed while triggers were compared is compared at the next look.
                if read_stamp(connection, names) == stamp:
                    note_current(connection, self._log, names, stamp, counts)
        return SchemaComparison(changed=bool(changes), again=any(table.again for table in followed))

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

    def _report(self, triggers: Iterable[TriggerState], followed: Iterable[Followed], since: str | None) -> None:
        """Log followed tables, and once those not followed; keep these for `eventlog check`."""
        errors = {table.owner: table.error for table in followed if table.error is not None}
        for table in followed:
            if table.error is None:
                self._journal.warning("triggers_followed", table=table.owner, since=since)
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
