"""What was published of each table, and the images that are still to be: one SQLite file, changed in whole steps."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from eventlog.compare.known import Ends
from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared, Key, Totals
from eventlog.core.errors import DataError, SourceError

VERSION: Final = "2"

WITH_MD5: Final = "1"
"""The version whose hashes were those of MD5."""

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT);
CREATE TABLE IF NOT EXISTS shape (name TEXT PRIMARY KEY, held TEXT, compared TEXT);
CREATE TABLE IF NOT EXISTS ranges (name TEXT, after INTEGER, upto INTEGER, rows INTEGER, total TEXT);
CREATE TABLE IF NOT EXISTS queue (step INTEGER, place INTEGER, image TEXT, PRIMARY KEY (step, place)) WITHOUT ROWID;
"""


class QueuedImage(Struct, frozen=True, kw_only=True):
    """An image on its way: texts by the names of columns."""

    step: int
    place: int
    table: str
    op: str
    time: str
    before: Mapping[str, str | None] | None = None
    after: Mapping[str, str | None] | None = None


class CompareState:
    """The state's file. `is_new` says that it was made now."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_new = not path.exists()
        with ExitStack() as unless_it_can_be_used:
            try:
                self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
                unless_it_can_be_used.callback(self.close)
                self._database.executescript(_TABLES)
                found = self._database.execute("SELECT value FROM about WHERE name = 'version'").fetchone()
            except sqlite3.Error as error:
                problem = f"The state of the comparison in {path} cannot be used: {error}."
                raise SourceError(problem, hint="source.compare.state names it; restore it, or another one.") from error
            version = VERSION if found is None else found[0]
            if version == WITH_MD5:
                self._hash_anew()
                version = VERSION
            if version != VERSION:
                raise DataError(
                    f"The state in {path} is of version {version}, and this program writes version {VERSION}.",
                    hint='Use the program that wrote it; or another file, with source.compare.on_lost = "resync".',
                )
            self._database.execute("INSERT OR REPLACE INTO about VALUES ('version', ?)", (VERSION,))
            unless_it_can_be_used.pop_all()

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def step(self) -> Iterator[None]:
        """A transaction; durable when it ends."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def shape(self, name: str) -> Compared | None:
        """The columns that the rows of a table have here; None where there are none."""
        found = self._database.execute("SELECT compared FROM shape WHERE name = ?", (name,)).fetchone()
        if found is None:
            return None
        told = json.loads(found[0])
        return Compared(key=tuple(told["key"]), names=tuple(told["names"]), types=tuple(told["types"]))

    def side(self, name: str, compared: Compared) -> ScratchSide:
        """The rows of a table."""
        found = self._database.execute("SELECT held FROM shape WHERE name = ?", (name,)).fetchone()
        return ScratchSide(compared, self._database, found[0] if found else self._free())

    def keep(self, name: str, compared: Compared, rows: Iterator[Sequence[Any]]) -> ScratchSide:
        """Has these rows in place of those that there were, with these columns; all at once."""
        table = self._free()
        former = self._database.execute("SELECT held FROM shape WHERE name = ?", (name,)).fetchone()
        side = ScratchSide(compared, self._database, table)
        with self.step():
            side.make()
            side.add(rows)
            shape = json.dumps({"key": compared.key, "names": compared.names, "types": compared.types})
            self._database.execute("INSERT OR REPLACE INTO shape VALUES (?, ?, ?)", (name, table, shape))
            self._database.execute("DELETE FROM ranges WHERE name = ?", (name,))
            if former is not None:
                self._database.execute(f"DROP TABLE {former[0]}")
        return side

    def ranges(self, name: str) -> StateRanges:
        """The ranges in which a table was seen to have the rows that it has here."""
        return StateRanges(self._database, name)

    def held(self, name: str) -> Iterator[tuple[list[str | None], list[str | None]]]:
        """The keys and values of the rows of a table, as texts."""
        found = self._database.execute("SELECT held FROM shape WHERE name = ?", (name,)).fetchone()
        for key, cells in self._database.execute(f"SELECT key, cells FROM {found[0]}") if found else ():
            yield json.loads(key), json.loads(cells)

    def queue(self, images: Sequence[QueuedImage]) -> None:
        """Adds images of one step, in its transaction."""
        rows = [
            (one.step, one.place, json.dumps([one.table, one.op, one.time, one.before, one.after])) for one in images
        ]
        self._database.executemany("INSERT INTO queue VALUES (?, ?, ?)", rows)

    def queued(self, begin: int) -> Iterator[list[QueuedImage]]:
        """The images of each step from that one on."""
        while True:
            query = "SELECT min(step) FROM queue WHERE step >= ?"
            step = self._database.execute(query, (begin,)).fetchone()[0]
            if step is None:
                return
            rows = self._database.execute("SELECT place, image FROM queue WHERE step = ? ORDER BY place", (step,))
            yield [_image(step, place, text) for place, text in rows]
            begin = step + 1

    def last(self) -> int:
        """The highest step that there was."""
        found = self._database.execute("SELECT value FROM about WHERE name = 'last'").fetchone()
        return 0 if found is None else int(found[0])

    def ended(self, step: int) -> None:
        """Notes the number of a step, in its transaction."""
        self._database.execute("INSERT OR REPLACE INTO about VALUES ('last', ?)", (str(step),))

    def forget(self, begin: int) -> None:
        """Takes off images of steps before that one."""
        self._database.execute("DELETE FROM queue WHERE step < ?", (begin,))

    def _hash_anew(self) -> None:
        for (name,) in self._database.execute("SELECT name FROM shape").fetchall():
            compared = self.shape(name)
            assert compared is not None  # it was listed
            self.keep(name, compared, ([*key, *cells] for key, cells in self.held(name)))

    def _free(self) -> str:
        """A name that no table has."""
        taken = {row[0] for row in self._database.execute("SELECT held FROM shape")}
        number = next(number for number in range(len(taken) + 1) if f"held_{number}" not in taken)
        return f"held_{number}"


