"""Waiting rows of a log that a conversion leaves where they are: held ones, what others lack, and
what comes behind those.

Law: nothing overtakes an earlier row of its object. A row that somebody holds is the end of its
object; an object of which an output lacks a row is left out as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.convert.lines import column_of
from eventlog.convert.rows import NUMBERS, OBJECT, Placing, shaped
from eventlog.sources.marks import Run, Stretches
from eventlog.sql.names import STANDARD

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from eventlog.care.conversions import Kept
    from eventlog.convert.settings import LogInput
    from eventlog.core.schema import Catalog
    from eventlog.sql.log import Log
    from eventlog.sql.names import LogNames

HELD: Final = "held"
LACKED: Final = "lacked"
BEHIND: Final = "behind"
"""Why rows are left: somebody holds them, an output lacks them, or they come behind such a row."""

MOST_GAPS: Final = 1_000
"""So many stretches of numbers are asked for one by one."""

PAGE_ROWS: Final = 10_000
NAMING: Final = ("record_id", "event_type", "table_name", "table_key")


class Withheld:
    """Rows that are left, by their numbers and by their objects; it goes to other processes as it
    is.
    """

    def __init__(self, held: Stretches, lacked: Stretches) -> None:
        self._held = held
        self._numbers = held | lacked
        self._objects = pa.array([], pa.int64())
        self._firsts = pa.array([], pa.int64())

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def block(self, firsts: Mapping[int, int]) -> None:
        """Leaves the rows of these objects from a number of theirs on."""
        self._objects = pa.array(firsts.keys(), pa.int64())
        self._firsts = pa.array(firsts.values(), pa.int64())

    def divide(self, placed: pa.RecordBatch) -> tuple[pa.RecordBatch, Counter[str]]:
        """The placed rows that are taken, and how many are left for which reason."""
        left = Counter[str]()
        if not self._numbers or not len(placed):
            return placed, left
        # Rows that were published before may be converted as well (--status); they are never left.
        waits = pc.fill_null(pc.equal(placed.column("status"), "N"), False)
        numbers = placed.column("record_id")
        own = pc.and_(self._among(numbers), waits)
        places = pc.index_in(placed.column(OBJECT), value_set=self._objects)
        behind = pc.fill_null(pc.greater_equal(numbers, self._firsts.take(places)), False)
        behind = pc.and_(pc.and_(behind, waits), pc.invert(own))
        for number in numbers.filter(own).to_pylist():
            left[HELD if number in self._held else LACKED] += 1
        if count := behind.true_count:
            left[BEHIND] = count
        return placed.filter(pc.invert(pc.or_(own, behind))), left

    def _among(self, numbers: pa.Array) -> pa.Array:
        """Which of the numbers are those of rows that are left themselves."""
        known = numbers.drop_null()
        first, last = self._numbers.parts[0][0], self._numbers.parts[-1][1]
        # Nearly all batches lie outside; only the others are looked at number by number.
        if not len(known) or pc.min(known).as_py() > last or pc.max(known).as_py() < first:
            return pa.array([False] * len(numbers), pa.bool_())
        is_among = [number is not None and number in self._numbers for number in numbers.to_pylist()]
        return pa.array(is_among, pa.bool_())


NOTHING: Final = Withheld(Stretches(), Stretches())


def withheld_by(kept: Kept, log: Log, catalog: Catalog | None) -> Withheld:
    """What a conversion that marks leaves: what is kept of a log."""
    withheld = Withheld(kept.held, (kept.taken | kept.waiting) - kept.held)
    if withheld:
        with log.transaction(lone=True) as connection:
            # Of an object that an output lacks a row of everything is left, also what committed
            # late before that row.
            waiting = dict.fromkeys(_objects(connection, log, kept.waiting, catalog), -(2**63))
            withheld.block(_objects(connection, log, kept.held, catalog) | waiting)
    return withheld


def withheld_of(source: LogInput, catalog: Catalog | None) -> Withheld:
    """What a conversion of a log leaves: what is held and what comes behind it; where it marks,
    what others lack as well.
    """
    from eventlog.care.conversions import Kept, read_kept
    from eventlog.publisher.reader import JournalReader
    from eventlog.sources.log.reading import LogSettings
    from eventlog.sql.connect import connect
    from eventlog.sql.findlog import log_columns
    from eventlog.sql.log import Log

    if source.statuses and "N" not in source.statuses:
        return NOTHING
    engine = connect(source.url)
    try:
        names = log_columns(engine, source.names, source.columns)
        if not has_holds(engine, names):
            return NOTHING
        log = Log(engine, names)
        if source.mark:
            return withheld_by(read_kept(JournalReader(log, LogSettings())), log, catalog)
        with log.transaction(lone=True) as connection:
            return withheld_by(Kept(stamp="", held=_held(connection, log)), log, catalog)
    finally:
        engine.dispose()


def held_numbers(engine: Engine, names: LogNames, first: int, last: int) -> frozenset[int]:
    """The rows that somebody holds, and the rows between two numbers that come behind those; none
    without a journal.
    """
    from eventlog.sql.log import Log

    if not has_holds(engine, names):
        return frozenset()
    log = Log(engine, names)
    with log.transaction(lone=True) as connection:
        held = _held(connection, log)
        if not held:
            return frozenset()
        # From the first row that is held, which may stand far before: what is behind it is held
        # too.
        values = {"first": min(first, held.parts[0][0]), "last": last}
        behind = log.rows(connection, log.query("behind_held"), values)
        return frozenset(held) | {int(number) for (number,) in behind}


def has_holds(engine: Engine, names: LogNames) -> bool:
    """Whether the log has a journal, so that rows of it can be held."""
    from sqlalchemy import inspect

    from eventlog.sql.access import transaction

    with transaction(engine, f"The event log {names.table}") as connection:
        return inspect(connection).has_table(names.journal["holds"], schema=names.schema)


def _held(connection: Connection, log: Log) -> Stretches:
    everything = {"first": -(2**63), "last": 2**63 - 1, "limit": 2**62}
    rows = log.rows(connection, log.query("hold_numbers"), everything)
    return Stretches.of(int(number) for (number,) in rows)


def _objects(
    connection: Connection,
    log: Log,
    numbers: Stretches,
    catalog: Catalog | None,
) -> dict[int, int]:
    """The objects of rows as the conversion knows them, each with the first of those rows."""
    # With SQLAlchemy, which workers without a log do without.
    from eventlog.publisher.new_rows import fewer

    placing, firsts = Placing(catalog), dict[int, int]()
    # Of very many stretches neighbours are read as one, with rows in between that are not meant.
    for run in fewer(list(numbers.parts), MOST_GAPS):
        for rows in _pages(connection, log, run):
            known = [row for row in rows if int(row[0]) in numbers]
            if not known:
                continue
            columns = dict(zip(NAMING, zip(*known, strict=True), strict=True))
            # What does not name the object need not be read; the columns must be there all the same.
            nothing = [None] * len(known)
            whole_rows = {name: column_of(list(columns.get(name, nothing)), name in NUMBERS) for name in STANDARD}
            placed = placing.place(shaped(whole_rows))
            record_ids = placed.column("record_id").to_pylist()
            objects = placed.column(OBJECT).to_pylist()
            for number, name in zip(record_ids, objects, strict=True):
                firsts[name] = min(number, firsts.get(name, number))
    return firsts


def _pages(connection: Connection, log: Log, run: Run) -> Iterator[list[tuple[Any, ...]]]:
    """The waiting rows between two numbers, some at a time."""
    first, last = run
    while True:
        values = {"first": first, "last": last, "limit": PAGE_ROWS}
        rows = log.rows(connection, log.query("objects_between"), values)
        yield rows
        if len(rows) < PAGE_ROWS:
            return
        first = int(rows[-1][0]) + 1
