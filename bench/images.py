"""What whole rows cost where triggers write them: to capture, and into XDS, messages and change tables; narrow and wide tables.

It runs in older checkouts too: `python -m bench.against CHECKOUT images` has their way and this one in turn.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from sqlalchemy import text

from bench.backlog import LIMIT, MARK, engine, settle_down, temporary_folder
from bench.ending import at_end
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.postgresql import url
from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions

CHANGES: Final = {7: 40_000, 50: 6_000}
"""Row changes of a table with so many columns: half of them insert, and half update two columns."""
QUICK: Final = 200
FORMATS: Final = {"xds": "XDS", "messages": "messages", "change-tables": "change tables"}
READ: Final = "SELECT record_id, log.* FROM {log} AS log WHERE status = 'N' ORDER BY record_id LIMIT {limit}"
SHARE: Final = 0.25
"""Of the rate of reading and marking the same rows, for images of seven columns into XDS."""
FLOOR: Final = "{} columns: reading and marking"
CAPTURE: Final = "{} columns: UPDATE of two"
BARE: Final = "{} columns: the same without a trigger"
INTO: Final = "{} columns: into {}"


class Images:
    """A table whose whole rows triggers write into a log of its own, and a publisher of that log that stays open."""

    def __init__(self, columns: int, form: str, changes: int) -> None:
        self._form, self._changes = form, changes
        self._table = f"wide_{columns}_{form[:3]}"
        self.log = f"{self._table}_log"
        self._folder = temporary_folder() / "out"
        self._publisher: Publisher | None = None
        self._make(columns)

    def _make(self, columns: int) -> None:
        names, log = [f"c{number} text" for number in range(1, columns)], LogNames(table=self.log)
        values = ", ".join(f"'new ' || {number} + 8 * n" for number in range(1, columns))
        filled = f"INSERT INTO {{}} SELECT n, {values} FROM generate_series(1, {self._changes // 2}) AS n"
        install(engine(), log)
        tables = [self._table, f"{self._table}_bare"]
        _run(*[f"CREATE TABLE {table} (idu integer PRIMARY KEY, {', '.join(names)})" for table in tables])
        track(engine(), [self._table], TriggerOptions(style=Style.IMAGE), log)
        _run(f"ALTER TABLE {self.log} SET (autovacuum_enabled = false)", *[filled.format(table) for table in tables])
        self.update()
        _run(f"CREATE TABLE {self.log}_kept AS SELECT * FROM {self.log}")

    def update(self, ending: str = "") -> None:
        """Updates two columns of every row in one statement."""
        _run(f"UPDATE {self._table}{ending} SET c1 = 'R&D ' || idu, c2 = md5(c2)")

    def settle(self) -> None:
        """Leaves both tables as a vacuum does, and the log without rows."""
        _run(f"TRUNCATE {self.log}")
        for table in (self._table, f"{self._table}_bare", self.log):
            settle_down(table)

    def refill(self) -> None:
        """Every row waits again, for a publisher that has begun; documents replace those of the run before."""
        if self._publisher is not None:
            self._publisher.close()
        _run(f"TRUNCATE {self.log}, {self.log}_outcome")
        # A new one: who goes on looks seldom among numbers that it knows to be over.
        self._publisher = Publisher(self._config())
        at_end(self._publisher.close)
        if list(self._publisher.rounds(until_empty=True))[-1].events:
            raise AssertionError("the log was not empty")
        _run(
            f"INSERT INTO {self.log} SELECT * FROM {self.log}_kept ORDER BY record_id",
        )
        settle_down(self.log)

    def publish(self) -> None:
        """Empties the log."""
        assert self._publisher is not None
        reports = list(self._publisher.rounds(until_empty=True))
        # Messages of a transaction that a cut has left are told again, and counted again.
        if sum(report.changes for report in reports) < self._changes:
            raise AssertionError(f"{sum(report.changes for report in reports)} of {self._changes} changes came")

    def read(self) -> None:
        """Reads and marks the rows as a publisher does, and does nothing with them."""
        session = engine().raw_connection()
        try:
            cursor = session.cursor()
            while rows := cursor.execute(READ.format(log=self.log, limit=LIMIT)).fetchall():
                numbers = [row[0] for row in rows]
                cursor.execute(MARK.format(log=self.log, first=min(numbers), last=max(numbers)))
                session.commit()
        finally:
            session.close()

    def _config(self) -> Config:
        return Config(
            source=SourceConfig(url=url(), log=self.log, tables=(self._table,)),
            publisher=PublisherConfig(batch_size=128, query_limit=LIMIT, allow_loopback=True),
            output=(FilesOutput(path=str(self._folder), format=self._form),),
        )


def _run(*statements: str) -> None:
    with engine().begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def benchmark(*, quick: bool) -> Benchmark:
    """Narrow and wide tables, captured, and published into each format."""
    contestants: list[Contestant] = []
    for columns, usual in CHANGES.items():
        changes = QUICK if quick else usual
        kinds = {form: Images(columns, form, changes) for form in FORMATS}
        first = kinds["xds"]
        contestants += [
            Contestant(
                name=BARE.format(columns),
                prepare=first.settle,
                run=partial(first.update, "_bare"),
                units=changes // 2,
            ),
            Contestant(name=CAPTURE.format(columns), prepare=first.settle, run=first.update, units=changes // 2),
            Contestant(name=FLOOR.format(columns), prepare=first.refill, run=first.read, units=changes),
        ]
        for form, images in kinds.items():
            name = INTO.format(columns, FORMATS[form])
            contestants.append(Contestant(name=name, prepare=images.refill, run=images.publish, units=changes))
    return Benchmark(
        name="images",
        question="what do whole rows cost?",
        unit="row change",
        contestants=contestants,
        targets=_targets,
        note=(
            "Style image on PostgreSQL, filled by the triggers: half of the changes insert a row, half update two columns of"
            " it. Each publisher writes files: XDS, messages, change tables as Parquet."
        ),
    )


def _targets(timings: Timings) -> list[Target]:
    found = []
    for columns in CHANGES:
        share = timings[FLOOR.format(columns)].median / timings[INTO.format(columns, "XDS")].median
        found.append(
            Target(
                promise=f"{columns} columns into XDS: at least {SHARE:g} times as fast as reading and marking alone",
                measured=f"{share:.2f} times",
                reached=share >= SHARE,
            )
        )
    return found
