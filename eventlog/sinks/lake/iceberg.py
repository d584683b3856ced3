"""Tables of Apache Iceberg. The number of a plan is a property of the table and of the snapshot, in
the commit of the rows.

Law: a commit counts on the snapshot that it was made from. Who was not the first is refused by the
catalog, looks again, and finds whether its plan is there. The library would try again by itself,
and add the rows a second time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
import pyiceberg.exceptions
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
)
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    GreaterThanOrEqual,
    In,
    LessThanOrEqual,
)
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import Table
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from eventlog.durable_files import flush
from eventlog.sinks.lake.catalogs import catalog_trouble, open_catalog
from eventlog.sinks.lake.merging import OPER, Does
from eventlog.sinks.lake.rows import align_rows, find_changed_fields, is_wider, plain_schema
from eventlog.sinks.lake.settings import IcebergSettings
from eventlog.sinks.lake.staging import StagedTable
from eventlog.sinks.lake.troubles import COMMIT_TRIES, pause, trouble, writes_elsewhere

NAMED_VALUES: Final = 500
"""Values of a key that are asked for one by one; of more of them everything between the least and
the greatest is read.
"""

FLUSHED_VERSIONS: Final = 2
"""A commit makes no more of them: rows that go, and rows that come."""
FLUSHED_PLACES: Final = 4
"""Folders above a file that a table may have been the first to need: its kind's, its own, a namespace's, the lake."""

NO_RETRIES: Final = {"commit.retry.num-retries": "0"}

LIBRARY: Final = (
    *(OSError, ValueError, pa.ArrowException, SQLAlchemyError),
    *[kind for kind in vars(pyiceberg.exceptions).values() if isinstance(kind, type) and issubclass(kind, Exception)],
)
"""What the library raises: its errors have no class in common."""

_in: Any = In
_least: Any = GreaterThanOrEqual
_most: Any = LessThanOrEqual
"""What takes a name and values, although its types do not say so."""

_log = logging.getLogger(__name__)
Identifier = tuple[str, str]


class IcebergTables:
    """The tables of a catalog."""

    def __init__(self, settings: IcebergSettings) -> None:
        self._settings = settings
        self._catalog: Catalog | None = None

    def forget(self) -> None:
        """Do nothing: a table's state is loaded each time."""

    def close(self) -> None:
        """Lets go of the catalog's connections."""
        catalog, self._catalog = self._catalog, None
        if catalog is not None:
            catalog.close()

    def schema(self, name: str) -> pa.Schema | None:
        """Return the table's columns as of now; None if there is no such table."""
        with self._asking(name):
            table = self._latest(name)
            return None if table is None else plain_schema(table.schema().as_arrow())

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of an existing table in batches, with at most one file in memory."""
        with self._asking(name, "read"):
            scan = self._open_catalog().load_table(self._identifier(name)).scan()
            for task in scan.plan_files():
                reading = ArrowScan(scan.table_metadata, scan.io, scan.projection(), scan.row_filter)
                yield from reading.to_record_batches([task])

    def widens(self, former: pa.DataType, kind: pa.DataType) -> bool:
        """Return True if a column can be widened to this type."""
        return is_wider(former, kind)

    def take(self, writer: str, number: int, table: StagedTable, rows: pa.Table) -> int:
        """Puts the rows into the table with the number of the plan, unless it has one as high."""
        note = f"eventlog.{writer}"
        for attempt in range(COMMIT_TRIES):
            with self._asking(table.name):
                try:
                    iceberg = self._make_table(table.name, table.schema(rows))
                    there = int(iceberg.properties.get(note, "0"))
                    if there >= number:
                        _flush_last(iceberg)
                        return there
                    self._put_rows(iceberg, table, rows, {note: str(number)})
                    _flush_last(iceberg)
                    return number
                except (CommitFailedException, TableAlreadyExistsError):
                    full_name = self.full_name(table.name)
            _log.warning("Others write to %s as well; the rows are put there again.", full_name)
            pause(attempt)
        raise writes_elsewhere(self.full_name(table.name))

    def full_name(self, name: str) -> str:
        """Return the table's name in the catalog."""
        return ".".join(self._identifier(name))

    def _identifier(self, name: str) -> Identifier:
        schema, point, table = name.partition(".")
        if point:
            return schema, table
        return self._settings.namespace, schema  # the name has no point, so it is the table's

    def _open_catalog(self) -> Catalog:
        if self._catalog is None:
            self._catalog = open_catalog(self._settings.properties)
        return self._catalog

    def _latest(self, name: str) -> Table | None:
        """Load the current state of a table; None if there is no such table."""
        try:
            return self._open_catalog().load_table(self._identifier(name))
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _make_table(self, name: str, schema: pa.Schema) -> Table:
        """Create the table, or add missing columns and widen narrower ones."""
        table = self._latest(name)
        if table is None:
            self._create(name, schema)
            table = self._latest(name)
            assert table is not None
        more = find_changed_fields(schema, plain_schema(table.schema().as_arrow()))
        if more:
            with table.update_schema() as update:
                update.union_by_name(pa.schema(more))
        # In memory alone: the library would repeat a commit by itself, on a state that it has not seen.
        properties = {**table.properties, **NO_RETRIES}
        table.metadata = table.metadata.model_copy(update={"properties": properties})
        return table

    def _create(self, name: str, schema: pa.Schema) -> None:
        identifier = self._identifier(name)
        try:
            self._open_catalog().create_namespace_if_not_exists(identifier[0])
        except (NamespaceAlreadyExistsError, IntegrityError, RESTError):
            # Somebody else makes it at the same time, which catalogs say in many ways.
            self._open_catalog().load_namespace_properties(identifier[0])
        folded = {column.casefold(): column for column in schema.names}
        wanted = [column.casefold() for column in self._settings.partition_by]
        # In one transaction with its partitions, so that nobody meets the table without them.
        creating = self._open_catalog().create_table_transaction(identifier, schema=schema)
        with creating.update_spec() as spec:
            for column in wanted:
                if column in folded:
                    spec.add_identity(folded[column])
        creating.commit_transaction()

    def _put_rows(self, iceberg: Table, table: StagedTable, rows: pa.Table, note: dict[str, str]) -> None:
        schema = plain_schema(iceberg.schema().as_arrow())
        # Without a snapshot nothing would tell that somebody was faster, so also no rows are
        # appended.
        with iceberg.transaction() as changing:
            if not table.key:
                changing.append(align_rows(rows, schema), snapshot_properties=note)
            elif table.emptied:
                there = schema.empty_table()
                # A delete of nothing makes no snapshot.
                if iceberg.scan(limit=1).to_arrow().num_rows:
                    changing.delete(AlwaysTrue(), snapshot_properties=note)
                changing.append(merge_rows(there, table, rows), snapshot_properties=note)
            else:
                filtered = _among(table.key, rows)
                there = align_rows(iceberg.scan(row_filter=filtered).to_arrow(), schema)
                if there.num_rows:
                    changing.delete(filtered, snapshot_properties=note)
                changing.append(merge_rows(there, table, rows), snapshot_properties=note)
            changing.set_properties(note)

    @contextmanager
    def _asking(self, name: str, done: str = "written") -> Iterator[None]:
        """Says in our words what goes wrong."""
        try:
            yield
        except LIBRARY as error:
            self._catalog = None  # its connection may be what failed
            full_name = self.full_name(name)
            raise catalog_trouble(full_name, error) or trouble(full_name, error, done) from error


