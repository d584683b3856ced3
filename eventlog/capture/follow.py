"""Follows the schema: tracks classes anew whose tables have changed, with the options that their triggers have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from eventlog.capture.asked import TrackRequest, asked_of, believed
from eventlog.capture.installed import Installed, TriggerCondition, TriggerState, installed
from eventlog.capture.plan import TriggerOptions
from eventlog.capture.track import located, track
from eventlog.core.errors import EventlogError, InstallError, SourceError
from eventlog.sql.connect import in_words
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes, parts_of

BEHIND = frozenset({TriggerCondition.OUTDATED, TriggerCondition.MISSING})
"""States that tracking anew mends; who disabled a trigger had a reason for it, and a stray one has no table."""


class Followed(Struct, frozen=True, kw_only=True):
    """What became of a class whose triggers were behind: `error` says why they still are, `again` that waiting may help."""

    owner: str
    error: str | None = None
    again: bool = False


def behind(found: Iterable[TriggerState]) -> list[str]:
    """The classes that tracking anew would mend: triggers that went along when their table got another name, too."""
    found = list(found)
    disabled = {one.owner for one in found if one.state is TriggerCondition.DISABLED}
    renamed = [one for one in found if one.state is TriggerCondition.STRAY and one.table != parts_of(one.owner)[1]]
    waiting = [one.owner for one in found if one.state in BEHIND or one in renamed]
    return [owner for owner in dict.fromkeys(waiting) if owner not in disabled]


def follow(engine: Engine, names: LogNames, owners: Sequence[str], since: int | None = None) -> list[Followed]:
    """Tracks these classes anew, each by itself: what one of them meets is no reason to leave another one behind.

    `since` is the newest row of the log when somebody saw tables as their triggers know them.
    """
    return [_followed(engine, names, owner, since) for owner in owners]


def _followed(engine: Engine, names: LogNames, owner: str, since: int | None) -> Followed:
    try:
        retrack(engine, names, owner, since)
    except EventlogError as error:
        return Followed(owner=owner, error=str(error), again=isinstance(error, SourceError) and error.may_pass)
    except SQLAlchemyError as error:
        told = in_words(error, f"The triggers of {owner} cannot be made again")
        return Followed(owner=owner, error=str(told), again=isinstance(told, SourceError) and told.may_pass)
    return Followed(owner=owner)


def retrack(engine: Engine, names: LogNames, owner: str, since: int | None = None) -> list[TriggerState]:
    """Makes the triggers of one class current, with what it was tracked with: never with a column that was excluded."""
    with engine.connect() as connection:
        log = located(connection, names)
        there = [one for one in installed(connection, log) if one.marker.table == owner]
        standing = [one.marker.options for one in there]
        if not standing:
            message = f"All triggers of {owner} are gone, so somebody may have taken them off."
            raise InstallError(
                message, hint="Run `eventlog track`, or `eventlog untrack` if nothing is to be captured."
            )
        options = believed(owner, asked_of(connection, log).get(owner), standing)
        called = _name_today(connection, owner, there)
        request = _fitting_today(connection, called, options or standing[0])
    return track(engine, [called], request, log, since=since)


def _name_today(connection: Connection, owner: str, standing: Sequence[Installed]) -> str:
    """What the class is called: its triggers go along where its table gets another name."""
    classes = Classes(connection)
    if classes.has(owner):
        return owner
    children = {child.rpartition(".")[2] for one in standing for child in one.marker.options.children}
    names = {(one.schema, one.table) for one in standing if one.table not in children}
    found = [f"{schema}.{table}" if schema else table for schema, table in names]
    return found[0] if len(found) == 1 else owner


def _fitting_today(connection: Connection, owner: str, options: TriggerOptions) -> TrackRequest:
    """What the class was tracked with. Of columns that were chosen, those that are gone are left out, for a trigger that
    names one fails every writer. One that was excluded and is gone may have another name now, so nothing is guessed.
    """
    table = Classes(connection).one(owner, options.children, options.key)
    known = {name.casefold() for name in table.attributes}
    known |= {found.column.name.casefold() for found in table.attributes.values() if found.child is None}
    kept = tuple(name for name in options.columns if name.casefold() in known)
    return TrackRequest(columns=kept or None)
