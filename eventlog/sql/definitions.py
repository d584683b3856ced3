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
    """A column by its number, which stays when it gets another name; its type by numbers and in words."""

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
        """Map the numbers of its columns to their names."""
        return {column.number: column.name for column in self.columns}

    @property
    def numbers(self) -> dict[str, int]:
        """Map the names of its columns to their numbers."""
        return {column.name: column.number for column in self.columns}


class Described(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A version of a class. `raw` are its tables by their numbers, the class's own first, where the
    database has such; `key` are the numbers of its key's columns; `former` is the name of the class
    before, where somebody gave it another. `place` is how many versions of any class came before.
    Between the row `unlogged_from` and the first of this version changes of new columns may not
    have been logged, where triggers followed later. `image` are the columns of image rows that
    begin with the number of this version, in their order; None where it has no such rows. Where a
    stream described the table, `case_sensitive` says whether names differ by case alone.
    """

    table: Table | None = None
    image: tuple[str, ...] | None = None
    raw: tuple[NumberedTable, ...] = ()
    key: tuple[int, ...] = ()
    former: str | None = None
    place: int = 0
    unlogged_from: int | None = None
    case_sensitive: bool = False

    @property
    def relation(self) -> int | None:
        """Return the number of the class's own table."""
        return self.raw[0].relation if self.raw else None


Types = Mapping[tuple[int, int], str]
"""What types are called elsewhere in a catalog, by their numbers."""

Shape = Mapping[str, str]
"""The columns of a class and of its child tables, with their types."""


class ShapeVersion(Struct, frozen=True, kw_only=True):
    """One version of a class: since when it is known (UTC), what differs from the one before, and
    its columns. It has a `number` among those of who entered it, and is the `version`-th of its name.

    `first` is the number of a row of the log: those above were written under this version. One that
    the database entered itself, as it followed DDL, is only `noted` until somebody has seen the
    table. One that is not `by_owner` a publisher saw.
    """

    table: str
    number: int
    seen_at: str
    version: int = 0
    changed: Mapping[str, Sequence[str]] = {}
    columns: Shape = {}
    first: int | None = None
    details: Described = Described()
    noted: bool = False
    by_owner: bool = True

    @property
    def follows(self) -> str:
        """Return the name of the class in the version before. Its number is no identity: in a restored
        database it may be another table's.
        """
        return self.details.former or self.table

    @property
    def first_row(self) -> int:
        """Return the lowest row number with perhaps this version."""
        return BEFORE_ALL_NUMBERS if self.first is None else self.first + 1

    def fits(self, shape: Shape) -> bool:
        """Return True if a table of this shape has this version."""
        # The database notes columns in its own words for types, so only their names are compared.
        if self.noted:
            return [*self.columns] == [*shape]
        return self.columns == shape


def describe(connection: Connection, table: Table, former: str | None = None) -> Described:
    """Describe a class as it looks now."""
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


def find_known_types(versions: Iterable[ShapeVersion]) -> Types:
    """Map types by table and number to their names, where both are known."""
    types_by_number: dict[tuple[int, int], str] = {}
    for described in [version.details for version in versions]:
        if described.table is None or not described.raw:
            continue
        types = {column.name: column.type for column in described.table.columns}
        for column in described.raw[0].columns:
            if column.name in types:
                types_by_number[column.type, column.modifier] = types[column.name]
    return types_by_number


def derive_table(noted: Described, former: Described, types: Types) -> Described:
    """Make a table from the database's note; earlier knowledge of it stays."""
    own, *others = noted.raw
    # Another number is another table, whatever it is called: nothing of the former one is true of it.
    if former.table is None or former.relation != own.relation:
        names = own.names
        key = {names[number]: position for position, number in enumerate(noted.key, 1) if number in names}
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
    # Another primary key may tell rows apart since.
    places = {number: position for position, number in enumerate(noted.key, 1)}
    columns = {number: replace(column, key=places.get(number)) for number, column in columns.items()}
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


def limit_seen(seen: Described, before: Described) -> Described:
    """Take columns, types and key a publisher saw; exclusions and images come from the version
    before.
    """
    if seen.table is None:
        return seen
    table, former = seen.table, before.table
    left_out = () if former is None else former.left_out
    hidden = {(attribute.child, attribute.column.name) for attribute in left_out}
    known: set[tuple[str | None, str]] = set()
    if former is not None:
        known = {(attribute.child, attribute.column.name) for attribute in former.attributes.values()}
        known |= {(None, column.name) for column in former.columns}

    def may_be_seen(child: str | None, column: Column) -> bool:
        place = (child, column.name)
        # Where some columns are left out, nobody has said of a new one whether it may be seen.
        return place not in hidden and (not hidden or place in known)

    children = []
    for child in table.children:
        columns = [c for c in child.columns if c.name in child.parent_key or may_be_seen(child.name, c)]
        children.append(replace(child, columns=tuple(columns)))
    limited = Table(
        name=table.name,
        schema=table.schema,
        columns=tuple([column for column in table.columns if column.key or may_be_seen(None, column)]),
        children=tuple(children),
        view=table.view,
        images=former is not None and former.images,
        left_out=left_out,
    )
    return Described(table=limited, raw=seen.raw, key=seen.key, place=seen.place)


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
    """List the present child tables; those the database did not note are as before."""
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


def definitions_of(versions: Sequence[ShapeVersion], catalog: Catalog) -> list[Definition]:
    """List all known definitions in the order of their entry, each with its form of today; each version
    describes a table.
    """
    today = {table.whole: table for table in catalog}
    chains, by_name = chains_of(versions)
    definitions: dict[int, Definition] = {}
    for chain in chains:
        last = chain[-1]
        # Also where another class has taken the name since: what stands under it is read back.
        table = today.get(last.table)
        # Columns have the same numbers as long as the table is the same: a migration may have made
        # another one of that name.
        last_of_table = {version.details.relation: version for version in chain}
        images = _images_of(chain)
        for version in chain:
            known_last = last_of_table[version.details.relation]
            definitions[id(version)] = _definition(version, known_last, table, images[id(version)])
        # The newest of a class that is still there is the table as it is, not as it was entered.
        if table is not None and by_name.get(last.table) is chain:
            current = Definition(table=table, first=last.first_row, today=table, images=images[id(last)])
            definitions[id(last)] = current
    return [definitions[id(version)] for version in versions]


def chains_of(
    versions: Iterable[ShapeVersion],
) -> tuple[list[list[ShapeVersion]], dict[str, list[ShapeVersion]]]:
    """Order versions to a chain for each class; return also the chains by present names."""
    chains: list[list[ShapeVersion]] = []
    by_name: dict[str, list[ShapeVersion]] = {}
    for version in versions:
        # Under a name that a class gives up, the next one begins anew.
        chain = by_name.pop(version.follows, None)
        if chain is None:
            chains.append(chain := [])
        chain.append(version)
        by_name[version.table] = chain
    return chains, by_name


Images = Mapping[int, tuple[str, ...]]
"""The columns of image rows, by the number that they begin with."""


def find_known_number(chain: Sequence[ShapeVersion], now: ShapeVersion, image: tuple[str, ...]) -> int | None:
    """Find the number of images with these columns; None if the class has changed since."""
    images = _images_of([*chain, now])[id(now)]
    return min((number for number, names in images.items() if names == image), default=None)


def _images_of(chain: Sequence[ShapeVersion]) -> dict[int, Images]:
    """Find the images readable by each version: its own, and earlier ones with the same columns.

    A version seen by a publisher changes none.
    """
    images: dict[int, Images] = {}
    before: ShapeVersion | None = None
    known: Images = {}
    for version in chain:
        if not version.by_owner:
            images[id(version)] = known
            continue
        # Numbers count under a name: another one's are others.
        if before is not None and version.table == before.table:
            known = {number: names for number, names in known.items() if _still_has(version, before, names)}
        else:
            known = {}
        if version.details.image is not None:
            known = {**known, version.number: version.details.image}
        images[id(version)] = known
        before = version
    return images


def _still_has(version: ShapeVersion, before: ShapeVersion, names: Iterable[str]) -> bool:
    """Return True if columns of these names are still the same as in the version before."""
    now, then = version.details, before.details
    if now.raw and then.raw:
        if now.relation != then.relation:
            return False
        numbers, former = now.raw[0].numbers, then.raw[0].numbers
        return all(name in numbers and numbers[name] == former.get(name) for name in names)
    return now.table is not None and {*names} <= {*now.table.attributes}


def _definition(version: ShapeVersion, last: ShapeVersion, today: Table | None, images: Images) -> Definition:
    table, raw = version.details.table, version.details.raw
    assert table is not None
    renamed: dict[str, str] = {}
    gone: list[str] = []
    if raw and last.details.raw:
        now = last.details.raw[0].names
        still_there = set()
        for column in raw[0].columns:
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
    table = replace(table, gone=tuple(gone), version=version.version)
    return Definition(table=table, first=version.first_row, today=today, renamed=renamed, images=images)
