"""Tables of Delta Lake. The number of a plan is the version of an application transaction, in the
commit of the rows.

Law: two commits of one writer never stand beside each other. The log refuses the later one, which
looks again then, and finds that its plan is there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from os import environ
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Schema
from msgspec import Struct
from msgspec.json import decode

from eventlog.durable_files import flush
from eventlog.sinks.lake.merging import OPER, Does
from eventlog.sinks.lake.rows import align_rows, missing_fields, plain_schema
from eventlog.sinks.lake.settings import DeltaSettings
from eventlog.sinks.lake.staging import StagedTable
from eventlog.sinks.lake.troubles import COMMIT_TRIES, message_of, pause, trouble, writes_elsewhere
from eventlog.sinks.store.address import is_address
from eventlog.sinks.store.objects import ANSWER_SECONDS, TRIES, TRYING_SECONDS

LIBRARY: Final = (DeltaError, OSError, ValueError, pa.ArrowException)
"""What the library raises."""

UNFLUSHED_VERSIONS: Final = 4
"""A plan makes no more of them: the table, its columns, its rows, and what puts files together."""

_log = logging.getLogger(__name__)


class AddedFile(Struct, frozen=True):
    """A file of rows that a commit has added; its path is written as in an address."""

    path: str


class CommitLine(Struct, frozen=True):
    """A line of a table's log, as far as it matters here."""

    add: AddedFile | None = None


