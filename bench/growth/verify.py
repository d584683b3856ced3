"""How a proof that two tables are equal, and an idle cycle without triggers, grow with the rows of the tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from sqlalchemy import URL, Engine, create_engine, make_url, text

from bench import postgresql
from bench.ending import at_end
from bench.growth.series import powers, targets
from bench.measure import Benchmark, Contestant
from bench.verify import COLUMNS, FILLED, TIMESTAMPS, Remembered
from eventlog.compare.columns import selection_of
from eventlog.compare.engine import Comparison
from eventlog.compare.known import Recognition
from eventlog.compare.scratch import ScratchSide
from eventlog.compare.tables import Selection, TableSide
from tests.support.reflected import reflect_table
from tests.support.servers_mysql import mariadb_running

ONCE: Final = 10_000_000


class GrownPair:
    """Two equal tables of so many rows, made when they are first asked for, and what a cycle remembers of one."""

    def __init__(self, database: str, engine: Engine, rows: int) -> None:
        self.rows = rows
        self._database = database
        self._engine = engine
        self._names = (f"usr_{rows}", f"equal_{rows}")
        self._made = False
        self._state: ScratchSide | None = None
        self._known = Recognition(Remembered())

    def made(self) -> None:
        """The tables are there."""
        if self._made:
            return
        one, other = self._names
        columns = COLUMNS.format(timestamp=TIMESTAMPS[self._database])
        with self._engine.begin() as connection:
            for table in self._names:
                connection.execute(text(f"CREATE TABLE {table} ({columns})"))
            connection.execute(text(f"INSERT INTO {one} {FILLED[self._database].format(rows=self.rows)}"))
            connection.execute(text(f"INSERT INTO {other} SELECT * FROM {one}"))
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in self._names:
                connection.execute(text(f"ANALYZE {'TABLE' if self._database == 'MariaDB' else ''} {table}"))
        self._made = True

    def remembered(self) -> None:
        """A cycle has looked at the table before."""
        self.made()
        if self._state is None:
            self._state = ScratchSide(selection_of(reflect_table(self._engine, self._names[0]))[1])
            at_end(self._state.close)
            self._state.write(self._side(self._names[0]).every())
            self.cycle()

    def prove(self) -> None:
        """The tables are equal."""
        one, other = (self._side(name) for name in self._names)
        self._compared(one, other, None)

    def cycle(self) -> None:
        """Nothing has changed since the last cycle."""
        assert self._state is not None
        self._compared(self._side(self._names[0]), self._state, self._known)

    def _side(self, name: str) -> TableSide:
        table = reflect_table(self._engine, name)
        place, compared = selection_of(table)
        return TableSide(self._engine, Selection(table=table, columns=place.columns), compared)

    def _compared(self, one: TableSide, other: TableSide | ScratchSide, known: Recognition | None) -> None:
        _, compared = selection_of(reflect_table(self._engine, self._names[0]))
        if list(Comparison(one, other, compared, known=known).differences()):
            raise AssertionError("the tables were to be equal")


def benchmark(*, quick: bool) -> Benchmark:
    """From ten thousand rows to ten million."""
    sizes = powers(2, 3) if quick else powers(4, 7)
    return Benchmark(
        name="growth.verify",
        question="what does a row cost those who compare tables, the more rows there are?",
        unit="row",
        contestants=[
            contestant
            for database, address in _addresses().items()
            for size in sizes
            for contestant in _contestants(database, create_engine(address), size)
        ],
        targets=targets,
        note=f"Ten columns, a key of one whole number; both tables on one server. {ONCE:,} rows ran once.",
    )


def _addresses() -> dict[str, URL]:
    running = mariadb_running()
    mariadb = running.__enter__()
    at_end(partial(running.__exit__, None, None, None))
    with create_engine(mariadb).begin() as connection:
        connection.execute(text("CREATE DATABASE grown"))
    return {"PostgreSQL": make_url(postgresql.url()), "MariaDB": mariadb.set(database="grown")}


def _contestants(database: str, engine: Engine, size: int) -> Iterator[Contestant]:
    at_end(engine.dispose)
    grown = GrownPair(database, engine, size)
    for what, prepare, run in (
        ("equal tables", grown.made, grown.prove),
        ("an idle cycle without triggers", grown.remembered, grown.cycle),
    ):
        series = f"{what}, {database}"
        yield Contestant(
            name=f"{series}: {size:,}",
            prepare=prepare,
            run=run,
            units=size,
            series=series,
            size=size,
            once=size >= ONCE,
        )
