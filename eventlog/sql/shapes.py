"""Asks the database what its tables look like, a schema at a time: columns, keys, foreign keys,
views.

A unique index stands in for a primary key where all of its columns are NOT NULL, and it holds every
row.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct
from sqlalchemy import Connection, inspect
from sqlalchemy.engine import ObjectKind, ObjectScope
from sqlalchemy.exc import NoSuchTableError
from sqlalchemy.types import LargeBinary

from eventlog.core.schema import Column, Made
from eventlog.core.table_names import write_name
from eventlog.sql.access import answers
from eventlog.sql.dialect import Dialect, dialect_of, offers


class ForeignKey(Struct, frozen=True, kw_only=True):
    """Columns that hold another table's key; `referred` are that table's, in the same order."""

    columns: tuple[str, ...]
    schema: str | None
    table: str
    referred: tuple[str, ...]

    def name_beside(self, schema: str | None) -> str:
        """Write the other table's name for a table of a schema."""
        return self.table if self.schema == schema else write_name(self.schema, self.table)


class TableShape(Struct, frozen=True, kw_only=True):
    """One table or view as the database describes it, whatever it is to its neighbours."""

    schema: str | None
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    foreign: tuple[ForeignKey, ...] = ()
    view: bool = False


class Schema:
    """One schema, asked once for everything; names are as the database reports them."""

    def __init__(self, connection: Connection, name: str | None) -> None:
        self._connection = connection
        self._inspector = inspect(connection)
        self._dialect: Dialect = dialect_of(connection)
        # SQLAlchemy would stumble over the arguments of a type that it does not know.
        known: Any = connection.dialect
        untaught = self._dialect.driver.untaught_types - known.ischema_names.keys()
        if untaught:
            known.ischema_names = {**known.ischema_names, **dict.fromkeys(untaught, LargeBinary)}
        self._asked = name
        self._uniques: dict[str, tuple[str, ...]] = {}
        self._described: dict[str, Sequence[Any]] = {}
        self._declared: dict[str, dict[str, str]] = {}
        self._made: dict[tuple[str, str], Made] = {}
        self._spelled: dict[tuple[str, str], str] = {}
        self._early: set[tuple[str, str]] = set()
        self.name = self._schema_name(name)
        if offers(self._dialect, "searched_schemas"):
            # By its name, so that nothing is described that a search path finds elsewhere.
            self._asked = self.name

    def read(self, names: Iterable[str]) -> None:
        """Asks for the columns of these tables at once: one by one, a thousand take seconds."""
        unknown = [name for name in names if name not in self._described]
        new = {self._dialect.normalise_name(name): name for name in unknown}
        if not new:
            return
        with _unknown_types_are_text():
            described = self._inspector.get_multi_columns(
                schema=self._asked, filter_names=[*new], kind=ObjectKind.ANY, scope=ObjectScope.ANY
            )
        self._described.update((new[name], columns) for (_, name), columns in described.items())
        # Types in the words of whoever made the table, where SQLAlchemy tells only what the
        # database makes of them.
        for name in new.values():
            asked = {"schema": self.name, "table": name}
            words = answers(self._connection, "declared_types", asked)
            self._declared[name] = {row.name: row.type for row in words}
            self._early.update((name, row.name) for row in answers(self._connection, "early_columns", asked))
        # Types of somebody's own making, where those are a way to run code in others' statements.
        tables = {"schema": self.name, "tables": [*new.values()]}
        for row in answers(self._connection, "made_types", tables):
            self._made[row.table_name, row.name] = Made(row.made)
        for row in answers(self._connection, "spelled_types", tables):
            self._spelled[row.table_name, row.name] = str(row.type)

    def shape(self, name: str) -> TableShape:
        key, foreign = self.key(name), self._foreign.get(name, ())
        references: dict[str, ForeignKey] = {}
        for foreign_key in foreign:
            # A key of several columns says nothing of one of them.
            if len(foreign_key.columns) == 1:
                references.setdefault(foreign_key.columns[0], foreign_key)
        columns = self.columns(name, key, references)
        if name in self.views:
            return TableShape(schema=self.name, name=name, columns=columns, view=True)
        return TableShape(schema=self.name, name=name, columns=columns, key=key, foreign=foreign)

    def find(self, name: str) -> str | None:
        """Find a table's reported name; case counts only to tell two of them apart."""
        alike = self.alike(name)
        if name in alike:
            return name
        if len(alike) == 1:
            return alike[0]
        return None

    def alike(self, name: str) -> Sequence[str]:
        """List the tables and views of this name in whatever case."""
        return self._alike.get(name.casefold(), ())

    def key(self, table: str) -> tuple[str, ...]:
        """Name the primary key's columns in the order of the key."""
        return self._keys.get(table, ())

    def row_key(self, table: str) -> tuple[str, ...]:
        """Name the identifying columns: the primary key, else a unique index without NULLs."""
        if self.key(table) or table in self.views:
            return self.key(table)
        if table not in self._uniques:
            self._uniques[table] = self._unique_key(table)
        return self._uniques[table]

    def _unique_key(self, table: str) -> tuple[str, ...]:
        """Name the columns of the identifying unique index, if any: the REPLICA IDENTITY, else the
        shortest.
        """
        filled = {column.name for column in self.columns(table) if not column.nullable}
        known = unique_indexes(self._connection, self._asked, table)
        # A NULL is unlike every other, so an index over a column that may be NULL tells nothing
        # apart.
        fitting = sorted(
            (len(names), names, called) for called, names in known.items() if names and filled.issuperset(names)
        )
        if len(fitting) > 1:
            # The one by which the database's own replication tells rows apart.
            asked = {"schema": self.name, "table": table}
            identity = answers(self._connection, "replica_identity", asked)
            for _, names, called in fitting:
                if identity and called == str(identity[0][0]):
                    return names
        return fitting[0][1] if fitting else ()

    def referring(self, table: str) -> list[str]:
        """List the tables with a foreign key to a table of this schema; partitions do not count."""
        return self._referring.get(table, [])

    def list_referred(self, table: str) -> list[str]:
        """List the other tables in foreign keys of a table, sorted by name."""
        return sorted({key.table for key in self._foreign.get(table, ())} - {table})

    @cached_property
    def tables(self) -> tuple[str, ...]:
        return self._names(self._inspector.get_table_names)

    @cached_property
    def views(self) -> tuple[str, ...]:
        return self._names(self._inspector.get_view_names)

    def _names(self, asked: Callable[..., list[str]]) -> tuple[str, ...]:
        if self._asked is not None and self._dialect.embedded:
            # Such a database takes a schema that is not there for a file that is not attached.
            known = {name.casefold() for name in self._inspector.get_schema_names()}
            if self._asked.casefold() not in known:
                return ()
        return tuple(self._report_names(asked(schema=self._asked)))

    @cached_property
    def parts(self) -> frozenset[str]:
        """List the partitions of other tables."""
        rows = answers(self._connection, "partitions", {"schema": self.name})
        return frozenset(str(name) for (name,) in rows)

    @cached_property
    def _alike(self) -> dict[str, list[str]]:
        """Map names without regard to case to tables and views."""
        alike: dict[str, list[str]] = {}
        for name in (*self.tables, *self.views):
            alike.setdefault(name.casefold(), []).append(name)
        return alike

    @cached_property
    def _referring(self) -> dict[str, list[str]]:
        referring: dict[str, list[str]] = {}
        for name, keys in self._foreign.items():
            if name in self.parts:
                continue
            for table in dict.fromkeys(key.table for key in keys if key.schema == self.name):
                referring.setdefault(table, []).append(name)
        return referring

    @cached_property
    def _keys(self) -> dict[str, tuple[str, ...]]:
        if offers(self._dialect, "primary_keys"):
            rows = answers(self._connection, "primary_keys", {"schema": self._asked})
            return {table: tuple(column for _, column in parts) for table, parts in groupby(rows, itemgetter(0))}
        with _unknown_types_are_text():
            keys = self._inspector.get_multi_pk_constraint(schema=self._asked)
        return {
            self._dialect.report_name(name): self._find_columns(key["constrained_columns"])
            for (_, name), key in keys.items()
        }

    @cached_property
    def _foreign(self) -> dict[str, tuple[ForeignKey, ...]]:
        # The database's own words where it has some: SQLAlchemy asks for each table by itself.
        by_table: dict[str, tuple[ForeignKey, ...]] = {}
        if offers(self._dialect, "foreign_keys"):
            rows = answers(self._connection, "foreign_keys")
            for (table, _, referred), group in groupby(rows, itemgetter(0, 1, 2)):
                columns, named = zip(*((column, other) for *_, column, other in group), strict=True)
                # A key that names no columns refers to the primary key.
                others = named if all(named) else self.key(self.find(referred) or referred)
                foreign_key = ForeignKey(columns=columns, schema=self.name, table=referred, referred=others)
                by_table[table] = (*by_table.get(table, ()), foreign_key)
            return by_table
        with _unknown_types_are_text():
            of_tables = self._inspector.get_multi_foreign_keys(schema=self._asked)
        for (_, name), keys in of_tables.items():
            of_table: list[ForeignKey] = []
            for key in keys:
                schema = key["referred_schema"]
                foreign_key = ForeignKey(
                    columns=self._find_columns(key["constrained_columns"]),
                    schema=self.name if schema is None else self._schema_name(schema),
                    table=self._dialect.report_name(key["referred_table"]),
                    referred=self._find_columns(key["referred_columns"]),
                )
                of_table.append(foreign_key)
            by_table[self._dialect.report_name(name)] = tuple(of_table)
        return by_table

    def columns(
        self, name: str, key: tuple[str, ...] = (), references: Mapping[str, ForeignKey] | None = None
    ) -> tuple[Column, ...]:
        """Describe the columns of a table. Without keys in the call ask nothing about other tables."""
        references = references or {}
        self.read([name])
        if name not in self._described:
            raise NoSuchTableError(name)
        declared = self._declared[name]
        columns = []
        for reflected in self._described[name]:
            column = self._dialect.column_name(str(reflected["name"]))
            computed, formula = reflected.get("computed"), None
            referred = references.get(column)
            # How a virtual column is computed, where triggers do not see its value.
            if computed and not computed.get("persisted") and self._dialect.ddl.hides_virtual_columns:
                formula = str(computed["sqltext"])
            columns.append(
                Column(
                    name=column,
                    type=declared.get(column) or self._type(name, column, reflected["type"]),
                    key=key.index(column) + 1 if column in key else None,
                    references=None if referred is None else referred.name_beside(self.name),
                    referenced_column=None if referred is None else next(iter(referred.referred), None),
                    nullable=bool(reflected["nullable"]),
                    formula=formula,
                    made=self._made.get((name, column)),
                    early=(name, column) in self._early,
                    labels=() if column in declared else _labels(reflected["type"]),
                    default=_default(reflected.get("default")),
                )
            )
        return tuple(columns)

    def _type(self, table: str, column: str, type_: Any) -> str:
        """Name a type, in the database's own words where SQLAlchemy does not know all of it."""
        spelled = self._spelled.get((table, column))
        if spelled is not None and (_base(type_) is not type_ or spelled == "bpchar"):
            return spelled
        try:
            return str(_base(type_).compile(dialect=self._connection.dialect))
        except Exception:  # noqa: BLE001  # compilers fail in many ways on types they do not know
            return spelled or "VARCHAR"

    def _report_names(self, names: Iterable[str]) -> list[str]:
        return [self._dialect.report_name(str(name)) for name in names]

    def _find_columns(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple([self._dialect.column_name(str(name)) for name in names])

    def _schema_name(self, name: str | None) -> str | None:
        if not self._dialect.schemas:
            return name
        own = name or self._inspector.default_schema_name
        if own is None:
            return None
        return self._dialect.report_name(own)


DEFAULT_CHARACTERS: Final = 1000
"""A longer default is not kept: it is no value that a schema would have."""


def _default(stated: object) -> str | None:
    """Find the expression of a column's default worth keeping."""
    return stated if isinstance(stated, str) and len(stated) <= DEFAULT_CHARACTERS else None


def _base(type_: Any) -> Any:
    """Find a domain's base type."""
    while (domain := getattr(type_, "data_type", None)) is not None:
        type_ = domain
    return type_


def _labels(type_: Any) -> tuple[str, ...]:
    """Find the values of an enum, or of an array of them."""
    base = _base(type_)
    return tuple(map(str, getattr(getattr(base, "item_type", base), "enums", ())))


@contextmanager
def _unknown_types_are_text() -> Iterator[None]:
    """Silence SQLAlchemy's warnings of unknown types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def unique_indexes(connection: Connection, schema: str | None, table: str) -> dict[str, tuple[str, ...]]:
    """Map unique indexes over every row to their columns."""
    dialect = dialect_of(connection)
    # A query of ours, where SQLAlchemy knows less.
    if offers(dialect, "unique_indexes"):
        rows = answers(connection, "unique_indexes", {"table": table})
        called = dict.fromkeys(str(index) for index, _ in rows)
        return {name: tuple(str(column) for index, column in rows if index == name) for name in called}
    indexes = {}
    for index in inspect(connection).get_indexes(dialect.normalise_name(table), schema=schema):
        partial = any(name.endswith("_where") for name in index.get("dialect_options", {}))
        # None stands for an expression.
        if index["unique"] and not partial and None not in index["column_names"]:
            names = [dialect.column_name(str(name)) for name in index["column_names"]]
            indexes[str(index["name"])] = tuple(names)
    return indexes
