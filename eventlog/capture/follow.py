"""Follows the schema: tracks classes anew whose tables have changed, with the options that their
triggers have.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from eventlog.capture.installed import TriggerCondition, TriggerState
from eventlog.capture.requests import TrackRequest
from eventlog.capture.track import track
from eventlog.core.errors import EventlogError, InstallError, SourceError
from eventlog.core.table_names import read_name, write_name
from eventlog.sql.access import in_words
from eventlog.sql.findlog import locate_log
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes
from eventlog.tracked.classes import read_capture
from eventlog.tracked.options import attribute_names
from eventlog.tracked.registry import refuse_fault

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
    """Track a class again; an error here does not stop others.

    `since` is the newest row of the log when somebody saw the table as its triggers know it.
    """
    try:
        retrack(engine, names, owner, since)
        return Followed(owner=owner)
    except EventlogError as error:
        problem = error
    except SQLAlchemyError as error:
        problem = in_words(error, f"The triggers of {owner} cannot be made again")
    may_pass = isinstance(problem, SourceError) and problem.may_pass
    return Followed(owner=owner, error=str(problem), again=may_pass)


def retrack(
    engine: Engine,
    names: LogNames,
    owner: str,
    since: int | None = None,
) -> list[TriggerState]:
    """Make the triggers of one class current with its former options; excluded columns stay
    excluded.
    """
    with engine.connect() as connection:
        log = locate_log(connection, names)
        capture = read_capture(connection, log)
        tracked = capture.classes.get(owner)
        triggers = capture.of(owner)
        if tracked is None or not triggers:
            message = f"All triggers of {owner} are gone, so somebody may have taken them off."
            hint = "Run `eventlog track`, or `eventlog untrack` if nothing is to be captured."
            raise InstallError(message, hint=hint)
        refuse_fault(tracked)
        options = tracked.options
        classes, name = Classes(connection), owner
        if not classes.has(owner) and (today := capture.table_today(owner)):
            name = write_name(*today)
        table = classes.one(name, options.children, options.key)
        known = attribute_names(table)
        # Chosen columns that are gone are left out, for a trigger that names one fails every
        # writer. An excluded one that is gone may have another name now, so nothing is guessed
        # about it (decision 27).
        columns = tuple(chosen for chosen in options.columns if chosen.casefold() in known)
    return track(engine, [name], TrackRequest(columns=columns or None), log, since=since)
