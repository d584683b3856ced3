"""Definitions as the history keeps them: how a class looked, and the numbers by which a database
knows its columns again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from eventlog.core.rules.definitions import BEFORE_ALL_NUMBERS, Definition
from eventlog.core.schema import Attribute, Catalog, Child, Column, Table
from eventlog.sql.access import answers
from eventlog.sql.dialect import dialect_of, offers, statement


class NumberedColumn(Struct, frozen=True, array_like=True):
    """A column by its number, which stays when it gets another name; its type by number, by what is
    said of it, and in words.
    """

    number: int
    name: str
    type: int
    modifier: int
    words: str


class NumberedTable(Struct, frozen=True, kw_only=True):
    """A table as the database's catalog numbers it."""

    relation: int
    schema: str
    name: str
    columns: tuple[NumberedColumn, ...]

    @property
    def names(self) -> dict[int, str]:
        """The names of its columns by their numbers."""
        return {column.number: column.name for column in self.columns}

    @property
    def numbers(self) -> dict[str, int]:
        """The numbers of its columns by their names."""
        return {column.name: column.number for column in self.columns}


class Described(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A version of a class. `raw` are its tables by their numbers, the class's own first, where the
    database has such; `key` are the numbers of its key's columns; `former` is the name of the class
    before, where somebody gave it another. `place` is how many versions of any class came before.
    Between the row `unlogged_from` and the first of this version changes of new columns may not
    have been logged, where triggers followed later.
    """

    table: Table | None = None
    raw: tuple[NumberedTable, ...] = ()
    key: tuple[int, ...] = ()
    former: str | None = None
    place: int = 0
    unlogged_from: int | None = None


Types = Mapping[tuple[int, int], str]
"""What types are called elsewhere in a catalog, by their numbers."""


def describe(connection: Connection, table: Table, former: str | None = None) -> Described:
    """A class as it looks now."""
    dialect = dialect_of(connection)
    if table.view or not offers(dialect, "numbered_table"):
        return Described(table=table, former=former)
    raw: list[NumberedTable] = []
    numbers = statement(dialect, "numbers_of")
    for name in (table.name, *(child.name for child in table.children)):
        asked = {"schema": table.schema, "table": name}
        for (text,) in answers(connection, "numbered_table", asked, numbers=numbers):
            raw.append(msgspec.json.decode(text, type=NumberedTable))
    return Described(table=table, raw=tuple(raw), former=former)


def known_types(described: Iterable[Described | None]) -> dict[tuple[int, int], str]:
    """What types are called where both is known, their numbers and the table."""
    types_by_number: dict[tuple[int, int], str] = {}
    for version in described:
        if version is None or version.table is None or not version.raw:
            continue
        types = {column.name: column.type for column in version.table.columns}
        for column in version.raw[0].columns:
            if column.name in types:
                types_by_number[column.type, column.modifier] = types[column.name]
    return types_by_number


def derived(noted: Described, former: Described | None, types: Types) -> Described:
    """What the database noted of a table, as a table: what is known of the version before is true
    of it as well.
    """
    own, *others = noted.raw
    # Another number is another table, whatever it is called: nothing of the former one is true of it.
    is_new = former is None or not former.raw or former.raw[0].relation != own.relation
    if former is None or former.table is None or is_new:
        names = own.names
        key = {names[number]: place for place, number in enumerate(noted.key, 1) if number in names}
        seen = [_column(column, types, key=key.get(column.name)) for column in own.columns]
        return replace(noted, table=Table(name=own.name, schema=own.schema, columns=tuple(seen)))
    before, was = former.table, former.raw[0].names
    columns = _columns(own, was, before.columns, types)
    left_out: list[Attribute] = []
    unwatched = {attribute.column.name: attribute for attribute in before.left_out if attribute.child is None}
    for column in own.columns:
        name = was.get(column.number)
        attribute = unwatched.get(name) if name is not None else None
        # Where some columns are left out, nobody has said of a new one whether it may be seen.
        if attribute is None and name is None and before.left_out:
            attribute = Attribute(name=column.name, column=_column(column, types))
        if attribute is not None:
            columns.pop(column.number, None)
            renamed = replace(attribute.column, name=column.name)
            left_out.append(replace(attribute, name=column.name, column=renamed))
    of_children = [attribute for attribute in before.left_out if attribute.child is not None]
    table = replace(
        before,
        name=own.name,
        schema=own.schema,
        columns=tuple(columns.values()),
        children=tuple(_children(before, former, others, types)),
        left_out=(*left_out, *of_children),
    )
    return replace(noted, table=table)


def _columns(raw: NumberedTable, was: Mapping[int, str], before: Sequence[Column], types: Types) -> dict[int, Column]:
    by_name = {column.name: column for column in before}
    columns: dict[int, Column] = {}
    for numbered in raw.columns:
        former = by_name.get(was.get(numbered.number, ""))
        column = _column(numbered, types)
        if former is not None:
            column = replace(former, name=numbered.name, type=column.type)
        columns[numbered.number] = column
    return columns


def _children(before: Table, former: Described, raw: Sequence[NumberedTable], types: Types) -> Iterable[Child]:
    """The child tables as they are now; what the database did not note of one is as it was."""
    now = {table.relation: table for table in raw}
    was = {table.name: table for table in former.raw[1:]}
    for child in before.children:
        there = was.get(child.name)
        new = None if there is None else now.get(there.relation)
        if there is None or new is None:
            yield child
            continue
        columns = _columns(new, there.names, child.columns, types)
        key = [new.names.get(there.numbers[name], name) for name in child.parent_key]
        yield Child(name=new.name, parent_key=tuple(key), columns=tuple(columns.values()))


def _column(raw: NumberedColumn, types: Types, key: int | None = None) -> Column:
    return Column(name=raw.name, type=types.get((raw.type, raw.modifier), raw.words), key=key)


class Version(Struct, frozen=True, kw_only=True):
    """One version of a class: its name and number, from which row of the log on, and how it looked."""

    table: str
    number: int
    first: int | None
    described: Described


def definitions_of(versions: Sequence[Version], catalog: Catalog) -> list[Definition]:
    """All definitions that are known, with what each of them is today."""
    today = {table.whole: table for table in catalog}
    chains = _chains(versions)
    # A name may have been another class's before: today's is the one that was entered last.
    in_time = sorted(chains, key=lambda chain: chain[-1].described.place)
    newest = {chain[-1].table: chain for chain in in_time}
    definitions: dict[int, Definition] = {}
    for chain in chains:
        last = chain[-1]
        table = today.get(last.table) if newest[last.table] is chain else None
        for version in chain[:-1]:
            definitions[id(version)] = _definition(version, last, table)
        if table is None:
            definitions[id(last)] = _definition(last, last, None)
        else:
            first = BEFORE_ALL_NUMBERS if last.first is None else last.first + 1
            definitions[id(last)] = Definition(table=table, first=first, today=table)
    return [definitions[id(version)] for version in versions]


def _chains(versions: Sequence[Version]) -> list[list[Version]]:
    """The versions of each class, whatever it was called, the oldest first."""
    chains: dict[int | str, list[Version]] = {}
    for version in versions:
        raw = version.described.raw
        # By its number, which stays when it gets another name; by the name where there is no number.
        owner: int | str = raw[0].relation if raw else version.table
        chain = chains.get(owner)
        if chain is None and version.described.former is not None:
            chain = chains.get(version.described.former)
        if chain is None:
            chain = []
        chain.append(version)
        chains[owner] = chain
    # A chain stands under every name that its class had, and is wanted once.
    return list({id(chain): chain for chain in chains.values()}.values())


def _definition(version: Version, last: Version, today: Table | None) -> Definition:
    table = version.described.table
    assert table is not None
    renamed: dict[str, str] = {}
    gone: list[str] = []
    if version.described.raw and last.described.raw:
        now = last.described.raw[0].names
        still_there = set()
        for column in version.described.raw[0].columns:
            name = now.get(column.number)
            if name is None:
                continue
            still_there.add(column.name)
            if name != column.name:
                renamed[column.name] = name
        gone = [
            name
            for name, attribute in table.attributes.items()
            if attribute.child is None and attribute.column.name not in still_there
        ]
    known: set[str] = set()
    if today is not None:
        known = {*today.attributes, *today.key}
    # What is there by its number may still not be captured any more.
    gone += [name for name in table.attributes if name not in gone and renamed.get(name, name) not in known]
    first = BEFORE_ALL_NUMBERS if version.first is None else version.first + 1
    table = replace(table, gone=tuple(gone), version=version.number)
    return Definition(table=table, first=first, today=today, renamed=renamed)
