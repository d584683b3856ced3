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

from eventlog.capture.plan import TriggerPlan
from eventlog.capture.table_needs import TableNeeds
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.schema import WHOLE_ROW, Table
from eventlog.core.suggest import nearest
from eventlog.core.table_names import read_name, write_name
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import Classes
from eventlog.tracked.classes import RegistryState, read_capture
from eventlog.tracked.options import TrackRequest, TriggerOptions, words
from eventlog.tracked.registry import read_log_owner, read_relation, refuse_fault

Note = Callable[[str], object]


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
    planner = _ClassPlanner(connection, names, schema, request)
    classes, known = planner.classes, planner.known
    taken = {*(request.children or ()), *chain.from_iterable(options.children for options in known.values())}
    keyed = {owner for owner, options in known.items() if options.key}
    patterns_only = all(is_pattern(name) and not classes.has(name) for name in tables)
    meant = resolve_table_names(classes, tables, names, taken, note, keyed)
    _refuse_own(classes, meant, names)
    wanted: list[WantedClass] = []
    for table in classes.find_named(meant, request.children or ()):
        try:
            planned = planner.plan(table, {other.owner for other in wanted})
        except InstallError as error:
            # A table that was named is wanted; one that only a pattern means may be left out.
            if leave is None or not patterns_only:
                raise
            leave(f"{table.whole} is left out: {error}")
            continue
        for remark in planner.remark(table, planned):
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


def _refuse_own(classes: Classes, meant: Sequence[str], names: LogNames) -> None:
    """Refuse tables of the log: each row that is logged or published would make another one."""
    own = {name.casefold() for name in names.own}
    for schema, table in map(read_name, meant):
        if table.casefold() not in own:
            continue
        if classes.schema(schema or classes.default).name == classes.schema(names.schema).name:
            what = "is the log itself" if table.casefold() == names.table.casefold() else f"belongs to {names.table}"
            raise InstallError(f"{table} {what}; tracking it would never end.")


