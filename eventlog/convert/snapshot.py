"""Read-backs from a snapshot of the tables, a Parquet or JSON lines file for each, or from a
database.

A snapshot's rows are brought to the partitions of their objects. The numbers of objects are those
of the log's rows, so that each partition of the log needs only its own part of the snapshot.
"""

from __future__ import annotations

import binascii
import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyarrow import parquet

from eventlog.convert.inputs import Unit, damaged, opened
from eventlog.convert.lines import blocks_of_lines, column_of
from eventlog.convert.partitions import BATCH_ROWS, PartitionFile
from eventlog.convert.rows import object_number, text_of
from eventlog.convert.settings import Conversion, DatabaseRows
from eventlog.core.errors import DataError, UsageError
from eventlog.core.model import Cell, ReadBack, RowId
from eventlog.core.rules.prefer import NOBODY_READS
from eventlog.core.rules.times import read_moment
from eventlog.core.schema import Attribute, Catalog, Table
from eventlog.core.seams import RowReader
from eventlog.core.sql_types import Category
from eventlog.core.tablekey import format_parts

SUFFIXES: Final = (".parquet", *(kind + packed for kind in (".jsonl", ".ndjson", ".json") for packed in ("", ".gz")))
_fraction = re.compile(r"[.,](\d+)", re.ASCII).search
KEY: Final = "eventlog:key"
"""Holds the object's canonical key beside the columns of a table, none of which has such a name."""


class SnapshotFile(Struct, frozen=True, kw_only=True):
    """The files with the rows of one table, or of one child table of it; tables and children are
    told by their places.
    """

    name: str
    paths: tuple[str, ...]
    table: int
    child: int | None = None


def snapshot_files(folder: Path, catalog: Catalog) -> list[SnapshotFile]:
    """The files that the catalog's tables have in the folder, named `table` or `schema.table`."""
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.", hint="--snapshot names one with a file for each table.")
    present = {catalog.fold(entry.name): entry for entry in sorted(folder.iterdir())}
    found = []
    for place, table in enumerate(catalog):
        names = [(table.name, None), *((child.name, number) for number, child in enumerate(table.children))]
        for name, child in names:
            paths = _paths(present, catalog, table.schema, name)
            if paths:
                found.append(SnapshotFile(name=f"snapshot-{place}-{child}", paths=paths, table=place, child=child))
    if not found:
        raise UsageError(f"{folder} has no file of a table of the schema.", hint="They are called like usr.parquet.")
    return found


def placed_rows(file: SnapshotFile, catalog: Catalog) -> Iterator[pa.RecordBatch]:
    """The rows of the files, each with `object` and its object's key; those whose key is NULL name
    no object.
    """
    table = catalog.tables[file.table]
    columns = wanted_columns(table, file.child)
    for path in file.paths:
        yield from placed_batches(_batches(path, columns, catalog), table, file.child)


def placed_batches(batches: Iterable[pa.RecordBatch], table: Table, child: int | None) -> Iterator[pa.RecordBatch]:
    """The same of rows of a table, or of a child table of it."""
    held = table.key if child is None else table.children[child].parent_key
    for batch in batches:
        valid = [batch.column(name).is_valid() for name in held]
        whole = batch.filter(reduce(pc.and_, valid)) if valid else batch.slice(0, 0)
        yield _placed(whole, table, held)


def wanted_columns(table: Table, child: int | None) -> list[str]:
    """The columns of a file that are read: the key and what read-backs may ask for."""
    if child is None:
        return [column.name for column in table.columns]
    described = table.children[child]
    return list(dict.fromkeys([*described.parent_key, *(column.name for column in described.columns)]))


def _paths(present: dict[str, Path], catalog: Catalog, schema: str | None, name: str) -> tuple[str, ...]:
    for stem in ([f"{schema}.{name}"] if schema else []) + [name]:
        for suffix in (*SUFFIXES, ""):
            entry = present.get(catalog.fold(stem + suffix))
            if entry is not None and entry.is_dir():  # as Spark writes a table
                return tuple(str(part) for part in sorted(entry.iterdir()) if part.name.lower().endswith(SUFFIXES))
            if entry is not None and suffix:
                return (str(entry),)
    return ()


