"""What a stream gives is captured into a log of the publisher's own: a row for each image.

Law: the rows of images, and how far the stream was read, are written in one transaction. So a crash
at any point neither repeats an image nor loses one, and only what is in the log is settled
with the reader.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec
import sqlalchemy as sa
from msgspec import Struct

from eventlog.core.errors import DataError, EventlogError
from eventlog.core.model import EVERY_ROW, Event, Image, Kind, Op, Position, Transaction
from eventlog.core.schema import Catalog, Table
from eventlog.sources.log.lock import LogLock
from eventlog.sources.marks import Marks, as_text
from eventlog.sources.stream.fresh import MOST_FRESH_IMAGES, FreshRows
from eventlog.sources.stream.images import key_text
from eventlog.sources.stream.packed import Names, packed, unpacked
from eventlog.sources.stream.source import PLACE, StreamPiece, StreamPlace, StreamReader, read_place
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

CATALOG: Final = "catalog "
"""What the names of marks begin with that describe the tables of rows; a number follows."""

KEY_CHARACTERS: Final = 900
"""A longer key is found by its hash."""

INSERTED_ROWS: Final = 1_000
"""So many rows are handed to the database at once, or as many more as a piece has."""

_KINDS: Final[Mapping[Op, int]] = {
    Op.ADD: int(Kind.INSERT_ROW_BACK),
    Op.MODIFY: int(Kind.UPDATE_ROW_BACK),
    Op.DELETE: int(Kind.DELETE_ROW),
    Op.TRUNCATE: int(Kind.DELETE_ROW),
}


class KeptCatalog(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tables as rows from `first` on describe them."""

    first: int
    tables: tuple[Table, ...]
    case_sensitive: bool = False


class Catalogs:
    """The catalogs that rows of a log were captured under, by their numbers."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: dict[int, Catalog] = {}
        self._newest: tuple[int, Catalog] | None = None

    def find(self, number: int) -> Catalog:
        """The catalog with that number."""
        if number not in self._known:
            with self._log.transaction(lone=True) as connection:
                text = Marks(self._log).get(connection, f"{CATALOG}{number}")
            if text is None:
                hint = "Restore the publisher's log from a backup."
                raise DataError(f"The log {self._log.name} has no mark {CATALOG}{number}.", hint=hint)
            kept = msgspec.json.decode(text, type=KeptCatalog)
            self._known[number] = Catalog(kept.tables, case_sensitive=kept.case_sensitive)
        return self._known[number]

    def number(self, connection: Connection, catalog: Catalog, first: int) -> int:
        """The number of a catalog for rows from `first` on, which is kept in the caller's transaction."""
        if self._newest is None:
            self._newest = self._read_newest(connection)
        if self._newest is not None:
            number, known = self._newest
            if known is catalog:
                return number
            if known.tables == catalog.tables and known.case_sensitive == catalog.case_sensitive:
                self._newest = number, catalog
                return number
        number = 1 if self._newest is None else self._newest[0] + 1
        kept = KeptCatalog(first=first, tables=catalog.tables, case_sensitive=catalog.case_sensitive)
        Marks(self._log).set(connection, f"{CATALOG}{number}", as_text(kept))
        # Those of which no row is left go.
        oldest = self._log.rows(connection, self._log.query("oldest_row"))[0][0]
        numbered = sorted(self._numbered(connection).items())
        for (former, _), (_, following) in pairwise(numbered):
            if oldest is None or following.first <= int(oldest):
                Marks(self._log).clear(connection, f"{CATALOG}{former}")
        self._newest = number, catalog
        self._known[number] = catalog
        return number

    def forget_newest(self) -> None:
        """What was written last may not be durable, or another publisher has written since."""
        self._newest = None
        self._known.clear()

    def newest(self) -> Catalog:
        """The tables as they were described last; none where nothing was ever captured."""
        with self._log.transaction(lone=True) as connection:
            newest = self._read_newest(connection)
        return Catalog() if newest is None else newest[1]

    def _read_newest(self, connection: Connection) -> tuple[int, Catalog] | None:
        numbers = sorted(self._numbered(connection))
        if not numbers:
            return None
        kept = self._numbered(connection)[numbers[-1]]
        return numbers[-1], Catalog(kept.tables, case_sensitive=kept.case_sensitive)

    def _numbered(self, connection: Connection) -> dict[int, KeptCatalog]:
        catalogs: dict[int, KeptCatalog] = {}
        for name, text in Marks(self._log).all(connection).items():
            if name.startswith(CATALOG):
                catalogs[int(name.removeprefix(CATALOG))] = msgspec.json.decode(text, type=KeptCatalog)
        return catalogs


