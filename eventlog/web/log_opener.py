"""Opens the log for the page: by whoever comes first, and again as long as the database is away."""

from __future__ import annotations

from threading import Event as Flag
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from eventlog.config.build import stream_log_of
from eventlog.config.settings import LOG, Config
from eventlog.core.errors import ConfigError
from eventlog.sql.connect import connect, limit_sessions
from eventlog.sql.findlog import log_columns
from eventlog.web.collector import Collector
from eventlog.web.log_pages import LogPages
from eventlog.web.reading import History

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.daemon.health import PublisherHealth

STATEMENT_SECONDS: Final = 20.0
"""How long the page lets a statement run: nobody waits longer for a page."""

LOCK_SECONDS: Final = 5.0
AGAIN_SECONDS: Final = 5.0
"""Seconds between two attempts to open a database that is away."""


class LogOpener:
    """Opens the log once, for whoever comes first, and tries again as long as the database is away."""

    def __init__(self, config: Config, vitals: PublisherHealth | None = None) -> None:
        self.config = self._wanted = config
        self._vitals = vitals
        self._lock = Lock()
        self._pages: LogPages | None = None
        self._engine: Engine | None = None
        self._history: History | None = None
        self._ended, self._again = Flag(), Flag()
        self._thread = Thread(target=self._keep_open, name="eventlog-web-opener", daemon=True)

    def start(self) -> None:
        """Opens in the background, so that the last hour is measured before anybody looks."""
        self._thread.start()

    def pages(self) -> LogPages:
        """Return the pages of the log; an EventlogError while it cannot be opened."""
        with self._lock:
            if self._wanted != self.config:
                self._move(self._wanted)
            if self._pages is None:
                self._pages = self._open()
            return self._pages

    @property
    def opened(self) -> LogPages | None:
        """Return the pages if somebody has opened the log; waits for nothing."""
        return self._pages

    def adopt(self, config: Config) -> None:
        """Shows the log of another configuration from now on; returns at once, for a publisher
        calls it.
        """
        self._wanted = config
        self._again.set()

    def close(self) -> None:
        """Gives the connections back."""
        self._ended.set()
        # The thread waits for this one, and looks at the other one then.
        self._again.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._pages is not None:
            self._pages.loading.close()
            self._pages.collector.close()
        if self._engine is not None:
            self._engine.dispose()

    def _move(self, config: Config) -> None:
        """Leaves the log for another one; at the same log, the last hour and the connections stay."""
        former, self._pages = self._pages, None
        same, self.config = config.source == self.config.source, config
        if former is not None:
            former.collector.end()
            former.loading.end()
            self._history = former.collector.history
        self._history = self._history if same else None
        if self._engine is not None and not same:
            self._engine.dispose()
            self._engine = None

    def _open(self) -> LogPages:
        source = self.config.source
        url, wanted, columns = source.url, source.wanted_names, source.columns
        if source.kind != LOG:
            url, wanted = stream_log_of(source)
        self._engine = self._engine or page_engine(url)
        names = log_columns(self._engine, wanted, columns)
        collector = Collector(self._engine, names, self.config, self._vitals, self._history)
        opened = LogPages(self._engine, names, self.config, collector)
        # Last: pages that cannot be made leave no thread behind.
        collector.start()
        return opened

    def _keep_open(self) -> None:
        while True:
            # Before both looks: who asks meanwhile wants another one, and the end is one too.
            self._again.clear()
            if self._ended.is_set():
                return
            try:
                self.pages()
            except Exception:  # noqa: BLE001  # whoever asks for the page sees why; the publisher goes on
                self._again.wait(AGAIN_SECONDS)
            else:
                self._again.wait()


def page_engine(url: str) -> Engine:
    """Make the page's own engine, with time limits on statements."""
    engine = connect(url)
    try:
        limit_sessions(engine, STATEMENT_SECONDS, LOCK_SECONDS)
    except ConfigError:  # a database without such limits
        limit_sessions(engine, None, None)
    return engine
