"""Where a publisher works: a log or a stream, who may publish it, and what else is to be done there.

A log has a lock in its database, figures, and statements that are run after a cycle. A stream has a file of marks that
keeps its position, and a claim beside that file that keeps other publishers away.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from msgspec.structs import replace
from structlog.stdlib import BoundLogger

from eventlog.config.build import pipeline_of, stream_of, stream_pipeline_of
from eventlog.config.settings import Config
from eventlog.core.durable_files import Claim
from eventlog.core.errors import ConfigError, EventlogError, OccupiedError, SourceError, shortened
from eventlog.core.seams import Stream, Tenure
from eventlog.core.secrets import masked
from eventlog.daemon.rest import Wakeup
from eventlog.daemon.schema import SchemaWatch
from eventlog.daemon.vitals import Gauge, Ledger, PublisherHealth, Tempo
from eventlog.daemon.watch import HolderWatch
from eventlog.delivery.output import Output
from eventlog.delivery.pipeline import Pipeline
from eventlog.sources.log.flow import OutputLag, read_lags
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.owed import join, leave_behind, rename
from eventlog.sources.marks import (
    EPOCH,
    HOLDING,
    LOG,
    PAUSED,
    RESUMED,
    SERVED,
    Marks,
    as_text,
    kept_outputs,
    lagging_outputs,
    next_epoch,
)
from eventlog.sources.stream.source import FileMarks
from eventlog.sql.access import in_our_words, verbatim
from eventlog.sql.connect import connect, limit_sessions, read_url, shown_url
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


class Post(ABC):
    """One publisher has it at a time; everybody else stands by. What has a body here is for those that have a database."""

    wakeup: Wakeup | None = None
    """What notices waiting events between two intervals; streams are looked at after every interval."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        """What is published there, for messages and the journal."""
        self.address = address
        """Where it is, without a password."""

    @property
    @abstractmethod
    def tenure(self) -> Tenure | None:
        """Which log this publisher may write to outputs for, and since which epoch; None while it has it not."""

    @property
    def taken(self) -> bool:
        """Whether this publisher has it."""
        return self.tenure is not None

    @abstractmethod
    def take(self) -> bool:
        """Whether this publisher has it now."""

    @abstractmethod
    def confirm(self) -> None:
        """OccupiedError when this publisher has it no more; to be called before anything is written to an output.

        It asks nobody, unless this publisher may have slept for longer than its lease.
        """

    def stand_by(self, vitals: PublisherHealth, journal: BoundLogger) -> None:  # noqa: B027  # the kernel knows whose a claim is
        """Another publisher has it: says who, and whether that one does its work."""

    @abstractmethod
    def leave(self, vitals: PublisherHealth) -> None:
        """Enters the last figures and gives it to whoever waits."""

    @abstractmethod
    def drop(self) -> None:
        """Lets go of connections, which may be broken, and with them of the post."""

    @abstractmethod
    def close(self) -> None:
        """Gives back what it holds."""

    def guarded(self) -> AbstractContextManager[None]:
        """What goes wrong inside is told in our words; a stream's own errors are already."""
        return nullcontext()

    @abstractmethod
    def pipeline(self, outputs: Sequence[Output], pulse: Callable[[], None]) -> Pipeline:
        """The way of its batches as its tables look now."""

    def look_at_tables(self, vitals: PublisherHealth, journal: BoundLogger, *, at_once: bool = False) -> bool:
        """Sees whether triggers are as their tables now ask for, and follows where it may: once a poll, or `at_once`.

        Whether tables are not as they were when it looked last; a stream has no triggers.
        """
        return False

    def settled(self, events: int) -> None:  # noqa: B027  # nobody keeps a stream's rate
        """So many events will not be offered again."""

    def published(self, vitals: PublisherHealth, journal: BoundLogger) -> None:  # noqa: B027  # a stream runs no statements
        """Documents went out in this cycle."""

    def idle(self, vitals: PublisherHealth) -> None:  # noqa: B027  # nobody knows what a stream still holds
        """Nothing is waiting, or nothing can be delivered: time to take figures."""


