"""What a change says of a row's columns: the row before, the row after, which columns changed and
which are known.

Law: NULL and "nobody noted it" stay apart. Lists hold None for both; the bits beside them tell
which it is. Only the class's own columns are read: a child table's values have no place in a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from eventlog.core.errors import ExpressionError, value_shown
from eventlog.core.model import ABSENT, Change, Edit, Op
from eventlog.core.schema import Column, Table
from eventlog.core.tablekey import parse, simple


class TableValues:
    """The own columns of one table, and which of them are its key."""

    def __init__(self, table: Table) -> None:
        self.table = table
        # What is not captured any more may still be named.
        there = {column.name for column in table.columns}
        single = {}
        for attribute in table.loggable.values():
            column_name = attribute.column.name
            if attribute.child is None and not attribute.multiple and column_name in there:
                single[column_name] = attribute.name
        own = [column for column in table.columns if column.name in single]
        self.columns: tuple[Column, ...] = tuple([replace(column, name=single[column.name]) for column in own])
        self.names = tuple([column.name for column in self.columns])
        key_names = [single[name] for name in table.key if name in single]
        self.key: tuple[int, ...] = tuple([self.names.index(name) for name in key_names])
        """The indexes of the key columns, in the order of the key."""
        self.key_bits = sum(1 << index for index in self.key)
        self.natives: Mapping[str, str] = single
        """The columns' names in `names`, by what the database calls them, which keys do."""


def name_column(error: ExpressionError, column: str) -> ExpressionError:
    """Add to an error the column that it speaks of."""
    return ExpressionError(f"column {value_shown(column)}: {error}")


Piece = Any
"""A cell of a change table, a value that JSON holds, or bytes of Avro."""
Way = tuple[type | None, Callable[[Any], Piece]]
"""The type whose values are pieces as they are, and what makes pieces of all others but NULL."""


RowImages = tuple[list[Piece], list[Piece], int, int, int, str | None]
"""The pieces before and after, the bits of the columns that changed, of those that were and are
known; and the key's value where it is one. A plain tuple, because one is made for every change.
"""