class CapturedImages:
    """The images that the rows of a log are."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.catalogs = Catalogs(log)
        self.fresh = FreshRows(log)

    def image(self, event: Event) -> tuple[Image, int]:
        """The image that a row of the log is, and the number of its catalog."""
        [number], table = event.position, event.table or ""
        if event.fault is not None or event.new is None:
            fault = event.fault or "The row has no image."
            return Image(position=event.position, op=Op.MODIFY, table=table, fault=fault), 0
        fresh = self.fresh.image(number)
        if fresh is not None:
            return fresh

        def names_of(number: int) -> Names:
            return names_in(self.catalogs.find(number), table)

        return unpacked(event.new, table, names_of, f"Row {number} of the log {self.log.name}")


class StreamLog(CapturedImages):
    """The log of a publisher that a stream is captured into. Only who has its lock writes there."""

    def __init__(self, log: Log, lock: LogLock) -> None:
        super().__init__(log)
        self._lock = lock
        self._table = _table(log)
        self._insert = str(self._table.insert().compile(dialect=log.engine.dialect))

    def place(self) -> StreamPlace:
        """How far the stream was captured."""
        with self.log.transaction(lone=True) as connection:
            return read_place(Marks(self.log).get(connection, PLACE))

    @contextmanager
    def writing(self, place: StreamPlace) -> Iterator[Writing]:
        """What captures pieces: their rows, and the place behind them, are there when the block ends."""
        self.fresh = FreshRows(self.log)
        try:
            with self.log.transaction() as connection:
                self._lock.assure(connection)
                writing = Writing(connection, self, place)
                yield writing
                writing.flush()
                self._lock.mark(connection, PLACE, as_text(writing.place))
        except BaseException:
            self.catalogs.forget_newest()
            raise
        # Only now: rows that were rolled back get their numbers once more.
        self.fresh = writing.fresh

    def insert(self, connection: Connection, rows: list[tuple[Any, ...]]) -> None:
        """Writes rows, whose values are in the order of the table's columns."""
        if self.log.dialect.embedded:
            # Handed to the driver as they are: to have each looked at costs as much as to write it.
            connection.exec_driver_sql(self._insert, rows)
            return
        names = self._table.columns.keys()
        connection.execute(self._table.insert(), [dict(zip(names, row, strict=True)) for row in rows])

    def time(self, time: dt.datetime) -> dt.datetime | str:
        """A time as `insert` takes it."""
        return str(time) if self.log.dialect.embedded else time


class Writing:
    """Captures pieces of a stream in one transaction of the log."""

    def __init__(self, connection: Connection, log: StreamLog, place: StreamPlace) -> None:
        self._connection = connection
        self._log = log
        self.place = place
        self.captured: list[Image] = []
        """The images; of the pieces behind the first ones of a long transaction only the last each."""
        self.fresh = FreshRows(log.log)
        self._rows: list[tuple[Any, ...]] = []
        self._tables = _Tables(Catalog())
        # Most rows of a transaction have one time, and to write it costs more than to compare it.
        self._time: dt.datetime | None = None
        self._written_time: dt.datetime | str = ""

    def add(self, piece: StreamPiece) -> None:
        """Captures what is new in a piece."""
        place = self.place
        number, transaction, upto = place.number, place.transaction, place.upto
        new = [image for image in piece.images if image.position > upto]
        if new:
            number, transaction, upto = self._write(new, piece.catalog)
        begin = piece.begin
        if begin is None:  # the transaction is read from its beginning again
            begin = place.begin or piece.since or 0
        self.place = StreamPlace(begin=begin, upto=upto, number=number, transaction=transaction)

    def _write(self, images: Sequence[Image], catalog: Catalog) -> tuple[int, int, Position]:
        """Makes rows of images; the number of the last one, of its transaction, and how far that is."""
        place, fresh, tables = self.place, self.fresh, self._tables
        upto, number = place.upto, place.number
        if tables.catalog is not catalog:
            # Another catalog has those forgotten of which the log has no row.
            self.flush()
            tables = self._tables = _Tables(catalog)
        described = self._log.catalogs.number(self._connection, catalog, number + 1)
        is_short = not fresh.is_full
        known = Transaction(id=place.transaction)
        for image in images:
            number += 1
            # A stream may give a number of a transaction again: that of its first row is its own.
            if not upto or image.position[0] != upto[0] or not known.id:
                known = Transaction(id=number)
            upto = max(upto, image.position)
            kind, table, by = _KINDS[image.op], image.table, image.perpetrator
            key = tables.key_text(image) or f"#{number}"
            committed = image.time or self._now
            # Most rows have the time of the one before.
            if committed is not self._time:
                self._time, self._written_time = committed, self._log.time(committed)
            time = self._written_time
            text = packed(image, described, tables.names(table))
            # In the order of `_table`.
            self._rows.append((number, "N", kind, time, by, table, key, text, known.id))
            if is_short:
                event = Event(
                    position=(number,),
                    kind=kind,
                    table=table,
                    key=key,
                    new=text,
                    time=time,
                    perpetrator=by,
                    transaction=known,
                )
                fresh.add(event, len(text), image, described)
        self.captured += images if is_short else images[-1:]
        if len(self._rows) >= INSERTED_ROWS:
            self.flush()
        return number, known.id, upto

    def flush(self) -> None:
        """Has all rows written so far stand in the log."""
        if self._rows:
            self._log.insert(self._connection, self._rows)
        self._rows = []

    @cached_property
    def _now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC).replace(tzinfo=None)