class LogPost(Post):
    """What a publisher does at a log besides publishing it."""

    def __init__(self, config: Config, engine: Engine | None, alive: Callable[[], bool]) -> None:
        self._config = config
        self.engine = _engine_of(config) if engine is None else engine
        try:
            with in_our_words(self.engine, f"The event log {config.source.log}"):
                self._names = log_columns(self.engine, config.source.wanted_names, config.source.columns)
        except EventlogError:
            self.engine.dispose()
            raise
        settings = config.publisher
        self.lock = LogLock(Log(self.engine, self._names), settings.lease, alive)
        super().__init__(f"event log {self.lock.log.name}", shown_url(self.engine.url))
        self.wakeup = Wakeup(self.lock.log, due=settings.handle_future_events) if settings.wake_up else None
        self._watch = HolderWatch(self.lock, due=settings.handle_future_events)
        self._gauge = Gauge(self.lock.log, settings)
        self._tempo = Tempo(self.lock)
        self._ledger = Ledger(self.lock)
        self._schema = SchemaWatch(self.lock.log, settings)
        self._next_look = 0.0

    @property
    def tenure(self) -> Tenure | None:
        return self.lock.tenure

    def take(self) -> bool:
        before = self.lock.taken
        if self.lock.take() and not before:
            self._watch.forget()
        return self.lock.taken

    def stand_by(self, vitals: PublisherHealth, journal: BoundLogger) -> None:
        self._watch.look(self.name, vitals, journal)

    def confirm(self) -> None:
        self.lock.confirm_lease()

    def leave(self, vitals: PublisherHealth) -> None:
        if self.lock.taken:
            self._tempo.enter(now=True)
            self._ledger.enter(vitals.reading().outputs, now=True)
        self._close_wakeup()
        self.lock.leave()

    def drop(self) -> None:
        self.lock.drop()
        self._close_wakeup()
        self.engine.dispose()

    def close(self) -> None:
        self._close_wakeup()
        self.engine.dispose()

    def guarded(self) -> AbstractContextManager[None]:
        return in_our_words(self.engine, f"The {self.name}")

    def pipeline(self, outputs: Sequence[Output], pulse: Callable[[], None]) -> Pipeline:
        from eventlog.sources.log.source import LogSource

        pipeline = pipeline_of(self.engine, self._names, self._config, outputs, self.lock, pulse)
        if self.wakeup is not None:
            self.wakeup.seen = pipeline.source.seen if isinstance(pipeline.source, LogSource) else None
        return pipeline

    def lagging(self) -> list[str]:
        """The names of the outputs that lag, as the log has it."""
        with self.lock.log.transaction(lone=True) as connection:
            return lagging_outputs(Marks(self.lock.log).all(connection))

    def leave_behind(self, outputs: Sequence[Output]) -> None:
        """Lets these lag from now on."""
        names = {output.name: (output.name, *output.former_names) for output in outputs}
        with self._settling() as connection:
            leave_behind(connection, self.lock.log, names)

    def rejoin(self, name: str, *, with_batch: bool) -> bool:
        """Whether an output is in step again, `with_batch` with what the others have in hand still."""
        with self._settling() as connection:
            return join(connection, self.lock.log, name, with_batch=with_batch)

    def serve(self, names: Sequence[str]) -> None:
        """Says in the log which outputs this publisher has."""
        text = as_text(names)
        with self.lock.log.transaction(lone=True) as connection:
            if Marks(self.lock.log).get(connection, SERVED) == text:
                return
            self.lock.mark(connection, SERVED, text)

    def rename(self, formerly: Mapping[str, str]) -> None:
        """Lets outputs that lag, or are paused, go on under the names that they have now; `formerly` tells these by former ones."""
        with self.lock.log.transaction(lone=True) as connection:
            kept = kept_outputs(Marks(self.lock.log).all(connection))
        for former, name in formerly.items():
            if former in kept and name not in kept:
                with self._settling() as connection:
                    rename(connection, self.lock.log, former, name)
                kept |= {name}

    def lagging_pipeline(self, output: Output) -> Pipeline:
        """The way of what a lagging output is owed, as the tables look now."""
        with self.guarded():
            made = pipeline_of(self.engine, self._names, self._config, [output], self.lock, lagging=output.name)
        return replace(made, confirm=self.confirm)

    def lags(self) -> Mapping[str, OutputLag]:
        """How far outputs are behind."""
        with self.guarded(), self.lock.log.transaction() as connection:
            return read_lags(connection, self.lock.log, self._config.publisher)

    def pause(self, name: str, why: str) -> None:
        """Lets nothing go to an output until somebody resumes it."""
        with self._settling() as connection:
            Marks(self.lock.log).set(connection, f"{PAUSED}{name}", f"by the publisher: {why}")

    def caught_up(self, name: str) -> None:
        """Forgets how far an output was behind when somebody resumed it."""
        with self._settling() as connection:
            Marks(self.lock.log).clear(connection, f"{RESUMED}{name}")

    @contextmanager
    def _settling(self) -> Iterator[Connection]:
        """A transaction in which nobody else settles."""
        with self.guarded(), self.lock.log.transaction() as connection:
            Marks(self.lock.log).lock(connection, HOLDING)
            self.lock.assure(connection)
            yield connection

    def look_at_tables(self, vitals: PublisherHealth, journal: BoundLogger, *, at_once: bool = False) -> bool:
        if monotonic() < self._next_look and not at_once:
            return False
        changed = self._schema.look(vitals, journal)
        self._next_look = monotonic() + self._config.publisher.polling_interval
        return changed

    def settled(self, events: int) -> None:
        self._tempo.count(events)

    def published(self, vitals: PublisherHealth, journal: BoundLogger) -> None:
        self._ledger.enter(vitals.reading().outputs)
        run_statements(self.lock.log, self._config.publisher.post_poll_statements, journal)

    def idle(self, vitals: PublisherHealth) -> None:
        self._gauge.measure(vitals)
        self._tempo.enter()
        self._ledger.enter(vitals.reading().outputs)

    def _close_wakeup(self) -> None:
        if self.wakeup is not None:
            self.wakeup.close()


