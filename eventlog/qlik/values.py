"""What a change says of a row's columns: the row before, the row after, which columns changed and which are known.

Law: NULL and "nobody noted it" stay apart. Lists hold None for both; the bits beside them tell which it is. Only the
class's own columns are told: a child table's values have no place in a row.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from eventlog.core.errors import ExpressionError
from eventlog.core.model import ABSENT, Change, Edit, Op, Value
from eventlog.core.schema import Column, Table
from eventlog.core.tablekey import parse, simple
from eventlog.qlik.readings import Reading, reading, shown

Values = list[Value]


class ChangeValues(NamedTuple):
    """What a change says, by the places of the columns; a tuple, because one is made for every change.

    `had` and `has` are the bits of the columns that are known before and after it, `changed` of those it is about.
    """

    before: Values | None
    after: Values | None
    changed: int
    had: int
    has: int


class TableValues:
    """The own columns of one table, and how changes of it are read; made once a table, used for every change."""

    def __init__(self, table: Table) -> None:
        self.table = table
        single = {a.column.name: a.name for a in table.loggable.values() if a.child is None and not a.multiple}
        self.columns: tuple[Column, ...] = tuple(
            [replace(column, name=single[column.name]) for column in table.columns if column.name in single]
        )
        self.names = tuple([column.name for column in self.columns])
        self.key: tuple[int, ...] = tuple([self.names.index(single[name]) for name in table.key if name in single])
        """The places of the key columns, in the order of the key."""
        self.key_bits = sum(1 << place for place in self.key)
        self._empty: Values = [None] * len(self.columns)
        self._reads: dict[str, tuple[int, int, Reading]] = {
            column.name: (place, 1 << place, reading(column)) for place, column in enumerate(self.columns)
        }
        self._left_out = table.multiple
        self._key_reads = {native: self._reads[name] for native, name in single.items()}
        self._key_reads |= {name.casefold(): read for name, read in self._key_reads.items()} | self._key_reads
        self._plain = f"{table.key[0]}=" if len(self.key) == 1 else None
        self._plain_read = self._key_reads[table.key[0]] if self._plain else None

    def told(self, change: Change) -> ChangeValues:
        """What the change says; ExpressionError names the column whose value cannot be what the schema says."""
        op = change.op
        if op is Op.MODIFY:
            return self._modified(change)
        if op is Op.ADD:
            after, has = self.keyed(change.row.key)
            has |= self._filled(after, change.edits, new=True)
            return ChangeValues(None, after, has, 0, has)
        if op is Op.DELETE:
            before, had = self.keyed(change.row.key)
            had |= self._filled(before, change.edits, new=False)
            return ChangeValues(before, None, self.key_bits or had, had, 0)
        return ChangeValues(None, None, 0, 0, 0)

    def _modified(self, change: Change) -> ChangeValues:
        after, known = self.keyed(change.row.key)
        before = after.copy()
        had = has = known
        changed = 0
        reads = self._reads
        for edit in change.edits:
            found = reads.get(edit.column)
            if found is None:
                self._check_left_out(edit.column)
                continue
            place, bit, read = found
            new, old = edit.new, edit.old
            try:
                if new is not ABSENT:
                    has |= bit
                    new = after[place] = None if new is None else read(new)
                if old is ABSENT or (old is None and edit.reset):  # nobody looked, or a trigger that notes no old value
                    if new is not ABSENT:
                        changed |= bit
                        if edit.reset:
                            had &= ~bit
                    continue
                had |= bit
                old = before[place] = None if old is None else read(old)
            except ExpressionError as error:
                raise named(error, edit.column) from None
            if old != new and new is not ABSENT:
                changed |= bit
        return ChangeValues(before, after, changed, had, has)

    def _filled(self, row: Values, edits: tuple[Edit, ...], *, new: bool) -> int:
        """Puts the edits' new or old values into the row, and gives the bits of those that were there."""
        bits = 0
        reads = self._reads
        for edit in edits:
            found = reads.get(edit.column)
            if found is None:
                self._check_left_out(edit.column)
                continue
            cell = edit.new if new else edit.old
            if cell is ABSENT:
                continue
            place, bit, read = found
            bits |= bit
            try:
                row[place] = None if cell is None else read(cell)
            except ExpressionError as error:
                raise named(error, edit.column) from None
        return bits

    def keyed(self, key: str) -> tuple[Values, int]:
        """A row in which only the key stands, and the bits of the key."""
        row = self._empty.copy()
        plain = self._plain
        if plain is not None and self._plain_read is not None and key.startswith(plain) and simple(key):
            return row, self._put(row, self._plain_read, key[len(plain) :])
        bits = 0
        for name, text in parse(key).parts if key else ():
            found = self._key_reads.get(name) or self._key_reads.get(name.casefold())
            if found is None:
                raise ExpressionError(f"the key names {shown(name)}, which is no column of {self.table.name}")
            bits |= self._put(row, found, text)
        return row, bits

    def _put(self, row: Values, column: tuple[int, int, Reading], text: str) -> int:
        """Puts a value of the key into the row, and gives its bit."""
        place, bit, read = column
        try:
            row[place] = read(text)
        except ExpressionError as error:
            raise named(error, self.names[place]) from None
        return bit

    def _check_left_out(self, name: str) -> None:
        """A child table's values are left out; anything else that is no column is a mistake that must be seen."""
        if name not in self._left_out:
            raise ExpressionError(f"{shown(name)} is no column of {self.table.name}; is the schema up to date?")


def named(error: ExpressionError, column: str) -> ExpressionError:
    """The error, with the column that it speaks of."""
    return ExpressionError(f"column {shown(column)}: {error}")
