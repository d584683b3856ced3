"""What the page asks of one log and does to it: lists, single rows, tables, and actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.care.listing import BEYOND, REACH_ROWS, Cursor, Filters, listing, newest, one_row
from eventlog.care.outputs import pause, resume, try_now
from eventlog.care.rows import HELD_SINCE, PROCESSED, Choice, LogRow, hold, release, requeue
from eventlog.config.settings import Config
from eventlog.core.errors import DataError, UsageError, shorten
from eventlog.core.model import LARGEST_NUMBER, Reason, Status
from eventlog.core.rules.screen import HIDDEN
from eventlog.core.table_names import write_log_name, write_name
from eventlog.explain.masking import without
from eventlog.explain.rows import Explanation, explain
from eventlog.explain.states import RowStage, stages_of
from eventlog.sources.marks import RowRanges
from eventlog.sql.findlog import locate_log
from eventlog.sql.log_indexes import has_number_index
from eventlog.web.actions import (
    ACT_ROWS,
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
from eventlog.web.addresses import address, list_address, table_address
from eventlog.web.collector import Collector
from eventlog.web.differences import DocumentDifference, compare_documents
from eventlog.web.drawing import Viewer
from eventlog.web.finding import Sought, read_sought
from eventlog.web.kept_rules import KeptRules
from eventlog.web.life_line import LifeStep, life_line
from eventlog.web.loading import Loading, LoadView
from eventlog.web.pages import (
    ask_output,
    ask_rows,
    ask_table,
    draw_document,
    draw_live_table,
    draw_row,
    draw_rows,
    draw_table,
)
from eventlog.web.reading import OutputView, TablePlace, owner_place, tables_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.capture.installed import TriggerState
    from eventlog.core.rules import Round
    from eventlog.explain.masking import Mask
    from eventlog.sql.names import LogNames


PAGE: Final = "the status page"
"""Who is noted as the holder of a row where the page knows nobody's name."""

NOBODY: Final = frozenset({"token", "bearer", "this machine"})
"""What visitors are called whom no proxy names."""

LATEST_ROWS: Final = 10
"""Rows that the page of a table shows."""

EXPORTED_ROWS: Final = 500
"""Rows that are in memory at once where a list is written as CSV."""

WHOLE_CHARACTERS: Final = 2**30
"""Of a value in CSV: all of it."""


class Query(Struct, frozen=True, kw_only=True):
    """A page of the list as its address says it; a timeline may begin near a row."""

    filters: Filters
    cursor: Cursor
    near: int | None = None


