"""Reads classes out of a database: tables and views with columns, keys, references and children."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace
from sqlalchemy import Connection, Engine, inspect

from eventlog.core.errors import ConfigError, InstallError, UsageError
from eventlog.core.key_forms import form_of
from eventlog.core.schema import WHOLE_ROW, Catalog, Child, Column, Table
from eventlog.core.sql_types import PADDED_TYPES, Category, bare_type
from eventlog.core.suggest import did_you_mean, nearest
from eventlog.core.table_names import read_name, write_name
from eventlog.sql.access import answers
from eventlog.sql.dialect import dialect_of
from eventlog.sql.loose_keys import find_alike
from eventlog.sql.shapes import ForeignKey, Schema, TableShape


def reflect(
    where: Engine | Connection,
    names: Sequence[str] | None = None,
    schema: str | None = None,
    children: Sequence[str] = (),
    *,
    without: Collection[str] = (),
) -> Catalog:
    """Describe the classes with these names, `usr` or `indirect.usr`; without names, every one of the
    schema but those `without`.

    A table without a primary key that refers to a class is its child; `children` names more, which
    may have keys.
    """
    if isinstance(where, Engine):
        with where.connect() as connection:
            return reflect(connection, names, schema, children, without=without)
    reader = Classes(where, schema)
    tables = reader.everything(without) if names is None else reader.find_named(names, children)
    return Catalog(tables, case_sensitive=dialect_of(where).case_sensitive)


def refuse_unknown_schema(engine: Engine, schema: str) -> bool:
    """Raise ConfigError if the database has no such schema; return False if it has no schemas."""
    if not dialect_of(engine).schemas:
        return False
    known = inspect(engine).get_schema_names()
    if schema not in known:
        problem = f"source.schema is {schema}, and the database has no such schema."
        raise ConfigError(problem, hint=did_you_mean(schema, known))
    return True


class Classes:
    """Reads classes on one connection. Each schema is asked once, however many classes are read."""

    def __init__(self, connection: Connection, schema: str | None = None) -> None:
        self._connection = connection
        self._schemas: dict[str | None, Schema] = {}
        self._alike: dict[str, tuple[str, ...]] = {}
        self.default = schema

    def everything(self, without: Collection[str] = ()) -> list[Table]:
        schema = self.schema(self.default)
        # A partition's rows are rows of the whole.
        names = [name for name in (*schema.tables, *schema.views) if name not in schema.parts and name not in without]
        schema.read(names)
        shapes = [schema.shape(name) for name in names]
        tables = []
        for shape in shapes:
            key = shape.key
            # Where another table refers to it, a unique index takes the place of a missing key;
            # children that have no key are no classes for that.
            if not key and schema.referring(shape.name):
                key = schema.row_key(shape.name)
            tables.append(self._table(schema, shape, (), key))
        taken = {child.name for table in tables for child in table.children}
        classes = []
        for shape, table in zip(shapes, tables, strict=True):
            if not shape.key and shape.name in taken:
                continue
            if table.key:
                classes.append(table)
                continue
            keyed = self._table(schema, shape, (), schema.row_key(shape.name))
            if keyed.key:
                classes.append(keyed)
        return classes

    def read(self, names: Iterable[str]) -> None:
        """Asks at once for the columns of these tables, as far as they are there."""
        self._read(existing for existing in map(self._existing, names) if existing is not None)

    def _read(self, tables: Iterable[tuple[Schema, str]]) -> None:
        of_schema: dict[Schema, list[str]] = {}
        for schema, name in tables:
            of_schema.setdefault(schema, []).append(name)
        for schema, names in of_schema.items():
            schema.read(names)

    def one(self, name: str, children: Sequence[str] = (), key: Sequence[str] = ()) -> Table:
        """Describe one class by name; `key` are columns identifying its rows, if given."""
        schema, table = self._find(name)
        if not key:
            return self.find_named([name], children)[0]
        shape = schema.shape(table)
        if tuple(key) == (WHOLE_ROW,):
            if any(column.name.casefold() == WHOLE_ROW for column in shape.columns):
                problem = f"{shape.name} has a column {WHOLE_ROW}"
                message = f"{problem}, which is what eventlog calls the hash of a whole row."
                raise InstallError(message, hint="Rename it, or track the table with --key.")
            # Its rows are told apart by nothing but themselves: by the hash of all their columns.
            row_hash = Column(name=WHOLE_ROW, type="varchar(64)", key=1, nullable=False)
            columns = (row_hash, *[replace(column, key=None) for column in shape.columns])
            return Table(name=shape.name, schema=shape.schema, columns=columns, view=shape.view)
        own = tuple(_column(shape, column) for column in key)
        named = []
        for child in children:
            for child_schema, child_name in self._beside([schema], child):
                if child_schema.name == schema.name:
                    named.append(child_name)
        return self._table(schema, shape, named, own)

    def primary(self, table: Table) -> tuple[str, ...]:
        """Return the primary key of a class, whatever else tells its rows apart; of a view, its key."""
        if table.view:
            return table.key
        return self.schema(table.schema).key(table.name)

    def find_named(self, names: Iterable[str], children: Sequence[str] = ()) -> list[Table]:
        """Describe the classes with these names; raise InstallError for a missing one."""
        parents = dict.fromkeys(self._find(name) for name in names)
        schemas = dict.fromkeys(schema for schema, _ in parents)
        self._read(parents)
        named = dict.fromkeys(
            (child_schema.name, child) for name in children for child_schema, child in self._beside(schemas, name)
        )
        tables = []
        for schema, name in parents:
            of_parent = [child for schema_name, child in named if schema_name == schema.name and child != name]
            key = schema.row_key(name)
            tables.append(self._table(schema, schema.shape(name), of_parent, key))
        taken = {(table.schema, child.name) for table in tables for child in table.children}
        known = {name for _, name in taken}
        missing = [name for _, name in named if name not in known]
        if missing:
            raise InstallError(
                f"The table {min(missing)} has no foreign key to the primary key of a table named with it.",
                hint="Name its parent too, or track it by itself.",
            )
        # Who names a child beside its parent means it as a child, unless it has a key of its own.
        return [table for table in tables if self.primary(table) or (table.schema, table.name) not in taken]

    def schema(self, name: str | None) -> Schema:
        # Tables of the connection's own database are called without it, also by who names it.
        if name and not dialect_of(self._connection).schemas and name == inspect(self._connection).default_schema_name:
            name = None
        if name not in self._schemas:
            self._schemas[name] = Schema(self._connection, name)
        return self._schemas[name]

    def _table(self, schema: Schema, shape: TableShape, named: Sequence[str], key: tuple[str, ...]) -> Table:
        positions = {name: position for position, name in enumerate(key, start=1)}
        columns = shape.columns
        if key != shape.key:
            columns = tuple(replace(column, key=positions.get(column.name)) for column in columns)
        columns = self._loosen(shape, columns)
        return Table(
            name=shape.name,
            schema=shape.schema,
            columns=columns,
            view=shape.view,
            children=tuple(self._children(schema, replace(shape, key=key), named)),
            untyped=self._is_untyped(columns),
        )

    def _loosen(self, shape: TableShape, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """Say of the texts of the key which of them its collation takes for one."""
        if shape.view or all(column.key is None or column.category is not Category.STRING for column in columns):
            return columns
        alike = find_alike(self._connection, shape.name, shape.schema, self._alike)
        return tuple(
            replace(column, alike=alike[column.name]) if column.key and _is_loose(column, alike) else column
            for column in columns
        )

    def _is_untyped(self, columns: Iterable[Column]) -> bool:
        """Return True if values of the key are told apart by more than the types of its columns."""
        if dialect_of(self._connection).typed_columns:
            return False
        return any(form_of(column) != form_of(column, untyped=True) for column in columns if column.key)

    def _children(self, schema: Schema, parent: TableShape, named: Sequence[str]) -> Iterable[Child]:
        """Yield child tables by name; of two parents, the one with the first column owns the table."""
        for name in sorted(schema.referring(parent.name)):
            # A table with a key of its own is a child only where somebody says so.
            if name not in named and schema.key(name):
                continue
            child = schema.shape(name)
            leading: list[ForeignKey] = []
            for key in child.foreign:
                # It holds what tells the rows of its table apart.
                wanted = parent.key if key.table == parent.name else schema.row_key(key.table)
                if wanted and set(key.referred) == set(wanted):
                    leading.append(key)
            indexes = {column.name: index for index, column in enumerate(child.columns)}
            links = sorted(leading, key=lambda key: indexes[key.columns[0]])
            own = [key for key in links if key.table == parent.name]
            if own and (name in named or links[0] is own[0]):
                held = dict(zip(own[0].referred, own[0].columns, strict=True))
                parent_key = tuple(held[column] for column in parent.key)
                yield Child(name=child.name, parent_key=parent_key, columns=child.columns)

    def _beside(self, schemas: Iterable[Schema], name: str) -> list[tuple[Schema, str]]:
        """Find the tables of a child's name: those in the schemas of the classes, where a child stands, else
        by the name itself. So it means the same to `track`, with a schema of its own, and to a look at
        triggers.
        """
        beside = []
        for schema in schemas:
            table = schema.find(name)
            if table is not None:
                beside.append((schema, table))
        return beside or [self._find(name)]

    def has(self, name: str) -> bool:
        """Return True if there is a table or view of this name."""
        return self._existing(name) is not None

    def _find(self, name: str) -> tuple[Schema, str]:
        named = self._existing(name)
        if named is not None:
            return named
        for schema, table in self._candidates(name):
            self._refuse_others(schema, table)
        hint = "Write it as the database does, with its schema if it has another one."
        first, last = read_name(name)
        searched = self.schema(first or self.default)
        near = nearest(last, (*searched.tables, *searched.views))
        if near:
            hint = f"Did you mean {first}.{near}?" if first else f"Did you mean {near}?"
        elif not first and (elsewhere := answers(self._connection, "schemas_with", {"table": last})):
            hint = f"Did you mean {' or '.join(write_name(schema, last) for (schema,) in elsewhere)}?"
        raise InstallError(f"There is no table or view {name} in the database.", hint=hint)

    def _existing(self, name: str) -> tuple[Schema, str] | None:
        for schema, table in self._candidates(name):
            reported = schema.find(table)
            if reported is not None:
                return schema, reported
        return None

    def _candidates(self, name: str) -> Iterator[tuple[Schema, str]]:
        """Yield the possible places of a table of this name, with its name there."""
        first, last = read_name(name)
        # A table's name may have a point in it.
        yield self.schema(self.default), name
        yield self.schema(first or self.default), last

    def _refuse_others(self, schema: Schema, name: str) -> None:
        """Explain another kind of object with this name: neither table nor view."""
        asked = {"table": name, "schema": schema.name}
        for (what,) in answers(self._connection, "kind_of_relation", asked):
            raise InstallError(
                f"{name} is {what}: no trigger sees its rows change.",
                hint="Track the tables behind it.",
            )


def _is_loose(column: Column, alike: Mapping[str, tuple[str, ...]]) -> bool:
    """Return True if several texts of a column are one value, beside the blanks that a CHAR never has."""
    rules = alike.get(column.name, ())
    return bool(rules) and not (rules == ("blanks",) and bare_type(column.type) in PADDED_TYPES)


def _column(shape: TableShape, name: str) -> str:
    """Return a column's name as the database reports it."""
    for column in shape.columns:
        if column.name.casefold() == name.casefold():
            return column.name
    message = f"{shape.name} has no column {name}, which should be part of its key."
    raise UsageError(message, hint=did_you_mean(name, [column.name for column in shape.columns]))
