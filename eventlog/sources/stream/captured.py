"""What a stream gives is captured into a log of the publisher's own: a row for each image.

Law: the rows of images, and how far the stream was read, are written in one transaction. So a crash
at any point neither repeats an image nor loses one, and only what is in the log is settled
with the reader.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError, EventlogError
from eventlog.core.model import EVERY_ROW, Event, Image, Kind, Op, Position, Row, RowImage, Transaction, format_position
from eventlog.core.rules.images import encode_fault, encode_image, find_opened_kind
from eventlog.core.schema import Catalog, Table
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.row_events import write_transaction
from eventlog.sources.marks import Marks, as_text
from eventlog.sources.stream.definitions import ImageNumbers
from eventlog.sources.stream.fresh import MOST_FRESH_IMAGES, FreshRows
from eventlog.sources.stream.images import key_text
from eventlog.sources.stream.source import PLACE, StreamPiece, StreamPlace, StreamReader, read_place
from eventlog.sources.stream.texts import TextWriter, write_text
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection

INSERTED_ROWS: Final = 1_000
"""So many rows are handed to the database at once, or as many more as a piece has."""

_KINDS: Final[Mapping[Op, int]] = {
    Op.ADD: int(Kind.INSERT_ROW_BACK),
    Op.MODIFY: int(Kind.UPDATE_ROW_BACK),
    Op.DELETE: int(Kind.DELETE_ROW),
    Op.TRUNCATE: int(Kind.DELETE_ROW),
}


class StreamLog:
    """The log of a publisher that a stream is captured into. Only who has its lock writes there."""

    def __init__(self, log: Log, lock: LogLock) -> None:
        self.log = log
        self.numbers = ImageNumbers(log)
        self.fresh = FreshRows(log)
        self._lock = lock

    @cached_property
    def _table(self) -> sa.Table:
        return _table(self.log)

    @cached_property
    def _insert(self) -> str:
        return str(self._table.insert().compile(dialect=self.log.engine.dialect))

    def place(self) -> StreamPlace:
        """Read the captured position of the stream."""
        with self.log.transaction(lone=True) as connection:
            return read_place(Marks(self.log).get(connection, PLACE))

    @contextmanager
    def writing(self, place: StreamPlace) -> Iterator[Writing]:
        """Begin writing pieces: their rows and the new position are committed with the block."""
        self.fresh = FreshRows(self.log)
        try:
            with self.log.transaction() as connection:
                self._lock.assure(connection)
                writing = Writing(connection, self, place)
                yield writing
                writing.flush()
                self._lock.mark(connection, PLACE, as_text(writing.place))
        except BaseException:
            self.numbers.forget()
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
        """Convert a time to the form `insert` takes."""
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
        self._tables = _Tables(Catalog(), self._number)
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
            tables = self._tables = _Tables(catalog, self._number)
        is_short, first = not fresh.is_full, place.transaction
        # What is written of a transaction is the same for all of its rows.
        own: Transaction | None = None
        shared, ending = None, ""
        for image in images:
            number += 1
            # A stream may give a number of a transaction again: that of its first row is its own.
            is_first = not first or not upto or image.position[0] != upto[0]
            if is_first:
                first = number
            if is_first or image.transaction is not own:
                own, shared, ending = image.transaction, None, write_transaction(image.transaction)
                if own is not None:
                    shared = replace(own, row=first)
            upto = max(upto, image.position)
            kind, table, by = _KINDS[image.op], image.table, image.perpetrator
            texts = tables.texts(image, number)
            key, old, new = texts.key, texts.old, texts.new
            committed = image.time or self._now
            # Most rows have the time of the one before.
            if committed is not self._time:
                self._time, self._written_time = committed, self._log.time(committed)
            stream = image.stream or format_position(image.position)
            # In the order of `_table`.
            row = (number, "N", kind, self._written_time, by, table, key, old, new, first, stream + ending)
            self._rows.append(row)
            if is_short:
                event = Event(
                    position=(number,),
                    # As it is once it was read: what was written a moment ago is not decoded.
                    kind=kind if texts.image is None else find_opened_kind(kind, has_former=old is not None),
                    table=table,
                    key=key,
                    old=old,
                    new=new,
                    time=committed,
                    perpetrator=by,
                    transaction=shared,
                    image=texts.image,
                    stream=stream,
                )
                fresh.add(event, len(old or "") + len(new or ""))
        self.captured += images if is_short else images[-1:]
        if len(self._rows) >= INSERTED_ROWS:
            self.flush()
        return number, first, upto

    def _number(self, table: Table, columns: tuple[str, ...], first: int, *, case_sensitive: bool) -> int:
        return self._log.numbers.number(self._connection, table, columns, first, case_sensitive=case_sensitive)

    def flush(self) -> None:
        """Insert all rows written so far."""
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
        log.numbers.forget()
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
        self._reader.acknowledge(writing.captured, self._place.begin)
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


class _CapturedTable:
    """How images of one table become texts of a row."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.key = table.key
        self.writer = TextWriter()
        self.names: tuple[str, ...] = ()
        """The columns of the last row, which nearly all rows have."""
        self.number = 0
        self.start = 0
        self.places: list[int] = []
        self.columns: tuple[str, ...] = ()
        """Those of its columns that are not in the key, and where they stand."""


