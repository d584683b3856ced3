"""What capturing costs a writer on PostgreSQL: with more rows in a statement, columns, longer values, and more tables."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from bench.capture.ground import database
from bench.growth.logs import engine_of
from bench.growth.series import contestant, powers, targets
from bench.growth.shape import CHARACTERS, LONG
from bench.measure import Benchmark, Contestant
from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions

LONGEST: Final = 100_000
"""As many rows as a statement changes at most where values grow."""
WIDE: Final = 1_000
"""Rows where columns grow: a session plans its first statement anew, which is as long as the table is wide."""
ONCE: Final = 1_000_000


class Written(Struct, frozen=True, kw_only=True):
    """A table, and the style in which one statement over all its rows and columns is captured."""

    name: str
    style: Style
    size: int
    rows: int
    units: int
    columns: int = 2
    characters: int = 10

    @property
    def once(self) -> bool:
        return self.rows >= ONCE

    @property
    def log(self) -> str:
        return f"log_of_{self.name}"


class Site:
    """The table of what is written, made when it is first wanted."""

    def __init__(self, address: str, written: Written) -> None:
        self._engine = engine_of(address)
        self._written = written
        self._made = False

    def ready(self) -> None:
        """The table as a vacuum leaves it, and an empty log."""
        made = self._written
        if not self._made:
            self._make()
        silent = "SET LOCAL session_replication_role = replica"
        self._run(silent, f"TRUNCATE {made.name}, {made.log}", f"INSERT INTO {made.name} {self._rows()}")
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for statement in (f"VACUUM ANALYZE {made.name}", "CHECKPOINT"):
                connection.exec_driver_sql(statement)

    def write(self) -> None:
        """One statement that changes every value of every row."""
        changed = ", ".join(f"c{number} = 'z' || substr(c{number}, 2)" for number in range(self._written.columns))
        self._run(f"UPDATE {self._written.name} SET {changed}")

    def empty(self) -> None:
        """Gives the disk its room back."""
        self._run(f"TRUNCATE {self._written.name}, {self._written.log}")

    def _make(self) -> None:
        made, names = self._written, LogNames(table=self._written.log)
        columns = ", ".join(f"c{number} text" for number in range(made.columns))
        install(self._engine, names)
        off = "WITH (autovacuum_enabled = off)"  # it would run meanwhile
        self._run(f"CREATE TABLE {made.name} (idu integer PRIMARY KEY, {columns}) {off}")
        self._run(f"ALTER TABLE {made.log} SET (autovacuum_enabled = off)")
        track(self._engine, [made.name], TriggerOptions(style=made.style), names)
        self._made = True

    def _rows(self) -> str:
        values = ", ".join([f"repeat('x', {self._written.characters})"] * self._written.columns)
        return f"SELECT n, {values} FROM generate_series(1, {self._written.rows}) AS n"

    def _run(self, *statements: str) -> None:
        with self._engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)


def benchmark(*, quick: bool) -> Benchmark:
    """Captured as fields."""
    return capturing("growth.capture", Style.FIELD, "fields", quick=quick)


def capturing(name: str, style: Style, kind: str, *, quick: bool) -> Benchmark:
    """From one row in a statement to ten million, from ten characters to ten million, captured in one style."""
    address = database("growing")
    return Benchmark(
        name=name,
        question=f"what does capturing {kind} cost a writer, the more a statement changes?",
        unit="row, value or 100 characters",
        contestants=[
            _contestant(f"{what}, as {kind}", Site(address, one), one)
            for what, made in written(style, quick=quick).items()
            for one in made
        ],
        targets=targets,
        note=(
            "One UPDATE of all rows and columns of a table, the statement itself counted. Where rows grow the unit is a row of the log,"
            f" and two columns change; where values grow it is {CHARACTERS} characters of them. {ONCE:,} rows and more ran once."
            " PostgreSQL with its own settings (fsync on), the table vacuumed and a checkpoint written before each run."
        ),
    )


def _contestant(series: str, site: Site, one: Written) -> Contestant:
    return contestant(series, one, prepare=site.ready, run=site.write, done=site.empty)


def written(style: Style, *, quick: bool) -> dict[str, list[Written]]:
    """What grows, and the table at each of its sizes."""
    most, wide, logged = 100 if quick else LONGEST, 10 if quick else WIDE, 2 if style is Style.FIELD else 1
    many, columns, long = (
        (powers(0, 2), powers(0, 2), powers(1, 2)) if quick else (powers(0, 7), powers(0, 3), powers(1, 7))
    )
    lengths = {size: max(1, min(most, LONG // size)) for size in long}
    name = f"of_{style.name.lower()}_{{}}_{{}}".format
    return {
        "rows of a statement": [
            Written(name=name("rows", n), style=style, size=n, rows=n, units=n * logged) for n in many
        ],
        "values of a statement, the more columns": [
            Written(name=name("columns", n), style=style, size=n, rows=wide, columns=n, characters=4, units=wide * n)
            for n in columns
        ],
        f"characters of a value, for each {CHARACTERS}": [
            Written(
                name=name("long", n),
                style=style,
                size=n,
                rows=rows,
                columns=1,
                characters=n,
                units=max(1, rows * n // CHARACTERS),
            )
            for n, rows in lengths.items()
        ],
    }
