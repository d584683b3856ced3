"""Change tables: the rows of each change, for part files (Parquet or CSV, a folder a table) or for
a database.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
from msgspec.structs import replace

from eventlog.convert.folders import cannot_write
from eventlog.convert.forms import (
    COVERS,
    ROUTE,
    STAMP,
    Parts,
    Rendering,
    TableNumbers,
    in_parts,
    list_covered,
    table_numbers,
)
from eventlog.convert.packed_rows import RowPacker, unpack_rows
from eventlog.convert.settings import SentTables, TableFiles
from eventlog.core.schema import Catalog, Table
from eventlog.core.seams import Writer
from eventlog.qlik.change_tables.format import DOCUMENT_ROWS, ChangeTableFormat, WrittenRows
from eventlog.qlik.change_tables.rows import RowBlock, RowsDocument, folder_of
from eventlog.qlik.change_tables.tables import ChangeTable
from eventlog.sinks.change_files.dfm import description, description_name
from eventlog.sinks.change_files.row_files import file_bytes

SCHEMA: Final = pa.schema(
    [
        ("position", pa.int64()),
        (STAMP, pa.string()),
        ("table", pa.int32()),
        ("letters", pa.string()),
        ("rows", pa.large_binary()),
        (ROUTE, pa.string()),
    ]
)
SENT: Final = SCHEMA.append(pa.field(COVERS, pa.list_(pa.int64())))


class PackedRows:
    """Packs what was written, and takes it out again; `tables` are by the numbers that it has for
    them.

    The rows of a full load have the complement of their table's number.
    """

    schema = SCHEMA

    def __init__(self, form: ChangeTableFormat, tables: Mapping[int, Table]) -> None:
        self._form = form
        self._tables = tables
        self._made: dict[tuple[int, str], ChangeTable] = {}

    def writer(self, catalog: Catalog | None) -> Writer:
        """Make the writer of changes' rows."""
        return self._form.writer(catalog)

    def rendering(self, catalog: Catalog | None, numbers: TableNumbers | None = None) -> Rendering:
        number_of = table_numbers(catalog) if numbers is None else numbers
        packers: dict[ChangeTable, RowPacker] = defaultdict(RowPacker)

        def cells(written: WrittenRows) -> tuple[object, ...]:
            table, route = written.table.source, written.table.route
            number = number_of[table.schema, table.name]
            if written.table.load:
                # Not minus: table number 0 has rows of a full load too.
                number = ~number
            # Values have the types of Python, which Arrow would need a column each for.
            letters, packed = packers[written.table].pack(written.rows)
            return written.stamp, number, letters, packed, route

        return Rendering(self.schema, self.writer(catalog), cells)

    def written(self, rendered: pa.RecordBatch) -> Iterator[WrittenRows]:
        columns = {name: rendered.column(name).to_pylist() for name in rendered.schema.names}
        covers = columns.get(COVERS) or [(position,) for position in columns["position"]]
        names = (STAMP, "letters", "rows", ROUTE)
        cells = zip(columns["table"], covers, *[columns[name] for name in names], strict=True)
        for number, positions, stamp, letters, packed, route in cells:
            rows = unpack_rows(letters, packed)
            yield WrittenRows(self._table(number, route), list_covered(positions), stamp, rows)

    def _table(self, number: int, route: str) -> ChangeTable:
        known = self._made.get((number, route))
        if known is not None:
            return known
        is_load = number < 0
        table = self._tables[~number if is_load else number]
        # Each piece of a stream describes its tables anew, and they may look the same; then they
        # are one table, whose rows go into one file.
        for other in self._made.values():
            is_alike = other.load is is_load and other.route == route
            if is_alike and _look(other.source) == _look(table):
                self._made[number, route] = other
                return other
        made = ChangeTable(table, self._form.settings, load=is_load, route=route, who=self._form.who)
        self._made[number, route] = made
        return made


