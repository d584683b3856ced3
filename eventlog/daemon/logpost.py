"""The post at an event log table: the lock in its database, its figures, and the statements after a cycle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from structlog.stdlib import BoundLogger

from eventlog.config.build import pipeline_of
from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError, EventlogError
from eventlog.core.seams import Tenure
from eventlog.daemon.gauge import Gauge
from eventlog.daemon.ledger import Ledger
from eventlog.daemon.postpoll import run_statements
from eventlog.daemon.tempo import Tempo
from eventlog.daemon.vitals import Vitals
from eventlog.daemon.watch import Watch
from eventlog.delivery.output import Output
from eventlog.delivery.pipeline import Pipeline
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.wakeup import Wakeup
from eventlog.sql.access import in_our_words
from eventlog.sql.connect import connect, shown_url
from eventlog.sql.limits import limit_sessions
from eventlog.sql.log import Log
from eventlog.sql.reflect import log_columns

if TYPE_CHECKING:
    from sqlalchemy import Engine


class LogPost:
    """What a publisher does at a log besides publishing it."""

    def __init__(self, config: Config, engine: Engine | None = None, alive: Callable[[], bool] = lambda: True) -> None:
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
        self.wakeup = Wakeup(self.lock.log, due=settings.handle_future_events) if settings.wake_up else None
        self._watch = Watch(self.lock, due=settings.handle_future_events)
        self._gauge = Gauge(self.lock.log)
        self._tempo = Tempo(self.lock)
        self._ledger = Ledger(self.lock)

    @property
    def name(self) -> str:
        return f"event log {self.lock.log.name}"

    @property
    def address(self) -> str:
        return shown_url(self.engine.url)

    @property
    def taken(self) -> bool:
        return self.lock.taken

    @property
    def tenure(self) -> Tenure | None:
        return self.lock.tenure

    def take(self) -> bool:
        before = self.lock.taken
        if self.lock.take() and not before:
            self._watch.forget()
        return self.lock.taken

    def stand_by(self, vitals: Vitals, journal: BoundLogger) -> None:
        self._watch.look(self.name, vitals, journal)

    def confirm(self) -> None:
        self.lock.confirm_lease()

    def leave(self, vitals: Vitals) -> None:
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

    def settled(self, events: int) -> None:
        self._tempo.count(events)

    def published(self, journal: BoundLogger) -> None:
        run_statements(self.lock.log, self._config.publisher.post_poll_statements, journal)

    def idle(self, vitals: Vitals) -> None:
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
