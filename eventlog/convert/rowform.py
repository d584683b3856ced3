"""Change tables: each change one or two rows, each table a folder of part files, Parquet or CSV."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa

from eventlog.convert.forms import STAMP, Cells, Parts, in_parts, table_numbers
from eventlog.convert.parts import cannot_write
from eventlog.convert.settings import TableFiles
from eventlog.core.errors import DataError, ExpressionError
from eventlog.core.model import Change
from eventlog.core.schema import Catalog, Table
from eventlog.qlik.change_seq import Sequencer, time_digits, time_of
from eventlog.qlik.change_tables.format import ChangeTable, ChangeTables, finished, refusal_note
from eventlog.qlik.change_tables.partitions import Partition, Partitions
from eventlog.qlik.change_tables.rows import ChangeRow, folder_of
from eventlog.sinks.change_files.fitting import Fitting
from eventlog.sinks.change_files.row_files import file_bytes

SCHEMA: Final = pa.schema(
    [("position", pa.int64()), (STAMP, pa.string()), ("table", pa.int32()), ("rows", pa.large_binary())]
)


class TableForm:
    """Writes the rows that the daemon would write."""

    schema = SCHEMA

    def __init__(self, target: TableFiles, tables: Mapping[int, Table]) -> None:
        self._target = target
        self._tables = tables
        self._made: dict[int, ChangeTable] = {}
        self._layouts: dict[str, list[Table]] = {}
        self._suffixes: dict[ChangeTable, str] = {}
        for table in tables.values():
            alike = self._layouts.setdefault(self._folder(table), [])
            if table not in alike:
                alike.append(table)
        self._partitions = ChangeTables(target.settings, None).partitions

    def rendering(self, catalog: Catalog | None, first: int = 0) -> Cells:
        """What writes changes one by one."""
        places = table_numbers(catalog, first)
        tables = ChangeTables(self._target.settings, catalog)
        fittings: dict[int, Fitting] = {}

        def write(change: Change) -> tuple[object, ...] | None:
            table = tables.of(change)
            rows = rows_of(table, change)
            if table is None or not rows:
                return None
            if self._target.file_format == "parquet":
                fitting = fittings.get(id(table))
                if fitting is None:
                    fitting = fittings[id(table)] = Fitting(table.columns)
                fitting.check(rows)
            place = places[change.row.schema, change.row.table]
            return time_digits(time_of(change)), place, pickle.dumps(rows, 5)

        return Cells(SCHEMA, write, refusal_note)

    def write(self, folder: Path, rendered: Iterable[pa.RecordBatch], parts: Parts) -> int:
        """Writes parts of changes that come in the order of their positions; says how many."""
        part = parts.first // parts.part_events - 1
        numbers = Sequencer("", skipped=parts.first, stamp=parts.stamp)
        gathered = _Gathered()
        for begins, run in in_parts(rendered, parts.part_events):
            if begins:
                self._store(folder, part, gathered)
                part, gathered = part + 1, _Gathered()
            stamps, places, contents = (run.column(name).to_pylist() for name in SCHEMA.names[1:])
            for sequence, place, rows in zip(numbers.stamped(stamps), places, contents, strict=True):
                gathered.add(self._table(place), pickle.loads(rows), sequence, self._partitions)  # noqa: S301  # a stage of this conversion wrote them
        self._store(folder, part, gathered)
        return part + 1 - parts.first // parts.part_events

    def _table(self, place: int) -> ChangeTable:
        found = self._made.get(place)
        if found is None:
            table = self._tables[place]
            found = self._made[place] = self._like(table) or self._new(table)
        return found

    def _like(self, table: Table) -> ChangeTable | None:
        """The change table of a table that looks the same: each piece of a stream describes its tables anew."""
        return next((one for one in self._made.values() if one.table == table), None)

    def _new(self, table: Table) -> ChangeTable:
        """A change table; where its table had several looks, each has files of its own."""
        made = ChangeTable(table, self._target.settings)
        layouts = self._layouts[self._folder(table)]
        self._suffixes[made] = f"-{layouts.index(table)}" if len(layouts) > 1 else ""
        return made

    def _folder(self, table: Table) -> str:
        return folder_of(table, f"{table.name}{self._target.settings.suffix}")

    def _store(self, folder: Path, part: int, gathered: _Gathered) -> None:
        form = self._target.file_format
        try:
            for (table, partition), rows in gathered.rows.items():
                place = folder / self._folder(table.table)
                place = place / partition.name if partition is not None else place
                place.mkdir(parents=True, exist_ok=True)
                file = place / f"part-{part:05d}{self._suffixes[table]}.{form}"
                file.write_bytes(file_bytes(table.columns, rows, form))
        except OSError as error:
            raise cannot_write(folder, error) from error


class _Gathered:
    """The rows of one part."""

    def __init__(self) -> None:
        self.rows: dict[tuple[ChangeTable, Partition | None], list[ChangeRow]] = {}

    def add(
        self, table: ChangeTable, rows: tuple[ChangeRow, ...], change_seq: str, partitions: Partitions | None
    ) -> None:
        """Takes the rows of one change."""
        partition = partitions.of(change_seq) if partitions is not None else None
        self.rows.setdefault((table, partition), []).extend(
            [finished(row, change_seq, table, partition) for row in rows]
        )


def rows_of(table: ChangeTable | None, change: Change) -> tuple[ChangeRow, ...]:
    """The rows of a change; what is wrong with its key is told as all else is that cannot be written."""
    try:
        return () if table is None else table.rows(change)
    except ExpressionError:
        raise
    except DataError as error:
        raise ExpressionError(str(error).rstrip(".")) from None