class TableForm(PackedRows):
    """Part files of rows."""

    def __init__(
        self,
        target: TableFiles,
        tables: Mapping[int, Table],
        *,
        streamed: bool = False,
    ) -> None:
        own_files = target.files.full_load == "files"
        super().__init__(
            ChangeTableFormat(settings=target.settings, loads=own_files, limits=target.files.limits, who=target.who),
            tables,
        )
        self._target = target
        self._streamed = streamed
        self._layouts: dict[str, list[Table]] = {}
        for table in tables.values():
            alike = self._layouts.setdefault(self._folder(table), [])
            if _look(table) not in alike:
                alike.append(_look(table))

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        first = part = parts.first // parts.part_events
        after = parts.after
        held: list[WrittenRows] = []
        for begins, run in in_parts(rendered, parts.part_events):
            if begins and held:
                # Numbers go on from the last one of the part before.
                after = self._store(folder, part, held, after)
                part, held = part + 1, []
            held += self.written(run)
        if held:
            self._store(folder, part, held, after)
            part += 1
        return part - first

    def _store(self, folder: Path, part: int, written: list[WrittenRows], after: str) -> str:
        """Write one part; return the number of its last change."""
        [document] = self._form.bind(written, after, whole=True)
        # Several tables may be sent to one folder: how many have files there so far.
        seen: dict[Path, int] = {}
        try:
            for block in document.blocks:
                self._store_block(folder, part, block, seen)
        except OSError as error:
            raise cannot_write(folder, error) from error
        return document.id

    def _store_block(self, folder: Path, part: int, block: RowBlock, seen: dict[Path, int]) -> None:
        """Write rows of one table; if its columns changed, each version has files of its own.

        Several tables may be sent to one; `seen` counts the files in a folder so far.
        """
        subfolder = folder / block.place
        subfolder.mkdir(parents=True, exist_ok=True)
        if block.route:
            seen[subfolder] = seen.get(subfolder, -1) + 1
            suffix = f"-to-{seen[subfolder]}"
        else:
            layouts = self._layouts[self._folder(block.table)]
            look = layouts.index(_look(block.table))
            suffix = ""
            # Files of a log's table as it is today have no number. In a stream no look is that of
            # today, so all have one where there are several.
            if look or (self._streamed and len(layouts) > 1):
                suffix = f"-{look}"
        form = self._target.files
        stem = f"part-{part:05d}{suffix}"
        if block.load:
            # As Qlik calls and counts files of a full load: from 1, in eight digits.
            stem = f"LOAD{part + 1:08d}{suffix}"
        started = dt.datetime.now(dt.UTC)
        (subfolder / f"{stem}.{form.ending}").write_bytes(file_bytes(block.columns, block.cells, form))
        ended = dt.datetime.now(dt.UTC)
        task = self._target.task
        content = description(form, stem, block.place, block, task=task, started=started, ended=ended)
        described = subfolder / description_name(form, stem)
        described.parent.mkdir(exist_ok=True)
        described.write_bytes(content)

    def _folder(self, table: Table) -> str:
        return folder_of(table, f"{table.name}{self._target.settings.suffix}")


class TableDocuments(PackedRows):
    """Rows as a database takes them; each change keeps the places of its events, for a row may be
    refused there.
    """

    schema = SENT

    def __init__(self, target: SentTables, tables: Mapping[int, Table]) -> None:
        form = ChangeTableFormat(
            settings=target.settings, rows_of_a_document=DOCUMENT_ROWS, limits=target.into.limits, who=target.who
        )
        super().__init__(form, tables)

    def documents(self, rendered: Iterable[pa.RecordBatch], after: str) -> Iterator[RowsDocument]:
        """Make documents of some thousand rows."""
        return self._form.bind(chain.from_iterable(map(self.written, rendered)), after)


def _look(table: Table) -> Table:
    """Return the table without its version, to compare definitions by."""
    return replace(table, version=1)
