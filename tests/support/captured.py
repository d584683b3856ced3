"""Streams that are captured into a log of a test, and who takes what stands there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import sleep
from typing import Any

import sqlalchemy as sa

from eventlog.core.backoff import Backoff
from eventlog.core.errors import ExpressionError
from eventlog.core.model import EVERY_ROW, Event, Image, Op
from eventlog.core.rules import Options, Round
from eventlog.core.rules.images import open_images
from eventlog.core.rules.meaning import MEANING
from eventlog.core.schema import Catalog
from eventlog.core.tablekey import parse
from eventlog.core.times import moment
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider, Looks
from eventlog.publisher.journal import Journal
from eventlog.publisher.turn_report import ConsumerSettings
from eventlog.qlik.readings import reading
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings, Request, WaitingRows
from eventlog.sources.stream.captured import StreamCapture, StreamLog
from eventlog.sources.stream.definitions import read_catalog
from eventlog.sources.stream.fresh import CapturedRows, FreshRows
from eventlog.sources.stream.source import StreamReader
from eventlog.sql.connect import connect
from eventlog.sql.history import history_stamp
from eventlog.sql.log import ALL, Log
from eventlog.sql.names import ORIGIN, TRANSACTION, LogNames
from eventlog.streams.stream_session import make_stream_log


class Capturing:
    """A publisher that has just begun: it captures a stream into the log in a file."""

    def __init__(self, reader: StreamReader, path: Path, limit: int = 10_000) -> None:
        self.engine = connect(f"sqlite:///{path}", may_create=True)
        log = Log(self.engine, LogNames(transaction=TRANSACTION, origin=ORIGIN))
        make_stream_log(log)
        self._lock = LogLock(log, 600.0)
        assert self._lock.take()
        self.log = StreamLog(log, self._lock)
        self.reader = reader
        self._rows = WaitingRows(log, None, LogSettings(transactions=True))
        self._capture = StreamCapture(reader, self.log, limit)

    def capture(self) -> bool:
        return self._capture.capture()

    def take(self) -> list[Image]:
        """Captures what there is now, and takes all images off the log, each as its row has it."""
        while self.capture():
            pass
        return self.taken()

    def taken(self) -> list[Image]:
        """Return the images in the log, and delete them."""
        with self.log.log.transaction() as connection:
            catalog = read_catalog(self.log.log)
            rows = open_images(self.waiting(connection), catalog)
            connection.execute(sa.text("DELETE FROM event_log"))
        self.log.fresh = FreshRows(self.log.log)  # as after a start
        return [image_of(event, catalog) for event in rows]

    def waiting(self, connection: sa.Connection) -> Sequence[Event]:
        """Read the waiting rows."""
        return self._rows.next(connection, Request(limit=ALL, room=ALL)).rows

    def die(self) -> None:
        """Die: forget all that is in memory; others learn of it by the lock."""
        self._lock.leave()
        self.engine.dispose()

    def close(self) -> None:
        self._capture.close()
        self._lock.leave()
        self.engine.dispose()


class StreamPublisher:
    """Captures a stream into the log in a file, and publishes it to these outputs, one turn after the other."""

    def __init__(
        self,
        reader: StreamReader,
        path: Path,
        outputs: Sequence[Output],
        *,
        limit: int = 10_000,
        strictness: Strictness | None = None,
        options: Options | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self.reader = reader
        self.limit = limit
        self.outputs = outputs
        self.settings = ConsumerSettings(limit=limit, strictness=strictness or Strictness())
        self.options = options or Options()
        self.backoff = backoff or Backoff(first=0.0)
        self.later: float | None = None
        self.engine = connect(f"sqlite:///{path}", may_create=True)
        self.log = Log(self.engine, LogNames(transaction=TRANSACTION, origin=ORIGIN))
        make_stream_log(self.log)
        self.lock = LogLock(self.log, 600.0)
        assert self.lock.take()
        self.begin()

    def begin(self) -> None:
        """Start as after a crash, with nothing in memory."""
        own = StreamLog(self.log, self.lock)
        self.capture = StreamCapture(self.reader, own, self.limit)
        settings = LogSettings(
            delete_from_log=True,
            backoff=self.backoff,
            transactions=True,
            ends=True,
        )
        self.own = own
        self.journal = Journal(self.log, self.lock, settings)
        self.journal.serve([(output.name, ()) for output in self.outputs])
        decider = self.look(None)
        self.consumers = [Consumer(self.journal, output, decider, self.settings) for output in self.outputs]

    def look(self, looks: Looks | None) -> Decider:
        """Look at the tables as the stream has described them."""
        stamp, catalog = history_stamp(self.engine, self.log.names), read_catalog(self.log)
        self.journal.look(catalog)
        self.journal.rows.reader = CapturedRows(self.own, catalog, self.journal.settings)
        return Decider(Round(catalog=catalog, options=self.options), looks=looks, stamp=stamp)

    def turn(self) -> bool:
        """Captures once, and gives each output a turn; whether anything moved."""
        moved = self.capture.capture()
        self.later = None
        for consumer in self.consumers:
            assert self.lock.tenure is not None
            turn = consumer.turn(self.lock.tenure)
            while turn.stale is not None:  # first the tables are looked at, then those that a row lacks
                consumer.decider.looks.note(turn.stale)
                decider = self.look(consumer.decider.looks)
                for other in self.consumers:
                    other.decider = decider
                turn = consumer.turn(self.lock.tenure)
            moved = moved or turn.moved
            if turn.later is not None:
                self.later = min(turn.later, self.later or turn.later)
        return moved

    def run(self) -> None:
        """Run until nothing changes any more and nothing waits for a time."""
        while self.turn() or self.later is not None:
            if self.later is not None:
                sleep(self.later)

    def left(self) -> dict[str, int]:
        """Count the rows in tables expected to be empty at rest."""
        tables = ("", "_batch", "_planned", "_parked", "_answer", "_hold")
        with self.engine.connect() as connection:
            counts = {
                table: connection.exec_driver_sql(f"SELECT count(*) FROM event_log{table}").scalar_one()
                for table in tables
            }
        return {table: count for table, count in counts.items() if count}

    def close(self) -> None:
        self.capture.close()
        self.lock.leave()
        self.engine.dispose()


def image_of(event: Event, catalog: Catalog) -> Image:
    """Read a row of the log as an image with values of the types that its columns have."""
    match = catalog.find(event.table or "")
    readings = {} if match is None else {column.name: reading(column) for column in match.table.columns}

    def value(name: str, text: str | None) -> Any:
        try:
            return None if text is None else readings.get(name, str)(text)
        except ExpressionError:  # such as infinity, which no type of Python has
            return text

    def read(row: dict[str, str | None]) -> dict[str, Any]:
        return {name: value(name, text) for name, text in row.items()}

    before = after = None
    if event.image is not None:
        key: dict[str, str | None] = {}
        if event.key and event.key != EVERY_ROW:
            key |= parse(event.key).parts
        if event.image.before is not None:
            before = read(key | event.image.row(event.image.before))
        if event.image.after is not None:
            after = read(key | event.image.row(event.image.after))
    stream = event.stream or ""
    written = tuple(map(int, stream.split("."))) if stream.replace(".", "").isdigit() else event.position
    return Image(
        position=written,
        op=Op.TRUNCATE if event.key == EVERY_ROW and event.image is None else MEANING[event.kind].op,
        table=event.table or "",
        before=before,
        after=after,
        time=None if event.time is None else moment(event.time),
        perpetrator=event.perpetrator,
        transaction=event.transaction,
        stream=stream or None,
        fault=event.fault,
    )


def keys(images: list[Image], column: str) -> list[Any]:
    return [(image.after or image.before or {})[column] for image in images]
