"""Points about triggers: whether each stands as it would be made today, and the command that mends it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from eventlog.admin.check.point import Point, PointLevel, ok, warning
from eventlog.core.errors import EX_CONFIG, SourceError
from eventlog.sources.marks import NOT_FOLLOWED, Marks
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.sql.triggers import TriggerCondition, TriggerOptions, TriggerState, installed
from eventlog.sql.triggers.asked import asked_of, words
from eventlog.sql.triggers.installed import states
from eventlog.sql.triggers.track import with_schema

if TYPE_CHECKING:
    from sqlalchemy import Engine

LOSES = {TriggerCondition.MISSING, TriggerCondition.DISABLED}
"""States in which changes go by unseen; a trigger that fails the writers of its table is no better."""


def trigger_points(engine: Engine, names: LogNames) -> Iterator[Point]:
    """A line for each trigger that is not current, or one that says how many are."""
    with engine.connect() as connection:
        log = with_schema(connection, names)
        standing = {trigger.marker.table: trigger.marker.options for trigger in installed(connection, log)}
        asked = standing | asked_of(connection, log)
        found = states(connection, log)
    if not found:
        said = f"No trigger that the connected user can see writes to {names.table}."
        yield warning("triggers", said, "`eventlog track TABLE` makes some.")
    other = [one for one in found if one.state is not TriggerCondition.CURRENT]
    for one in other:
        yield _point(one, asked[one.owner])
    for owner, why in not_followed(Log(engine, log)).items():
        said = f"The publisher could not track {owner} anew: {why}"
        yield warning(
            "triggers",
            said,
            "Run `eventlog track` as somebody who may; `eventlog rights --installer` gives the rights.",
        )
    if found and not other:
        yield ok("triggers", f"{len(found)} trigger(s) on {len(asked)} table(s) are current")


def not_followed(log: Log) -> dict[str, str]:
    """What the publisher could not follow, and why; nothing where the log has no marks to ask."""
    try:
        with log.transaction() as connection:
            noted = Marks(log).get(connection, NOT_FOLLOWED)
    except SourceError:
        return {}
    return {} if noted is None else msgspec.json.decode(noted, type=dict[str, str])


def _point(found: TriggerState, options: TriggerOptions) -> Point:
    loses = found.state in LOSES or found.fails
    return Point(
        name="triggers",
        level=PointLevel.FAILURE if loses else PointLevel.WARNING,
        said=f"The trigger {found.name} on {found.table} is {found.state}{': ' + found.note if found.note else ''}.",
        mend=f"Run `{mending(found, options)}`.",
        exit_code=EX_CONFIG if loses else 0,
    )


def mending(found: TriggerState, options: TriggerOptions) -> str:
    """The command that makes the triggers of this class current, with the options that they were made with."""
    if found.state is TriggerCondition.STRAY:
        return shlex.join(["eventlog", "untrack", found.owner])
    return f"{shlex.join(['eventlog', 'track', found.owner])} {words(options)} --reset"
