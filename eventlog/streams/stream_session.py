"""A publisher at a stream: it captures what the stream gives into a log of its own, and publishes
that log as any other.

The log is an SQLite file beside the file `marks`, or stands in the database that keeps the
position. `marks` says for ever which stream this is, and keeps other publishers away.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import sqlalchemy as sa
from msgspec.structs import replace
from structlog.stdlib import BoundLogger

from eventlog.capture.install import install
from eventlog.config.build import log_settings_of, source_order, stream_log_of
from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError, DataError
from eventlog.core.plugins import BackgroundWork
from eventlog.core.registry import source_named
from eventlog.core.seams import Tenure
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.log_session import LogWork, Post
from eventlog.daemon.workers import Line
from eventlog.delivery.output import Output
from eventlog.durable_files import make_empty
from eventlog.policies.settings import steps_of
from eventlog.policies.steps import Lookup
from eventlog.publisher.decide import Decider, Looks
from eventlog.publisher.journal import Journal
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import PUBLISHER, Marks
from eventlog.sources.stream.captured import StreamCapture, StreamLog
from eventlog.sources.stream.fresh import CapturedRows
from eventlog.sources.stream.kept import keeper_of
from eventlog.sources.stream.source import PLACE
from eventlog.sql.connect import connect, limit_sessions, make_readable_url, read_url
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log
from eventlog.sql.names import ORIGIN, TRANSACTION
from eventlog.streams.deciding import decider_of_stream

CAPTURED = "captured in a log"
"""What the mark of the place holds once a log has been begun: where that is gone, nobody begins anew."""


class StreamPost(Post):
    """What a publisher does at a stream."""

    def __init__(self, config: Config, vitals: PublisherHealth, records: BoundLogger) -> None:
        refuse_lookups(config)
        source, plugin = config.source, source_named(config.source.kind)
        address = make_readable_url(read_url(source.url)) if source.url else plugin.address(source.own)
        marks = source.marks
        name = f"{plugin.title} of {make_readable_url(marks) if '://' in marks else marks}"
        url, names = stream_log_of(source)
        engine = connect(url, may_create=True)
        limit_sessions(engine, None, None, config.publisher.lease)
        super().__init__(config, vitals, records, Log(engine, names), name=name, address=address)
        self._run = str(uuid4())
        lease, alive = config.publisher.lease, vitals.is_alive
        self._keeper = keeper_of(marks, plugin.prefix, self.name, lease, alive)
        self._kept: Tenure | None = None
        self._capture: StreamCapture | None = None
        self._stream_log = StreamLog(self.lock.log, self.lock)

    @property
    def tenure(self) -> Tenure | None:
        """Return the stream's tenure if we hold the log's lock too."""
        return self._kept if self.lock.taken else None

    def take(self, outputs: Sequence[Output]) -> bool:
        if self._kept is None:
            tenure = self._keeper.take()
            if tenure is None:
                return False
            self._make_log()
            # Only now: if the log cannot be made, the next try begins anew.
            self._kept = tenure
        elif self._keeper.take() is None:
            return False
        return super().take(outputs)

    def wait_for_lock(self) -> None:
        """Report nothing: only the kernel knows who holds the file of marks."""

    def confirm(self) -> None:
        self._keeper.confirm()
        super().confirm()

    def leave(self) -> None:
        try:
            self._end_capture()
            super().leave()
        finally:
            self._kept = None
            # Last: the next publisher begins with the marks, and finds the log free then.
            self._keeper.leave()

    def drop(self) -> None:
        self._end_capture()
        super().drop()
        self._kept = None
        self._keeper.drop()

    def lines(self, outputs: Sequence[Output]) -> list[Line]:
        self._end_capture()
        with self.guard():
            self._capture = self._open_capture()
        return super().lines(outputs)

    def capture(self) -> None:
        assert self._capture is not None
        with self.guard():
            self.more = self._capture.capture()

    def follow_tables(self) -> None:
        """Do nothing: a stream describes its tables itself."""

    def works(self) -> list[BackgroundWork]:
        return []

    # --- the log ----------------------------------------------------------------------------------

    def _make_log(self) -> None:
        """Makes the log where it is missing; DataError where there was one before."""
        names, marks = self._names, self._keeper.marks()
        is_file = self.lock.log.dialect.embedded
        path = Path(str(self.engine.url.database))
        # To look into a file that is missing would make it.
        is_there = False
        if path.exists() or not is_file:
            with self.guard(), self.engine.connect() as connection:
                is_there = sa.inspect(connection).has_table(self._names.table)
        if marks.get(PLACE) == CAPTURED and not is_there:
            raise DataError(
                f"The log of the {self.name} is gone: {make_readable_url(self.engine.url)} has no table {names.table}.",
                hint="Restore it from a backup; or take away what keeps the position, and the stream is read from its"
                " beginning.",
            )
        if is_file and not path.exists():
            make_empty(path)  # it has the values of rows
        with self.guard():
            make_stream_log(self.lock.log)
            if is_file:
                # Nobody else has the file of marks, so who had the log has gone, whatever its lease says.
                with self.lock.log.transaction() as connection:
                    Marks(self.lock.log).clear(connection, PUBLISHER)

    def _open_capture(self) -> StreamCapture:
        """Reads the stream from where the log has it."""

        def report(message: str) -> None:
            self._records.warning("odd", said=message)

        marks = self._keeper.marks()
        order = source_order(self._config, marks, report)
        order = replace(order, run=self._run, pulse=self._vitals.note_alive)
        reader = source_named(self._config.source.kind).build(order)
        try:
            if marks.get(PLACE) != CAPTURED:
                marks.change({PLACE: CAPTURED})
            return StreamCapture(reader, self._stream_log, self._config.publisher.query_limit)
        except BaseException:
            reader.close()
            raise

    def _end_capture(self) -> None:
        capture, self._capture, self.more = self._capture, None, False
        if capture is not None:
            capture.close()

    # --- how the log is read ----------------------------------------------------------------------

    def _new_journal(self, decider: Decider) -> Journal:
        journal = super()._new_journal(decider)
        self._read_fresh(journal, decider)
        return journal

    def _read_fresh(self, journal: Journal, decider: Decider) -> None:
        journal.rows.reader = CapturedRows(self._stream_log, decider.round.catalog, journal.settings)

    def _log_settings(self) -> LogSettings:
        return replace(log_settings_of(self._config), delete_from_log=True, handle_future_events=False)

    def _new_decider(self, looks: Looks | None = None) -> Decider:
        return decider_of_stream(self.lock.log, self._config, looks)

    def _see_tables(self, work: LogWork) -> Decider:
        decider = super()._see_tables(work)
        self._read_fresh(work.journal, decider)
        return decider

    def _see_history(self) -> None:
        """Do nothing: descriptions are entered as they are captured."""


def refuse_lookups(config: Config) -> None:
    """Raise ConfigError if a policy looks up other tables although the source is a stream."""
    if any(isinstance(step, Lookup) for output in config.output for step in steps_of(output, config.policy)):
        message = (
            "A step with `do = 'lookup'` reads rows of other tables, and a stream has no database to read them from."
        )
        raise ConfigError(message, hint="Take the step out; or let the receiver look that up.")


def make_stream_log(log: Log) -> None:
    """Makes what is missing of a log for streams, or brings it up to now."""
    # A log is made as triggers fill it, and those do not know these columns: elsewhere a trigger
    # could not say which transaction writes a row.
    asked = replace(log.names, transaction=None, origin=None)
    install(log.engine, asked)
    there = log_columns(log.engine, asked)
    types, dialect = log.dialect.types, log.engine.dialect
    table = log.dialect.qualify(log.names.schema, log.names.table)
    missing = {TRANSACTION: types.log_number} if there.transaction is None else {}
    missing |= {ORIGIN: types.log_key} if there.origin is None else {}
    with log.transaction() as connection:
        for name, kind in missing.items():
            column = f"{log.dialect.quote(name)} {kind.compile(dialect)}"
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD {column}")