class StateRanges:
    """The ranges in which a table was seen to have the rows that the state has of it."""

    def __init__(self, database: sqlite3.Connection, name: str) -> None:
        self._database = database
        self._name = name

    def known(self) -> dict[Ends, Totals]:
        query = "SELECT after, upto, rows, total FROM ranges WHERE name = ?"
        found = self._database.execute(query, (self._name,))
        return {(after, upto): Totals(rows=rows, total=int(total)) for after, upto, rows, total in found}

    def keep(self, ends: Ends, totals: Totals) -> None:
        """Remembers a range in place of all that it touches."""
        if not all(map(_has_room, ends)):
            return
        after, upto = ends
        touched = "(after IS NULL OR ?2 IS NULL OR after < ?2) AND (upto IS NULL OR ?1 IS NULL OR upto > ?1)"
        self._database.execute("BEGIN IMMEDIATE")
        self._database.execute(f"DELETE FROM ranges WHERE {touched} AND name = ?3", (after, upto, self._name))
        row = (self._name, after, upto, totals.rows, str(totals.total))
        self._database.execute("INSERT INTO ranges VALUES (?, ?, ?, ?, ?)", row)
        self._database.execute("COMMIT")

    def forget(self, keys: Sequence[Key], *, counted: bool) -> None:
        """Takes off the ranges of rows that change, in the transaction that changes them."""
        firsts = {None if key[0] is None else int(key[0]) for key in keys} if counted else {None}
        if None in firsts or not all(map(_has_room, firsts)):
            self._database.execute("DELETE FROM ranges WHERE name = ?", (self._name,))
            return
        around = "(after IS NULL OR after < ?1) AND (upto IS NULL OR upto >= ?1)"
        query = f"DELETE FROM ranges WHERE {around} AND name = ?2"
        self._database.executemany(query, [(first, self._name) for first in firsts])


def _has_room(key: int | None) -> bool:
    """Whether SQLite has room for a key."""
    return key is None or -(2**63) <= key < 2**63


def _image(step: int, place: int, text: str) -> QueuedImage:
    table, op, time, before, after = json.loads(text)
    return QueuedImage(step=step, place=place, table=table, op=op, time=time, before=before, after=after)
