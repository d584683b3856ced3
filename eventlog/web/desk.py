"""What the page asks of the log and does to it: lists, single rows, tables, and the acts; over
connections of its own, which are made when the database lets us in.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event as Flag
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.capture.track import located
from eventlog.care.listing import BEYOND, Cursor, Filters, listing, newest, one_row
from eventlog.care.outputs import pause, resume, try_now
from eventlog.care.rows import HELD_SINCE, PROCESSED, Choice, LogRow, hold, release, requeue
from eventlog.config.build import stream_log_of
from eventlog.config.settings import LOG, Config
from eventlog.core.errors import ConfigError, DataError, UsageError, shortened
from eventlog.core.model import LARGEST_NUMBER, Reason
from eventlog.core.rules.screen import HIDDEN
from eventlog.core.table_names import write_name
from eventlog.explain.rows import explain
from eventlog.sources.marks import Stretches
from eventlog.sql.connect import connect, limit_sessions
from eventlog.sql.findlog import log_columns
from eventlog.sql.log_indexes import has_number_index
from eventlog.web.acts import (
    DONE,
    FILTERED_ROWS,
    Act,
    Fields,
    OutputAct,
    RowsAct,
    TableAct,
    can_be,
    read_done,
    read_filters,
    read_number,
)
from eventlog.web.collector import Collector
from eventlog.web.loading import Loading, LoadView
from eventlog.web.pages import (
    Viewer,
    address,
    document_page,
    live_table,
    output_question,
    row_page,
    rows_page,
    rows_question,
    table_page,
    table_question,
)
from eventlog.web.reading import History, OutputView, bare_name, tables_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.capture.installed import TriggerState
    from eventlog.daemon.vitals import PublisherHealth
    from eventlog.sql.names import LogNames


PAGE: Final = "the status page"
"""Who is noted as the holder of a row where the page knows nobody's name."""

NOBODY: Final = frozenset({"token", "bearer", "this machine"})
"""What visitors are called whom no proxy names."""

LATEST_ROWS: Final = 10
"""Rows that the page of a table shows."""


class Query(Struct, frozen=True, kw_only=True):
    """A page of the list as its address says it."""

    filters: Filters
    cursor: Cursor


