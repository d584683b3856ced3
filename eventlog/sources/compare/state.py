"""What was published of each table, and the images that are still to be: tables of one database, changed in whole steps.

The database is a file of SQLite, or any that eventlog knows. A table's rows are written into a new table, which the
state has only when they are complete: a crash before that leaves a table that nobody knows, and the next one takes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy import URL, Connection, and_, or_

from eventlog.compare.known import Ends
from eventlog.compare.sides import Compared, Key, Totals
from eventlog.core.errors import DataError
from eventlog.sources.compare.held import HeldSide
from eventlog.sources.compare.tables import PREFIX, KeptTables
from eventlog.sources.compare.transactions import StateTransactions
from eventlog.sources.stream.kept import DatabaseMarks
from eventlog.sql.connect import address_of, connect
from eventlog.sql.dialect import dialect_of, dialects

VERSION: Final = "1"


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
    """The state; `where` is what people call it."""

    def __init__(self, transactions: StateTransactions, where: str, prefix: str = "") -> None:
        self._transactions = transactions
        self._tables = KeptTables(dialect_of(transactions.engine), prefix)
        with ExitStack() as unless_it_can_be_used:
            unless_it_can_be_used.callback(self.close)
            with transactions.look() as connection:
                is_made = sa.inspect(connection).has_table(self._tables.about.name)
            if not is_made:
                with transactions.step() as connection:
                    self._tables.make(connection)
            version = self._about("version") or VERSION
            if version != VERSION:
                raise DataError(
                    f"The state in {where} is of version {version}, and this program writes version {VERSION}.",
                    hint='Use the program that wrote it; or another state, with source.compare.on_lost = "resync".',
                )
            self._note("version", VERSION)
            # All went well, so nothing is closed here.
            unless_it_can_be_used.pop_all()

    def close(self) -> None:
        self._transactions.engine.dispose()

    def step(self) -> AbstractContextManager[Connection]:
        """Begin a transaction, durable when it ends."""
        return self._transactions.step()

    def shape(self, name: str) -> Compared | None:
        """Return the columns of a table's stored rows; None if it has none."""
        row = self._shape(name)
        if row is None:
            return None
        shape = json.loads(row[1])
        return Compared(key=tuple(shape["key"]), names=tuple(shape["names"]), types=tuple(shape["types"]))

    def side(self, name: str, compared: Compared) -> HeldSide:
        """Open the stored rows of a table; it must have some."""
        row = self._shape(name)
        assert row is not None
        return self._side(compared, row[0])

    def keep(self, name: str, compared: Compared, rows: Iterator[Sequence[Any]]) -> HeldSide:
        """Replace a table's rows and columns, all at once when written."""
        former, held = self._shape(name), self._free()
        table = self._tables.define_held(held)
        with self.step() as connection:
            # A crash may have left one that nobody knows.
            table.drop(connection, checkfirst=True)
            table.create(connection)
        side = self._side(compared, held)
        side.write(rows)
        shapes, ranges = self._tables.shape, self._tables.ranges
        shape = json.dumps({"key": compared.key, "names": compared.names, "types": compared.types})
        with self.step() as connection:
            connection.execute(shapes.delete().where(shapes.c.name == name))
            connection.execute(shapes.insert(), [{"name": name, "held": held, "compared": shape}])
            connection.execute(ranges.delete().where(ranges.c.name == name))
        if former is not None:
            with self.step() as connection:
                # After the new rows count: a crash before this only leaves a table that nobody
                # knows.
                self._tables.define_held(former[0]).drop(connection, checkfirst=True)
        return side

    def ranges(self, name: str) -> StateRanges:
        """Open the ranges of a table known to be equal."""
        return StateRanges(self._transactions, self._tables.ranges, name)

    def read_held(self, name: str, compared: Compared) -> Iterator[tuple[list[str | None], list[str | None]]]:
        """Yield keys and values of a table's stored rows, as text."""
        row = self._shape(name)
        if row is not None:
            yield from self._side(compared, row[0]).every()

    def queue(self, images: Sequence[QueuedImage]) -> None:
        """Adds images of one step, in its transaction."""
        rows = [
            {
                "step": image.step,
                "place": image.place,
                "image": json.dumps([image.table, image.op, image.time, image.before, image.after]),
            }
            for image in images
        ]
        with self.step() as connection:
            connection.execute(self._tables.queue.insert(), rows)

    def read_queued(self, begin: int) -> Iterator[list[QueuedImage]]:
        """Yield the images of each step from that one on."""
        queue = self._tables.queue
        while True:
            [(step,)] = self._ask(sa.select(sa.func.min(queue.c.step)).where(queue.c.step >= begin))
            if step is None:
                return
            query = sa.select(queue.c.place, queue.c.image).where(queue.c.step == step).order_by(queue.c.place)
            yield [_image(int(step), int(place), text) for place, text in self._ask(query)]
            begin = int(step) + 1

    def last(self) -> int:
        """Return the highest step so far."""
        return int(self._about("last") or 0)

    def note_end(self, step: int) -> None:
        """Notes the number of a step, in its transaction."""
        self._note("last", str(step))

    @property
    def run(self) -> str | None:
        """Return the id of the publisher's last start."""
        return self._about("run")

    def note_begin(self, run: str) -> None:
        """Notes that a start has begun."""
        self._note("run", run)

    def forget(self, begin: int) -> None:
        """Takes off images of steps before that one."""
        queue = self._tables.queue
        if self._ask(sa.select(sa.func.min(queue.c.step)).where(queue.c.step < begin))[0][0] is not None:
            with self.step() as connection:
                connection.execute(queue.delete().where(queue.c.step < begin))

    def _side(self, compared: Compared, held: str) -> HeldSide:
        return HeldSide(compared, self._transactions, self._tables, held)

    def _ask(self, query: sa.Select[Any]) -> list[Any]:
        with self._transactions.look() as connection:
            return list(connection.execute(query))

    def _shape(self, name: str) -> tuple[str, str] | None:
        shapes = self._tables.shape
        rows = self._ask(sa.select(shapes.c.held, shapes.c.compared).where(shapes.c.name == name))
        return (str(rows[0][0]), str(rows[0][1])) if rows else None

    def _about(self, name: str) -> str | None:
        about = self._tables.about
        rows = self._ask(sa.select(about.c.value).where(about.c.name == name))
        return str(rows[0][0]) if rows else None

    def _note(self, name: str, value: str) -> None:
        about = self._tables.about
        if self._about(name) == value:
            return
        with self.step() as connection:
            connection.execute(about.delete().where(about.c.name == name))
            connection.execute(about.insert(), [{"name": name, "value": value}])

    def _free(self) -> str:
        """Return an unused name for a table."""
        taken = {row[0] for row in self._ask(sa.select(self._tables.shape.c.held))}
        return next(name for name in map("held_{}".format, range(len(taken) + 1)) if name not in taken)


