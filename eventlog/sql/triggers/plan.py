"""Plans what the triggers of a class watch: pure, from its table and the options of `eventlog track`."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import InstallError, UsageError
from eventlog.core.schema import Attribute, Child, Column, Table
from eventlog.core.tablekey import SPECIAL


class Style(StrEnum):
    """What a change is logged as: the row to read back, its fields with or without values, or all fields of the row."""

    ROW_BACK = "row-back"
    FIELD = "field"
    FIELD_REPLACE = "field-replace"
    FIELD_BACK = "field-back"
    IMAGE = "image"


VALUED = (Style.FIELD, Style.FIELD_REPLACE, Style.IMAGE)
"""The styles that log values; others leave them to be read back."""


class TriggerOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked for; it is remembered in the triggers, so that they can be planned again from today's schema.

    `when` is a SQL condition on the class's columns by their bare names: a row for which it never held is not logged.
    `key` names the columns that tell rows apart, where that is not the primary key.
    `rows` asks for row triggers where the database also has statement triggers that see all rows at once.
    `always` asks for triggers that also fire for sessions which replicate from elsewhere.
    `follow_ddl` asks for triggers that the database itself changes when their table is altered.
    `foreign` says that a table belongs to somebody who must not get the rights of who installs.
    `deferred` says that two rows may have one key until their transaction ends.
    `repeated` are the attributes of child tables of which several rows under one parent may have the same value.
    """

    style: Style = Style.ROW_BACK
    columns: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    when: str | None = None
    rows: bool = False
    always: bool = False
    follow_ddl: bool = False
    foreign: bool = False
    deferred: bool = False
    repeated: tuple[str, ...] = ()


class Watched(Struct, frozen=True, kw_only=True):
    """A column whose changes are logged, under the name that consumers know it by."""

    name: str
    column: Column


class ChildPlan(Struct, frozen=True, kw_only=True):
    """A child table and what is watched of it."""

    child: Child
    watched: tuple[Watched, ...]


class Numbered(Struct, frozen=True, kw_only=True):
    """A table of a class as the catalog numbers it: its own number, and number and type of each key column.

    `shape` changes when something of it does that its triggers depend on, or of what else `watch` names.
    """

    number: int
    keys: tuple[tuple[int, int], ...]
    watch: str
    shape: str


class TriggerPlan(Struct, frozen=True, kw_only=True):
    """What the triggers of one class have to do; `numbered` are its table and child tables, where DDL is followed."""

    table: Table
    options: TriggerOptions
    watched: tuple[Watched, ...]
    children: tuple[ChildPlan, ...] = ()
    numbered: tuple[Numbered, ...] = ()

    @property
    def remembered(self) -> tuple[str, ...]:
        """The attributes that are watched, where columns were left out; with all of them, new columns may come in."""
        if not self.options.exclude:
            return ()
        watched = itertools.chain(self.watched, *(child.watched for child in self.children))
        return tuple(one.name for one in watched)

    @property
    def key(self) -> tuple[Column, ...]:
        return self.table.key_columns

    @property
    def looks_back(self) -> bool:
        """Whether a key that a row left may still mean something that its delete does not tell of.

        Another row may have it already, where keys may wait for the end of their transaction. Or child rows stand there and
        wait for a parent that comes again, whose values nobody would tell anew.
        """
        if self.table.view or (self.options.foreign and self.options.when is not None):
            return False
        return self.options.deferred or (bool(self.children) and self.options.style != Style.ROW_BACK)

    @property
    def whole_rows(self) -> bool:
        """Whether any change of a row counts, and nothing but the key is told of it."""
        asked = self.options
        return asked.style == Style.ROW_BACK and not (asked.columns or asked.exclude or asked.when or self.table.view)


def plan(table: Table, options: TriggerOptions | None = None) -> TriggerPlan:
    """What to watch; InstallError where the table cannot be captured, UsageError where the options do not fit it."""
    options = options or TriggerOptions()
    _check_key(table)
    chosen = _chosen(table, options)
    children = [_child_plan(child, chosen) for child in table.children]
    names = {one.name for one in chosen}
    options = replace(options, repeated=tuple(name for name in options.repeated if name in names))
    return TriggerPlan(
        table=table,
        options=options,
        watched=_own(table, chosen),
        children=tuple(child for child in children if child.watched),
    )