class RowBuilder:
    """Reads the changes of one table: `ways` make the pieces of its columns, and `null` is that of
    NULL.

    Each value is read and written in one step, and what did not change is written once.
    """

    def __init__(self, values: TableValues, ways: Sequence[Way], null: Piece) -> None:
        self._values = values
        self._null = null
        self._nothing = [null] * len(values.names)
        placed = [(index, 1 << index, *way) for index, way in enumerate(ways)]
        self._plan = dict(zip(values.names, placed, strict=True))
        self._keys = {native: self._plan[name] for native, name in values.natives.items()}
        # Writers spell keys in any case; where two columns differ in nothing else, the exact name
        # comes first.
        self._keys |= {name.casefold(): planned for name, planned in self._keys.items()} | self._keys
        self._left_out = values.table.multiple
        key = values.table.key
        # Nearly all keys are of one column and begin as this one does; with several columns no key
        # begins so, for none holds a zero byte.
        self._key_head = "\0"
        self._key_column: tuple[int, int, type | None, Callable[[Any], Piece]] = (0, 0, None, str)
        if len(values.key) == 1 == len(key):
            self._key_head, self._key_column = f"{key[0]}=", self._keys[key[0]]
        self._skip = len(self._key_head)

    def images(self, change: Change) -> tuple[list[Piece] | None, list[Piece] | None, int, int, int]:
        """Return the row before and after a change, and the bits of columns: changed, known before and known
        now.
        """
        if change.op is Op.TRUNCATE:
            return None, None, 0, 0, 0
        if change.op is Op.MODIFY:
            return self.read_modified(change)[:5]
        row, _, bits, *_ = self.row(change, new=change.op is Op.ADD)
        if change.op is Op.ADD:
            return None, row, bits, 0, bits
        # Of a table without a key, a deletion has all that was known.
        return row, None, self._values.key_bits or bits, bits, 0

    def row(self, change: Change, *, new: bool) -> RowImages:
        """Return a row that begins, or one that ends."""
        row, known, key_value = self.read_key_pieces(change.row.key)
        plan, null = self._plan, self._null
        for edit in change.edits:
            cell = edit.new if new else edit.old
            if cell is ABSENT:
                continue
            try:
                index, bit, plain, way = plan[edit.column]
                if type(cell) is plain:  # the most frequent case first: this runs for every value
                    row[index] = cell
                elif cell is None:
                    row[index] = null
                else:
                    row[index] = way(cell)
            except (KeyError, ExpressionError) as error:
                self._check(edit, error)
                continue
            known |= bit
        # It has one side only, so that all that is known of it counts as changed.
        return row, row, known, known, known, key_value

    def read_modified(self, change: Change) -> RowImages:
        """Return a row that goes on."""
        # A modification never changes a key, which therefore stands on both sides.
        after, key_bits, key_value = self.read_key_pieces(change.row.key)
        before = after.copy()
        known_before = known_after = key_bits
        changed = 0
        plan, null = self._plan, self._null
        for edit in change.edits:
            new, old = edit.new, edit.old
            try:
                index, bit, plain, way = plan[edit.column]
                if new is not ABSENT:
                    known_after |= bit
                    # In line, as in `row` and for `old` below: a call for each value would take
                    # longer than all the rest.
                    if type(new) is plain:
                        piece = new
                    elif new is None:
                        piece = null
                    else:
                        piece = way(new)
                    after[index] = piece
                    if old == new and not edit.reset:
                        before[index] = piece
                        known_before |= bit
                        continue
                # With `reset` all former values go, and None is no value that was there.
                if old is ABSENT or (old is None and edit.reset):
                    if new is not ABSENT:
                        changed |= bit
                        if edit.reset:
                            known_before &= ~bit
                    continue
                known_before |= bit
                if type(old) is plain:
                    piece = old
                elif old is None:
                    piece = null
                else:
                    piece = way(old)
                before[index] = piece
            except (KeyError, ExpressionError) as error:
                self._check(edit, error)
                continue
            # Two texts may be one value of the column's type, as 1.0 and 1.00: then nothing
            # changed.
            if new is not ABSENT and piece != after[index]:
                changed |= bit
        return before, after, changed, known_before, known_after, key_value

    def read_key_pieces(self, key: str) -> tuple[list[Piece], int, str | None]:
        """Return a row with only the key, the key's bits, and its value if it is a single one."""
        row = self._nothing.copy()
        text = key[self._skip :]
        # `isalnum` spares the call for most keys: such text has nothing that could be escaped.
        if key.startswith(self._key_head) and (text.isalnum() or simple(key)):
            index, bit, plain, way = self._key_column
            try:
                row[index] = text if plain is str else way(text)
            except ExpressionError as error:
                raise name_column(error, self._values.names[index]) from None
            return row, bit, text
        parts = parse(key).parts if key else ()
        bits = 0
        for name, text in parts:
            planned = self._keys.get(name) or self._keys.get(name.casefold())
            if planned is None:
                message = f"the key names {value_shown(name)}, which is no column of"
                raise ExpressionError(f"{message} {self._values.table.name}")
            index, bit, plain, way = planned
            try:
                row[index] = text if plain is str else way(text)
            except ExpressionError as error:
                raise name_column(error, self._values.names[index]) from None
            bits |= bit
        if len(parts) == 1:
            return row, bits, parts[0][1]
        return row, bits, None

    def _check(self, edit: Edit, error: Exception) -> None:
        """Raises what must be seen of an error that stopped an edit, with its column."""
        if isinstance(error, ExpressionError):
            raise name_column(error, edit.column) from None
        # A child table's values have no place in a row.
        if edit.column not in self._left_out:
            table = self._values.table.name
            raise ExpressionError(
                f"{value_shown(edit.column)} is no column of {table}; is the schema up to date?"
            ) from None


NEVER: Final = None
"""The plain type of columns whose values always have to be made."""
