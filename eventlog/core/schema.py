"""What captured tables look like: columns, types, keys, child tables, references.

A Table is a logical class: a parent table or view with its child tables. Its *attributes* are what
changes speak of: the parent's columns by their names, a child table's columns as `child.column`
with several values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from eventlog.core.errors import DataError
from eventlog.core.sql_types import Category, category
from eventlog.core.table_names import write_name
from eventlog.core.view_columns import read_column_name

if TYPE_CHECKING:
    from eventlog.core.rules.definitions import Definitions

WHOLE_ROW: Final = "eventlog_whole_row"
"""The key column of a table without a key, which no table has: the hash of a row's canonical text.
"""


class Made(StrEnum):
    """A type that somebody made who is no superuser: a domain over another type, or any other."""

    DOMAIN = "domain"
    TYPE = "type"


class Column(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One column. `key` is its place in the primary key, from 1; `references` the table whose key
    it holds, with its schema if that is another one, and `referenced_column` the column of it, if
    somebody said so.

    `formula` is SQL for a column that is not stored, in the names of the others, where a trigger
    cannot read it. `made` says that somebody can give the type casts and operators of their own,
    which must not run with our rights. `called` is its name as an attribute where a policy gives it
    another one. `early` says that triggers see its new value before the database knows whether it
    writes the row at all. `labels` are the values of a type that lists them, as an enum, where the
    type's name does not; `default` is the expression that gives a value where nobody does.
    `alike` says in what the texts of a key column differ that the database takes for one: in the "case" of
    ASCII letters, in "blanks" at their end, or in "more", which only the database can tell.
    """

    name: str
    type: str = "varchar"
    key: int | None = None
    references: str | None = None
    referenced_column: str | None = None
    nullable: bool = True
    formula: str | None = None
    made: Made | None = None
    called: str | None = None
    early: bool = False
    labels: tuple[str, ...] = ()
    default: str | None = None
    alike: tuple[str, ...] = ()

    @property
    def category(self) -> Category:
        # Its text is all that may be taken of such a value: its casts and operators are somebody's
        # own.
        if self.made is Made.TYPE:
            return Category.STRING
        return category(self.type)


