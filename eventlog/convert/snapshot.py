"""Read-backs from a snapshot of the tables, a Parquet or JSON lines file for each, or from a
database.

A snapshot's rows are brought to the partitions of their objects. The numbers of objects are those
of the log's rows, so that each partition of the log needs only its own part of the snapshot.
"""

from __future__ import annotations

import binascii
import datetime as dt
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from pyarrow import parquet

from eventlog.convert.inputs import Unit, describe_damage, open_unit, rows_at_once
from eventlog.convert.partitions import BATCH_ROWS, PartitionFile
from eventlog.convert.rows import json_number, object_number, text_of
from eventlog.convert.settings import LINE_BYTES, Conversion, DatabaseRows, SnapshotRows
from eventlog.core.errors import DataError, UsageError
from eventlog.core.model import Cell, ReadBack, RowId
from eventlog.core.rules.prefer import NOBODY_READS
from eventlog.core.schema import Attribute, Catalog, Table
from eventlog.core.seams import RowReader
from eventlog.core.sql_types import Category
from eventlog.core.tablekey import format_parts
from eventlog.core.times import read_moment

_lines = (".jsonl", ".ndjson", ".json")
SUFFIXES: Final = (".parquet", *(kind + packed for kind in _lines for packed in ("", ".gz")))
# ISO 8601 allows a comma too.
_fraction = re.compile(r"[.,](\d+)", re.ASCII).search
KEY: Final = "eventlog:key"
"""Holds the object's canonical key beside the columns of a table, none of which has such a name."""


class SnapshotFile(Struct, frozen=True, kw_only=True):
    """The files with the rows of one table, or of one child table of it; tables and children are
    known by their indexes.
    """

    name: str
    paths: tuple[str, ...]
    table: int
    child: int | None = None
    line_limit: int = LINE_BYTES


def snapshot_files(rows: SnapshotRows, catalog: Catalog) -> list[SnapshotFile]:
    """List the folder's files for the catalog's tables, named `table` or `schema.table`."""
    folder = rows.folder
    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}.", hint="--snapshot names one with a file for each table.")
    present = {catalog.fold(entry.name): entry for entry in sorted(folder.iterdir())}
    files = []
    for number, table in enumerate(catalog):
        names: list[tuple[str, int | None]] = [(table.name, None)]
        names += [(child.name, at) for at, child in enumerate(table.children)]
        for name, child in names:
            paths = _paths(present, catalog, table.schema, name)
            if paths:
                task = f"snapshot-{number}-{child}"
                limit = rows.line_limit
                files.append(SnapshotFile(name=task, paths=paths, table=number, child=child, line_limit=limit))
    if not files:
        message = f"{folder} has no file of a table of the schema."
        raise UsageError(message, hint="They are called like usr.parquet.")
    return files


def place_rows(file: SnapshotFile, catalog: Catalog) -> Iterator[pa.RecordBatch]:
    """Read the files' rows with `object` and its key; leave out rows with a NULL key.

    All are typed as the first ones: files may have types of their own.
    """
    table = catalog.tables[file.table]
    columns = list_wanted_columns(table, file.child)
    schema = None
    for path in file.paths:
        for rows in place_batches(_batches(path, columns, catalog, file.line_limit), table, file.child):
            schema = schema or rows.schema
            try:
                typed = rows.cast(schema)
            except pa.ArrowException as error:
                raise describe_damage(path, error) from error
            yield typed


def place_batches(
    batches: Iterable[pa.RecordBatch],
    table: Table,
    child: int | None,
) -> Iterator[pa.RecordBatch]:
    """Give rows of a table, or a child table, object and key; leave out NULL keys."""
    key_columns = table.key if child is None else table.children[child].parent_key
    for batch in batches:
        valid = [batch.column(name).is_valid() for name in key_columns]
        # Rows of a table without a key name no object.
        named = batch.slice(0, 0)
        if valid:
            named = batch.filter(reduce(pc.and_, valid))
        yield _place(named, table, key_columns)


def list_wanted_columns(table: Table, child: int | None) -> list[str]:
    """List the columns to read: the key and those read-backs may ask for."""
    if child is None:
        return [column.name for column in table.columns]
    described = table.children[child]
    # The key may be among the child's own columns too.
    names = [*described.parent_key, *[column.name for column in described.columns]]
    return list(dict.fromkeys(names))