class _RowTexts(Struct, frozen=True, gc=False):
    """What a row of the log says of an image, and what it is once it was read."""

    key: str
    old: str | None
    new: str | None
    image: RowImage | None = None


class _Tables:
    """What rows of images say of their objects."""

    def __init__(self, catalog: Catalog, number: Callable[..., int]) -> None:
        self.catalog = catalog
        self._number = number
        self._tables: dict[str, _CapturedTable | None] = {}

    def texts(self, image: Image, number: int) -> _RowTexts:
        """Write the key of an image's object, and the row before and after, for row `number` of the log.

        What cannot be read, or has no key, says why. It has no key that later rows would wait behind.
        """
        if image.table not in self._tables:
            match = self.catalog.find(image.table)
            self._tables[image.table] = None if match is None else _CapturedTable(match.table)
        known, why = self._tables[image.table], image.fault
        try:
            if known is not None and why is None:
                return self._write_texts(known, image, number)
            why = why or f"{image.table} is not among the captured tables."
        except DataError as error:
            why = str(error)
        return _RowTexts(f"#{number}", *_fault_texts(image, why))

    def _write_texts(self, known: _CapturedTable, image: Image, number: int) -> _RowTexts:
        before, after = image.before, image.after
        key = self._key(image, known, number)
        if before is None and after is None:
            return _RowTexts(key, None, None)
        if after is None and image.op is Op.MODIFY:
            after = {}  # a half without its other half: nothing is known of the row as it is now
        old = new = former = row = None
        if before is not None:
            former = self._values(known, before, number)
            old = encode_image(known.number, former)
        former_columns = known.columns
        if after is not None:
            row = self._values(known, after, number)
            new = encode_image(known.number, row)
        if old is not None and former_columns is not known.columns:
            return _RowTexts(key, old, new)
        return _RowTexts(key, old, new, RowImage(number=known.number, names=known.columns, before=former, after=row))

    def _key(self, image: Image, known: _CapturedTable, number: int) -> str:
        if image.op is Op.TRUNCATE:
            if not known.number:  # the table has a definition before anybody reads of it
                self._find_number(known, tuple(known.table.attributes), number)
            return EVERY_ROW
        row = image.before if image.after is None else image.after
        if row is None:
            raise DataError(f"The change of {known.table.name} came without an image of its row.")
        if not known.key:
            return EVERY_ROW
        return key_text(row, known.key, known.table.name)

    def _values(self, known: _CapturedTable, row: Row, number: int) -> list[str | None]:
        """Return the texts of a row's values outside its key."""
        names = tuple(row)
        if names != known.names:
            known.places = [place for place, name in enumerate(names) if name not in known.key]
            # Nearly always all behind the key.
            start = known.places[0] if known.places else len(names)
            known.start = start if known.places == [*range(start, len(names))] else -1
            self._find_number(known, tuple([names[place] for place in known.places]), number)
            known.names = names
        values = [*row.values()]
        if known.start >= 0:
            return known.writer.write(values[known.start :])
        return known.writer.write([values[place] for place in known.places])

    def _find_number(self, known: _CapturedTable, columns: tuple[str, ...], number: int) -> None:
        known.columns = columns
        known.number = self._number(known.table, columns, number, case_sensitive=self.catalog.case_sensitive)


def _fault_texts(image: Image, why: str) -> tuple[str | None, str | None]:
    """Write why an image cannot be read, with what came of it."""
    rows = [None if row is None else [*map(write_text, row.values())] for row in (image.before, image.after)]
    # The value that a row of its type must have says it.
    if _KINDS[image.op] == Kind.DELETE_ROW:
        return encode_fault(why, rows[0] or ()), None
    return None if rows[0] is None else encode_fault(why, rows[0]), encode_fault(why, rows[1] or ())


def _table(log: Log) -> sa.Table:
    """Define the log for inserting rows."""
    names, types = log.names, log.dialect.types
    kinds: dict[str, Any] = {
        "record_id": types.log_number,
        "status": sa.CHAR(1),
        "event_type": sa.Integer(),
        "event_time": types.log_time,
        "perpetrator": types.log_name,
        "table_name": types.log_name,
        "table_key": types.log_key,
        "old_value": types.log_value,
        "new_value": types.log_value,
    }
    columns = [sa.Column(names.column(name), kind, key=name) for name, kind in kinds.items()]
    assert names.transaction is not None
    assert names.origin is not None
    columns.append(sa.Column(names.transaction, types.log_number, key="transaction"))
    columns.append(sa.Column(names.origin, types.log_key, key="origin"))
    return sa.Table(names.table, sa.MetaData(), *columns, schema=names.schema)