class LogPages:
    """One log, seen and cared for through the page."""

    def __init__(self, engine: Engine, names: LogNames, config: Config, collector: Collector) -> None:
        self.collector = collector
        self._engine = engine
        self._names = names
        self._config = config
        self.loading = Loading(engine, names, config, collector.note_change)
        self._numbered = has_number_index(engine, names)
        self._rules = KeptRules(engine, names, config)

    def rows(self, query: Query, look: Viewer, done: str = "") -> str:
        """Draw a page of the list."""
        log, filters, cursor = self.collector.log, query.filters, query.cursor
        is_first = cursor == Cursor()
        near = query.near if is_first else None
        if near is not None and self._numbered:
            # Its object's rows are found at once, however many others are newer.
            cursor = Cursor(before=min(near + REACH_ROWS, LARGEST_NUMBER))
        listed = listing(log, filters, cursor, numbered=self._numbered)
        mask = self.collector.mask()
        if mask is not None:
            listed = replace(listed, rows=_mask_rows(mask, listed.rows, filters))
        total = None if mask is not None else self.collector.reading().count_rows(filters)
        return draw_rows(
            listed, filters, look, first=is_first and near is None, total=total, around=near, done=read_done(done)
        )

    def export(self, query: Query, numbers: Sequence[int]) -> Iterator[Sequence[LogRow]]:
        """Yield the rows of a list, or the chosen ones, a part at a time, as whoever looks may see them."""
        log, mask = self.collector.log, self.collector.mask()
        if numbers:
            found = [row for number in numbers[:ACT_ROWS] if (row := one_row(log, number)) is not None]
            yield found if mask is None else _mask_rows(mask, found, Filters())
            return
        cursor: Cursor | None = query.cursor
        while cursor is not None:
            part = listing(
                log, query.filters, cursor, numbered=self._numbered, limit=EXPORTED_ROWS, width=WHOLE_CHARACTERS
            )
            yield part.rows if mask is None else _mask_rows(mask, part.rows, query.filters)
            cursor = part.further

    def find(self, text: str) -> str:
        """Return where the page is about what somebody looks for: a row, a table, or a list."""
        tables = {owner_place(trigger) for trigger in self._triggers()} | set(tables_of(self._triggers()))
        sought = read_sought(text, tables)
        if sought.place is not None:
            return table_address(sought.place)
        if sought.number is not None and one_row(self.collector.log, sought.number, width=1) is not None:
            return address("rows", sought.number)
        return list_address(self._as_logged(sought))

    def _as_logged(self, sought: Sought) -> Filters:
        """Call the table of a key as the log does, where the name means one that is tracked."""
        name = sought.filters.table
        if not name:
            return sought.filters
        schemas = self._log_schema()
        places = {owner_place(trigger) for trigger in self._triggers()}
        meant = [place for place in places if name.casefold() in (place[1].casefold(), write_name(*place).casefold())]
        if len(meant) != 1:
            return sought.filters
        return replace(sought.filters, table=write_log_name(*meant[0], schemas))

    def _log_schema(self) -> str | None:
        with self._engine.connect() as connection:
            return locate_log(connection, self._names).schema

    def row(self, number: int, look: Viewer, done: str) -> str:
        """Draw a row with its life line and its explanation; DataError when there is none."""
        whole = one_row(self.collector.log, number)
        if whole is None:
            raise DataError(
                f"The event log {self.collector.log.name} has no row {number}.",
                hint="The page Rows lists those that there are.",
            )
        mask = self.collector.mask()
        row = whole if mask is None else mask.row(whole)
        rules = self._rules.read()
        explained = explain(self._engine, self._names, self._config, number, asked=rules)
        return draw_row(
            row,
            explained,
            look,
            life=self._life(row, whole, explained, mask),
            difference=self._difference(whole, explained, rules),
            done=read_done(done),
        )

    def _life(self, row: LogRow, whole: LogRow, explained: Explanation, mask: Mask | None) -> tuple[LifeStep, ...]:
        """Follow the row over all outputs, without what is hidden of it."""
        stages = [
            RowStage(output=answer.output, stage="over", status=answer.status, reason=answer.reason, note=answer.note)
            for answer in explained.answers
        ]
        if row.status == Status.NEW:
            log = self.collector.log
            with log.moment() as connection:
                stages = stages_of(connection, log, row.record_id)
        if mask is not None:
            values = (whole.old_value, whole.new_value)
            secrets = mask.secrets(whole.table_name, whole.table_key, whole.column_name, values)
            stages = [replace(stage, note=without(stage.note, secrets)) for stage in stages]
        reading = self.collector.reading()
        outputs = reading.places or self.collector.named
        return life_line(row, stages, outputs, explained.finished_at)

    def _difference(self, row: LogRow, explained: Explanation, rules: Round) -> DocumentDifference | None:
        """Compare the row's document with the one before it: of the rows that are read with it, else of the row of the
        same key before them.
        """
        former = explained.former
        if former is None and explained.document is not None and explained.first is not None:
            former_row = self._row_before(row, explained.first)
            if former_row is not None:
                before = explain(self._engine, self._names, self._config, former_row, asked=rules)
                former = before.as_former(explained.first)
        return compare_documents(former, explained.document)

    def _row_before(self, row: LogRow, number: int) -> int | None:
        """Find the row of the same key before a number, as far as one look goes."""
        if not row.table_key or not self._numbered:
            return None
        filters = Filters(table=row.table_name or "", key=row.table_key)
        found = listing(self.collector.log, filters, Cursor(before=number), numbered=True, limit=1).rows
        return found[0].record_id if found else None

    def document(self, number: int, look: Viewer) -> str:
        """Draw the document that a row is part of, and what each output gets of it; DataError when there is no such
        row.
        """
        rules = self._rules.read()
        explained = explain(self._engine, self._names, self._config, number, asked=rules)
        row = one_row(self.collector.log, number, width=1)
        difference = None if row is None else self._difference(row, explained, rules)
        return draw_document(number, explained, look, difference)

    def table(self, schema: str, name: str, look: Viewer, done: str) -> str:
        """Draw a tracked table: its triggers and its last changes; DataError where no trigger of ours stands on it."""
        tables = tables_of(self._triggers())
        # Without a schema it is the one table of that name.
        places = [place for place in tables if place[1] == name and (not schema or place[0] == schema)]
        if len(places) != 1:
            message = f"The table {shorten(name, 80)} is not tracked."
            if places:
                message = f"There are {len(places)} tables with the name {shorten(name, 80)}."
            raise DataError(message, hint="The page Tables lists those that are tracked.")
        [place] = places
        called = write_log_name(*place, self._log_schema())
        return draw_table(
            place,
            tables[place],
            self._latest(called),
            look,
            called=called,
            load=self._load(place),
            unread=self.collector.reading().unread.get(called),
            done=read_done(done),
        )

    def live_table(self, place: TablePlace) -> str:
        """Draw how far the load of a table is."""
        return draw_live_table(place, self._load(place))

    def _load(self, place: TablePlace) -> LoadView | None:
        return self.loading.view(place) if place in self._owners() else None

    def _owners(self) -> frozenset[TablePlace]:
        """Return the classes that are tracked, which alone are loaded from the page."""
        return frozenset(owner_place(trigger) for trigger in self._triggers())

    def _triggers(self) -> Sequence[TriggerState]:
        """Return the triggers as counted, or read them if not yet counted."""
        reading = self.collector.reading()
        if reading.counted is not None:
            return reading.triggers
        from eventlog.capture.track import trigger_states

        return trigger_states(self._engine, self._names)

    def question(self, act: Act, look: Viewer) -> str:
        """Draw the question before an action."""
        if isinstance(act, OutputAct):
            output = self.output(act.output)
            return ask_output(act, output.name, look)
        if isinstance(act, TableAct):
            return ask_table(self._require_tracked(act), look)
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
        return ask_rows(act, numbers, look)

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
            place = self._require_tracked(act).place
            new = self.loading.begin(place, by) if act.action == "refresh" else self.loading.stop(place)
            return table_address(place, done=f"{act.action} {int(new)}"), int(new)
        numbers = self._numbers(act)
        runs = RowRanges.of(numbers).parts
        if act.action == "hold":
            count = hold(log, runs, by=by, why=act.why).rows
        elif act.action == "release":
            count = release(log, runs)
        else:
            count = requeue(log, runs, act.filters or Choice(statuses=PROCESSED))
        self.collector.hurry()
        done = f"{act.action} {count}"
        if act.filters is not None:
            return address(
                "rows", reason=act.filters.reason, table=act.filters.table, key=act.filters.key, done=done
            ), count
        return address("rows", numbers[0], done=done), count

    def _require_tracked(self, act: TableAct) -> TableAct:
        """Return the action; raise DataError if its table is not tracked."""
        if act.place not in self._owners():
            message = f"{shorten(write_name(*act.place), 80)} is not tracked."
            raise DataError(message, hint="The page Tables lists those that are.")
        return act

    def output(self, noted: str) -> OutputView:
        """Return a configured output; raise DataError for any other name."""
        output = self.collector.output(noted)
        if output is None:
            message = f"{shorten(noted, 80)} is no output of the configuration."
            raise DataError(message, hint="The overview lists them.")
        return output

    def _numbers(self, act: RowsAct) -> Sequence[int]:
        """Return the rows of an action in order.

        UsageError if they are too many, or chosen by hidden values.
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


def _mask_rows(mask: Mask, rows: Sequence[LogRow], filters: Filters) -> tuple[LogRow, ...]:
    """Hide what policies hide, and leave out what only that would have found: a search must not tell it."""
    return tuple([row for row in map(mask.row, rows) if matches(row, filters)])


def matches(row: LogRow, filters: Filters) -> bool:
    """Return True if the visible part of a row has the text and the key: hidden values are not
    found.
    """
    if filters.key and HIDDEN in (row.table_key or ""):
        return False
    shown = (row.table_key, row.column_name, row.old_value, row.new_value, row.note)
    return not filters.text or any(filters.text.lower() in (cell or "").lower() for cell in shown)


def read_query(asked: Fields) -> Query:
    """Read the query in a list's address; ignore unreadable parts."""
    before, block, near = (read_number((asked.get(name) or ("",))[-1]) for name in ("before", "place", "near"))
    return Query(filters=read_filters(asked), cursor=Cursor(before=before or BEYOND, block=block), near=near)


def name_visitor(visitor: str) -> str:
    """Return the name to note for an action: a proxy's user, else the page."""
    return PAGE if visitor in NOBODY else f"{visitor} on {PAGE}"
