"""The cycles of a comparison as a stream: what differs from the state becomes images, which the queue keeps until they are over."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.compare.columns import selection_of
from eventlog.compare.engine import Comparison
from eventlog.compare.known import Recognition
from eventlog.compare.pace import Pace, read_window
from eventlog.compare.sides import Compared, Key, batches
from eventlog.compare.tables import TableSide
from eventlog.compare.texts import plain_text, read_cell, same
from eventlog.core.errors import DataError, shorten
from eventlog.core.model import Captured, Image, Op
from eventlog.core.plugins import SourceOrder
from eventlog.core.schema import Catalog, Table
from eventlog.qlik.readings import reading_of
from eventlog.sources.compare.catalog import query_of, read_compared_catalog
from eventlog.sources.compare.held import HeldSide
from eventlog.sources.compare.queries import QuerySide
from eventlog.sources.compare.settings import CompareSettings
from eventlog.sources.compare.state import CompareState, QueuedImage, state_beside, state_in_file
from eventlog.sources.stream.kept import DatabaseMarks
from eventlog.sources.stream.source import StreamMarks, StreamPiece
from eventlog.sql.access import transaction
from eventlog.sql.connect import connect, limit_sessions
from eventlog.sql.dialect import dialect_of

LOOK_SECONDS: Final = 0.5
"""So long is waited at once for the pace: then a heart may beat, and somebody may stop it."""

STEP_ROWS: Final = 1000
"""Rows that become images, and get into the state, together."""

Report = Callable[[str], None]


class ComparedTable(Struct, frozen=True, kw_only=True):
    """A table, its columns, and the two sides: as it is now, and as it was published."""

    table: Table
    compared: Compared
    now: TableSide | QuerySide
    published: HeldSide
    growing: str | None = None


class CompareReader:
    """Compares tables with the state, and gives what differs."""

    def __init__(
        self,
        engine: Engine,
        catalog: Catalog,
        state: CompareState,
        settings: CompareSettings,
        *,
        report: Report,
        run: str,
        pulse: Callable[[], None],
        clock: Callable[[], float],
        now: Callable[[], dt.datetime],
    ) -> None:
        self._engine = engine
        self._catalog = Catalog(
            [replace(table, images=True, children=()) for table in catalog],
            case_sensitive=catalog.case_sensitive,
        )
        self._state = state
        self._settings = settings
        self._report = report
        self._run = run
        self._pulse = pulse
        self._clock = clock
        self._now = now
        self._window = read_window(settings.between) if settings.between else None
        self._pace = Pace(settings.rows_per_second)
        self._begun = settings.restart == "changes" or not run or state.run == run
        self._step = state.last()
        self._lost = False
        self._tables: list[ComparedTable] | None = None
        self._full_at: float | None = None
        self._tops: dict[str, Any] = {}
        self._unfound: set[tuple[str, Key]] = set()
        self._unfound_before: set[tuple[str, Key]] = set()
        self._reported: set[str] = set()
        grown = [table for table in catalog if query_of(table, settings) is None]
        names = {table.name for table in grown} | {table.whole for table in grown}
        for name in settings.growing:
            if name not in names:
                raise DataError(
                    f"source.compare.growing names {name}, which is no table that is compared.",
                    hint=f"There are {', '.join(sorted(names)) or 'none'}.",
                )

    def pieces(self, begin: int) -> Iterator[StreamPiece | None]:
        """Yield the images queued from that step on, then those of new cycles, queued before they
        are given.
        """
        if self._step < begin - 1:
            # The log is further than the state: that is gone, or an older one. Steps go on above
            # all that there were: nobody knows how far that was, but time only grows.
            self._lost, self._step = True, max(begin, time.time_ns() // 1_000_000)
        served = begin
        while True:
            for images in self._state.read_queued(served):
                served = images[0].step + 1
                yield self._piece(images)
            if not self._may_read():
                yield None
                continue
            for table, keys in self._suspects():
                self._pulse()
                if keys and self._queue_changes(table, keys):
                    for images in self._state.read_queued(served):
                        served = images[0].step + 1
                        yield self._piece(images)
                # Whoever asks may wait better than we can: a heart beats meanwhile, and somebody may stop it.
                while not self._may_read():
                    yield None
                # The cycle goes on, so it gives a piece, not None.
                while wait := self._pace.wait():
                    time.sleep(min(wait, LOOK_SECONDS))
                    yield StreamPiece(images=(), catalog=self._catalog, commit=served, begin=served)
            yield None

    def acknowledge(self, images: Sequence[Captured], begin: int) -> None:
        """Remove acknowledged images from the queue."""
        self._state.forget(begin)

    def close(self) -> None:
        self._state.close()
        self._engine.dispose()

    def _may_read(self) -> bool:
        """Return True if reading is allowed at this time of day."""
        now = self._now()
        return self._window is None or not self._window.wait(now.hour * 60 + now.minute)

    def _suspects(self) -> Iterator[tuple[ComparedTable, Sequence[Key]]]:
        """Yield keys of rows that may differ: all in a full cycle, else those above the growing
        column.
        """
        if not self._begun:
            # Before a new table has a state: it goes by another setting, also if this fails and is done once more.
            yield from self._restart()
        if self._tables is None:
            tables = [self._open_table(table) for table in self._catalog]
            if self._lost:
                # Not before every table has a state: who ends earlier finds it lost once more.
                self._state.note_end(self._step)
            self._tables = tables
        full = self._full_at is None or self._clock() >= self._full_at + self._settings.every
        began = self._clock()
        for table in self._tables:
            if full:
                yield from self._all_suspects(table)
            elif table.growing is not None:
                since, top = self._tops[table.table.whole], self._top(table)
                if since is not None:
                    assert isinstance(table.now, TableSide)  # no query has a column that grows
                    for keys in batches(table.now.since(table.growing, since), STEP_ROWS):
                        yield table, keys
                    self._tops[table.table.whole] = top
                elif top is not None:
                    # It was empty, so there is no value to go on from.
                    yield from self._all_suspects(table)
        if full:
            self._full_at = began
            # What two cycles saw, and did not find by its key, was not deleted meanwhile.
            unfound = dict(self._unfound & self._unfound_before)
            for name in unfound.keys() - self._reported:
                self._report(
                    f"{name}: rows such as {shorten(', '.join(map(str, unfound[name])))} are not found by their keys,"
                    " so they are not published. Compare a table or query whose key has another type."
                )
            self._reported |= unfound.keys()
            self._unfound_before, self._unfound = self._unfound, set()

    def _restart(self) -> Iterator[tuple[ComparedTable, Sequence[Key]]]:
        """Handle tables with a state as `restart` says, once after a start."""
        how = self._settings.restart
        for table in [self._open_table(table) for table in self._catalog if self._state.shape(table.whole) is not None]:
            self._report(f"{table.table.whole} starts as source.compare.restart says: {how}.")
            if how == "resync":
                yield from self._all_suspects(table)  # else deletes would not be published
            rows = iter(()) if how == "resync" else self._every(table.now)
            self._state.keep(table.table.whole, table.compared, rows)
        self._state.note_begin(self._run)
        self._begun = True

    def _every(self, side: TableSide | QuerySide) -> Iterator[Sequence[Any]]:
        for number, row in enumerate(side.every()):
            if number % STEP_ROWS == 0:
                self._pulse()
            yield row

    def _all_suspects(self, table: ComparedTable) -> Iterator[tuple[ComparedTable, Sequence[Key]]]:
        # Before the rows are read: what is written meanwhile is compared once more, and never
        # missed.
        top = self._top(table)
        try:
            known = Recognition(self._state.ranges(table.table.whole))
            comparison = Comparison(table.now, table.published, table.compared, self._pace, known)
            for keys in comparison.suspects():
                yield table, keys
        finally:
            if isinstance(table.now, QuerySide):
                table.now.close()  # the next cycle reads it anew
        self._tops[table.table.whole] = top

    def _top(self, table: ComparedTable) -> Any:
        """Return the highest value of the growing column, before the table is read."""
        if table.growing is None or not isinstance(table.now, TableSide):
            return None
        return table.now.top(table.growing)

    def _queue_changes(self, table: ComparedTable, keys: Sequence[Key]) -> bool:
        """Queues what differs of these rows, and changes the state with it."""
        now, before = table.now.rows(keys), table.published.rows(keys)
        at = dt.datetime.now(dt.UTC).replace(tzinfo=None).isoformat(" ")
        changes: list[tuple[Op, Key]] = []
        for key in keys:
            mine, former = now.get(key), before.get(key)
            if former is None and mine is not None:
                changes.append((Op.ADD, key))
            elif former is not None and mine is None:
                changes.append((Op.DELETE, key))
            elif mine is not None and former is not None and not all(map(same, mine, former)):
                changes.append((Op.MODIFY, key))  # of others only the texts are not equal
            elif mine is None and former is None and len(self._unfound) < STEP_ROWS:
                self._unfound.add((table.table.whole, key))
        if not changes:
            return False
        # Deletes come first: a value that must be unique may have gone to another row.
        changes.sort(key=lambda change: change[0] is not Op.DELETE)
        step, compared = self._step + 1, table.compared
        images = [
            QueuedImage(
                step=step,
                place=number,
                table=table.table.whole,
                op=op,
                time=at,
                before=_name_values(compared, key, before.get(key)),
                after=_name_values(compared, key, now.get(key)),
            )
            for number, (op, key) in enumerate(changes, 1)
        ]
        with self._state.step():
            table.published.change({key: now.get(key) for _, key in changes})
            ranges = self._state.ranges(table.table.whole)
            ranges.forget([key for _, key in changes], counted=compared.counted)
            self._state.queue(images)
            self._state.note_end(step)
        self._step = step
        return True

    def _piece(self, images: Sequence[QueuedImage]) -> StreamPiece:
        step = images[0].step
        made = [self._image(queued) for queued in images]
        return StreamPiece(images=made, catalog=self._catalog, commit=step, begin=step + 1, since=step)

    def _image(self, queued: QueuedImage) -> Image:
        match = self._catalog.find(queued.table)
        if match is None:
            raise DataError(
                f"{queued.table} has changes that are not published yet, and is not compared any more.",
                hint="Put it back into source.tables until they are.",
            )
        types = {column.name: column.type for column in match.table.columns}
        return Image(
            position=(queued.step, queued.place),
            op=Op(queued.op),
            table=queued.table,
            before=_read(queued.before, types),
            after=_read(queued.after, types),
            time=dt.datetime.fromisoformat(queued.time),
        )

    def _open_table(self, table: Table) -> ComparedTable:
        """Open a table and its state; create or alter the state if needed."""
        query = query_of(table, self._settings)
        selection, compared = selection_of(table, query=query)
        side = TableSide(self._engine, selection, compared)
        now = side if query is None else QuerySide(side, table.name, compared)
        former = self._state.shape(table.whole)
        if former != compared:
            self._fit(table, now, former, compared)
        growing = self._settings.growing.get(table.whole) or self._settings.growing.get(table.name)
        published = self._state.side(table.whole, compared)
        return ComparedTable(table=table, compared=compared, now=now, published=published, growing=growing)

    def _fit(self, table: Table, now: TableSide | QuerySide, former: Compared | None, compared: Compared) -> None:
        """Makes the state of a table that is new, or whose state is gone or has other columns."""
        settings = self._settings
        how: str
        if former is None and not self._lost:
            how, reason = settings.start, f"{table.whole} is compared for the first time"
        else:
            what = "has other columns than before" if former is not None else "has lost its state"
            how, reason = settings.on_lost, f"{table.whole} {what}"
            if how == "stop":
                hint = 'Set source.compare.on_lost = "resync" or "future-only", start once, and take it out again.'
                raise DataError(f"{reason}, so nobody can say which of its rows changed.", hint=hint)
            self._report(f"{reason}: {how}.")
        if how == "future-only":
            self._state.keep(table.whole, compared, self._every(now))
        elif former is not None and former.key == compared.key:
            self._state.keep(table.whole, compared, self._move_rows(table, former, compared))
        else:
            self._state.keep(table.whole, compared, iter(()))

    def _move_rows(self, table: Table, former: Compared, compared: Compared) -> Iterator[Sequence[Any]]:
        """Yield the state's rows in the table's present columns; new ones are NULL."""
        indexes = [former.names.index(name) if name in former.names else None for name in compared.names]
        for key, cells in self._state.read_held(table.whole, former):
            yield [*key, *[None if index is None else cells[index] for index in indexes]]


def _name_values(compared: Compared, key: Key, values: Sequence[Any] | None) -> Mapping[str, str | None] | None:
    if values is None:
        return None
    texts = [plain_text(value) for value in values]
    return dict(zip((*compared.key, *compared.names), (*key, *texts), strict=True))


def _read(row: Mapping[str, str | None] | None, types: Mapping[str, str]) -> dict[str, Any] | None:
    if row is None:
        return None
    return {name: read_cell(reading_of(types[name]), text) for name, text in row.items() if name in types}


def compare_reader(
    engine: Engine,
    catalog: Catalog,
    settings: CompareSettings,
    marks: StreamMarks | None = None,
    *,
    report: Report = lambda _: None,
    run: str = "",
    pulse: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = monotonic,
    now: Callable[[], dt.datetime] = dt.datetime.now,
) -> CompareReader:
    """Make a reader of these tables, with its state in a file or beside the `marks`."""
    with ExitStack() as unless_it_is_read:
        state = state_beside(marks) if isinstance(marks, DatabaseMarks) else state_in_file(Path(settings.state))
        unless_it_is_read.callback(state.close)
        reader = CompareReader(
            engine, catalog, state, settings, report=report, run=run, pulse=pulse, clock=clock, now=now
        )
        # All went well: from now on the reader closes the state.
        unless_it_is_read.pop_all()
    return reader


def open_reader(order: SourceOrder) -> CompareReader:
    """Open a reader on a database: its tables and views with a key, or those named."""
    engine = connect(order.reader or order.url)
    # No limit, for whole tables are read.
    limit_sessions(engine, None, None)
    catalog = tables_at(engine, order.captured, order.schema, order.settings)
    return compare_reader(
        engine, catalog, order.settings, order.marks, report=order.report, run=order.run, pulse=order.pulse
    )


def tables_at(engine: Engine, tables: Sequence[str], schema: str | None, settings: CompareSettings) -> Catalog:
    """Read the named tables, or all of the schema, and the queries."""
    known = schema if dialect_of(engine).schemas else None
    with transaction(engine, "The database of the comparison") as connection:
        return read_compared_catalog(connection, tables, known, settings)