class Child(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A child table: `parent_key` are its columns with the parent's key, in that key's order."""

    name: str
    parent_key: tuple[str, ...]
    columns: tuple[Column, ...]


class Attribute(Struct, frozen=True, kw_only=True):
    """What a change calls one column of a class; `child` is the child table it comes from."""

    name: str
    column: Column
    child: str | None = None
    multiple: bool = False


class Table(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A captured table or view, as its consumers see it."""

    name: str
    columns: tuple[Column, ...]
    schema: str | None = None
    class_name: str | None = field(default=None, name="class")
    number: int | None = None
    children: tuple[Child, ...] = ()
    view: bool = False
    images: bool = False
    """Its events bring whole rows: equal values did not change, and a delete brings the row."""
    left_out: tuple[Attribute, ...] = ()
    """What is not captured any more and never read back; older events may still name it."""
    version: int = 1
    """How many forms it has had so far, as far as anybody has kept count."""
    gone: tuple[str, ...] = ()
    """Attributes that the table has no more, in a definition of before: nobody can read them back.
    """
    bare: bool = False
    """Rows of the log call it by its name without its schema, as our triggers do in the log's own:
    its name alone means it, and none of that name in another schema.
    """
    untyped: bool = False
    """Its columns take values of any type."""
    unconfirmed: bool = False
    """Nobody has confirmed that it is the table that was tracked under its name: nothing of it is read
    back.
    """

    @property
    def whole(self) -> str:
        """Write the table's name for people: with its schema, if it has one."""
        return write_name(self.schema, self.name)

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Name the key columns in the order of the key."""
        # A view has no key of the database's: the prefixes of its columns' names say it.
        if self.view and not any(column.key for column in self.columns):
            return tuple(column.name for column in self.columns if read_column_name(column.name).key)
        keyed = sorted((column.key, column.name) for column in self.columns if column.key is not None)
        return tuple(name for _, name in keyed)

    @cached_property
    def whole_row(self) -> bool:
        """Return True if only the whole row identifies a row, so that several may be equal."""
        return self.key == (WHOLE_ROW,)

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.key)

    @cached_property
    def loose_key(self) -> frozenset[str]:
        """Name the key columns of which several texts are one value, so that a row says how it is spelled."""
        return frozenset(column.name for column in self.key_columns if column.alike)

    @property
    def bare_key(self) -> tuple[str, ...]:
        """Name the key columns, a view's without their prefixes."""
        if self.view:
            return tuple(read_column_name(name).column for name in self.key)
        return self.key

    @cached_property
    def attribute_names(self) -> frozenset[str]:
        """Name the attributes of a read-back of a whole row; one value for all its objects."""
        return frozenset(self.attributes).difference(self.gone)

    @cached_property
    def attributes(self) -> dict[str, Attribute]:
        """Map every attribute but the key by name; in the order of columns, the children's last."""
        of_class = [self.own_attribute(column) for column in self.columns if column.name not in self.key]
        for child in self.children:
            for column in child.columns:
                if column.name not in child.parent_key:  # which says whose it is, and no more
                    name = column.called or f"{child.name}.{column.name}"
                    of_class.append(Attribute(name=name, column=column, child=child.name, multiple=True))
        return {attribute.name: attribute for attribute in of_class}

    @cached_property
    def loggable(self) -> dict[str, Attribute]:
        """Map every attribute of field events, key columns included."""
        own = [self.own_attribute(column) for column in self.key_columns]
        left_out = {attribute.name: attribute for attribute in self.left_out}
        # An attribute that is captured counts before one of the same name that is left out.
        return {attribute.name: attribute for attribute in own} | self.attributes | left_out

    @cached_property
    def multiple(self) -> frozenset[str | None]:
        """Name the attributes with several values."""
        return frozenset(name for name, attribute in self.attributes.items() if attribute.multiple)

    def own_attribute(self, column: Column) -> Attribute:
        """Describe the attribute that is a column of the table itself."""
        if not self.view:
            return Attribute(name=column.called or column.name, column=column)
        read = read_column_name(column.name)
        return Attribute(name=column.called or read.mapped, column=column, multiple=read.multiple)


class TableMatch(Struct, frozen=True):
    """Where a table_name of the log leads: to a class, and to the child table that was named."""

    table: Table
    child: Child | None = None


class Catalog:
    """The tables of a source, by the names in its log; `former` knows how they were before."""

    def __init__(
        self,
        tables: Iterable[Table] = (),
        *,
        case_sensitive: bool = False,
        former: Definitions | None = None,
    ) -> None:
        self.tables = tuple(tables)
        self.case_sensitive = case_sensitive
        self.former = former
        self._twins = frozenset[str]() if case_sensitive else frozenset(_find_twins(self.tables))
        bare = [table for table in self.tables if table.bare]
        self._bare = {self.fold(table.name): TableMatch(table) for table in bare}
        self._by_name: dict[str, TableMatch | None] = {}
        for table in self.tables:
            self._enter(table.schema, table.name, TableMatch(table))
        # A table that is a class and another one's child is the class to its own rows.
        for table in self.tables:
            for child in table.children:
                self._enter(table.schema, child.name, TableMatch(table, child))

    def __iter__(self) -> Iterator[Table]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def find(self, name: str) -> TableMatch | None:
        """Find the class or child table of this name, with or without a schema.

        Raise an error for a bare name in several schemas, because guessing would publish the wrong
        object; unless one of these tables is known to be called so.
        """
        folded = self.fold(name.strip(" "))
        if folded not in self._by_name:
            return None
        match = self._bare.get(folded) or self._by_name[folded]
        if match is None:  # several tables have the name
            raise DataError(f"{name} is in several schemas; the log must say which, as schema.{name}.")
        return match

    def class_named(self, schema: str | None, name: str) -> Table | None:
        """Find the class by name, by schema if several have it; None if ambiguous."""
        folded = self.fold(name)
        own = self._by_name.get(self.fold(write_name(schema, name))) if schema else self._bare.get(folded)
        match = own or self._by_name.get(folded)
        if match is not None and match.child is None:
            return match.table
        return None

    def fold(self, name: str) -> str:
        """Fold a name for comparison where the database ignores case; names that differ by case alone stay."""
        if self.case_sensitive:
            return name
        folded = name.casefold()
        return name if folded in self._twins else folded

    def _enter(self, schema: str | None, name: str, entry: TableMatch) -> None:
        if schema is not None:
            self._by_name.setdefault(self.fold(write_name(schema, name)), entry)
            # As triggers of others write it, who know no quotes there.
            self._by_name.setdefault(self.fold(f"{schema}.{name}"), entry)
        bare = self.fold(name)
        earlier = self._by_name.setdefault(bare, entry)
        if earlier is not None and earlier.table.schema != schema:
            self._by_name[bare] = None  # which `find` tells from a name that nobody has


def _find_twins(tables: Iterable[Table]) -> Iterator[str]:
    """List the folded names of tables of one schema that differ by case alone, as quoted names of SQL may."""
    spelled: dict[tuple[str | None, str], set[str]] = {}
    for table in tables:
        for name in (table.name, *(child.name for child in table.children)):
            spelled.setdefault((table.schema, name.casefold()), set()).add(name)
    for (schema, folded), names in spelled.items():
        if len(names) > 1:
            yield folded
            if schema is not None:
                yield from (write_name(schema, folded).casefold(), f"{schema}.{folded}".casefold())
