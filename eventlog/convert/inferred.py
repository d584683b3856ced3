"""What tables look like as far as rows of a log tell it: for change tables and messages without a
schema file.

A table's key are the columns of its table_keys, its others those that rows name, in the order in
which they came up. Every value is text, because nobody said otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from msgspec import Struct

from eventlog.convert.settings import FilesInput
from eventlog.convert.work import processes_share_locks
from eventlog.core.errors import KeySyntaxError, MachineError
from eventlog.core.schema import Catalog, Child, Column, Table
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
    """The tables that the rows of files speak of. They are read by another process: this one may
    never load Arrow.

    Where there can be no other one, nothing is forked from this one that Arrow's threads would
    hurt.
    """
    if not processes_share_locks():
        return Catalog(tables_of(seen_in(files)))
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            return Catalog(tables_of(process.submit(seen_in, files).result()))
    except BrokenProcessPool as error:
        message = "The process that reads the names of tables was killed, by somebody or because memory ran out."
        raise MachineError(
            message, hint="Run it again, or use --schema FILE: then nobody needs to read them."
        ) from error


def seen_in(files: FilesInput) -> list[SeenColumn]:
    """What the rows name, a few words for each batch of them."""
    from eventlog.convert.inputs import units
    from eventlog.convert.reading import read

    return [one for unit in units(files) for batch in read(unit, files.statuses) for one in _seen(batch)]


def tables_of(seen: Iterable[SeenColumn]) -> Iterator[Table]:
    """The tables, each with the columns that rows name; the order of files and batches is of no
    account.
    """
    tables: dict[str, list[SeenColumn]] = {}
    for one in sorted(seen, key=lambda one: (one.since, one.table, one.column or "")):
        tables.setdefault(one.table.casefold(), []).append(one)
    for rows in tables.values():
        key = next((found for text in sorted(one.key for one in rows) if (found := _key_columns(text))), ())
        if key:
            yield _table(rows[0].table, key, [one.column for one in rows if one.column])


def _seen(batch: Any) -> Iterator[SeenColumn]:
    import pyarrow as pa

    named = pa.Table.from_batches([batch]).group_by(["table_name", "column_name"])
    found = named.aggregate([("record_id", "min"), ("table_key", "min")]).to_pylist()
    for row in found:
        if row["table_name"] and row["record_id_min"] is not None and row["table_key_min"]:
            since, key = row["record_id_min"], row["table_key_min"]
            yield SeenColumn(table=row["table_name"].strip(" "), column=row["column_name"], since=since, key=key)


def _key_columns(text: str) -> tuple[str, ...]:
    try:
        return tuple(TableKey.parse(text).columns)
    except KeySyntaxError:
        return ()


def _table(name: str, key: tuple[str, ...], named: Iterable[str]) -> Table:
    columns = {part.casefold(): Column(name=part, key=place) for place, part in enumerate(key, 1)}
    children: dict[str, dict[str, Column]] = {}
    for column in named:
        child, point, own = column.rpartition(".")
        place = children.setdefault(child, {}) if point else columns
        place.setdefault(own.casefold(), Column(name=own))
    schema, _, table = name.rpartition(".")
    below = (
        Child(name=child, parent_key=key, columns=(*[Column(name=one) for one in key], *held.values()))
        for child, held in children.items()
    )
    return Table(name=table, schema=schema or None, columns=tuple(columns.values()), children=tuple(below))
