"""A side in a temporary file: rows that no database hashes, such as those of files, of a history,
or behind a policy.

The file is an SQLite database that nobody else knows. Memory holds a few rows at a time, whatever
their number.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from eventlog.compare.ranges import Digests, Range, digests
from eventlog.compare.row_texts import RowTexts
from eventlog.compare.sides import Compared, Hashes, Key, Rows, Totals, batches
from eventlog.compare.texts import HALF_BITS

WRITTEN_ROWS: Final = 5000
"""Rows that are written at once."""

ASKED_KEYS: Final = 400

_TABLE: Final = """
CREATE TABLE held (key TEXT NOT NULL PRIMARY KEY, first INTEGER, spot INTEGER NOT NULL, hash INTEGER NOT NULL,
  cells TEXT NOT NULL, times INTEGER NOT NULL DEFAULT 1) WITHOUT ROWID
"""
_WRITE: Final = "INSERT OR REPLACE INTO held (key, first, spot, hash, cells) VALUES (?, ?, ?, ?, ?)"
_COUNT: Final = f"""
INSERT INTO held (key, first, spot, hash, cells) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
SET times = times + 1, hash = (hash + excluded.hash) & {2**60 - 1}, cells = excluded.cells
"""


class ScratchSide:
    """Rows in a temporary file. The last change of a key counts."""

    def __init__(self, compared: Compared) -> None:
        # Without a name SQLite makes a file of its own in TMPDIR, which goes with the connection or
        # the process.
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        # Nothing of it has to outlive a crash.
        self._database.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16000")
        self._database.execute(_TABLE)
        if compared.counted:
            # Else each range would read all rows.
            self._database.execute("CREATE INDEX in_order ON held (first)")
        self._database.execute("CREATE TABLE noted (key TEXT NOT NULL PRIMARY KEY, text TEXT) WITHOUT ROWID")
        self._compared = compared
        self._row = RowTexts(compared)

    @property
    def ordered(self) -> bool:
        return self._compared.counted

    @property
    def native(self) -> str:
        return ""

    def close(self) -> None:
        """Deletes the file."""
        self._database.close()

    def write(self, rows: Iterable[Sequence[Any]], *, counted: bool = False) -> None:
        """Writes rows, the key's values first; what their columns cannot read stays as it is.

        With `counted` it is remembered how many there are of each key.
        """
        with self.working():
            self.add(rows, counted=counted)

    def add(self, rows: Iterable[Sequence[Any]], *, counted: bool = False) -> None:
        """Write rows in a transaction that has begun."""
        statement = _COUNT if counted else _WRITE
        remaining = iter(rows)
        while batch := [self._row.keep_row(row) for row in islice(remaining, WRITTEN_ROWS)]:
            self._database.executemany(statement, batch)

    def change(self, key: Sequence[Any], values: Mapping[int, Any] | None, *, whole: bool) -> None:
        """Sets values of one row by their places, of a `whole` row all of them; None takes the row
        away.
        """
        key_text = json.dumps(self.key(key))
        if values is None:
            self._database.execute("DELETE FROM held WHERE key = ?", (key_text,))
            return
        cells: list[Any] = self._row.empty
        if not whole:
            cells = self._former_cells(key_text)
        for index, value in values.items():
            cells[index] = value
        self._database.execute(_WRITE, self._row.keep_row([*key, *cells]))

    def move(self, former: Sequence[Any], key: Sequence[Any]) -> None:
        """Gives a row another key; whatever stands under that goes."""
        cells = self._former_cells(json.dumps(self.key(former)))
        self.change(former, None, whole=True)
        self.change(key, dict(enumerate(cells)), whole=True)

    def _former_cells(self, key_text: str) -> list[Any]:
        """Read the values of a row; NULLs where there is none."""
        query = "SELECT cells FROM held WHERE key = ?"
        row = self._database.execute(query, (key_text,)).fetchone()
        if row is None:
            return self._row.empty
        return self._row.cells(row[0])

    def note(self, key: Sequence[Any], text: str) -> None:
        """Keeps a text with a key, until it is asked for."""
        noted = (json.dumps(self.key(key)), text)
        self._database.execute("INSERT OR REPLACE INTO noted (key, text) VALUES (?, ?)", noted)

    def find_note(self, key: Key) -> str | None:
        """Read the text kept with a key."""
        query = "SELECT text FROM noted WHERE key = ?"
        row = self._database.execute(query, (json.dumps(key),)).fetchone()
        if row is None:
            return None
        return str(row[0])

    def find_doubled_key(self) -> Key | None:
        """Find a key that was written several times."""
        query = "SELECT key FROM held WHERE times > 1 ORDER BY key LIMIT 1"
        row = self._database.execute(query).fetchone()
        if row is None:
            return None
        return tuple(json.loads(row[0]))

    def empty(self) -> None:
        """Takes every row away."""
        self._database.execute("DELETE FROM held")

    @contextmanager
    def working(self) -> Iterator[None]:
        """Join many changes to one transaction."""
        self._database.execute("BEGIN")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def key(self, values: Sequence[Any]) -> Key:
        """Write the texts of a key by which its row is found on both sides."""
        return self._row.key(values)

    @contextmanager
    def snapshot(self) -> Iterator[ScratchSnapshot]:
        """Open the rows as they are."""
        yield ScratchSnapshot(self._database, self.rows)

    def rows(self, keys: Sequence[Key]) -> Rows:
        rows: Rows = {}
        for batch in batches(keys, ASKED_KEYS):
            asked = [json.dumps(key) for key in batch]
            query = f"SELECT key, cells FROM held WHERE key IN ({', '.join('?' * len(asked))})"
            for key, cells in self._database.execute(query, asked):
                rows[tuple(json.loads(key))] = self._row.values(cells)
        return rows


class ScratchSnapshot:
    """The rows of a temporary file."""

    def __init__(self, database: sqlite3.Connection, rows: Callable[[Sequence[Key]], Rows]) -> None:
        self._database = database
        self.rows = rows

    def count(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM held").fetchone()[0])

    def find_bound(self, after: int | None, rows: int) -> int | None:
        condition = "" if after is None else f"WHERE first > {after}"
        query = f"SELECT first FROM held {condition} ORDER BY first LIMIT 1 OFFSET {rows - 1}"
        row = self._database.execute(query).fetchone()
        if row is None:
            return None
        return int(row[0]) if row[0] is not None else None

    def digests(self, part: Range) -> Digests:
        # In two halves: SQLite's sum of whole hashes would be too large for it.
        sums = f"{_bucket(part)}, sum(times), sum(hash >> 30), sum(hash & 1073741823)"
        query = f"SELECT {sums} FROM held WHERE {_within(part)} GROUP BY 1"
        return digests(self._database.execute(query).fetchall())

    def totals(self, part: Range) -> Totals:
        sums = "sum(times), sum(hash >> 30), sum(hash & 1073741823)"
        query = f"SELECT {sums} FROM held WHERE {_within(part)}"
        rows, high, low = self._database.execute(query).fetchone()
        return Totals(rows=rows or 0, total=((high or 0) << HALF_BITS) + (low or 0))

    def hashes(self, part: Range, buckets: Sequence[int] | None) -> Hashes:
        condition = _within(part)
        if buckets is not None:
            condition += f" AND {_bucket(part)} IN ({', '.join(map(str, buckets))})"
        rows = self._database.execute(f"SELECT key, times, hash FROM held WHERE {condition}")
        return {tuple(json.loads(key)): (times, hashed) for key, times, hashed in rows}


def _within(part: Range) -> str:
    conditions = []
    if part.after is not None:
        conditions.append(f"first > {part.after}")
    if part.upto is not None and part.after is not None:
        conditions.append(f"first <= {part.upto}")
    elif part.upto is not None:
        # Rows without a number belong to the range without a bound below.
        conditions.append(f"(first <= {part.upto} OR first IS NULL)")
    if part.last is not None:
        conditions.append(f"{_bucket(part)} BETWEEN {part.first} AND {part.last}")
    return " AND ".join(conditions) or "1 = 1"


def _bucket(part: Range) -> str:
    many = part.buckets
    if not part.counted:
        return f"spot % {many}"
    # Twice, because the remainder of a negative number is negative.
    return f"coalesce((first % {many} + {many}) % {many}, 0)"
