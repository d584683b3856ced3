"""Which classes a command means, and with which options: names and patterns, what was asked before,
what a table needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from eventlog.capture.plan import TriggerPlan, plan
from eventlog.capture.requests import TrackRequest, words
from eventlog.capture.table_needs import TableNeeds
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.schema import WHOLE_ROW, Table
from eventlog.core.suggest import nearest
from eventlog.core.table_names import read_name, write_name
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes
from eventlog.tracked.classes import RegistryState, read_capture
from eventlog.tracked.options import TriggerOptions
from eventlog.tracked.registry import read_log_owner, read_relation, refuse_fault

Note = Callable[[str], None]


class WantedClass(Struct, frozen=True, kw_only=True):
    """What the triggers of one class have to do, and the options as they were asked for.

    `former` is what it was called when it was tracked, where somebody has given its table another
    name since. `relation` is its table's number, where tables have numbers.
    """

    plan: TriggerPlan
    asked: TriggerOptions
    former: str | None = None
    relation: int | None = None

    @property
    def owner(self) -> str:
        return self.plan.table.whole


def is_pattern(name: str) -> bool:
    """Return True if a name stands for several."""
    return any(sign in name for sign in "*?[")


def plan_wanted_classes(
    connection: Connection,
    tables: Sequence[str],
    request: TrackRequest,
    names: LogNames,
    schema: str | None,
    note: Note,
    leave: Note | None = None,
) -> list[WantedClass]:
    """Plan the classes with these names, as they were asked for before and are asked for now.

    Where patterns alone are given, `leave` hears why one of their tables cannot be tracked; the
    others still are.
    """
    _refuse_tables(tables, request)
    classes, needs = Classes(connection, schema), TableNeeds(connection, names)
    capture = read_capture(connection, names)
    known = {owner: tracked.options for owner, tracked in capture.classes.items()}
    log_owner, is_log_owner = read_log_owner(connection, names)
    function_owner = None if is_log_owner else log_owner
    taken = {*(request.children or ()), *chain.from_iterable(options.children for options in known.values())}
    keyed = {owner for owner, options in known.items() if options.key}
    wanted: list[WantedClass] = []
    meant = resolve_table_names(classes, tables, names, taken, note, keyed)
    for table in classes.find_named(meant, request.children or ()):
        renamed = None if table.whole in known else former_name(classes, table, capture)
        owner = renamed or table.whole
        former = None
        if not request.reset and owner in capture.classes:
            refuse_fault(capture.classes[owner])
            former = known[owner]
        asked = request.over(former or TriggerOptions())
        try:
            if not dialect_of(connection).case_sensitive:
                _refuse_alike(classes, table, {*known, *(other.owner for other in wanted)})
            planned = _plan_class(classes, needs, table, request, asked)
            fitted = replace(planned.plan, function_owner=function_owner)
            relation = read_relation(connection, table.schema, table.name)
            planned = replace(planned, plan=fitted, former=renamed, relation=relation)
        except InstallError as error:
            # A table that was named is wanted; one that only a pattern means may be left out.
            patterns_only = all(is_pattern(name) and not classes.has(name) for name in tables)
            if leave is None or not patterns_only:
                raise
            leave(f"{table.whole} is left out: {error}")
            continue
        captured_children = {child.name for child in planned.plan.table.children}
        for child in {child.name for child in table.children} - captured_children:
            why = f"its foreign key is not about {', '.join(asked.key)}"
            note(f"{child} is not captured with {table.whole}: {why}.")
        _tell(note, planned, known.get(table.whole), request)
        whole = planned.plan.table
        for remark in [*_note_shared_children(classes, whole), *needs.remarks(whole, planned.asked)]:
            note(remark)
        wanted.append(planned)
    return wanted


def _refuse_tables(tables: Sequence[str], request: TrackRequest) -> None:
    """Refuse names unfit for the request."""
    if not tables:
        raise UsageError("Which table? `eventlog track TABLE…` needs the names of tables or views.")
    if request.key == (WHOLE_ROW,):
        if any(map(is_pattern, tables)):
            raise UsageError("--whole-row is about tables that are named; a pattern means tables with a key.")
    elif request.key and (len(tables) > 1 or is_pattern(tables[0])):
        raise UsageError("--key is about one table; track the others by themselves.")


def former_name(
    classes: Classes,
    table: Table,
    capture: RegistryState,
) -> str | None:
    """Find the former name of the class whose triggers are on this table, if no table has it now."""
    for owner in capture.classes:
        stands = capture.table_today(owner) == (table.schema, table.name)
        if stands and owner != table.whole and not classes.has(owner):
            return owner
    return None


def _refuse_alike(classes: Classes, table: Table, tracked: Collection[str]) -> None:
    """Raise InstallError if another tracked table's name differs only in case.

    Rows of the log may name a table in any case.
    """
    if table.whole in tracked:
        return
    schema = classes.schema(table.schema)
    for name in schema.alike(table.name):
        other = write_name(schema.name, name)
        if other != table.whole and other in tracked:
            differing = f"{other} is tracked, and its name differs from {table.whole} only in case"
            raise InstallError(
                f"{differing}: rows of the log do not tell the two apart.",
                hint="Track one of them, or give one of them another name.",
            )


def resolve_table_names(
    classes: Classes,
    asked: Sequence[str],
    names: LogNames,
    children: set[str],
    note: Note,
    keyed: Collection[str] = (),
) -> list[str]:
    """Find the tables for names and patterns.

    `children` are known to belong to others; `keyed` tables have a key somebody named before.
    """
    # A table may be called like a pattern; then its name means that table.
    patterns = [name for name in asked if is_pattern(name) and not classes.has(name)]
    tables = [name for name in asked if name not in patterns]
    for pattern in patterns:
        tables += _matching(classes, pattern, names, children, note, keyed)
    return tables


def _plan_class(
    classes: Classes,
    needs: TableNeeds,
    table: Table,
    request: TrackRequest,
    asked: TriggerOptions,
) -> WantedClass:
    """Plan a class; children named for several classes go where they belong."""
    if asked.key or (request.children is None and asked.children):
        children = asked.children or [write_name(table.schema, child.name) for child in table.children]
        try:
            table = classes.one(table.whole, children, asked.key)
        except InstallError as error:
            tracked = f"{table.whole} was tracked with {words(asked)}"
            raise InstallError(
                f"{tracked}, which does not fit any more: {error.message}",
                hint="Use --child again with what there is now, or --reset.",
            ) from None
    own = {child.name.casefold() for child in table.children}
    named = [(child, read_name(child)[1].casefold()) for child in asked.children]
    children = tuple([child for child, name in named if name in own])
    # A key that is not the primary one is kept, so that another index which comes later does not
    # change it.
    key = table.key
    if table.view or table.key == classes.primary(table):
        key = ()
    asked = replace(asked, children=children, key=key)
    try:
        fitted = needs.number_images(plan(table, needs.fit_options(table, asked)))
        return WantedClass(plan=fitted, asked=asked)
    except UsageError as error:
        if request.columns is None and request.exclude is None and not request.reset:
            tracked = f"It was tracked with {words(asked)}"
            error.hint = f"{tracked}; use --columns or --exclude again, or --reset."
        raise


def _note_shared_children(classes: Classes, table: Table) -> Iterator[str]:
    """Yield remarks on child tables with other parents too, as a relation of two tables has."""
    for child in table.children:
        referred = classes.schema(table.schema).list_referred(child.name)
        others = [name for name in referred if name != table.name]
        if others:
            yield (
                f"{child.name} refers to {', '.join(others)} too;"
                f" its changes are published as changes of {table.whole}."
            )


def _tell(
    note: Note,
    wanted: WantedClass,
    former: TriggerOptions | None,
    request: TrackRequest,
) -> None:
    """Report earlier options kept without being repeated, and changed ones."""
    if former is None:
        return
    now = words(wanted.asked)
    before = words(former)
    if before != now:
        note(f"{wanted.owner} was tracked with {before}; it is now tracked with {now}.")
    elif now != words(TriggerOptions()) and request == TrackRequest(reset=request.reset):
        note(f"{wanted.owner} is tracked as before, with {now}.")


def _matching(
    classes: Classes,
    pattern: str,
    names: LogNames,
    children: set[str],
    note: Note,
    keyed: Collection[str],
) -> list[str]:
    """Find the tables of a pattern: with a key, not a log's own, no children, no views."""
    first, _, last = pattern.rpartition(".")
    schema = classes.schema(first or classes.default)
    # What has companions is a log, whether this one or another.
    tables = {table.casefold() for table in schema.tables}
    others = [LogNames(table=table) for table in schema.tables]
    others = [log for log in others if log.marks.casefold() in tables]
    logs = {name.casefold() for log in (names, *others) for name in log.own}
    inner = {read_name(child)[1].casefold() for child in children}
    with_key: list[str] = []
    keyless: list[str] = []
    for table in schema.tables:
        name = table.casefold()
        not_meant = name in logs or name in inner or table in schema.parts
        if not_meant or not fnmatchcase(name, last.casefold()):
            continue
        (with_key if schema.key(table) else keyless).append(table)
    chosen = [table for table in keyless if schema.row_key(table) or write_name(schema.name, table) in keyed]
    if not with_key and not chosen:
        captured = {table for table in schema.tables if table.casefold() not in logs}
        hint = "Patterns mean tables; a view is named by its name."
        if near := nearest(last.strip("*?"), captured):
            hint = f"Did you mean {near}?"
        raise InstallError(f"No table with a key matches {pattern}.", hint=hint)
    meant = [write_name(schema.name, table) for table in with_key]
    taken = {child.name for table in classes.find_named(meant) for child in table.children}
    for table in keyless:
        if table in taken:
            continue
        if table in chosen:
            meant.append(write_name(schema.name, table))
        else:
            note(f"{table} is left out: it has no key.")
    return meant
