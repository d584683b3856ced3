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
from urllib.parse import quote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.schema import Schema

from eventlog.sinks.lake.merging import OPER, Does
from eventlog.sinks.lake.rows import aligned, missing_fields, plain_schema
from eventlog.sinks.lake.settings import DeltaSettings
from eventlog.sinks.lake.staging import StagedTable
from eventlog.sinks.lake.troubles import COMMIT_TRIES, pause, told, trouble, writes_elsewhere
from eventlog.sinks.store.address import is_address
from eventlog.sinks.store.objects import ANSWER_SECONDS, TRIES, TRYING_SECONDS

LIBRARY: Final = (DeltaError, OSError, ValueError, pa.ArrowException)
"""What the library raises."""

_log = logging.getLogger(__name__)


class DeltaTables:
    """The tables below a folder or an address."""

    def __init__(self, settings: DeltaSettings) -> None:
        self._settings = settings
        self._options = storage_options(settings)
        self._known: dict[str, DeltaTable] = {}

    def forget(self) -> None:
        """Looks at every table anew."""
        self._known.clear()

    def close(self) -> None:
        """Nothing is open between two requests."""

    def schema(self, name: str) -> pa.Schema | None:
        """The columns of a table as it is now; None where there is none."""
        with self._asking(name):
            found = self._latest(name)
            return None if found is None else schema_of(found)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a table that is there, a piece at a time."""
        with self._asking(name, "read"):
            table = DeltaTable(self.place(name), storage_options=self._options)
            yield from QueryBuilder().register("rows", table).execute("SELECT * FROM rows")

    def widens(self, former: pa.DataType, kind: pa.DataType) -> bool:
        """The library cannot give a column another type."""
        return False

    def take(self, writer: str, number: int, table: StagedTable, rows: pa.Table) -> int:
        """Puts the rows into the table with the number of the plan, unless it has one as high."""
        for attempt in range(COMMIT_TRIES):
            with self._asking(table.name):
                try:
                    found = self._made(table.name, table.schema(rows))
                    there = found.transaction_version(writer) or 0
                    if there >= number:
                        return int(there)
                    self._put(
                        found,
                        table,
                        rows,
                        CommitProperties(app_transactions=[Transaction(writer, number)]),
                    )
                    self._optimize(found, table.name, number)
                    return number
                except CommitFailedError:
                    self._known.pop(table.name, None)
            _log.warning("Others write to %s as well; the rows are put there again.", self.place(table.name))
            pause(attempt)
        raise writes_elsewhere(self.place(table.name))

    def place(self, name: str) -> str:
        """Where a table stands."""
        root = self._settings.path.rstrip("/")
        return f"{root}/{quote(name)}" if is_address(root) else str(Path(root, name).absolute())

    def _latest(self, name: str) -> DeltaTable | None:
        """The table in its latest version, None where there is none."""
        found = self._known.get(name)
        try:
            if found is None:
                found = self._known[name] = DeltaTable(self.place(name), storage_options=self._options)
            else:
                found.update_incremental()
        except TableNotFoundError:
            self._known.pop(name, None)
            return None
        return found

    def _made(self, name: str, schema: pa.Schema) -> DeltaTable:
        """The table, which has these columns."""
        found = self._latest(name)
        if found is None:
            folded = {column.casefold(): column for column in schema.names}
            wanted = [column.casefold() for column in self._settings.partition_by]
            partitions = [folded[column] for column in wanted if column in folded]
            place = self.place(name)
            if not is_address(place):
                # whose error has a number, that of the library none
                Path(place).mkdir(parents=True, exist_ok=True)
            found = DeltaTable.create(
                place, schema, mode="ignore", partition_by=partitions, storage_options=self._options
            )
            found = self._known[name] = DeltaTable(place, storage_options=self._options)
        missing = missing_fields(schema, schema_of(found))
        if missing:
            found.alter.add_columns(list(Schema.from_arrow(pa.schema(missing)).fields))
        return found

    def _put(self, found: DeltaTable, table: StagedTable, rows: pa.Table, commit: CommitProperties) -> None:
        there = schema_of(found)
        if not table.key:
            write_deltalake(found, aligned(rows, there), mode="append", commit_properties=commit)
            return
        names = [(place, _quoted(column)) for place, column in enumerate(table.columns)]
        same = " AND ".join(f"t.{_quoted(column)} = s.m{place}" for place, column in enumerate(table.key))
        # Without the statistics of the rows that come, every file of the table would be read.
        merging = found.merge(
            rows,
            same,
            source_alias="s",
            target_alias="t",
            streamed_exec=False,
            commit_properties=commit,
        )
        merging = merging.when_matched_delete(predicate=f"s.{OPER} = {Does.GONE:d}").when_matched_update(
            {column: f"CASE WHEN s.g{place} THEN s.c{place} ELSE t.{column} END" for place, column in names}
        )
        merging = merging.when_not_matched_insert(
            {column: f"s.c{place}" for place, column in names},
            predicate=f"s.{OPER} <> {Does.GONE:d}",
        )
        if table.emptied:
            merging = merging.when_not_matched_by_source_delete()
        merging.execute()

    def _optimize(self, found: DeltaTable, name: str, number: int) -> None:
        """Puts small files together. The rows are there already, so what fails here waits for
        another time.
        """
        every = self._settings.optimize_every
        if not every or number % every:
            return
        try:
            found.optimize.compact()
        except Exception as error:  # noqa: BLE001  # the library raises Exception itself
            self._known.pop(name, None)
            _log.warning("%s is not put together this time: %s.", self.place(name), told(error))

    @contextmanager
    def _asking(self, name: str, done: str = "written") -> Iterator[None]:
        """Says in our words what goes wrong."""
        try:
            yield
        except CommitFailedError:
            raise
        except Exception as error:
            self._known.pop(name, None)
            # which the library raises as well
            if not isinstance(error, LIBRARY) and type(error) is not Exception:
                raise
            raise trouble(self.place(name), error, done) from error


def storage_options(settings: DeltaSettings) -> dict[str, str] | None:
    """Where the object store is; who may write there says the environment."""
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
            "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower(),
        }
    if settings.store.region:
        options["AWS_REGION"] = settings.store.region
    return options


def schema_of(table: DeltaTable) -> pa.Schema:
    """The columns of the table, as Arrow has them."""
    return plain_schema(pa.schema(table.schema()))


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