class _ClassPlanner:
    """Plans one class after another by what the registry has of it and what is asked for now."""

    def __init__(self, connection: Connection, names: LogNames, schema: str | None, request: TrackRequest) -> None:
        self._connection = connection
        self._request = request
        self._capture = read_capture(connection, names)
        self._needs = TableNeeds(connection, names)
        log_owner, is_log_owner = read_log_owner(connection, names)
        self._function_owner = None if is_log_owner else log_owner
        self.classes = Classes(connection, schema)
        self.known = {owner: tracked.options for owner, tracked in self._capture.classes.items()}

    def plan(self, table: Table, others: Collection[str]) -> WantedClass:
        """Plan a class; `others` are tracked with it."""
        former = None if table.whole in self.known else former_name(self.classes, table, self._capture)
        kept, tracked = TriggerOptions(), self._capture.classes.get(former or table.whole)
        if tracked is not None and not self._request.reset:
            refuse_fault(tracked)
            kept = tracked.options
        if not dialect_of(self._connection).case_sensitive:
            _refuse_alike(self.classes, table, {*self.known, *others})
        asked = self._request.over(kept)
        table, asked = self._fit_children(table, asked)
        try:
            planned = self._needs.plan(table, asked)
        except UsageError as error:
            if self._request.columns is None and self._request.exclude is None and not self._request.reset:
                tracked_with = f"It was tracked with {words(asked)}"
                error.hint = f"{tracked_with}; use --columns or --exclude again, or --reset."
            raise
        planned = replace(planned, function_owner=self._function_owner)
        relation = read_relation(self._connection, table.schema, table.name)
        return WantedClass(plan=planned, asked=asked, former=former, relation=relation)

    def _fit_children(self, table: Table, asked: TriggerOptions) -> tuple[Table, TriggerOptions]:
        """Find the class with the key and the children that are asked for; children named for several
        classes go where they belong.
        """
        if asked.key or (self._request.children is None and asked.children):
            children = asked.children or [write_name(table.schema, child.name) for child in table.children]
            try:
                table = self.classes.one(table.whole, children, asked.key)
            except InstallError as error:
                tracked = f"{table.whole} was tracked with {words(asked)}"
                raise InstallError(
                    f"{tracked}, which does not fit any more: {error.message}",
                    hint="Use --child again with what there is now, or --reset.",
                ) from None
        own = {child.name.casefold() for child in table.children}
        children = tuple([child for child in asked.children if read_name(child)[1].casefold() in own])
        # A key that is not the primary one is kept, so that another index which comes later does not
        # change it.
        is_primary = table.view or table.key == self.classes.primary(table)
        return table, replace(asked, children=children, key=() if is_primary else table.key)

    def remark(self, found: Table, wanted: WantedClass) -> Iterator[str]:
        """Yield what somebody should know who tracks the class that was found."""
        table, asked = wanted.plan.table, wanted.asked
        for name in {child.name for child in found.children} - {child.name for child in table.children}:
            why = f"its foreign key is not about {', '.join(asked.key)}"
            yield f"{name} is not captured with {found.whole}: {why}."
        # Options that are kept without being repeated, and changed ones.
        former = self.known.get(found.whole)
        if former is not None:
            before, now = words(former), words(asked)
            if before != now:
                yield f"{wanted.owner} was tracked with {before}; it is now tracked with {now}."
            elif now != words(TriggerOptions()) and self._request == TrackRequest(reset=self._request.reset):
                yield f"{wanted.owner} is tracked as before, with {now}."
        # A child table with other parents too, as a relation of two tables has.
        for child in table.children:
            referred = self.classes.schema(table.schema).list_referred(child.name)
            others = [name for name in referred if name != table.name]
            if others:
                refers = f"{child.name} refers to {', '.join(others)} too"
                yield f"{refers}; its changes are published as changes of {table.whole}."
        yield from self._needs.remarks(wanted.plan, asked)


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
    """Find the tables for names and patterns; `note` hears which tables of a pattern have no key.

    `children` are known to belong to others; `keyed` tables have a key somebody named before.
    """
    # A table may be called like a pattern; then its name means that table.
    patterns = [name for name in asked if is_pattern(name) and not classes.has(name)]
    meant = [name for name in asked if name not in patterns]
    inner = {read_name(child)[1].casefold() for child in children}
    for pattern in patterns:
        first, _, last = pattern.rpartition(".")
        schema = classes.schema(first or classes.default)
        logs = _find_logs(schema.tables, names)
        captured = [table for table in schema.tables if table.casefold() not in logs]
        matching = [
            table
            for table in captured
            if fnmatchcase(table.casefold(), last.casefold())
            and table.casefold() not in inner
            and table not in schema.parts
        ]
        with_key = [write_name(schema.name, table) for table in matching if schema.key(table)]
        taken = {child.name for table in classes.find_named(with_key) for child in table.children}
        chosen, keyless = list[str](), list[str]()
        for table in matching:
            if not schema.key(table):
                has_key = schema.row_key(table) or write_name(schema.name, table) in keyed
                (chosen if has_key else keyless).append(table)
        if not with_key and not chosen:
            near = nearest(last.strip("*?"), captured)
            hint = f"Did you mean {near}?" if near else "Patterns mean tables; a view is named by its name."
            raise InstallError(f"No table with a key matches {pattern}.", hint=hint)
        meant += [*with_key, *(write_name(schema.name, table) for table in chosen if table not in taken)]
        for table in keyless:
            if table not in taken:
                note(f"{table} is left out: it has no key.")
    return meant


def _find_logs(tables: Collection[str], names: LogNames) -> set[str]:
    """Find the tables of logs: what has companions is one, whether this or another."""
    known = {table.casefold() for table in tables}
    others = [log for log in (LogNames(table=table) for table in tables) if log.marks.casefold() in known]
    return {name.casefold() for log in (names, *others) for name in log.own}
