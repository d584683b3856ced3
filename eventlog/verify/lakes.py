"""What tables of a lake hold: mirrors as they are, and change tables as what their rows add up
to.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared, ComparedSide, Key
from eventlog.compare.texts import plain_text
from eventlog.core.schema import Table
from eventlog.qlik.change_tables.rows import folder_of
from eventlog.sinks.lake.settings import LakeSettings
from eventlog.verify.history import FoldedChanges, cells_of, origin_of
from eventlog.verify.targets import pieces

if TYPE_CHECKING:
    import pyarrow as pa

    from eventlog.sinks.lake.sink import LakeTables

Rows = Iterator[tuple[Any, ...]]


class LakeTarget:
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
        return None if schema is None else frozenset(name.casefold() for name in schema.names)

    def side(self, table: Table, compared: Compared) -> ComparedSide:
        name = self._name(table)
        with closing(self._opened()) as tables:
            if not self._mirrors:
                return self._folded(tables, name, compared)
            side = ScratchSide(compared)
            side.write(_rows(tables.batches(name), (*compared.key, *compared.names)), counted=True)
            return side

    def behind(self, table: Table, compared: Compared, keys: Sequence[Key]) -> frozenset[Key]:
        return frozenset()

    def _name(self, table: Table) -> str:
        suffix = "" if self._mirrors else self._settings.change_tables.suffix
        return folder_of(table, f"{table.name}{suffix}")

    def _folded(self, tables: LakeTables, name: str, compared: Compared) -> ComparedSide:
        schema = tables.schema(name)
        assert schema is not None  # `columns` was asked before
        history = origin_of(schema.names, self._settings.change_tables.prefix, compared, f"The table {name}")
        taking = FoldedChanges(compared, history.names)
        places = [history.names.index(history.headers[one]) for one in ("change_seq", "change_oper")]
        found = _rows(tables.batches(name), history.names)
        with ordered(found, len(history.names), places) as rows:
            for piece in pieces(rows, lambda row: row[places[0]]):
                taking.take([history.told(row) for row in piece])
        return taking.side


def _rows(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Rows:
    """The cells of these columns, in whatever case the table has their names."""
    for batch in batches:
        places = {name.casefold(): place for place, name in enumerate(batch.schema.names)}
        yield from zip(*[cells_of(batch.column(places[name.casefold()])) for name in names], strict=True)


@contextmanager
def ordered(rows: Iterable[Sequence[Any]], width: int, by: Sequence[int]) -> Iterator[Rows]:
    """Rows of so many columns in the order of some of them, by a temporary file: memory holds a few
    at a time.
    """
    with closing(sqlite3.connect("", isolation_level=None)) as file:
        file.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16000")
        file.execute(f"CREATE TABLE rows ({', '.join(f'c{place}' for place in range(width))})")
        file.execute("BEGIN")
        file.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * width)})", (list(map(_kept, row)) for row in rows))
        file.execute("COMMIT")
        yield file.execute(f"SELECT * FROM rows ORDER BY {', '.join(f'c{place}' for place in by)}")


def _kept(cell: Any) -> Any:
    """A cell as SQLite has it, from which its type reads it again."""
    return cell if cell is None or type(cell) in (str, bytes, int) else plain_text(cell)