def _paths(
    present: dict[str, Path],
    catalog: Catalog,
    schema: str | None,
    name: str,
) -> tuple[str, ...]:
    stems = [name]
    if schema:
        # The longer name first: a table of the same name in another schema may have `name`.
        stems = [f"{schema}.{name}", name]
    for stem in stems:
        for suffix in (*SUFFIXES, ""):
            entry = present.get(catalog.fold(stem + suffix))
            if entry is None:
                continue
            if entry.is_dir():
                # As Spark writes a table: a folder of files, some of which only it reads.
                parts = sorted(entry.iterdir())
                return tuple(str(part) for part in parts if part.name.lower().endswith(SUFFIXES))
            if suffix:
                return (str(entry),)
    return ()


def _batches(path: str, columns: Sequence[str], catalog: Catalog, line_limit: int) -> Iterator[pa.RecordBatch]:
    """Read the columns of a file under the catalog's names."""
    try:
        if path.lower().endswith(".parquet"):
            yield from _of_parquet(path, columns, catalog)
        else:
            unit = Unit(path=path, kind="lines", packed=path.lower().endswith(".gz"), line_limit=line_limit)
            yield from _of_lines(unit, columns, catalog)
    except (pa.ArrowException, EOFError, OSError, zlib.error, msgspec.DecodeError, UnicodeError) as error:
        raise describe_damage(path, error) from error


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
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        for batch in file.iter_batches(rows_at_once(groups, BATCH_ROWS), columns=chosen, use_threads=False):
            arrays = [_plain(batch.column(name)) for name in chosen]
            yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _plain(column: pa.Array) -> pa.Array:
    """Convert a column to types Python has values for: nanoseconds stay in the text of a time."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if str(column.type).startswith(("timestamp[ns", "time64[ns")):
        return column.cast(pa.string())
    return column


def _of_lines(unit: Unit, columns: Sequence[str], catalog: Catalog) -> Iterator[pa.RecordBatch]:
    """Read every value as text, for its column's type as in a log. An absent key is NULL."""
    from eventlog.convert.lines import blocks_of_lines, column_of, is_long, read_value

    # A float would lose digits of a decimal number.
    decoder = msgspec.json.Decoder(dict[str, Any], float_hook=json_number)
    raw_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    folded_names = [catalog.fold(name) for name in columns]
    with open_unit(unit) as file:
        for block, _ in blocks_of_lines(file, unit):
            if is_long(block):
                raw = raw_decoder.decode(block)
                lines = [{name: read_value(value) for name, value in raw.items()}]
            else:
                lines = decoder.decode_lines(block)
            rows = [{catalog.fold(name): value for name, value in line.items()} for line in lines]
            if rows:
                arrays = [column_of([row.get(name) for row in rows]) for name in folded_names]
                yield pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _place(rows: pa.RecordBatch, table: Table, key_columns: Sequence[str]) -> pa.RecordBatch:
    # A child's columns are called otherwise; its key is written with the names of its table's.
    names = table.key or key_columns
    categories = {column.name: column.category for column in table.columns}
    texts = []
    for own_name, name in zip(key_columns, names, strict=True):
        category = categories.get(name, Category.STRING)
        texts.append([key_text(value, category) for value in rows.column(own_name).to_pylist()])
    keys = [format_parts(zip(names, parts, strict=True)) for parts in zip(*texts, strict=True)]
    numbers = [object_number(RowId(table.schema, table.name, key)) for key in keys]
    arrays = [*rows.columns, pa.array(keys, pa.string()), pa.array(numbers, pa.int64())]
    return pa.RecordBatch.from_arrays(arrays, names=[*rows.schema.names, KEY, "object"])


def key_text(value: Any, category: Category) -> str:
    """Write a key's value as triggers do, whatever its type in the file."""
    if category is Category.TIMESTAMP and isinstance(value, str | dt.datetime):
        return _moment_text(value)
    if isinstance(value, str):
        return value
    # Before numbers: to Python a bool is an integer.
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode("ascii")
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    return text_of(value)


