"""What the changes of a plan do to a mirror, as one merge: each row of it is named once, by the key
that it had before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ExpressionError
from eventlog.core.schema import WHOLE_ROW
from eventlog.qlik.change_tables.folding import ChangeRow, Key, Moved, Nets, Step, Values
from eventlog.qlik.change_tables.rows import BEFORE, ChangeColumn, RowBlock
from eventlog.qlik.masks import bits_of
from eventlog.sinks.change_files.arrow import arrow_columns
from eventlog.sinks.lake.rows import Bad

OPER: Final = "oper"


class Does(IntEnum):
    """What a row of a merge does: the row goes, it is as given, or some of its columns are."""

    GONE = 0
    WHOLE = 1
    CHANGED = 2


class MergeRow(Struct, kw_only=True):
    """What becomes of one row. `origin` is the key that the table has it under, None where it does
    not have it.
    """

    origin: Key | None
    values: Values
    whole: bool


class Merge(Struct, frozen=True, kw_only=True):
    """What a plan does to a mirror. Where it is `emptied`, everything else that is there goes."""

    gone: list[Key]
    rows: list[MergeRow]
    emptied: bool


class Merging:
    """Puts steps together that come one after the other."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self._key = key
        self._rows: dict[Key, MergeRow] = {}
        """By the keys that they have by now."""
        self._claimed: set[Key] = set()
        """Keys of rows in the table of which it is known already what becomes of them."""
        self._gone: list[Key] = []
        self._emptied = False

    def merge(self, steps: Iterable[Step]) -> Merge:
        for step in steps:
            if isinstance(step, Nets):
                self._nets(step)
            elif isinstance(step, Moved):
                self._move(step)
            else:
                # Rows of before are gone with the rest of the table; what comes now is new there.
                self._rows.clear()
                self._gone.clear()
                self._emptied = True
        return Merge(gone=self._gone, rows=list(self._rows.values()), emptied=self._emptied)

    def _nets(self, step: Nets) -> None:
        for key, net in step.rows.items():
            if net.values is None:
                self._delete(key)
                continue
            row = self._row(key)
            if net.whole:
                # A row that is made anew owes nothing to what an earlier step knew of it.
                row.values, row.whole = dict(net.values), True
            else:
                row.values.update(net.values)

    def _move(self, step: Moved) -> None:
        names = zip(self._key, step.former, strict=True)
        key = tuple([step.values.get(name, former) for name, former in names])
        if key != step.former:  # what stands there goes: the source cannot have had both
            self._delete(key)
        row = self._row(step.former)
        # It is entered again below, under its new key.
        del self._rows[step.former]
        # What the row is called now; where the table has it stays its `origin`.
        row.values.update(step.values | dict(zip(self._key, key, strict=True)))
        self._rows[key] = row

    def _row(self, key: Key) -> MergeRow:
        """Return the merge's row for this key, created if missing."""
        if key not in self._rows:
            origin = self._claim(key)
            self._rows[key] = MergeRow(origin=origin, values={}, whole=origin is None)
        return self._rows[key]

    def _delete(self, key: Key) -> None:
        former = self._rows.pop(key, None)
        if former is None:
            origin = self._claim(key)
        else:
            origin = former.origin
        if origin is not None:
            self._gone.append(origin)

    def _claim(self, key: Key) -> Key | None:
        """Claim the table's row with this key; None if it is already claimed or truncated."""
        # After a TRUNCATE the table has no rows of before, and each of them is asked about once.
        if self._emptied or key in self._claimed:
            return None
        self._claimed.add(key)
        return key


def key_of(columns: Sequence[ChangeColumn]) -> tuple[str, ...]:
    """Return the names of the key's columns in order; raise ExpressionError if there is no key."""
    keyed = sorted((column.key, column.name) for column in columns if column.key)
    if not keyed:
        problem = "nobody knows its key, and a mirror needs one"
        raise ExpressionError(f"{problem}; give the source table a primary key")
    names = tuple([name for _, name in keyed])
    # Equal rows are told apart by nothing, and a MERGE would meet several with one of ours.
    if names == (WHOLE_ROW,):
        problem = "it has no key, and a mirror of a lake counts no equal rows"
        raise ExpressionError(f"{problem}; append them")
    return names