class Desk:
    """One log, seen and cared for through the page."""

    def __init__(self, engine: Engine, names: LogNames, config: Config, collector: Collector) -> None:
        self.collector = collector
        self._engine = engine
        self._names = names
        self._config = config
        self.loading = Loading(engine, names, config.source.reader, collector.tell)
        self._numbered = has_number_index(engine, names)

    def rows(self, query: Query, look: Viewer, done: str = "") -> str:
        """A page of the list."""
        log, filters = self.collector.log, query.filters
        listed = listing(log, filters, query.cursor, numbered=self._numbered)
        mask = self.collector.mask()
        if mask is not None:
            shown = [mask.row(row) for row in listed.rows]
            # Else a search would tell by its results what is hidden.
            rows = tuple([row for row in shown if matches(row, filters)])
            listed = replace(listed, rows=rows)
        is_first = query.cursor == Cursor()
        return rows_page(listed, filters, look, first=is_first, done=read_done(done))

    def row(self, number: int, look: Viewer, done: str) -> str:
        """A row and its explanation; DataError when there is none."""
        row = one_row(self.collector.log, number)
        if row is None:
            raise DataError(
                f"The event log {self.collector.log.name} has no row {number}.",
                hint="The page Rows lists those that there are.",
            )
        mask = self.collector.mask()
        if mask is not None:
            row = mask.row(row)
        explained = explain(self._engine, self._names, self._config, number)
        return row_page(row, explained, look, read_done(done))

    def document(self, number: int, look: Viewer) -> str:
        """The document that a row is part of, and what each output gets of it; DataError when
        there is no such row.
        """
        return document_page(number, explain(self._engine, self._names, self._config, number), look)

    def table(self, schema: str, name: str, look: Viewer, done: str) -> str:
        """A tracked table: its triggers and its last changes; DataError where no trigger of ours
        stands on it.
        """
        tables = tables_of(self._triggers())
        # Without a schema it is the one table of that name.
        places = [place for place in tables if place[1] == name and (not schema or place[0] == schema)]
        if len(places) != 1:
            message = f"The table {shortened(name, 80)} is not tracked."
            raise DataError(message, hint="The page Tables lists those that are.")
        [place] = places
        # The log calls a table of its own schema by its bare name.
        with self._engine.connect() as connection:
            is_home = place[0] in (None, located(connection, self._names).schema)
        called, whole = name if is_home else write_name(*place), write_name(*place)
        return table_page(
            whole,
            tables[place],
            self._latest(called),
            look,
            load=self._load(whole),
            unread=self.collector.reading().unread.get(called),
            done=read_done(done),
        )

    def _address(self, table: str, **query: str) -> str:
        """The page of a class by its name."""
        schemas = [schema for schema, name in tables_of(self._triggers()) if write_name(schema, name) == table]
        schema = schemas[0] if schemas else None
        return address("table", schema=schema, name=bare_name(schema, table), **query)

    def live_table(self, name: str) -> str:
        """How far the load of a table is."""
        return live_table(name, self._load(name))

    def _load(self, name: str) -> LoadView | None:
        return self.loading.view(name) if name in self._owners() else None

    def _owners(self) -> frozenset[str]:
        """The classes that are tracked, which alone are loaded from the page."""
        return frozenset(trigger.owner for trigger in self._triggers())

    def _triggers(self) -> Sequence[TriggerState]:
        """The triggers as they were counted, or as they are where nobody has counted yet."""
        reading = self.collector.reading()
        if reading.counted is not None:
            return reading.triggers
        from eventlog.capture.track import trigger_states

        return trigger_states(self._engine, self._names)

    def question(self, act: Act, look: Viewer) -> str:
        """What is asked before an act is done."""
        if isinstance(act, OutputAct):
            output = self.output(act.output)
            return output_question(act, output.name, look)
        if isinstance(act, TableAct):
            return table_question(self._known(act), look, self._address(act.table))
        numbers = self._numbers(act)
        if act.filters is None:
            log, width = self.collector.log, len(HELD_SINCE)
            rows = {number: one_row(log, number, width=width) for number in numbers}
            numbers = [number for number, row in rows.items() if row is not None and can_be(act.action, row)]
        if not numbers:
            done = DONE[act.action]
            if act.filters is None:
                message = f"None of these rows can be {done} now."
                raise UsageError(message, hint="Go back and choose other rows.")
            message = f"No row of this filter can be {done} now."
            raise UsageError(message, hint="Go back and choose another filter.")
        return rows_question(act, numbers, look)

    def act(self, act: Act, by: str) -> tuple[str, int]:
        """Does it; where to look then, and with how many rows, or whether anything is new."""
        log = self.collector.log
        if isinstance(act, OutputAct):
            output, configured = self.output(act.output), self.collector.outputs
            new = True
            if act.action == "pause":
                new = pause(log, output.noted, configured, by=by, why=act.why)
            elif act.action == "try":
                try_now(log, output.noted, configured)
            else:
                new = resume(log, self._config.publisher, output.noted, configured)
            self.collector.hurry()
            return address("output", name=output.noted, done=f"{act.action} {int(new)}"), int(new)
        if isinstance(act, TableAct):
            table = self._known(act).table
            new = self.loading.begin(table, by) if act.action == "refresh" else self.loading.stop(table)
            return self._address(table, done=f"{act.action} {int(new)}"), int(new)
        numbers = self._numbers(act)
        runs = Stretches.of(numbers).parts
        if act.action == "hold":
            count = hold(log, runs, by=by, why=act.why).rows
        elif act.action == "release":
            count = release(log, runs)
        else:
            count = requeue(log, runs, act.filters or Choice(letters=PROCESSED))
        self.collector.hurry()
        done = f"{act.action} {count}"
        if act.filters is not None:
            return address(
                "rows", reason=act.filters.reason, table=act.filters.table, key=act.filters.key, done=done
            ), count
        return address("rows", numbers[0], done=done), count

    def _known(self, act: TableAct) -> TableAct:
        """The act; DataError where it means a table that is not tracked."""
        if act.table not in self._owners():
            message = f"{shortened(act.table, 80)} is not tracked."
            raise DataError(message, hint="Tables has those that are.")
        return act

    def output(self, noted: str) -> OutputView:
        """An output of the configuration; DataError for any other name."""
        output = self.collector.output(noted)
        if output is None:
            message = f"{shortened(noted, 80)} is no output of the configuration."
            raise DataError(message, hint="The overview lists them.")
        return output

    def _numbers(self, act: RowsAct) -> Sequence[int]:
        """The rows that an act means, in order. UsageError where they are too many, or what is
        hidden would choose them.
        """
        if act.filters is None:
            return act.numbers
        if (act.filters.text or act.filters.key) and self.collector.mask() is not None:
            cause = f"Policies hide values of {self.collector.log.name}"
            raise UsageError(
                f"{cause}, so rows are not chosen by words or keys.",
                hint="Choose rows by status, reason and table, or tick them.",
            )
        filters = act.filters
        if act.action == "release" and not filters.reason:
            # The few that are held may stand behind any number of others.
            filters = replace(filters, reason=Reason.HELD)
        # One more than may be meant; of a note only what marks a held row. Rows that have come
        # since the question are not meant.
        limit, width = FILTERED_ROWS + 1, len(HELD_SINCE)
        rows = [
            *newest(self.collector.log, filters, limit=limit, width=width, before=min(act.last + 1, LARGEST_NUMBER))
        ]
        if len(rows) > FILTERED_ROWS:
            limit_text = f"That is more than {FILTERED_ROWS:,} rows at once"
            raise UsageError(f"{limit_text}; `eventlog {act.action}` takes ranges of any length.")
        return [row.record_id for row in rows if can_be(act.action, row)]

    def _latest(self, table: str) -> tuple[LogRow, ...]:
        filters, mask = Filters(table=table), self.collector.mask()
        rows = listing(self.collector.log, filters, Cursor(), numbered=self._numbered, limit=LATEST_ROWS).rows
        return rows if mask is None else tuple([mask.row(row) for row in rows])


