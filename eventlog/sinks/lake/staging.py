"""The rows of a plan, a table at a time, as they wait beside the tables until all of these have
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ExpressionError, SinkError
from eventlog.core.model import Position
from eventlog.qlik.change_tables.folding import fold
from eventlog.qlik.change_tables.rows import ChangeColumn, RowBlock, RowsDocument, folder_of
from eventlog.qlik.masks import MovedMasks
from eventlog.sinks.change_files.settings import SET_ASIDE
from eventlog.sinks.lake.merging import Merging, change_rows, key_of, merge_table, without_key
from eventlog.sinks.lake.rows import Bad, Fitted, Widens, fit_rows, grow_schema, missing_fields, together
from eventlog.sinks.lake.settings import LakeSettings

Notes = list[tuple[Position, str]]
LookUp = Callable[[str], pa.Schema | None]
"""The columns of the table of that name, None where there is none."""


class StagedTable(Struct, frozen=True, kw_only=True):
    """What a plan has for one table, and where in the file of the plan its rows are.

    Of a merge, `columns` are those of its c0…, and `key` those of its m0…; rows that are appended
    have none.
    """

    name: str
    start: int = 0
    size: int = 0
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    emptied: bool = False

    def schema(self, rows: pa.Table) -> pa.Schema:
        """Return the columns the table needs for these rows."""
        if not self.key:
            return rows.schema
        types = [rows.schema.field(f"c{index}").type for index in range(len(self.columns))]
        return pa.schema(list(zip(self.columns, types, strict=True)))


Staged = tuple[StagedTable, pa.Table]
_COMPRESSED: Final = pa.ipc.IpcWriteOptions(compression="lz4")


def pack_tables(several: Sequence[Staged]) -> tuple[tuple[StagedTable, ...], bytes]:
    """Pack the rows of all tables into one file; return each table's place in it."""
    body, tables = bytearray(), []
    for table, rows in several:
        into = pa.BufferOutputStream()
        with pa.ipc.new_stream(into, rows.schema, options=_COMPRESSED) as stream:
            stream.write_table(rows)
        start = len(body)
        body += into.getvalue()
        tables.append(replace(table, start=start, size=len(body) - start))
    return tuple(tables), bytes(body)


def unpack_table(table: StagedTable, body: bytes) -> pa.Table:
    """Unpack the rows of a table."""
    # A view, for a slice of bytes would be a copy of the rows.
    piece = memoryview(body)[table.start : table.start + table.size]
    return pa.ipc.open_stream(piece).read_all()


class Staging:
    """Brings the rows of documents into what their tables take. `look_up` gives what stands there."""

    def __init__(self, settings: LakeSettings, look_up: LookUp, widens: Widens) -> None:
        self._settings = settings
        self._look_up = look_up
        self._widens = widens

    def stage(self, documents: Sequence[RowsDocument]) -> tuple[list[Staged], Notes]:
        """Group documents by table; return the rows for each table and notes on rows left out."""
        blocks: dict[str, list[RowBlock]] = {}
        for document in documents:
            for block in document.blocks:
                name = block.folder
                # A mirror is called as its source, a change table as change tables are.
                if self._settings.mode != "append":
                    bare = block.target.removesuffix(self._settings.change_tables.suffix)
                    name = folder_of(block.table, bare)
                blocks.setdefault(name, []).append(block)
        of_tables: list[Staged] = []
        refused: Notes = []
        for name, several in blocks.items():
            staged, notes = self._of_table(name, several)
            refused += notes
            if staged is not None:
                of_tables.append(staged)
        return of_tables, refused

    def _of_table(self, name: str, blocks: Sequence[RowBlock]) -> tuple[Staged | None, Notes]:
        there, merging = self._look_up(name), self._settings.mode == "mirror"
        refuse_other = _refuse_other_mirror if merging else _refuse_other_table
        known = there  # and what blocks before bring
        notes: Notes = []
        kept: list[Fitted] = []
        for block in blocks:
            try:
                refuse_other(block, there)
                bad = without_key(block) if merging else {}
                fits = fit_rows(block.without(bad) if bad else block, known, self._widens)
            except ExpressionError as error:
                notes += self._refuse(name, dict.fromkeys(block.positions, str(error)))
                continue
            notes += self._refuse(name, bad | fits.bad)
            if fits.block.positions:
                known = grow_schema(known, fits.rows.schema)
                kept.append(fits)
        if known is None or not kept:
            return None, notes
        if merging:
            table, rows = _merge(name, kept, known)
        else:
            table = StagedTable(name=name)
            rows = together([_renumber_masks(block, known) for block in kept], known)
        if rows.num_rows or table.emptied:  # changes may cancel each other out
            return (table, rows), notes
        return None, notes

    def _refuse(self, name: str, bad: Bad) -> Notes:
        if bad and self._settings.on_refused == "stop":
            why = next(iter(bad.values()))
            raise SinkError(f"{name} does not take a row: {why}.", hint=SET_ASIDE, may_pass=False)
        notes: dict[Position, str] = {}  # an event with two rows is refused once
        for positions, why in bad.items():
            notes.update((position, f"{name}: {why}.") for position in positions)
        return list(notes.items())


