"""What tables look like as far as rows of a log tell it: for change tables and messages without a
schema file.

A table's key are the columns of its table_keys, its others those that rows name, in the order in
which they came up. Every value is text, because nobody said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from msgspec import Struct
from pyarrow.parquet import read_schema

from eventlog.convert.inputs import describe_damage, kind_of_file, units
from eventlog.convert.reading import read
from eventlog.convert.settings import FilesInput
from eventlog.core.errors import KeySyntaxError
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.core.schema_file import SCHEMA_KEY, catalog_from_json
from eventlog.core.table_names import read_name
from eventlog.core.tablekey import TableKey


class SeenColumn(Struct, frozen=True, kw_only=True):
    """A table and a column that rows name together: since which record_id, and the first of the
    keys there.
    """

    table: str
    column: str | None
    since: int
    key: str


def catalog_of_files(files: FilesInput) -> Catalog:
    """Infer the tables from the rows of files."""
    batches = (batch for unit in units(files) for batch in read(unit))
    return Catalog(tables_of(column for batch in batches for column in _find_seen_columns(batch)))


def read_archived_catalog(files: FilesInput) -> Catalog | None:
    """Read the tables of the archives' images, from the newest: it has all former definitions; None if there is none."""
    for path in sorted(files.paths, key=lambda path: path.name, reverse=True):
        if kind_of_file(path) == "parquet":
            try:
                metadata = read_schema(path).metadata or {}
            except (pa.ArrowException, OSError) as error:
                raise describe_damage(path, error) from error
            if SCHEMA_KEY in metadata:
                return catalog_from_json(metadata[SCHEMA_KEY], origin=str(path))
    return None


def tables_of(seen: Iterable[SeenColumn]) -> Iterator[Table]:
    """Make tables with the columns named by rows, whatever the order of files and batches."""
    columns_of: dict[str, list[SeenColumn]] = {}
    for column in sorted(seen, key=lambda column: (column.since, column.table, column.column or "")):
        columns_of.setdefault(column.table.casefold(), []).append(column)
    for columns in columns_of.values():
        # The first key that can be read: a row may have anything in its table_key.
        keys = map(_key_columns, sorted(column.key for column in columns))
        key = next(filter(None, keys), ())
        if key:
            names = [column.column for column in columns if column.column]
            yield _table(columns[0].table, key, names)


def _find_seen_columns(batch: pa.RecordBatch) -> Iterator[SeenColumn]:
    """Find the tables, keys and columns that rows name."""
    groups = pa.Table.from_batches([batch]).group_by(["table_name", "column_name"])
    for row in groups.aggregate([("record_id", "min"), ("table_key", "min")]).to_pylist():
        since, key = row["record_id_min"], row["table_key_min"]
        if row["table_name"] and since is not None and key:
            # Databases fill a CHAR column up with blanks.
            table = row["table_name"].strip(" ")
            yield SeenColumn(table=table, column=row["column_name"], since=since, key=key)


def _key_columns(text: str) -> tuple[str, ...]:
    try:
        return tuple(TableKey.parse(text).columns)
    except KeySyntaxError:
        return ()


def _table(name: str, key: tuple[str, ...], named: Iterable[str]) -> Table:
    columns = {part.casefold(): Column(name=part, key=number) for number, part in enumerate(key, 1)}
    children: dict[str, dict[str, Column]] = {}
    for column in named:
        # `child.column` is a column of a child table.
        child_name, point, own_name = column.rpartition(".")
        columns_there = children.setdefault(child_name, {}) if point else columns
        columns_there.setdefault(own_name.casefold(), Column(name=own_name))
    schema, table = read_name(name)
    key_columns = [Column(name=part) for part in key]
    child_tables = [
        Child(name=child_name, parent_key=key, columns=(*key_columns, *child_columns.values()))
        for child_name, child_columns in children.items()
    ]
    return Table(
        name=table,
        schema=schema or None,
        columns=tuple(columns.values()),
        children=tuple(child_tables),
    )
