"""Which classes a command means, and with which options: names and patterns, what was asked before, what a table needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from eventlog.capture.asked import TrackRequest, asked_of, believed, words
from eventlog.capture.installed import Installed, by_owner, installed
from eventlog.capture.plan import TriggerOptions, TriggerPlan, plan
from eventlog.capture.table_needs import TableNeeds
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.schema import WHOLE_ROW, Table
from eventlog.core.suggest import nearest
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes
from eventlog.sql.shapes import Schema

Note = Callable[[str], None]


class WantedClass(Struct, frozen=True, kw_only=True):
    """What the triggers of one class have to do, and the options as they were asked for. `former` is what it was called
    when it was tracked, where somebody has given its table another name since.
    """

    plan: TriggerPlan
    asked: TriggerOptions
    former: str | None = None

    @property
    def owner(self) -> str:
        return self.plan.table.whole


def is_pattern(name: str) -> bool:
    """Whether a name stands for several."""
    return any(sign in name for sign in "*?[")


def wanted_classes(
    connection: Connection,
    tables: Sequence[str],
    request: TrackRequest,
    names: LogNames,
    schema: str | None,
    note: Note,
    leave: Note | None = None,
) -> list[WantedClass]:
    """The classes with these names, planned as they were asked for before and are asked for now.

    Where patterns alone are given, `leave` hears why one of their tables cannot be tracked; the others still are.
    """
    if not tables:
        raise UsageError("Which table? `eventlog track TABLE…` needs the names of tables or views.")
    if request.key == (WHOLE_ROW,):
        if any(map(is_pattern, tables)):
            raise UsageError("--whole-row is about tables that are named; a pattern means tables with a key.")
    elif request.key and (len(tables) > 1 or is_pattern(tables[0])):
        raise UsageError("--key is about one table; track the others by themselves.")
    classes, needs = Classes(connection, schema), TableNeeds(connection)
    kept, there = asked_of(connection, names), by_owner(installed(connection, names))
    standing = {owner: [one.marker.options for one in ones] for owner, ones in there.items()}
    known = {**{owner: options[0] for owner, options in standing.items()}, **kept}
    taken = {child for options in known.values() for child in options.children} | set(request.children or ())
    keyed = {owner for owner, options in known.items() if options.key}
    wanted = []
    for table in classes.named(named_tables(classes, tables, names, taken, note, keyed), request.children or ()):
        called = former_name(classes, table, there) if table.whole not in known else None
        owner = called or table.whole
        former = None if request.reset else believed(owner, kept.get(owner), standing.get(owner, ()))
        asked = request.over(former or TriggerOptions())
        try:
            one = replace(_planned(classes, needs, table, request, asked), former=called)
        except InstallError as error:
            if leave is None or not all(is_pattern(name) and not classes.has(name) for name in tables):
                raise
            leave(f"{table.whole} is left out: {error}")
            continue
        for child in {child.name for child in table.children} - {child.name for child in one.plan.table.children}:
            note(f"{child} is not captured with {table.whole}: its foreign key is not about {', '.join(asked.key)}.")
        _tell(note, one, kept.get(table.whole) or next(iter(standing.get(table.whole, ())), None), request)
        for remark in (*_shared(classes, one.plan.table), *needs.remarks(one.plan.table, one.asked)):
            note(remark)
        wanted.append(one)
    return wanted


def former_name(classes: Classes, table: Table, there: Mapping[str, Sequence[Installed]]) -> str | None:
    """What the class was called for which triggers stand on this table, where no table has that name any more."""
    for owner, ones in there.items():
        children = {child.rpartition(".")[2] for one in ones for child in one.marker.options.children}
        stands = any((one.schema, one.table) == (table.schema, table.name) for one in ones)
        if stands and owner != table.whole and table.name not in children and not classes.has(owner):
            return owner
    return None


def named_tables(
    classes: Classes,
    asked: Sequence[str],
    names: LogNames,
    children: set[str],
    note: Note,
    keyed: Collection[str] = (),
) -> list[str]:
    """The tables that names and patterns mean; `children` are known to belong to others, and of those that are `keyed`
    somebody has said before what tells their rows apart.
    """
    patterns = [name for name in asked if is_pattern(name) and not classes.has(name)]
    plain = [name for name in asked if name not in patterns]
    return [*plain, *(name for one in patterns for name in _matching(classes, one, names, children, note, keyed))]


def _planned(
    classes: Classes, needs: TableNeeds, table: Table, request: TrackRequest, asked: TriggerOptions
) -> WantedClass:
    """The plan of a class; children that were named for several classes are noted where they belong."""
    found = table
    if asked.key or (request.children is None and asked.children):
        beside = f"{table.schema}." if table.schema else ""
        children = asked.children or [f"{beside}{child.name}" for child in table.children]
        try:
            found = classes.one(table.whole, children, asked.key)
        except InstallError as error:
            told = f"{table.whole} was tracked with {words(asked)}, which does not fit any more: {error.message}"
            raise InstallError(told, hint="Use --child again with what there is now, or --reset.") from None
    own = {child.name.casefold() for child in found.children}
    children = tuple(child for child in asked.children if child.rpartition(".")[2].casefold() in own)
    # A key that is not the primary one is kept, so that another index which comes later does not change it.
    key = () if found.view or found.key == classes.primary(found) else found.key
    asked = replace(asked, children=children, key=key)
    try:
        return WantedClass(plan=needs.numbered(plan(found, needs.fitted(found, asked))), asked=asked)
    except UsageError as error:
        if request.columns is None and request.exclude is None and not request.reset:
            error.hint = f"It was tracked with {words(asked)}; use --columns or --exclude again, or --reset."
        raise


def _shared(classes: Classes, table: Table) -> Iterator[str]:
    """What is to be known of child tables that refer to others too, as a relation of two tables does."""
    for child in table.children:
        others = [name for name in classes.schema(table.schema).referred(child.name) if name != table.name]
        if others:
            yield f"{child.name} refers to {', '.join(others)} too; its changes are published as changes of {table.whole}."


def _tell(note: Note, one: WantedClass, former: TriggerOptions | None, request: TrackRequest) -> None:
    """Says what is kept of earlier options without being said again, and what is changed."""
    if former is None:
        return
    before, after = words(former), words(replace(one.asked, rows=one.asked.rows or former.rows))
    if before != after:
        note(f"{one.owner} was tracked with {before}; it is now tracked with {words(one.asked)}.")
    elif after != words(TriggerOptions()) and request == TrackRequest(reset=request.reset):
        note(f"{one.owner} is tracked as before, with {after}.")


def _matching(
    classes: Classes, pattern: str, names: LogNames, children: set[str], note: Note, keyed: Collection[str]
) -> list[str]:
    """The tables that a pattern means: those with a key that are neither a log's own nor children. Views are named by name."""
    first, _, last = pattern.rpartition(".")
    place = classes.schema(first or classes.default)
    logs = _tables_of_logs(place, names)
    inner = {child.rpartition(".")[2].casefold() for child in children}
    found: list[str] = []
    keyless: list[str] = []
    for table in place.tables:
        name = table.casefold()
        if not fnmatchcase(name, last.casefold()) or name in logs or name in inner or table in place.parts:
            continue
        (found if place.key(table) else keyless).append(table)
    chosen = [one for one in keyless if place.row_key(one) or _whole(place, one) in keyed]
    if not found and not chosen:
        near = nearest(last.strip("*?"), {table for table in place.tables if table.casefold() not in logs})
        hint = f"Did you mean {near}?" if near else "Patterns mean tables; a view is named by its name."
        raise InstallError(f"No table with a key matches {pattern}.", hint=hint)
    whole = [_whole(place, table) for table in found]
    taken = {child.name for table in classes.named(whole) for child in table.children}
    for table in keyless:
        if table not in taken and table in chosen:
            whole.append(_whole(place, table))
        elif table not in taken:
            note(f"{table} is left out: it has no key.")
    return whole


def _whole(place: Schema, table: str) -> str:
    return f"{place.name}.{table}" if place.name else table


def _tables_of_logs(place: Schema, names: LogNames) -> frozenset[str]:
    """The tables of this log and of others: what has companions is a log."""
    known = {table.casefold() for table in place.tables}
    logs = [LogNames(table=table) for table in place.tables]
    others = [log for log in logs if log.marks.casefold() in known]
    return frozenset(name.casefold() for log in (names, *others) for name in log.own)