def _refuse_other_table(block: RowBlock, there: pa.Schema | None) -> None:
    headers = pa.schema([(column.name, pa.null()) for column in block.columns if column.header])
    if there is None or not len(headers):
        return
    # One header column may have been added to the settings later; none of them is another table.
    if len(missing_fields(headers, there)) == len(headers):
        problem = f"it is there and is no change table: it has no column {headers[0].name}"
        raise ExpressionError(problem)


def _refuse_other_mirror(block: RowBlock, there: pa.Schema | None) -> None:
    key = pa.schema([(name, pa.null()) for name in key_of(block.columns)])
    missing = [] if there is None else missing_fields(key, there)
    if missing:
        problem = "it is there and is no mirror of its source"
        raise ExpressionError(f"{problem}: it has no column {missing[0].name}")


def _renumber_masks(block: Fitted, known: pa.Schema) -> pa.Table:
    """Renumber masks by the table's columns."""
    masks = [index for index, column in enumerate(block.block.columns) if column.is_called("change_mask")]
    indexes = [known.get_field_index(name) for name in block.rows.column_names]
    if not masks or indexes == list(range(len(indexes))):
        return block.rows
    mask = masks[0]
    moved, field = MovedMasks(dict(enumerate(indexes))), block.rows.schema.field(mask)
    former = block.rows.column(mask).to_pylist()
    cells = [None if cell is None else moved(cell) for cell in former]
    return block.rows.set_column(mask, field, pa.array(cells, field.type))


def _merge(name: str, several: Sequence[Fitted], known: pa.Schema) -> Staged:
    """Combine all changes of a mirror into one merge."""
    types: dict[str, set[str]] = {}
    for fits in several:
        for column, field in zip(fits.block.columns, fits.rows.schema, strict=True):
            types.setdefault(field.name, set()).add(column.type)
    # A column had another type in some of the blocks: then its values count as the table has them.
    is_mixed = any(len(of_column) > 1 for of_column in types.values())
    blocks = [_as_there(fits, values=is_mixed) for fits in several]
    by_name: dict[str, ChangeColumn] = {}
    for block in blocks:
        by_name.update((column.name, column) for column in block.columns if not column.header)
    columns, key = list(by_name.values()), key_of(blocks[-1].columns)
    changes = (row for block in blocks for row in change_rows(block))
    merge = Merging(key).merge(fold(changes, key))
    table = StagedTable(name=name, columns=tuple(by_name), key=key, emptied=merge.emptied)
    return table, merge_table(merge, columns, key, known, is_mixed=is_mixed)


def _as_there(fits: Fitted, *, values: bool) -> RowBlock:
    """Rename a block's columns as in the table; with `values`, take cells cast to its types."""
    both = zip(fits.block.columns, fits.rows.column_names, strict=True)
    columns = [replace(column, name=name) for column, name in both]
    cells = fits.block.cells
    if values:
        cells = tuple([column.to_pylist() for column in fits.rows.columns])
    return replace(fits.block, columns=tuple(columns), cells=cells)
