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
    raw, numbers = list[NumberedTable](), statement(dialect, "numbers_of")
    for name in (table.name, *(child.name for child in table.children)):
        for (text,) in answers(connection, "numbered_table", {"schema": table.schema, "table": name}, numbers=numbers):
            raw.append(msgspec.json.decode(text, type=NumberedTable))
    return Described(table=table, raw=tuple(raw), former=former)


def known_types(described: Iterable[Described | None]) -> dict[tuple[int, int], str]:
    """What types are called where both is known, their numbers and the table."""
    found: dict[tuple[int, int], str] = {}
    for one in described:
        if one is None or one.table is None or not one.raw:
            continue
        types = {column.name: column.type for column in one.table.columns}
        for column in one.raw[0].columns:
            if column.name in types:
                found[column.type, column.modifier] = types[column.name]
    return found


def derived(noted: Described, former: Described | None, types: Types) -> Described:
    """What the database noted of a table, as a table: what is known of the version before is true
    of it as well.
    """
    own, *others = noted.raw
    if former is None or former.table is None or not former.raw or former.raw[0].relation != own.relation:
        names = own.names
        key = {names[number]: place for place, number in enumerate(noted.key, 1) if number in names}
        seen = tuple([_column(one, types, key=key.get(one.name)) for one in own.columns])
        return replace(noted, table=Table(name=own.name, schema=own.schema, columns=seen))
    before, was = former.table, former.raw[0].names
    columns, left_out = _columns(own, was, before.columns, types), list[Attribute]()
    unwatched = {one.column.name: one for one in before.left_out if one.child is None}
    for one in own.columns:
        name = was.get(one.number)
        attribute = unwatched.get(name) if name is not None else None
        # nobody has said whether it may be seen
        if attribute is None and name is None and before.left_out:
            attribute = Attribute(name=one.name, column=_column(one, types))
        if attribute is not None:
            columns.pop(one.number, None)
            left_out.append(replace(attribute, name=one.name, column=replace(attribute.column, name=one.name)))
    table = replace(
        before,
        name=own.name,
        schema=own.schema,
        columns=tuple(columns.values()),
        children=tuple(_children(before, former, others, types)),
        left_out=(*left_out, *(one for one in before.left_out if one.child is not None)),
    )
    return replace(noted, table=table)


def _columns(raw: NumberedTable, was: Mapping[int, str], before: Sequence[Column], types: Types) -> dict[int, Column]:
    by_name = {column.name: column for column in before}
    found: dict[int, Column] = {}
    for one in raw.columns:
        former = by_name.get(was.get(one.number, ""))
        new = _column(one, types)
        found[one.number] = new if former is None else replace(former, name=one.name, type=new.type)
    return found


def _children(before: Table, former: Described, raw: Sequence[NumberedTable], types: Types) -> Iterable[Child]:
    """The child tables as they are now; what the database did not note of one is as it was."""
    now = {one.relation: one for one in raw}
    was = {one.name: one for one in former.raw[1:]}
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
    newest = {chain[-1].table: chain for chain in sorted(chains, key=lambda one: one[-1].described.place)}
    found: dict[int, Definition] = {}
    for chain in chains:
        last = chain[-1]
        table = today.get(last.table) if newest[last.table] is chain else None
        for one in chain[:-1]:
            found[id(one)] = _definition(one, last, table)
        if table is None:
            found[id(last)] = _definition(last, last, None)
        else:
            first = BEFORE_ALL_NUMBERS if last.first is None else last.first + 1
            found[id(last)] = Definition(table=table, first=first, today=table)
    return [found[id(one)] for one in versions]


def _chains(versions: Sequence[Version]) -> list[list[Version]]:
    """The versions of each class, whatever it was called, the oldest first."""
    chains: dict[int | str, list[Version]] = {}
    for one in versions:
        raw = one.described.raw
        of: int | str = raw[0].relation if raw else one.table
        chain = chains.get(of)
        if chain is None and one.described.former is not None:
            chain = chains.get(one.described.former)
        if chain is None:
            chain = []
        chain.append(one)
        chains[of] = chain
    return list({id(chain): chain for chain in chains.values()}.values())


def _definition(version: Version, last: Version, today: Table | None) -> Definition:
    table = version.described.table
    assert table is not None
    renamed: dict[str, str] = {}
    if version.described.raw and last.described.raw:
        now = last.described.raw[0].names
        for column in version.described.raw[0].columns:
            name = now.get(column.number)
            if name is not None and name != column.name:
                renamed[column.name] = name
        there = set(version.described.raw[0].numbers) - {
            column.name for column in version.described.raw[0].columns if column.number not in now
        }
        gone = [name for name, one in table.attributes.items() if one.child is None and one.column.name not in there]
    else:
        gone = []
    known = set[str]() if today is None else {*today.attributes, *today.key}
    gone += [name for name in table.attributes if name not in gone and renamed.get(name, name) not in known]
    first = BEFORE_ALL_NUMBERS if version.first is None else version.first + 1
    table = replace(table, gone=tuple(gone), version=version.number)
    return Definition(table=table, first=first, today=today, renamed=renamed)
