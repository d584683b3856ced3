"""How the log is stored: which indexes, how full its pages, how its numbers are drawn; the ground of a decision."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from sqlalchemy import Engine, create_engine, text

from bench.capture.ground import database
from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.capture.install import install

ROWS: Final = 100_000
QUICK: Final = 2_000
QUICK_VARIANTS: Final = 3
"""As many as the targets speak of."""
CYCLE: Final = 10_000
"""Rows that the publisher marks with one statement."""
POLLS: Final = 20
NO_INDEX: Final = "DROP INDEX event_log_new, event_log_done"
NO_NUMBERS: Final = "DROP INDEX event_log_done"
KEY: Final = "ALTER TABLE event_log ADD PRIMARY KEY (record_id)"
MADE: Final = "as it is made"
ONLY_KEY: Final = "primary key instead"
VARIANTS: Final[dict[str, tuple[str, ...]]] = {
    MADE: (),
    "no index": (NO_INDEX,),
    ONLY_KEY: (NO_INDEX, KEY),
    "primary key besides": (KEY,),
    "without the index of processed rows": (NO_NUMBERS,),
    "block ranges (BRIN) in its place": (NO_NUMBERS, "CREATE INDEX ON event_log USING brin (record_id)"),
    "index on status besides": ("CREATE INDEX ON event_log (status)",),
    "fill factor 80": ("ALTER TABLE event_log SET (fillfactor = 80)",),
    "fill factor 50": ("ALTER TABLE event_log SET (fillfactor = 50)",),
    "primary key instead, fill factor 50": (NO_INDEX, KEY, "ALTER TABLE event_log SET (fillfactor = 50)"),
    "sequence cache 32": ("ALTER TABLE event_log ALTER COLUMN record_id SET CACHE 32",),
}
INSERT: Final = (
    "INSERT INTO event_log (table_key, status, event_type, event_time, perpetrator, table_name, column_name, old_value,"
    " new_value) SELECT 'idu=' || n, 'N', 2, now() AT TIME ZONE 'UTC', 'app', 'usr', 'fname', 'Jack', 'John' || n"
    " FROM generate_series(1, {rows}) AS n"
)
MARK: Final = "UPDATE event_log SET status = 'S' WHERE record_id BETWEEN {first} AND {last} AND status = 'N'"
POLL: Final = "SELECT * FROM event_log WHERE status = 'N' ORDER BY record_id LIMIT 100"


class Storage:
    """One variant in a database of its own."""

    def __init__(self, name: str, changes: tuple[str, ...], rows: int) -> None:
        self.rows = rows
        self.engine: Engine = create_engine(database(f"log {name}"))
        install(self.engine)
        self._run("ALTER TABLE event_log SET (autovacuum_enabled = off)", *changes)

    def empty(self) -> None:
        self._run("TRUNCATE event_log RESTART IDENTITY")
        self._settle()

    def waiting(self) -> None:
        self.empty()
        self.insert()
        self._settle()

    def processed(self) -> None:
        """All rows are marked, and nobody has vacuumed yet: what a poll meets in the middle of a busy day."""
        self.waiting()
        self.mark()

    def insert(self) -> None:
        self._run(INSERT.format(rows=self.rows))

    def mark(self) -> None:
        for first in range(1, self.rows + 1, CYCLE):
            self._run(MARK.format(first=first, last=first + CYCLE - 1))

    def poll(self) -> None:
        for _ in range(POLLS):
            self._run(POLL)

    def size(self) -> int:
        with self.engine.connect() as connection:
            return int(connection.execute(text("SELECT pg_total_relation_size('event_log')")).scalar_one())

    def close(self) -> None:
        self.engine.dispose()

    def _run(self, *statements: str) -> None:
        with self.engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def _settle(self) -> None:
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("ANALYZE event_log")
            connection.exec_driver_sql("CHECKPOINT")


def benchmark(*, quick: bool) -> Benchmark:
    """Every variant takes rows, marks them, and is asked for more when all are marked."""
    rows = QUICK if quick else ROWS
    variants = list(VARIANTS.items())[: QUICK_VARIANTS if quick else None]
    storages = {name: Storage(name, changes, rows) for name, changes in variants}
    contestants = []
    for name, storage in storages.items():
        contestants += [
            _contestant(f"insert, {name}", storage.insert, storage.empty, rows),
            _contestant(f"mark, {name}", storage.mark, storage.waiting, rows),
            _contestant(f"empty poll, {name}", storage.poll, storage.processed, POLLS),
        ]
    return Benchmark(
        name="capture.log",
        question="which indexes, which fill factor and which sequence serve the log best?",
        unit="row or poll",
        contestants=contestants,
        targets=partial(_targets, storages=storages),
        note=(
            f"{rows:,} log rows. As it is made, the log has one index: unique, on record_id, of the rows that wait."
            f" Marked {CYCLE:,} rows at a time; polled when all are marked and nothing is vacuumed yet."
        ),
    )


def _contestant(name: str, run: Callable[[], None], prepare: Callable[[], None], units: int) -> Contestant:
    return Contestant(name=name, run=run, prepare=prepare, units=units)


def _targets(timings: Timings, *, storages: dict[str, Storage]) -> list[Target]:
    def work(variant: str) -> float:
        return timings[f"insert, {variant}"].median + timings[f"mark, {variant}"].median

    polls = timings[f"empty poll, {ONLY_KEY}"].each / timings[f"empty poll, {MADE}"].each
    bytes_of = {name: storage.size() for name, storage in storages.items()}
    for storage in storages.values():
        storage.close()
    sizes = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in bytes_of.items())
    smallest = min(size for name, size in bytes_of.items() if name not in ("no index", MADE))
    return [
        Target(
            promise="inserting and marking cost no more than with a primary key",
            measured=f"{work(MADE) / work(ONLY_KEY):.2f}×",
            reached=work(MADE) <= work(ONLY_KEY),
        ),
        Target(
            promise="an empty poll is at least ten times as quick as with a primary key",
            measured=f"{polls:.0f} times",
            reached=polls >= 10,
        ),
        Target(
            promise="no variant that has an index is smaller when all is marked",
            measured=sizes,
            reached=bytes_of[MADE] <= smallest * 1.05,
        ),
    ]