def without_key(block: RowBlock) -> Bad:
    """Find changes whose key is NULL: they match no row."""
    key_indexes = [index for index, column in enumerate(block.columns) if column.key]
    [oper] = [block.cells[index] for index in _find_header_columns(block, "change_oper")]
    bad: Bad = {}
    for index in key_indexes:
        cells = block.cells[index]
        if None not in cells:  # as nearly always
            continue
        why = f"column {block.columns[index].name} is NULL, and it is of the key"
        for number, cell in enumerate(cells):
            if cell is None and oper[number] != "T":  # a TRUNCATE has no key
                bad[block.positions[number]] = why
    return bad


def _find_header_columns(block: RowBlock, name: str) -> list[int]:
    """Find the header columns of this name; return their indexes."""
    return [index for index, column in enumerate(block.columns) if column.is_called(name)]


def change_rows(block: RowBlock) -> Iterable[ChangeRow]:
    """Yield the rows of a block as changes."""
    columns = block.columns
    own = [(index, column.name) for index, column in enumerate(columns) if not column.header]
    [oper] = [block.cells[index] for index in _find_header_columns(block, "change_oper")]
    [mask] = [block.cells[index] for index in _find_header_columns(block, "change_mask")]
    names = [name for _, name in own]
    cells = zip(*[block.cells[index] for index, _ in own], strict=True)
    # Changes of a table mostly change the same few sets of columns.
    known: dict[Any, frozenset[str]] = {}
    for letter, bits, row in zip(oper, mask, cells, strict=True):
        values = dict(zip(names, row, strict=True))
        if letter == BEFORE[0]:  # it says what the key was, and changes nothing
            yield ChangeRow(oper=letter, values=values, changed=frozenset())
            continue
        if bits not in known:
            set_bits = bits_of(bits)
            known[bits] = frozenset([name for index, name in own if set_bits >> index & 1])
        yield ChangeRow(oper=letter, values=values, changed=known[bits])


def merge_table(
    merge: Merge,
    columns: Sequence[ChangeColumn],
    key: tuple[str, ...],
    known: pa.Schema,
    *,
    is_mixed: bool = False,
) -> pa.Table:
    """Write a merge as a table: `oper`, the former key (m0…), the columns (c0…) and flags of those
    set (g0…).

    With `is_mixed` the values already have the target table's types.
    """
    names = [column.name for column in columns]
    by_name = {column.name: column for column in columns}
    gone: list[Any] = [None] * len(merge.gone)
    # A key of NULLs matches nothing, so that such a row is inserted.
    origins = [*merge.gone, *[row.origin or (None,) * len(key) for row in merge.rows]]
    matched = [replace(by_name[name], name=f"m{index}") for index, name in enumerate(key)]
    valued = [replace(column, name=f"c{index}") for index, column in enumerate(columns)]
    of_key = [[origin[index] for origin in origins] for index in range(len(key))]
    of_values = [gone + [row.values.get(name) for row in merge.rows] for name in names]
    cells: list[Sequence[Any]] = [*of_key, *of_values]
    named = [column.name for column in (*matched, *valued)]
    kinds = [known.field(name).type for name in (*key, *names)]
    schema = pa.schema(list(zip(named, kinds, strict=True)))
    if is_mixed:
        # They were read out of Arrow, so nothing is left to be checked.
        arrays = [pa.array(values, field.type) for values, field in zip(cells, schema, strict=True)]
        made = pa.Table.from_arrays(arrays, schema=schema)
    else:
        made = arrow_columns([*matched, *valued], cells).cast(schema)
    kinds_of_rows = [Does.WHOLE if row.whole else Does.CHANGED for row in merge.rows]
    opers = [Does.GONE] * len(gone) + kinds_of_rows
    made = made.add_column(0, OPER, pa.array(opers, pa.int8()))
    # A column that is given may be NULL, so NULL cannot mean that it is not.
    for index, name in enumerate(names):
        given = [True] * len(gone) + [row.whole or name in row.values for row in merge.rows]
        made = made.append_column(f"g{index}", pa.array(given, pa.bool_()))
    return made
