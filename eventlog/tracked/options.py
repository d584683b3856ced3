"""What a class is tracked with, what somebody asks of `eventlog track`, and which columns are captured."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.schema import WHOLE_ROW, Attribute, Column, Table


class Style(StrEnum):
    """What a change is logged as: the row to read back, its fields with or without values, or all
    fields of the row.
    """

    ROW_BACK = "row-back"
    FIELD = "field"
    FIELD_REPLACE = "field-replace"
    FIELD_BACK = "field-back"
    IMAGE = "image"


VALUED = (Style.FIELD, Style.FIELD_REPLACE, Style.IMAGE)
"""The styles that log values; others leave them to be read back."""


class TriggerOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was asked for; the registry keeps it, so that triggers can be planned again from today's
    schema.

    `when` is a SQL condition on the class's columns by their bare names: a row for which it never
    held is not logged. `key` names the columns that tell rows apart, where that is not the primary
    key; `WHOLE_ROW` stands for all. `rows` asks for row triggers where the database also has
    statement triggers that see all rows at once. `always` asks for triggers that also fire for
    sessions which replicate from elsewhere. `follow_ddl` asks for triggers that the database itself
    changes when their table is altered. `foreign` says that a table belongs to somebody who must
    not get the rights of who installs. `deferred` says that two rows may have one key until their
    transaction ends. `at_once` says that triggers of others may write to these tables before a
    statement ends: then what a row's change means is written before they do, and not together with
    the statement's other rows. `repeated` are the attributes of child tables of which several rows
    under one parent may have the same value.
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
    at_once: bool = False
    repeated: tuple[str, ...] = ()

    @property
    def whole_row(self) -> bool:
        """Return True if nothing but the whole row tells rows apart."""
        return self.key == (WHOLE_ROW,)


class TrackRequest(Struct, frozen=True, kw_only=True):
    """What somebody asks for now; None keeps what a class was tracked with, `reset` keeps nothing
    of it.
    """

    style: Style | None = None
    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    children: tuple[str, ...] | None = None
    key: tuple[str, ...] | None = None
    when: str | None = None
    rows: bool | None = None
    always: bool | None = None
    follow_ddl: bool | None = None
    reset: bool = False

    def over(self, kept: TriggerOptions) -> TriggerOptions:
        """Return a class's former options with these changes; an empty condition removes the
        condition.
        """
        options = {name: getattr(self, name) for name in OPTIONS}
        options = {name: getattr(kept, name) if asked is None else asked for name, asked in options.items()}
        # Without a key nobody finds the row again, so --whole-row alone means the one style that
        # needs no second look.
        if self.key == (WHOLE_ROW,) and self.style is None:
            options["style"] = Style.IMAGE
        return TriggerOptions(**options | {"when": options["when"] or None})


OPTIONS: Final = tuple(name for name in TrackRequest.__struct_fields__ if name != "reset")
"""What somebody may ask for; the other options depend on the table."""


def words(options: TriggerOptions) -> str:
    """Write the options as `eventlog track` takes them."""
    lists = {
        "--columns": options.columns,
        "--exclude": options.exclude,
        "--child": options.children,
        "--key": () if options.whole_row else options.key,
    }
    flags = {
        "--whole-row": options.whole_row,
        "--row-triggers": options.rows,
        "--always": options.always,
        "--follow-ddl": options.follow_ddl,
    }
    arguments = ["--events", options.style.value]
    for option, names in lists.items():
        if names:
            arguments += [option, ",".join(names)]
    if options.when:
        arguments += ["--when", options.when]
    return shlex.join([*arguments, *(flag for flag, given in flags.items() if given)])


def keep_captured_columns(table: Table, options: TriggerOptions, watched: Collection[str] = ()) -> Table:
    """Drop uncaptured columns from the class: a read-back or a full load would publish them otherwise.

    `watched` are the attributes that its triggers were made for, where columns were left out.
    """
    if options.style == Style.IMAGE:
        table = replace(table, images=True)
    if not (options.columns or options.exclude):
        return table
    # A column that came later, or has another name since, may be what nobody is to see: what the
    # triggers know counts.
    chosen, left_out = divide_attributes(table, watched or options.columns, options.exclude)
    names = {(attribute.child, attribute.column.name) for attribute in chosen}
    names |= {(None, name) for name in table.key}
    names |= {(child.name, name) for child in table.children for name in child.parent_key}

    def keep(columns: Iterable[Column], child: str | None) -> tuple[Column, ...]:
        return tuple([column for column in columns if (child, column.name) in names])

    return replace(
        table,
        columns=keep(table.columns, None),
        children=tuple(replace(child, columns=keep(child.columns, child.name)) for child in table.children),
        left_out=tuple(left_out),
    )


def divide_attributes(
    table: Table, wanted: Collection[str], excluded: Iterable[str]
) -> tuple[list[Attribute], list[Attribute]]:
    """Divide attributes into chosen ones, all if none is named, and those left out."""
    known = attribute_names(table)
    only, never = ({known.get(name.casefold()) for name in names} for names in (wanted, excluded))
    chosen: list[Attribute] = []
    left_out: list[Attribute] = []
    for name, attribute in table.attributes.items():
        is_chosen = (name in only or not wanted) and name not in never
        (chosen if is_chosen else left_out).append(attribute)
    return chosen, left_out


def attribute_names(table: Table) -> dict[str, str]:
    """Map names people write to attributes: `fname`, `usr_phone.phoneno`, or a view's prefixed
    column.
    """
    known = {name.casefold(): name for name in table.attributes}
    for name, attribute in table.attributes.items():
        if attribute.child is None:
            known[attribute.column.name.casefold()] = name
    return known