def _moment_text(value: str | dt.datetime) -> str:
    """Write a time with nine digits of a second, in UTC if it has a zone; leave other text."""
    nanos = ""
    if isinstance(value, str):
        try:
            moment = read_moment(value)
        except ValueError:
            return value
        fraction = _fraction(value)
        if fraction is not None:
            # Python's times have six digits, so the other three are taken from the text.
            nanos = fraction[1][6:9]
    else:
        moment = value
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    return f"{moment.isoformat(' ', 'microseconds')}{nanos:0<3}"


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
        self._files = {(table.table, table.child): table.file for table in placed}
        self._bucket = bucket
        self._number_of = {(table.schema, table.name): at for at, table in enumerate(catalog)}

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        """Return the wanted attributes of existing objects; NOBODY_READS without a file."""
        answers: dict[RowId, ReadBack] = {}
        by_table: dict[tuple[str | None, str], dict[str, frozenset[str]]] = {}
        for row, attributes in wanted.items():
            by_table.setdefault((row.schema, row.table), {})[row.key] = attributes
        for (schema, name), keys in by_table.items():
            number = self._number_of.get((schema, name))
            of_table: Mapping[str, ReadBack]
            if number is None or (number, None) not in self._files:
                of_table = dict.fromkeys(keys, NOBODY_READS)
            else:
                of_table = self._table(number, keys)
            answers |= {RowId(schema, name, key): values for key, values in of_table.items()}
        return answers

    def _table(self, number: int, keys: Mapping[str, frozenset[str]]) -> dict[str, dict[str, Cell]]:
        table = self._catalog.tables[number]
        objects = {key: _own(table, rows) for key, rows in self._find(number, None, keys).items()}
        for at, child in enumerate(table.children):
            if (number, at) not in self._files:
                # Nothing is said of it, rather than that it is empty.
                continue
            attributes = [attribute for attribute in table.attributes.values() if attribute.child == child.name]
            rows_of = self._find(number, at, objects)
            for key, values in objects.items():
                # An object without a row there has no value, which is something else than NULL.
                rows = _order_rows(rows_of.get(key, []), attributes)
                values |= {attribute.name: tuple(_values(rows, attribute)) for attribute in attributes}
        answers = {}
        for key, values in objects.items():
            # In the order of the table's attributes, whatever was asked for in which order.
            named = [name for name in table.loggable if name in keys[key] and name in values]
            answers[key] = {name: values[name] for name in named}
        return answers

    def _find(self, number: int, child: int | None, keys: Iterable[str]) -> FoundRows:
        """Find the rows with one of the keys, of a table or of its child table."""
        file = self._files[number, child]
        rows_of: FoundRows = {}
        if file is None:
            return rows_of
        chosen = pa.array(keys, pa.string())
        for batch in file.read(self._bucket):
            for row in batch.filter(pc.is_in(batch.column(KEY), value_set=chosen)).to_pylist():
                rows_of.setdefault(row[KEY], []).append(row)
        return rows_of


@contextmanager
def reader_of(
    conversion: Conversion,
    placed: Sequence[PlacedTable] = (),
    bucket: int = 0,
) -> Iterator[RowReader | None]:
    """Open the reader for read-backs in a bucket; None if there is none."""
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
    """Make the object of a table's rows: one row, or several of a view with multiple values."""
    attributes = [attribute for attribute in table.loggable.values() if attribute.child is None]
    ordered = _order_rows(rows, attributes)
    cells: dict[str, Cell] = {}
    for attribute in attributes:
        if attribute.multiple:
            # Several attributes with several values multiply each other's rows in a view.
            cells[attribute.name] = tuple(dict.fromkeys(_values(ordered, attribute)))
        else:
            cells[attribute.name] = ordered[0][attribute.column.name]
    return cells


def _values(rows: list[dict[str, Any]], attribute: Attribute) -> list[Any]:
    return [row[attribute.column.name] for row in rows if row[attribute.column.name] is not None]


def _order_rows(rows: list[dict[str, Any]], attributes: Sequence[Attribute]) -> list[dict[str, Any]]:
    """Sort rows by their values, so it does not matter how the snapshot's files were cut."""
    if len(rows) < 2:
        return rows

    def values(row: dict[str, Any]) -> list[tuple[bool, Any]]:
        cells = [row[attribute.column.name] for attribute in attributes]
        # Python cannot compare None with a number; behind True it is compared only with its like.
        return [(cell is None, "" if cell is None else cell) for cell in cells]

    return sorted(rows, key=values)