def _batches(path: str, columns: Sequence[str], catalog: Catalog) -> Iterator[pa.RecordBatch]:
    """The columns of a file by the names that the catalog has for them."""
    try:
        read = _of_parquet if path.lower().endswith(".parquet") else _of_lines
        yield from read(path, columns, catalog)
    except (pa.ArrowException, EOFError, OSError, msgspec.DecodeError) as error:
        raise damaged(path, error) from error


def _of_parquet(path: str, columns: Sequence[str], catalog: Catalog) -> Iterator[pa.RecordBatch]:
    with parquet.ParquetFile(path, pre_buffer=False) as file:
        spelled = {catalog.fold(name): name for name in file.schema_arrow.names}
        missing = [name for name in columns if catalog.fold(name) not in spelled]
        if missing:
            raise DataError(
                f"{path} has no column {', '.join(missing)}.",
                hint="The schema file says that it has; export the table again, or correct the schema.",
            )
        chosen = [spelled[catalog.fold(name)] for name in columns]
        for batch in file.iter_batches(BATCH_ROWS, columns=chosen, use_threads=False):
            yield pa.RecordBatch.from_arrays([_plain(batch.column(name)) for name in chosen], names=list(columns))


def _plain(column: pa.Array) -> pa.Array:
    """A column without what Python has no values for: nanoseconds stay in the text of a time."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()) if str(column.type).startswith(("timestamp[ns", "time64[ns")) else column


def _of_lines(path: str, columns: Sequence[str], catalog: Catalog) -> Iterator[pa.RecordBatch]:
    """Every value as text; it is read by its column's type, as a log's is. An absent key is
    NULL.
    """
    decoder = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)
    with opened(Unit(path=path, kind="lines", packed=path.lower().endswith(".gz"))) as file:
        for block, _ in blocks_of_lines(file):
            rows = [{catalog.fold(name): value for name, value in row.items()} for row in decoder.decode_lines(block)]
            if rows:
                values = [column_of([row.get(catalog.fold(name)) for row in rows]) for name in columns]
                yield pa.RecordBatch.from_arrays(values, names=list(columns))


def _placed(rows: pa.RecordBatch, table: Table, held: Sequence[str]) -> pa.RecordBatch:
    columns = [[key_text(value, one) for value in rows.column(name).to_pylist()] for name, one in _typed(table, held)]
    names = table.key or held
    keys = [format_parts(zip(names, found, strict=True)) for found in zip(*columns, strict=True)]
    numbers = [object_number(RowId(table.schema, table.name, key)) for key in keys]
    made = [*rows.columns, pa.array(keys, pa.string()), pa.array(numbers, pa.int64())]
    return pa.RecordBatch.from_arrays(made, names=[*rows.schema.names, KEY, "object"])


def _typed(table: Table, held: Sequence[str]) -> list[tuple[str, Category]]:
    """The columns that hold the key, which may be a child's, and what they hold."""
    described = {column.name: column.category for column in table.columns}
    return [(name, described.get(key, Category.STRING)) for name, key in zip(held, table.key or held, strict=True)]


def key_text(value: Any, category: Category) -> str:
    """A value of a key as triggers write it, whatever the file has it in."""
    if category is Category.TIMESTAMP and isinstance(value, str | dt.datetime):
        return _moment_text(value)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode("ascii")
    return repr(value).removesuffix(".0") if isinstance(value, float) else text_of(value)


def _moment_text(value: str | dt.datetime) -> str:
    """Date and time with nine digits of a second, in UTC where a zone is told; what is none stays
    as it is.
    """
    nanos = ""
    if isinstance(value, str):
        try:
            found = read_moment(value)
        except ValueError:
            return value
        fraction = _fraction(value)
        nanos = fraction[1][6:9] if fraction is not None else ""
    else:
        found = value
    plain = found if found.tzinfo is None else found.astimezone(dt.UTC).replace(tzinfo=None)
    return f"{plain.isoformat(' ', 'microseconds')}{nanos:0<3}"


class PlacedTable(Struct, frozen=True, kw_only=True):
    """A table of the snapshot, or a child table, over the buckets."""

    table: int
    child: int | None = None
    file: PartitionFile | None = None
    """None: the table has no rows."""


FoundRows = dict[str, list[dict[str, Any]]]
"""Rows of one table, or of a child table, by the keys of their objects."""


