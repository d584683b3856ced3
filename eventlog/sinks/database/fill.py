"""Rows into change tables: by COPY where the driver has it, else by INSERT.

Rows that are refused are found by halving.

A change is taken or refused as a whole: its before image does not stay without it. What the row was before
refuses nothing: a correction, or a delete, comes without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import DataError, IntegrityError, InterfaceError, StatementError

from eventlog.core.errors import shorten
from eventlog.core.model import Position
from eventlog.core.secrets import mask_secrets
from eventlog.qlik.change_tables.rows import ChangeRow, RowBlock
from eventlog.qlik.masks import MovedMasks, bits_of, bits_to_bytes, bits_to_hex
from eventlog.sinks.database.evolve import BlockShape
from eventlog.sinks.database.types import as_stored
from eventlog.sql.access import is_of_value
from eventlog.sql.dialect import dialect_of
from eventlog.sql.homes import find_home

FORMER: Final = "what the row was before is left out"


class Refused(NamedTuple):
    """A change that a target does not take, and why; of a `partial` one only what the row was before."""

    positions: tuple[Position, ...]
    why: str
    partial: bool = False


Rows = Sequence[ChangeRow]


class Filling:
    """Puts one block into its change table."""

    def __init__(self, connection: Connection, shape: BlockShape, block: RowBlock) -> None:
        self._connection = connection
        self._dialect = dialect_of(connection)
        self._shape = shape
        self._positions = block.positions
        self._rows = self._suit(block)
        taken = [block.columns[index] for index in shape.taken]
        self._keys = [place for place, column in enumerate(taken) if column.key]
        self._own = [place for place, column in enumerate(taken) if not column.key and not column.header]
        """Where the columns of the row stand that are not its key."""
        self._bits = [shape.places[index] for index in shape.taken]
        self._place_of = {
            name: place
            for place, column in enumerate(taken)
            for name in ("change_oper", "change_mask")
            if column.is_called(name)
        }

    def run(self) -> list[Refused]:
        """Inserts the rows; returns which changes the target refused."""
        return list(self._insert(0, len(self._rows)))

    def _insert(self, start: int, end: int) -> Iterator[Refused]:
        """Inserts rows; where one of them is refused, each half by itself."""
        why = self._try(self._rows[start:end])
        if why is None:
            return
        middle = self._between(start, end)
        if middle is None:
            now = self._without_former(self._rows[start:end])
            if now and self._try(now) is None:
                yield Refused(self._positions[start], f"{why}; {FORMER}", partial=True)
            else:
                yield Refused(self._positions[start], why)
            return
        yield from self._insert(start, middle)
        yield from self._insert(middle, end)

    def _between(self, start: int, end: int) -> int | None:
        """Return an index near the middle, between two changes."""
        positions, middle = self._positions, (start + end) // 2
        # The two rows of a change have the same object for their positions; first what stands
        # behind the middle, then what stands before it.
        for index in chain(range(max(middle, start + 1), end), range(middle, start, -1)):
            if positions[index] is not positions[index - 1]:
                return index
        return None

    def _without_former(self, rows: Rows) -> Rows | None:
        """Remove the former values from the rows of one change; None if there are none to remove.

        The change that brought them was refused, so every known value counts as changed.
        """
        names, own = self._place_of, self._own
        if "change_oper" not in names:
            return None
        letters = [row[names["change_oper"]] for row in rows]
        if letters == ["D"]:
            [row] = rows
            return [tuple([None if place in own else cell for place, cell in enumerate(row)])]
        if letters != ["B", "U"]:
            return None
        before, after = map(list, rows)
        if "change_mask" in names:
            after[names["change_mask"]] = self._widen_mask(after)
        if all(before[place] == after[place] for place in self._keys):
            return [tuple(after)]
        return [tuple([None if place in own else cell for place, cell in enumerate(before)]), tuple(after)]

    def _widen_mask(self, after: Sequence[Any]) -> str | bytes:
        """Make a mask of all that is known of a row: of all columns, where more stand there than changed."""
        mask = after[self._place_of["change_mask"]]
        bits = bits_of(mask)
        there = [place for place in self._own if after[place] is not None]
        whole = any(not bits >> self._bits[place] & 1 for place in there)
        for place in self._own if whole else there:
            bits |= 1 << self._bits[place]
        return bits_to_hex(bits) if isinstance(mask, str) else bits_to_bytes(bits)

    def _try(self, rows: Rows) -> str | None:
        """Insert the rows; return why the target refuses one, or None."""
        drivers: Any = self._connection.dialect.loaded_dbapi
        data_errors = (DataError, IntegrityError, drivers.DataError, drivers.IntegrityError)
        # One row that is refused would undo all others, and on PostgreSQL end the transaction.
        savepoint = self._connection.begin_nested()
        try:
            self._send(rows)
        except (*data_errors, OverflowError, ValueError, TypeError) as error:
            savepoint.rollback()
            return message_of(error)
        except (StatementError, drivers.Error) as error:
            # A driver that cannot bind a value raises its own class, or Python's, and never asks
            # the server.
            original = getattr(error, "orig", error)
            unbound = isinstance(error, InterfaceError) or not isinstance(error, StatementError)
            is_of_python = unbound and isinstance(original, TypeError | ValueError)
            if not is_of_python and not is_of_value(self._dialect, original):
                raise
            savepoint.rollback()
            return message_of(original)
        savepoint.commit()
        return None

    def _send(self, rows: Rows) -> None:
        cursor: Any = self._connection.connection.cursor()
        try:
            if hasattr(cursor, "copy"):  # psycopg's
                table = self._shape.table
                columns = ", ".join(self._dialect.quote(column.name) for column in table.columns)
                schema = table.schema or find_home(self._connection)
                copying = f"COPY {self._dialect.qualify(schema, table.name)} ({columns}) FROM STDIN"
                with cursor.copy(copying) as copy:
                    write = copy.write_row
                    for row in rows:
                        write(row)
                return
        finally:
            cursor.close()
        names = [column.name for column in self._shape.table.columns]
        table = self._shape.table
        self._connection.execute(table.insert(), [dict(zip(names, row, strict=True)) for row in rows])

    def _suit(self, block: RowBlock) -> Rows:
        """Convert rows for the target: its columns, its numbering in masks, its values."""
        shape, rows = self._shape, block.rows
        changes: dict[int, Callable[[Any], Any]] = {}
        for index, made in zip(shape.taken, shape.table.columns, strict=True):
            column = block.columns[index]
            stored = as_stored(column.type, made.type)
            if stored is not None:
                changes[index] = stored
            elif column.is_called("change_mask") and not shape.ordered:
                changes[index] = MovedMasks(shape.places)
        if changes:
            ways = [(index, changes.get(index)) for index in shape.taken]
            return [tuple([_change_value(row[index], change) for index, change in ways]) for row in rows]
        if len(shape.taken) == len(block.columns):
            return rows
        return [tuple([row[index] for index in shape.taken]) for row in rows]


def _change_value(value: Any, change: Callable[[Any], Any] | None) -> Any:
    if change is None or value is None:
        return value
    return change(value)


def message_of(error: BaseException) -> str:
    """Return the database's message in one line."""
    original = getattr(error, "orig", None) or error
    args: tuple[Any, ...] = getattr(original, "args", ())
    text = str(original)
    if len(args) > 1 and isinstance(args[0], int):  # PyMySQL's: a number, then the words
        text = str(args[1])
    return shorten(mask_secrets(" ".join(text.split())), 300).rstrip(".")
