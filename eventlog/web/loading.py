"""Full loads that somebody has begun on the page: each in a thread of its own, slow where many rows
wait, with its progress.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import EventlogError, UsageError
from eventlog.core.secrets import make_readable
from eventlog.core.table_names import write_log_name, write_name
from eventlog.refresh.chunks import Refresh
from eventlog.refresh.loads import RefreshPace, loads
from eventlog.refresh.ranges import read
from eventlog.sources.marks import Marks
from eventlog.sql.connect import reading_engine
from eventlog.sql.findlog import locate_log
from eventlog.sql.log import Log
from eventlog.web.reading import TablePlace

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.config.settings import Config
    from eventlog.sql.names import LogNames

PACE: Final = RefreshPace(chunk=2_000, backlog=50_000)
"""Rows of a transaction, and so many that may wait: what is published meanwhile is not held up for
long.
"""

LOADED_TABLES: Final = 2
"""Tables that are loaded at the same time."""


class LoadView(Struct, frozen=True, kw_only=True):
    """How far the load of a table is: of `total` rows, counted when it began, so many are
    written.
    """

    table: str
    rows: int = 0
    total: int = 0
    state: str = "running"
    """`running`, `ended`, `stopped`, `failed`, or `interrupted` where a process ended before it
    did.
    """
    by: str = ""
    error: str = ""

    @property
    def running(self) -> bool:
        return self.state == "running"


class Loading:
    """The loads that this page has begun. `note_change` is called when one has gone on."""

    def __init__(
        self,
        engine: Engine,
        names: LogNames,
        config: Config,
        note_change: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._names = names
        self._config = config
        self._note_change = note_change
        self._lock = Lock()
        self._views: dict[TablePlace, LoadView] = {}
        self._works: dict[TablePlace, Refresh] = {}
        self._threads: list[Thread] = []
        self._stopping: set[TablePlace] = set()
        self._closed = False

    def view(self, place: TablePlace) -> LoadView | None:
        """Return the progress of a table's load; None without one.

        A load another process has left is `interrupted`.
        """
        with self._lock:
            view = self._views.get(place)
        return view or self._find_interrupted(place)

    def begin(self, place: TablePlace, by: str) -> bool:
        """Begins the load of a table, or goes on with one that was broken off; whether it was not
        running already.
        """
        with self._lock:
            running = [view.table for view in self._views.values() if view.running]
            table = write_name(*place)
            if table in running:
                return False
            if len(running) >= LOADED_TABLES:
                message = f"{' and '.join(running)} are loaded now."
                raise UsageError(message, hint="Begin this one when one of them has ended.")
            if self._closed:
                message = f"The page ends, so {table} is not loaded."
                raise UsageError(message, hint="Begin it again on the next page.")
            self._stopping.discard(place)
            self._views[place] = LoadView(table=table, by=by)
            thread = Thread(target=self._work, args=(place,), name="eventlog-web-refresh", daemon=True)
            # Those that have ended need not be waited for when the page does.
            self._threads = [former for former in self._threads if former.is_alive()]
            self._threads.append(thread)
            thread.start()
        return True

    def stop(self, place: TablePlace) -> bool:
        """Ends a load after the range in hand; whether it was running."""
        with self._lock:
            view, work = self._views.get(place), self._works.get(place)
            if view is None or not view.running:
                return False
            # It may not have begun its work yet, and looks there when it does.
            self._stopping.add(place)
        if work is not None:
            work.gate.close()
        return True

    def end(self) -> None:
        """Asks all to end, and begins no other."""
        with self._lock:
            self._closed = True
            works = list(self._works.values())
        for work in works:
            work.gate.close()

    def close(self) -> None:
        """Ends them all and waits for their last ranges."""
        self.end()
        for thread in self._threads:
            thread.join()

    def _work(self, place: TablePlace) -> None:
        try:
            self._load(place)
        except EventlogError as error:
            self._now(place, state="failed", error=make_readable(str(error)))
        except Exception as error:  # noqa: BLE001  # it is shown; the page goes on
            reason = f"{type(error).__name__}, which is a fault of eventlog."
            self._now(place, state="failed", error=reason)
        finally:
            with self._lock:
                self._works.pop(place, None)

    def _load(self, place: TablePlace) -> None:
        with self._engine.connect() as connection:
            names = locate_log(connection, self._names)
        [load] = loads(self._engine, names, [write_name(*place)], None, None)
        reading = reading_engine(self._engine, self._config.source.reader)
        log = Log(self._engine, names)
        work = Refresh(log, load, PACE, reading=reading)
        with self._lock:
            self._works[place] = work
            if self._closed or place in self._stopping:
                work.gate.close()
        if not work.is_begun and self._send_differing(place, log, load.called):
            return
        states = {state.place: state for state in work.begin()}
        order = tuple(states.values())
        rows, total = sum(state.rows for state in order), sum(state.total for state in order)
        self._now(place, rows=rows, total=total)
        for state in work.steps(order):
            states[state.place] = state
            self._now(place, rows=sum(other.rows for other in states.values()))
        all_done = all(state.done for state in states.values())
        self._now(place, state="ended" if all_done else "stopped")

    def _send_differing(self, place: TablePlace, log: Log, called: str) -> bool:
        """Send what differs to a receiver that can be compared; return False if every row is to be sent."""
        from eventlog.verify.resending import begin_comparison

        compared = begin_comparison(log, self._config, [called])
        if compared is None:
            return False
        verified = compared.send(called)
        if compared.sends_all(verified):
            return False
        self._now(place, rows=verified.repaired, total=verified.repaired, state="ended")
        return True

    def _find_interrupted(self, place: TablePlace) -> LoadView | None:
        log = Log(self._engine, self._names)
        with log.transaction() as connection:
            marks = Marks(log).all(connection)
        with self._engine.connect() as connection:
            # Its mark has the name that the log has for it: without the schema where that is the log's own.
            called = write_log_name(*place, locate_log(connection, self._names).schema)
        states = read(called, marks)
        if states is None:
            return None
        rows, total = sum(state.rows for state in states), sum(state.total for state in states)
        return LoadView(table=write_name(*place), rows=rows, total=total, state="interrupted")

    def _now(self, place: TablePlace, **news: object) -> None:
        with self._lock:
            self._views[place] = replace(self._views[place], **news)
        self._note_change()