class DeltaTables:
    """The tables below a folder or an address."""

    def __init__(self, settings: DeltaSettings) -> None:
        self._settings = settings
        self._options = storage_options(settings)
        self._known: dict[str, DeltaTable] = {}
        self._flushed: dict[str, int] = {}
        """The last version of each table that is known to be on the disk."""

    def forget(self) -> None:
        """Looks at every table anew."""
        self._known.clear()
        self._flushed.clear()

    def close(self) -> None:
        """Do nothing: no connection stays open between requests."""

    def schema(self, name: str) -> pa.Schema | None:
        """Return the table's columns as of now; None if there is no such table."""
        with self._asking(name):
            table = self._latest(name)
            return None if table is None else schema_of(table)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of an existing table in batches."""
        with self._asking(name, "read"):
            # Another object than the one that is kept: it is read while others commit.
            table = DeltaTable(self.location(name), storage_options=self._options)
            yield from QueryBuilder().register("rows", table).execute("SELECT * FROM rows")

    def widens(self, former: pa.DataType, kind: pa.DataType) -> bool:
        """Return False: delta-rs cannot change the type of a column."""
        return False

    def take(self, writer: str, number: int, table: StagedTable, rows: pa.Table) -> int:
        """Puts the rows into the table with the number of the plan, unless it has one as high."""
        for attempt in range(COMMIT_TRIES):
            with self._asking(table.name):
                try:
                    delta = self._make_table(table.name, table.schema(rows))
                    there = delta.transaction_version(writer) or 0
                    if there >= number:
                        self._flush(table.name, delta)
                        return int(there)
                    noted = CommitProperties(app_transactions=[Transaction(writer, number)])
                    self._put_rows(delta, table, rows, noted)
                    self._flush(table.name, delta)
                    if self._settings.optimize_every and number % self._settings.optimize_every == 0:
                        # The rows are there already, so what fails here waits for another time.
                        try:
                            delta.optimize.compact()
                            self._flush(table.name, delta)
                        except Exception as error:  # noqa: BLE001  # the library raises Exception itself
                            self._known.pop(table.name, None)
                            _log.warning(
                                "%s is not put together this time: %s.", self.location(table.name), message_of(error)
                            )
                    return number
                except CommitFailedError:
                    self._known.pop(table.name, None)  # its version is not the latest
                    location = self.location(table.name)
            _log.warning("Others write to %s as well; the rows are put there again.", location)
            pause(attempt)
        raise writes_elsewhere(self.location(table.name))

    def _flush(self, name: str, delta: DeltaTable) -> None:
        """Brings the last commits of a table in a folder to the disk, which the library does not."""
        folder, version = Path(self.location(name)), delta.version()
        if is_address(self._settings.path):
            return  # an object store keeps what it has acknowledged
        log = folder / "_delta_log"
        # Who was stopped before this has left what it made, put in and put together.
        first = self._flushed.get(name, version - UNFLUSHED_VERSIONS) + 1
        entries = [log / f"{number:020d}.json" for number in range(max(0, first), version + 1)]
        folders = {log, folder, *folder.parents[:2]}
        for entry in filter(Path.exists, entries):
            for line in entry.read_bytes().splitlines():
                added = decode(line, type=CommitLine).add
                if added is not None:
                    path = folder / unquote(added.path)
                    # What is gone was put together, or purged, since.
                    if path.exists():
                        flush(path)
                        folders.add(path.parent)
            flush(entry)
        for made in (log / "_last_checkpoint", *log.glob(f"{version:020d}.checkpoint*")):
            if made.exists():
                flush(made)
        for changed in folders:
            flush(changed)
        self._flushed[name] = version

    def location(self, name: str) -> str:
        """Return the path or address of a table."""
        root = self._settings.path.rstrip("/")
        if is_address(root):
            return f"{root}/{quote(name)}"
        return str(Path(root, name).absolute())

    def _latest(self, name: str) -> DeltaTable | None:
        """Open the latest version of a table; None if there is no such table."""
        table = self._known.get(name)
        try:
            if table is None:
                location = self.location(name)
                table = self._known[name] = DeltaTable(location, storage_options=self._options)
            else:
                table.update_incremental()  # reads only the commits that are new
        except TableNotFoundError:
            self._known.pop(name, None)
            return None
        return table

    def _make_table(self, name: str, schema: pa.Schema) -> DeltaTable:
        """Create the table, or add missing columns."""
        table = self._latest(name)
        if table is None:
            folded = {column.casefold(): column for column in schema.names}
            wanted = [column.casefold() for column in self._settings.partition_by]
            partitions = [folded[column] for column in wanted if column in folded]
            location = self.location(name)
            if not is_address(location):
                # The system's error has a number, that of the library none.
                Path(location).mkdir(parents=True, exist_ok=True)
            # With "ignore" whoever comes second takes the table that the first has made.
            DeltaTable.create(
                location,
                schema,
                mode="ignore",
                partition_by=partitions,
                storage_options=self._options,
            )
            table = self._known[name] = DeltaTable(location, storage_options=self._options)
        missing = missing_fields(schema, schema_of(table))
        if missing:
            table.alter.add_columns(list(Schema.from_arrow(pa.schema(missing)).fields))
        return table

    def _put_rows(self, delta: DeltaTable, table: StagedTable, rows: pa.Table, commit: CommitProperties) -> None:
        there = schema_of(delta)
        if not table.key:
            write_deltalake(delta, align_rows(rows, there), mode="append", commit_properties=commit)
            return
        names = [(index, _quote(column)) for index, column in enumerate(table.columns)]
        same = " AND ".join(f"t.{_quote(column)} = s.m{index}" for index, column in enumerate(table.key))
        # Without the statistics of the rows that come, every file of the table would be read.
        merging = delta.merge(
            rows,
            same,
            source_alias="s",
            target_alias="t",
            streamed_exec=False,
            commit_properties=commit,
        )
        # The order counts: the first clause whose condition holds is taken for a row.
        merging = merging.when_matched_delete(predicate=f"s.{OPER} = {Does.GONE:d}")
        values = {}
        for index, column in names:
            values[column] = f"CASE WHEN s.g{index} THEN s.c{index} ELSE t.{column} END"
        merging = merging.when_matched_update(values)
        merging = merging.when_not_matched_insert(
            {column: f"s.c{index}" for index, column in names},
            predicate=f"s.{OPER} <> {Does.GONE:d}",
        )
        if table.emptied:
            merging = merging.when_not_matched_by_source_delete()
        merging.execute()

    @contextmanager
    def _asking(self, name: str, done: str = "written") -> Iterator[None]:
        """Says in our words what goes wrong."""
        try:
            yield
        except CommitFailedError:
            raise
        except Exception as error:
            self._known.pop(name, None)
            # The library raises Exception itself as well, and no class of its own.
            if not isinstance(error, LIBRARY) and type(error) is not Exception:
                raise
            raise trouble(self.location(name), error, done) from error


def storage_options(settings: DeltaSettings) -> dict[str, str] | None:
    """Return the object store's address and limits; credentials come from the environment."""
    if not is_address(settings.path):
        return None
    options = {
        "timeout": f"{ANSWER_SECONDS}s",
        "connect_timeout": "5s",
        "max_retries": str(TRIES),
        "retry_timeout": f"{TRYING_SECONDS}s",
    }
    endpoint = settings.store.endpoint or environ.get("AWS_ENDPOINT_URL", "")
    if endpoint:
        options |= {
            "AWS_ENDPOINT_URL": endpoint,
            # Without TLS only where somebody has said so by the address.
            "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower(),
        }
    if settings.store.region:
        options["AWS_REGION"] = settings.store.region
    return options


def schema_of(table: DeltaTable) -> pa.Schema:
    """Return the table's columns as an Arrow schema."""
    return plain_schema(pa.schema(table.schema()))


def _quote(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
