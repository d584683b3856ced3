"""Compares the tracked tables with their triggers when something has changed: logs what, enters it into the
history, and makes triggers anew where a publisher may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

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


class Watch(Protocol):
    """What a publisher knows of the tables that are tracked for its log: see daemon/table_watch.py."""

    log: Log
    follow: bool
    looked: Callable[[Mapping[str, int], int], None]
    journal: BoundLogger
    since: str | None
    newest: int | None
    shapes: Mapping[str, Shape]
    reported: Mapping[str, str]


def compare_tables(watch: Watch, names: LogNames, stamp: Stamp) -> SchemaComparison:
    """Compare every class with its triggers; `stamp` was read before."""
    with watch.log.engine.connect() as connection:
        triggers = states(connection, names)
        known = latest(read_history(connection, names))
    former = {owner: version.columns for owner, version in known.items()} | {**watch.shapes}
    outdated = behind(triggers) if watch.follow else []
    followed = [follow(watch.log.engine, names, owner, watch.newest) for owner in outdated]
    with watch.log.engine.connect() as connection:
        if any(table.error is None for table in followed):
            triggers = states(connection, names)
        tables = list_tracked(connection, names)
        hidden = find_unseen(connection, names)
    changes = _enter_changes(watch, tables, former, names)
    for owner, change in changes.items():
        watch.journal.info("table_changed", table=owner, since=watch.since, **change)
        if owner in hidden:
            why = (
                f"This login cannot see the triggers of {owner}, so it cannot follow, nor say"
                f" whether writers fail. Run `eventlog track {owner}` with a login that may."
            )
            watch.journal.warning("triggers_behind", table=owner, why=why)
    by_state = Counter(trigger.state.value for trigger in triggers)
    counts = {state.value: by_state[state.value] for state in TriggerCondition}
    _report(watch, triggers, followed)
    watch.looked(counts, sum(trigger.fails for trigger in triggers))
    if not (followed or hidden) and by_state.total() == by_state[TriggerCondition.CURRENT.value]:
        with watch.log.transaction() as connection:
            # What changed while triggers were compared is compared at the next look.
            if read_stamp(connection, names) == stamp:
                note_current(connection, watch.log, names, stamp, counts)
    return SchemaComparison(changed=bool(changes), again=any(table.again for table in followed))


def _enter_changes(
    watch: Watch,
    tables: Sequence[Table],
    former: Mapping[str, Shape],
    names: LogNames,
) -> dict[str, dict[str, list[str]]]:
    """Enter the changes of each class since the last look into the history, and return them."""
    with watch.log.transaction() as connection:
        note_versions(connection, names, tables)
    watch.shapes = {table.whole: shape_of(table) for table in tables}
    return {
        owner: differing(former[owner], shape)
        for owner, shape in watch.shapes.items()
        if owner in former and former[owner] != shape
    }


def _report(watch: Watch, triggers: Iterable[TriggerState], followed: Iterable[Followed]) -> None:
    """Log followed tables, and once those not followed; keep these for `eventlog check`."""
    errors = {table.owner: table.error for table in followed if table.error is not None}
    for table in followed:
        if table.error is None:
            watch.journal.warning("triggers_followed", table=table.owner, since=watch.since)
    outdated = [trigger for trigger in triggers if trigger.state is TriggerCondition.OUTDATED or trigger.fails]
    waiting = {trigger.owner: trigger.note for trigger in outdated}
    failing = {trigger.owner for trigger in outdated if trigger.fails}
    reasons = {owner: errors.get(owner) or note or "" for owner, note in waiting.items()} | errors
    for owner, why in reasons.items():
        if watch.reported.get(owner) == why:
            continue
        fails = owner in failing
        say = watch.journal.error if fails else watch.journal.warning
        reason = why or "The table has changed since."
        say("triggers_behind", table=owner, why=reason, writers_fail=fails)
    watch.reported = reasons
    marks = Marks(watch.log)
    with watch.log.transaction() as connection:
        if errors:
            marks.set(connection, NOT_FOLLOWED, as_text(errors))
        # Read before, for nearly every look has nothing to say and need not write.
        elif marks.get(connection, NOT_FOLLOWED) is not None:
            marks.clear(connection, NOT_FOLLOWED)
