"""What tables of a lake hold: mirrors as they are, and change tables as what their rows add up
to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared, ComparedSide, Key
from eventlog.compare.texts import plain_text
from eventlog.core.schema import Table
from eventlog.qlik.change_tables.rows import folder_of
from eventlog.sinks.lake.settings import LakeSettings
from eventlog.verify.history import FoldedChanges, cells_of, origin_of
from eventlog.verify.targets import PlainTarget, pieces

if TYPE_CHECKING:
    import pyarrow as pa

    from eventlog.sinks.lake.sink import LakeTables

Rows = Iterator[tuple[Any, ...]]


class LakeTarget(PlainTarget):
    """The tables of an output to a lake. They are opened for each request, since several may be
    under way.
    """

    def __init__(self, settings: LakeSettings, opened: Callable[[], LakeTables]) -> None:
        self._settings = settings
        self._opened = opened
        self._mirrors = settings.mode == "mirror"

    def columns(self, table: Table) -> frozenset[str] | None:
        with closing(self._opened()) as tables:
            schema = tables.schema(self._name(table))
        if schema is None:
            return None
        return frozenset(name.casefold() for name in schema.names)

    def side(self, table: Table, compared: Compared) -> ComparedSide:
        name = self._name(table)
        with closing(self._opened()) as tables:
            if not self._mirrors:
                return self._fold(tables, name, compared)
            side = ScratchSide(compared)
            rows = _rows(tables.batches(name), (*compared.key, *compared.names))
            # No lake refuses a second row with the same key, so they are counted.
            side.write(rows, counted=True)
            return side

    def behind(self, table: Table, compared: Compared, keys: Sequence[Key]) -> frozenset[Key]:
        return frozenset()

    def _name(self, table: Table) -> str:
        suffix = "" if self._mirrors else self._settings.change_tables.suffix
        return folder_of(table, f"{table.name}{suffix}")

    def _fold(self, tables: LakeTables, name: str, compared: Compared) -> ComparedSide:
        schema = tables.schema(name)
        # `columns` was asked before.
        assert schema is not None
        prefix = self._settings.change_tables.prefix
        history = origin_of(schema.names, prefix, compared, f"The table {name}")
        folded = FoldedChanges(compared, history.names)
        # Within a change by its operation: the row before it comes first.
        headers = [history.headers[ending] for ending in ("change_seq", "change_oper")]
        indexes = [history.names.index(header) for header in headers]
        rows = _rows(tables.batches(name), history.names)
        with order_rows(rows, len(history.names), indexes) as in_order:
            for piece in pieces(in_order, itemgetter(indexes[0])):
                folded.take([history.change_row(row) for row in piece])
        return folded.side


def _rows(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Rows:
    """Yield the cells of these columns, in whatever case the table has their names."""
    for batch in batches:
        indexes = {name.casefold(): index for index, name in enumerate(batch.schema.names)}
        columns = [cells_of(batch.column(indexes[name.casefold()])) for name in names]
        yield from zip(*columns, strict=True)


@contextmanager
def order_rows(rows: Iterable[Sequence[Any]], width: int, by: Sequence[int]) -> Iterator[Rows]:
    """Sort rows of so many columns by some of them, with a temporary file: memory holds a few at a time."""
    # Without a name SQLite makes a file of its own, which goes with the connection.
    with closing(sqlite3.connect("", isolation_level=None)) as file:
        # After a crash nobody needs the file any more, so nothing is done to save it.
        file.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16000")
        columns = ", ".join(f"c{index}" for index in range(width))
        file.execute(f"CREATE TABLE rows ({columns})")
        insert = f"INSERT INTO rows VALUES ({', '.join('?' * width)})"
        # Without one each row would be a transaction of its own.
        file.execute("BEGIN")
        file.executemany(insert, (list(map(_keep_cell, row)) for row in rows))
        file.execute("COMMIT")
        order = ", ".join(f"c{index}" for index in by)
        yield file.execute(f"SELECT * FROM rows ORDER BY {order}")


def _keep_cell(cell: Any) -> Any:
    """Convert a cell for SQLite to a form its type can read."""
    if cell is None or type(cell) in (str, bytes, int):
        return cell
    return plain_text(cell)
