"""Follows the schema: compares the tracked tables with their triggers when something has changed, logs what,
enters it into the history, and tracks classes anew where a publisher may.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from structlog.stdlib import BoundLogger

from eventlog.capture.installed import TriggerCondition, TriggerState, states
from eventlog.capture.track import track
from eventlog.core.errors import EventlogError, InstallError, SourceError
from eventlog.core.table_names import read_name, write_name
from eventlog.sources.marks import NOT_FOLLOWED, Marks, as_text
from eventlog.sql.access import in_words
from eventlog.sql.definitions import Shape
from eventlog.sql.findlog import locate_log
from eventlog.sql.history import differing, latest, note_versions, read_history, shape_of
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes
from eventlog.tracked.classes import find_unseen, list_tracked, read_capture
from eventlog.tracked.options import TrackRequest, attribute_names
from eventlog.tracked.registry import refuse_fault
from eventlog.tracked.stamp import Stamp, note_current, read_stamp

BEHIND = frozenset({TriggerCondition.OUTDATED, TriggerCondition.MISSING})
"""States that tracking anew mends; who disabled a trigger had a reason for it, and a stray one has
no table.
"""


class Followed(Struct, frozen=True, kw_only=True):
    """What became of a class whose triggers were behind.

    `error` says why they still are, `again` that waiting may help.
    """

    owner: str
    error: str | None = None
    again: bool = False


def behind(states: Iterable[TriggerState]) -> list[str]:
    """List the classes whose triggers tracking again would correct."""
    disabled: set[str] = set()
    waiting: dict[str, None] = {}
    for trigger in states:
        if trigger.state is TriggerCondition.DISABLED:
            disabled.add(trigger.owner)
        # A stray trigger on a table of another name went along when its table was renamed.
        renamed = trigger.state is TriggerCondition.STRAY and trigger.table != read_name(trigger.owner)[1]
        if trigger.state in BEHIND or renamed:
            waiting[trigger.owner] = None
    return [owner for owner in waiting if owner not in disabled]


def follow(engine: Engine, names: LogNames, owner: str, since: int | None = None) -> Followed:
    """Track a class again with its former options; an error here does not stop others.

    `since` is the newest row of the log when somebody saw the table as its triggers know it.
    """
    try:
        with engine.connect() as connection:
            log = locate_log(connection, names)
            name, columns = _find_class_again(connection, log, owner)
        track(engine, [name], TrackRequest(columns=columns or None), log, since=since)
        return Followed(owner=owner)
    except EventlogError as error:
        problem = error
    except SQLAlchemyError as error:
        problem = in_words(error, f"The triggers of {owner} cannot be made again")
    may_pass = isinstance(problem, SourceError) and problem.may_pass
    return Followed(owner=owner, error=str(problem), again=may_pass)


def _find_class_again(connection: Connection, log: LogNames, owner: str) -> tuple[str, tuple[str, ...]]:
    """Find what a class is called now, and which of its chosen columns are still there."""
    capture = read_capture(connection, log)
    tracked = capture.classes.get(owner)
    if tracked is None or not capture.of(owner):
        message = f"All triggers of {owner} are gone, so somebody may have taken them off."
        hint = "Run `eventlog track`, or `eventlog untrack` if nothing is to be captured."
        raise InstallError(message, hint=hint)
    refuse_fault(tracked)
    classes, name = Classes(connection), owner
    if not classes.has(owner) and (today := capture.table_today(owner)):
        name = write_name(*today)
    known = attribute_names(classes.one(name, tracked.options.children, tracked.options.key))
    # Chosen columns that are gone are left out, for a trigger that names one fails every writer. An
    # excluded one that is gone may have another name now, so nothing is guessed about it (decision 27).
    return name, tuple(chosen for chosen in tracked.options.columns if chosen.casefold() in known)


class SchemaComparison(Struct, frozen=True, kw_only=True):
    """What came of one: whether a class has changed its shape, whether waiting may help one that could not
    be followed, and whether there is a class or a trigger at all.
    """

    changed: bool
    again: bool
    is_tracked: bool


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
    with watch.log.transaction() as connection:
        note_versions(connection, names, tables)
    watch.shapes = {table.whole: shape_of(table) for table in tables}
    changes = {
        owner: differing(former[owner], shape)
        for owner, shape in watch.shapes.items()
        if former.get(owner, shape) != shape
    }
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
    again, is_tracked = any(table.again for table in followed), bool(tables or hidden or triggers)
    return SchemaComparison(changed=bool(changes), again=again, is_tracked=is_tracked)


def _report(watch: Watch, triggers: Iterable[TriggerState], followed: Iterable[Followed]) -> None:
    """Log followed tables, and once those not followed; keep these for `eventlog check`."""
    errors = {table.owner: table.error for table in followed if table.error is not None}
    for table in followed:
        if table.error is None:
            watch.journal.warning("triggers_followed", table=table.owner, since=watch.since)
    outdated = [trigger for trigger in triggers if trigger.state is TriggerCondition.OUTDATED or trigger.fails]
    failing = {trigger.owner for trigger in outdated if trigger.fails}
    reasons = {trigger.owner: errors.get(trigger.owner) or trigger.note or "" for trigger in outdated} | errors
    for owner, why in reasons.items():
        if watch.reported.get(owner) != why:
            say = watch.journal.error if owner in failing else watch.journal.warning
            reason = why or "The table has changed since."
            say("triggers_behind", table=owner, why=reason, writers_fail=owner in failing)
    watch.reported = reasons
    marks = Marks(watch.log)
    with watch.log.transaction() as connection:
        if errors:
            marks.set(connection, NOT_FOLLOWED, as_text(errors))
        # Read before, for nearly every look has nothing to say and need not write.
        elif marks.get(connection, NOT_FOLLOWED) is not None:
            marks.clear(connection, NOT_FOLLOWED)