class StateRanges:
    """The ranges in which a table was seen to have the rows that the state has of it."""

    def __init__(self, transactions: StateTransactions, table: sa.Table, name: str) -> None:
        self._transactions = transactions
        self._table = table
        self._name = name

    def read_known(self) -> dict[Ends, Totals]:
        table = self._table
        query = sa.select(table.c.after, table.c.upto, table.c.rows, table.c.total).where(table.c.name == self._name)
        with self._transactions.look() as connection:
            ranges = connection.execute(query).all()
        return {
            (_number(after), _number(upto)): Totals(rows=int(rows), total=int(total))
            for after, upto, rows, total in ranges
        }

    def keep(self, ends: Ends, totals: Totals) -> None:
        """Remembers a range in place of all that it touches."""
        if not all(map(_has_room, ends)):
            return
        table, (after, upto) = self._table, ends
        touched = [table.c.name == self._name]
        if upto is not None:
            touched.append(or_(table.c.after.is_(None), table.c.after < upto))
        if after is not None:
            touched.append(or_(table.c.upto.is_(None), table.c.upto > after))
        row = {"name": self._name, "after": after, "upto": upto, "rows": totals.rows, "total": str(totals.total)}
        with self._transactions.step() as connection:
            connection.execute(table.delete().where(and_(*touched)))
            connection.execute(table.insert(), [row])

    def forget(self, keys: Sequence[Key], *, counted: bool) -> None:
        """Takes off the ranges of rows that change, in the transaction that changes them."""
        firsts = {None if key[0] is None else int(key[0]) for key in keys} if counted else {None}
        table = self._table
        gone = table.delete().where(table.c.name == self._name)
        with self._transactions.step() as connection:
            if None in firsts or not all(map(_has_room, firsts)):
                connection.execute(gone)
                return
            first = sa.bindparam("first", type_=sa.BigInteger())
            below = or_(table.c.after.is_(None), table.c.after < first)
            above = or_(table.c.upto.is_(None), table.c.upto >= first)
            connection.execute(gone.where(below, above), [{"first": number} for number in firsts])


def _number(cell: Any) -> int | None:
    return None if cell is None else int(cell)


def _has_room(key: int | None) -> bool:
    """Return True if a BIGINT can hold the key."""
    return key is None or -(2**63) <= key < 2**63


def _image(step: int, place: int, text: str) -> QueuedImage:
    table, op, time, before, after = json.loads(text)
    return QueuedImage(step=step, place=place, table=table, op=op, time=time, before=before, after=after)


def state_in_file(path: Path) -> CompareState:
    """Open the state in a SQLite file, created if missing."""
    embedded = next(dialect.name for dialect in dialects() if dialect.embedded)
    engine = connect(URL.create(embedded, database=str(path)).render_as_string(), may_create=True)
    return CompareState(StateTransactions(engine, f"The state of the comparison in {path}"), str(path))


def state_beside(marks: DatabaseMarks) -> CompareState:
    """Open the state beside the marks; only the holder of their lock may change it."""
    where = address_of(marks.engine.url)
    transactions = StateTransactions(marks.engine, f"The state of the comparison in {where}", marks.assure)
    return CompareState(transactions, where, PREFIX)