class BucketRows:
    """Answers from one bucket of a snapshot."""

    def __init__(self, catalog: Catalog, placed: Sequence[PlacedTable], bucket: int) -> None:
        self._catalog = catalog
        self._files = {(one.table, one.child): one.file for one in placed}
        self._bucket = bucket
        self._places = {(table.schema, table.name): place for place, table in enumerate(catalog)}

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        """The wanted attributes of the objects that exist; of those whose table is not present,
        that nobody reads it.
        """
        found: dict[RowId, ReadBack] = {}
        by_table: dict[tuple[str | None, str], dict[str, frozenset[str]]] = {}
        for row, attributes in wanted.items():
            by_table.setdefault((row.schema, row.table), {})[row.key] = attributes
        for (schema, name), keys in by_table.items():
            place = self._places.get((schema, name))
            answer: Mapping[str, ReadBack]
            if place is None or (place, None) not in self._files:
                answer = dict.fromkeys(keys, NOBODY_READS)
            else:
                answer = self._table(place, keys)
            found |= {RowId(schema, name, key): values for key, values in answer.items()}
        return found

    def _table(self, place: int, keys: Mapping[str, frozenset[str]]) -> dict[str, dict[str, Cell]]:
        table = self._catalog.tables[place]
        found = {key: _own(table, rows) for key, rows in self._find(place, None, keys).items()}
        for number, child in enumerate(table.children):
            if (place, number) not in self._files:
                continue  # nothing is said of it, rather than that it is empty
            attributes = [one for one in table.attributes.values() if one.child == child.name]
            rows = self._find(place, number, found)
            for key in found:
                found[key] |= _childrens(attributes, rows.get(key, []))
        return {
            key: {name: values[name] for name in table.loggable if name in keys[key] and name in values}
            for key, values in found.items()
        }

    def _find(self, place: int, child: int | None, keys: Iterable[str]) -> FoundRows:
        """The rows of a table, or of its child table, that have one of the keys."""
        file = self._files[place, child]
        found: FoundRows = {}
        if file is None:
            return found
        chosen = pa.array(keys, pa.string())
        for batch in file.read(self._bucket):
            for row in batch.filter(pc.is_in(batch.column(KEY), value_set=chosen)).to_pylist():
                found.setdefault(row[KEY], []).append(row)
        return found


@contextmanager
def reader_of(
    conversion: Conversion, placed: Sequence[PlacedTable] = (), bucket: int = 0
) -> Iterator[RowReader | None]:
    """What answers read-backs in a bucket; None where nobody can."""
    if conversion.read_back is None or conversion.catalog is None:
        yield None
    elif isinstance(conversion.read_back, DatabaseRows):
        from eventlog.sql.connect import connect
        from eventlog.sql.rows import SqlRowReader

        engine = connect(conversion.read_back.url)
        try:
            yield SqlRowReader(engine, conversion.catalog)
        finally:
            engine.dispose()
    else:
        yield BucketRows(conversion.catalog, placed, bucket)


def _own(table: Table, rows: list[dict[str, Any]]) -> dict[str, Cell]:
    """The object of a table's rows: there is one, but a view may have several for attributes with
    several values.
    """
    attributes = [one for one in table.loggable.values() if one.child is None]
    ordered = _ordered(rows, attributes)
    return {
        one.name: tuple(dict.fromkeys(_values(ordered, one))) if one.multiple else ordered[0][one.column.name]
        for one in attributes
    }


def _childrens(attributes: Sequence[Attribute], rows: list[dict[str, Any]]) -> dict[str, Cell]:
    ordered = _ordered(rows, attributes)
    return {one.name: tuple(_values(ordered, one)) for one in attributes}


def _values(rows: list[dict[str, Any]], attribute: Attribute) -> list[Any]:
    return [row[attribute.column.name] for row in rows if row[attribute.column.name] is not None]


def _ordered(rows: list[dict[str, Any]], attributes: Sequence[Attribute]) -> list[dict[str, Any]]:
    """Rows in the order of their values, so that it does not matter how the snapshot's files were
    cut.
    """
    if len(rows) < 2:
        return rows

    def values(row: dict[str, Any]) -> list[tuple[bool, Any]]:
        found = [row[one.column.name] for one in attributes]
        return [(value is None, "" if value is None else value) for value in found]

    return sorted(rows, key=values)
