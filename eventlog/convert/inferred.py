"""What tables look like as far as rows of a log tell it: for change tables and messages without a
schema file.

A table's key are the columns of its table_keys, its others those that rows name, in the order in
which they came up. Every value is text, because nobody said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from msgspec import Struct

from eventlog.convert.inputs import describe_damage, input_files, kind_of_file
from eventlog.convert.settings import FilesInput
from eventlog.convert.work import processes_share_locks
from eventlog.core.errors import KeySyntaxError, MachineError
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


Found = TypeVar("Found")


def catalog_of_files(files: FilesInput) -> Catalog:
    """Infer the tables from the rows of files."""
    return Catalog(tables_of(_read_elsewhere(find_seen, files)))


def read_archived_catalog(files: FilesInput) -> Catalog | None:
    """Read the tables of the archives' images; None if they have none."""
    if not any(kind_of_file(path) == "parquet" for path in input_files(files)):
        return None
    described = _read_elsewhere(read_description, files)
    return None if described is None else catalog_from_json(described[0], origin=described[1])


def read_description(files: FilesInput) -> tuple[bytes, str] | None:
    """Read the schema file in the newest archive: it has all former definitions."""
    from pyarrow import ArrowException
    from pyarrow.parquet import read_schema

    for path in sorted(input_files(files), key=lambda path: path.name, reverse=True):
        if kind_of_file(path) == "parquet":
            try:
                metadata = read_schema(path).metadata or {}
            except (ArrowException, OSError) as error:
                raise describe_damage(path, error) from error
            if SCHEMA_KEY in metadata:
                return metadata[SCHEMA_KEY], str(path)
    return None


def _read_elsewhere(read: Callable[[FilesInput], Found], files: FilesInput) -> Found:
    """Read files in another process: this one may never load Arrow.

    Read them here if processes cannot share locks: then no worker is forked either, and Arrow's
    threads do no harm.
    """
    if not processes_share_locks():
        return read(files)
    # Spawned, not forked: this process may have threads by now.
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            return process.submit(read, files).result()
    except BrokenProcessPool as error:
        what = "The process that reads the names of tables was killed"
        hint = "Run it again, or use --schema FILE: then nobody needs to read them."
        message = f"{what}, by somebody or because memory ran out."
        raise MachineError(message, hint=hint) from error


def find_seen(files: FilesInput) -> list[SeenColumn]:
    """Find the tables, keys and columns named by the rows, a few words for each batch."""
    from eventlog.convert.inputs import units
    from eventlog.convert.reading import read

    batches = (batch for unit in units(files) for batch in read(unit, files.statuses))
    return [column for batch in batches for column in _find_seen_columns(batch)]


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


def _find_seen_columns(batch: Any) -> Iterator[SeenColumn]:
    import pyarrow as pa

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