class StreamCapture:
    """Reads a stream on, and captures what it gives, about `limit` images at once: no transaction is
    cut in two, for who reads a log takes a transaction that is there for whole.
    """

    def __init__(self, reader: StreamReader, log: StreamLog, limit: int) -> None:
        self._reader = reader
        self._log = log
        self._limit = limit or MOST_FRESH_IMAGES
        self._place = log.place()
        # Another publisher may have captured since this one had the log.
        log.catalogs.forget_newest()
        self._pieces: Iterator[StreamPiece | None] | None = None

    def capture(self) -> bool:
        """Captures what comes next; whether there may be more at once."""
        try:
            if self._pieces is None:
                self._pieces = self._reader.pieces(self._place.begin)
            first = next(self._pieces)
            if first is None:
                return False
            # Nothing has come, but the reader goes on: that takes no transaction.
            if not first.images and first.begin == self._place.begin:
                return True
            return self._capture(first, self._pieces)
        except BaseException:
            self._pieces = None
            raise

    def close(self) -> None:
        """Ends the session, or closes the file."""
        self._pieces = None
        self._reader.close()

    def _capture(self, first: StreamPiece, pieces: Iterator[StreamPiece | None]) -> bool:
        gathered = [first]
        goes_on, failed = True, False
        try:
            goes_on = self._gather(gathered, pieces)
        except EventlogError:
            # What was complete before a failure is captured: the failure comes again.
            while gathered and gathered[-1].begin is None:
                gathered.pop()
            if not gathered:
                raise
            failed = True
        with self._log.writing(self._place) as writing:
            for piece in gathered:
                writing.add(piece)
            # The rest of a long transaction is at hand, and has no room in memory.
            is_amid = gathered[-1].begin is None
            while is_amid:
                rest = next(pieces)
                if rest is not None:
                    writing.add(rest)
                    is_amid = rest.begin is None
        self._place = writing.place
        # After the rows are durable, for the reader may take off what is settled.
        self._reader.settled(writing.captured, self._place.begin)
        if failed:
            self._pieces = None
        return goes_on

    def _gather(self, gathered: list[StreamPiece], pieces: Iterator[StreamPiece | None]) -> bool:
        """Adds what there is now, up to the limit; whether there may be more."""
        count = len(gathered[0].images)
        while count < self._limit:
            piece = next(pieces)
            if piece is not None and not piece.images and piece.begin == gathered[-1].begin:
                return True  # its reader waits, and what there is may go
            if piece is not None:
                gathered.append(piece)
                count += len(piece.images)
            elif gathered[-1].begin is not None:
                return False
        return True


def names_in(catalog: Catalog, table: str) -> Names:
    """The names of a table's columns; none where the catalog does not know it."""
    match = catalog.find(table)
    return () if match is None else tuple([column.name for column in match.table.columns])


class _Tables:
    """What rows of images say of their tables: names of columns, and keys of objects, behind which
    later changes of them wait.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._names: dict[str, Names] = {}
        self._keys: dict[str, tuple[str, ...]] = {}

    def names(self, table: str) -> Names:
        """The names of a table's columns."""
        names = self._names.get(table)
        if names is None:
            names = self._names[table] = names_in(self.catalog, table)
        return names

    def key_text(self, image: Image) -> str:
        """The key of an image's object; nothing where the rules say that it has none."""
        table = image.table
        if table not in self._keys:
            match = self.catalog.find(table)
            self._keys[table] = () if match is None else match.table.key
        key = self._keys[table]
        row = image.before if image.after is None else image.after
        if image.op is Op.TRUNCATE or row is None or not key:
            return EVERY_ROW
        try:
            text = key_text(row, key, table)
        except DataError:
            return ""
        if len(text) <= KEY_CHARACTERS:
            return text
        # Half of a surrogate pair may stand in a key, and UTF-8 refuses it.
        return f"hash={hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


def _table(log: Log) -> sa.Table:
    """The log as rows are written into it."""
    names, types = log.names, log.dialect.types
    kinds: dict[str, Any] = {
        "record_id": types.log_number,
        "status": sa.CHAR(1),
        "event_type": sa.Integer(),
        "event_time": types.log_time,
        "perpetrator": types.log_name,
        "table_name": types.log_name,
        "table_key": types.log_key,
        "new_value": types.log_value,
    }
    columns = [sa.Column(names.column(name), kind, key=name) for name, kind in kinds.items()]
    assert names.transaction is not None
    columns.append(sa.Column(names.transaction, types.log_number, key="transaction"))
    return sa.Table(names.table, sa.MetaData(), *columns, schema=names.schema)