def _flush_last(iceberg: Table) -> None:
    """Brings the files of the last commit to the disk where they are in a folder, which the library
    does not; an object store keeps what it has acknowledged.
    """
    paths = [
        iceberg.metadata_location,
        *[entry.metadata_file for entry in iceberg.metadata.metadata_log[-FLUSHED_VERSIONS:]],
    ]
    for snapshot in iceberg.metadata.snapshots[-FLUSHED_VERSIONS:]:
        paths.append(snapshot.manifest_list)
        for manifest in snapshot.manifests(iceberg.io):
            if manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            paths.append(manifest.manifest_path)
            added = manifest.fetch_manifest_entry(iceberg.io, discard_deleted=True)
            paths += [entry.data_file.file_path for entry in added if entry.snapshot_id == snapshot.snapshot_id]
    places = [Path(unquote(urlsplit(path).path)) for path in paths if urlsplit(path).scheme in ("", "file")]
    # What is gone was rewritten since.
    files = [path for path in places if path.exists()]
    folders = {folder for path in files for folder in path.parents[:FLUSHED_PLACES]}
    for changed in (*files, *folders):
        flush(changed)


def _among(key: Sequence[str], rows: pa.Table) -> BooleanExpression:
    """Build a condition true for all rows of a merge, and perhaps for others."""
    condition: BooleanExpression = AlwaysTrue()
    for index, name in enumerate(key):
        # Rows that are new have no former key.
        values = pc.drop_null(pc.unique(rows.column(f"m{index}")))
        if len(values) <= NAMED_VALUES:
            condition = And(condition, _in(name, values.to_pylist()))
        else:
            least, greatest = pc.min(values).as_py(), pc.max(values).as_py()
            condition = And(condition, And(_least(name, least), _most(name, greatest)))
    return condition


def merge_rows(there: pa.Table, table: StagedTable, rows: pa.Table) -> pa.Table:
    """Apply a merge to the rows; return the result."""
    known = _keys([there.column(name) for name in table.key])
    row_of = {key: number for number, key in enumerate(known)}
    named = _keys([rows.column(f"m{index}") for index in range(len(table.key))])
    named_keys = frozenset(named)
    keep = [key not in named_keys for key in known]  # others may have put a row there twice
    # A row that is not there yet has no place, and take() gives NULLs for it.
    former = there.take(pa.array(map(row_of.get, named), pa.int64()))
    columns = []
    for name, kind in zip(there.schema.names, there.schema.types, strict=True):
        column = former.column(name).combine_chunks()
        if name in table.columns:
            index = table.columns.index(name)
            values = rows.column(f"c{index}").cast(kind)
            column = pc.if_else(rows.column(f"g{index}"), values, column)
        columns.append(column)
    stays = pc.not_equal(rows.column(OPER), int(Does.GONE))
    made = pa.table(columns, schema=there.schema).filter(stays)
    return pa.concat_tables([there.filter(pa.array(keep, pa.bool_())), made])


def _keys(columns: Sequence[Any]) -> list[tuple[Any, ...]]:
    return list(zip(*[column.to_pylist() for column in columns], strict=True))