def _engine_of(config: Config) -> Engine:
    if not config.source.url:
        raise ConfigError("source.url is missing; it names the database.")
    engine = connect(config.source.url)
    limit_sessions(engine, config.source.statement_timeout, config.source.lock_timeout, config.publisher.lease)
    return engine


NAMES: Final = {"gbase": "CDC stream", "linter": "replication queue"}


class StreamPost(Post):
    """What a publisher does at a stream besides publishing it."""

    tenure: Tenure | None = None

    def __init__(self, config: Config, journal: BoundLogger) -> None:
        source = config.source
        address = shown_url(read_url(source.url)) if source.url else masked(source.gbase.path or source.gbase.server)
        super().__init__(f"{NAMES[source.kind]} of {source.marks}", address)
        self._config = config
        self._journal = journal
        self._stream: Stream | None = None
        self._claim = Claim(Path(f"{config.source.marks}.lock"))

    def take(self) -> bool:
        if self.tenure is None and self._claim.take():
            self.close()  # what it knows of the marks is from before
            self.tenure = self._new_tenure()
        return self.taken

    def confirm(self) -> None:
        """The claim ends with the process and no sooner, so there is nobody to ask."""
        if self.tenure is None:
            raise OccupiedError(
                f"Another publisher may work on the {self.name}.", hint="This one does not have it any more."
            )

    def leave(self, vitals: PublisherHealth) -> None:
        self._let_go()

    def drop(self) -> None:
        self.close()
        self._let_go()

    def close(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def pipeline(self, outputs: Sequence[Output], pulse: Callable[[], None]) -> Pipeline:
        return stream_pipeline_of(self._opened(), self._config, outputs, pulse)

    def _let_go(self) -> None:
        self.tenure = None
        self._claim.leave()

    def _new_tenure(self) -> Tenure:
        """Which stream this is stands in its marks, and so does the epoch."""
        marks = FileMarks(self._config.source.marks)
        identity = marks.get(LOG) or str(uuid4())
        epoch = next_epoch(marks.get(EPOCH), dt.datetime.now(dt.UTC).replace(tzinfo=None))
        marks.change({LOG: identity, EPOCH: str(epoch)})
        return Tenure(log=identity, name=self.name, epoch=epoch)

    def _opened(self) -> Stream:
        if self._stream is None:
            self._stream = stream_of(self._config, lambda said: self._journal.warning("odd", said=said))
        return self._stream


def post_of(config: Config, journal: BoundLogger, engine: Engine | None, alive: Callable[[], bool]) -> Post:
    """The post, taken by nobody yet; `engine` is a log's database where it is open already.

    A log is given up to others while `alive` says that the publisher does not move.
    """
    return LogPost(config, engine, alive) if config.source.kind == "log" else StreamPost(config, journal)


def run_statements(log: Log, statements: Sequence[str], journal: BoundLogger) -> None:
    """Runs each in a transaction of its own. One that the database refuses is told and stops nobody: the rows are settled."""
    for statement in statements:
        try:
            with log.transaction() as connection:
                connection.execute(verbatim(statement))
        except SourceError as error:
            if error.may_pass:
                raise
            journal.error("post_poll_failed", statement=shortened(statement), error=str(error))
