"""The reception: leads to the desk, over connections of the page's own that are made when the database lets us in."""

from __future__ import annotations

from threading import Event as Flag
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError
from eventlog.sql.connect import connect
from eventlog.sql.limits import limit_sessions
from eventlog.sql.reflect import log_columns
from eventlog.web.collector import Collector
from eventlog.web.desk import Desk
from eventlog.web.reading import History

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.daemon.vitals import PublisherHealth

STATEMENT_SECONDS: Final = 20.0
"""How long the page lets a statement run: nobody waits longer for a page."""

LOCK_SECONDS: Final = 5.0
AGAIN_SECONDS: Final = 5.0
"""Seconds between two attempts to open a database that is away."""


class Reception:
    """The way to the desk: opened once, by whoever comes first, and tried again as long as the database is away."""

    def __init__(self, config: Config, vitals: PublisherHealth | None = None) -> None:
        self.config = self._wanted = config
        self._vitals = vitals
        self._lock = Lock()
        self._desk: Desk | None = None
        self._engine: Engine | None = None
        self._history: History | None = None
        self._ended, self._again = Flag(), Flag()
        self._thread = Thread(target=self._keep_open, name="eventlog-web-reception", daemon=True)

    def start(self) -> None:
        """Opens in the background, so that the last hour is measured before anybody looks."""
        self._thread.start()

    def desk(self) -> Desk:
        """The desk; an EventlogError while there is none."""
        with self._lock:
            if self._wanted != self.config:
                self._move(self._wanted)
            if self._desk is None:
                self._desk = self._open()
            return self._desk

    def adopt(self, config: Config) -> None:
        """Shows the log of another configuration from now on; returns at once, for a publisher calls it."""
        self._wanted = config
        self._again.set()

    def close(self) -> None:
        """Gives the connections back."""
        self._ended.set()
        self._again.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._desk is not None:
            self._desk.loading.close()
            self._desk.collector.close()
        if self._engine is not None:
            self._engine.dispose()

    def _move(self, config: Config) -> None:
        """Leaves the desk for another one; at the same log, the last hour and the connections stay."""
        former, self._desk = self._desk, None
        same, self.config = config.source == self.config.source, config
        if former is not None:
            former.collector.end()
            former.loading.end()
            self._history = former.collector.history
        self._history = self._history if same else None
        if self._engine is not None and not same:
            self._engine.dispose()
            self._engine = None

    def _open(self) -> Desk:
        source = self.config.source
        self._engine = self._engine or page_engine(source.url)
        names = log_columns(self._engine, source.wanted_names, source.columns)
        collector = Collector(self._engine, names, self.config, self._vitals, self._history)
        desk = Desk(self._engine, names, self.config, collector)
        collector.start()
        return desk

    def _keep_open(self) -> None:
        while not self._ended.is_set():
            self._again.clear()
            try:
                self.desk()
            except Exception:  # noqa: BLE001  # whoever asks for the page is told why; the publisher goes on
                self._again.wait(AGAIN_SECONDS)
            else:
                self._again.wait()


def page_engine(url: str) -> Engine:
    """A database for the page: connections of its own, whose statements end in time."""
    engine = connect(url)
    try:
        limit_sessions(engine, STATEMENT_SECONDS, LOCK_SECONDS)
    except ConfigError:  # a database without such limits
        limit_sessions(engine, None, None)
    return engine