def matches(row: LogRow, filters: Filters) -> bool:
    """Whether what is shown of a row has the text and the key: a search must not find what is
    hidden.
    """
    if filters.key and HIDDEN in (row.table_key or ""):
        return False
    shown = (row.table_key, row.column_name, row.old_value, row.new_value, row.note)
    return not filters.text or any(filters.text.lower() in (cell or "").lower() for cell in shown)


def read_query(asked: Fields) -> Query:
    """What the address of a list asks for; what cannot be read asks for nothing."""
    before, block = (read_number((asked.get(name) or ("",))[-1]) for name in ("before", "place"))
    return Query(filters=read_filters(asked), cursor=Cursor(before=before or BEYOND, block=block))


def known_as(visitor: str) -> str:
    """Who is noted for an act: somebody whom a proxy names, else the page."""
    return PAGE if visitor in NOBODY else f"{visitor} on {PAGE}"


STATEMENT_SECONDS: Final = 20.0
"""How long the page lets a statement run: nobody waits longer for a page."""

LOCK_SECONDS: Final = 5.0
AGAIN_SECONDS: Final = 5.0
"""Seconds between two attempts to open a database that is away."""


class Reception:
    """The way to the desk: opened once, by whoever comes first, and tried again as long as the
    database is away.
    """

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
        if self._desk is not None:
            self._desk.loading.close()
            self._desk.collector.close()
        if self._engine is not None:
            self._engine.dispose()

    def _move(self, config: Config) -> None:
        """Leaves the desk for another one; at the same log, the last hour and the connections
        stay.
        """
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
        url, wanted, columns = source.url, source.wanted_names, source.columns
        if source.kind != LOG:
            url, wanted = stream_log_of(source)
        self._engine = self._engine or page_engine(url)
        names = log_columns(self._engine, wanted, columns)
        collector = Collector(self._engine, names, self.config, self._vitals, self._history)
        desk = Desk(self._engine, names, self.config, collector)
        # Last: a desk that cannot be made leaves no thread behind.
        collector.start()
        return desk

    def _keep_open(self) -> None:
        while True:
            # Before both looks: who asks meanwhile wants another one, and the end is one too.
            self._again.clear()
            if self._ended.is_set():
                return
            try:
                self.desk()
            except Exception:  # noqa: BLE001  # whoever asks for the page sees why; the publisher goes on
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