def captured(table: Table, options: TriggerOptions, watched: Collection[str] = ()) -> Table:
    """The class without the columns that are not captured: a read-back or a full load would publish them otherwise.

    `watched` are the attributes that its triggers were made for, where columns were left out: a column that came later, or
    has another name since, may be what nobody is to see.
    """
    if options.style == Style.IMAGE:
        table = replace(table, images=True)
    if not (options.columns or options.exclude):
        return table
    known = _attribute_names(table)
    only = {known[name.casefold()] for name in watched or options.columns if name.casefold() in known}
    never = {known[name.casefold()] for name in options.exclude if name.casefold() in known}
    all_of_them = not (watched or options.columns)
    chosen = [one for name, one in table.attributes.items() if (name in only or all_of_them) and name not in never]
    names = {(found.child, found.column.name) for found in chosen}
    names |= {(None, name) for name in table.key}
    names |= {(child.name, name) for child in table.children for name in child.parent_key}
    children = [replace(one, columns=_among(one.columns, one.name, names)) for one in table.children]
    left_out = [one for one in table.attributes.values() if one not in chosen]
    return replace(
        table,
        columns=_among(table.columns, None, names),
        children=tuple(children),
        left_out=tuple(left_out),
    )


def _among(columns: Iterable[Column], child: str | None, names: set[tuple[str | None, str]]) -> tuple[Column, ...]:
    return tuple([column for column in columns if (child, column.name) in names])


def _own(table: Table, chosen: Iterable[Attribute]) -> tuple[Watched, ...]:
    """The class's own columns; where only its key or its child tables are of interest, the first key column.

    Nothing else would tell of an insert.
    """
    watched = tuple(Watched(name=found.name, column=found.column) for found in chosen if found.child is None)
    if watched:
        return watched
    first = table.key_columns[0]
    return (Watched(name=first.name, column=first),)


def _child_plan(child: Child, chosen: Iterable[Attribute]) -> ChildPlan:
    own = [found for found in chosen if found.child == child.name]
    return ChildPlan(child=child, watched=tuple(Watched(name=found.name, column=found.column) for found in own))


def _chosen(table: Table, options: TriggerOptions) -> list[Attribute]:
    only, never = _named(table, options.columns), _named(table, options.exclude)
    chosen = [found for name, found in table.attributes.items() if (name in only or not only) and name not in never]
    if not chosen and table.attributes:
        raise UsageError(f"With these columns left out, nothing of {table.name} is watched; leave out fewer.")
    return chosen


def _named(table: Table, names: Iterable[str]) -> set[str]:
    """The attributes that these names mean; UsageError for one that means none."""
    known = _attribute_names(table)
    missing = [name for name in names if name.casefold() not in known]
    if missing:
        known_as = ", ".join(table.attributes)
        raise UsageError(f"{table.name} has no column {missing[0]} outside its key; it has {known_as or 'none'}.")
    return {known[name.casefold()] for name in names}


def _attribute_names(table: Table) -> dict[str, str]:
    """The attributes by the names that people write: `fname`, `usr_phone.phoneno`, or a view's column with its prefix."""
    known = {name.casefold(): name for name in table.attributes}
    return known | {
        found.column.name.casefold(): name for name, found in table.attributes.items() if found.child is None
    }


def _check_key(table: Table) -> None:
    if not table.key:
        why = "no column whose name begins with pk_"
        hint = "Name its key columns pk_…."
        if not table.view:
            why = "no primary key, and no unique index over columns that are NOT NULL"
            hint = (
                "Give it one, use --key A,B if you know which columns identify a row, or track its parent with --child."
            )
        raise InstallError(f"{table.name} has {why}, so a change could not say which row it is about.", hint=hint)
    for name in table.key:
        if set(name) & set(SPECIAL) or name != name.strip(" "):
            message = f"The key column {name!r} of {table.name} has a character that a table_key cannot carry."
            raise InstallError(message, hint=f"Rename it; none of {' '.join(SPECIAL)} may stand in it.")
