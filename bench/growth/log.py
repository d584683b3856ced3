"""What rows that were published long ago cost those who come after them: writers, polls, and publishing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from sqlalchemy import text

from bench.growth.logs import GrownLog, addresses
from bench.growth.series import powers, targets
from bench.growth.shape import Shape
from bench.measure import Benchmark, Contestant
from eventlog.capture.track import track
from eventlog.daemon.publisher import Publisher
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions

FEW: Final = 2_000
QUICK: Final = 20
POLLS: Final = 200
STATEMENT: Final = "UPDATE {table} SET c0 = c0 || 'x', c1 = 'y' || c1"
ONE_ROW: Final = STATEMENT + " WHERE idu = {row}"
SINGLE: Final = 200
"""Transactions of one row each."""


class OldLog(GrownLog):
    """A log that has published so many rows; a table of its own is tracked for it, in the style of fields."""

    def __init__(self, address: str, name: str, rows: int, processed: int) -> None:
        super().__init__(address, name, Shape(rows=rows), processed)
        self._rows = rows
        self._table = f"of_{name}"
        self._is_tracked = False

    def tracked(self) -> None:
        """The log without waiting rows, and the table with its rows, which triggers watch."""
        self.clear()
        if not self._is_tracked:
            self._track()
            self._is_tracked = True
        self.settle()

    def polling(self) -> None:
        """The same, and a publisher that has nothing to do."""
        self.tracked()
        self._publisher = Publisher(self._config())
        self._publisher.run_once()

    def write(self) -> None:
        """One statement over all rows of the table: two log rows for each."""
        self._run([STATEMENT.format(table=self._table)])

    def write_singly(self) -> None:
        """Transactions of one row."""
        for row in range(1, min(SINGLE, self._rows) + 1):
            self._run([ONE_ROW.format(table=self._table, row=row)])

    def poll(self) -> None:
        """Looks for waiting rows where there are none."""
        assert self._publisher is not None  # polling opens it
        for _ in range(POLLS):
            if self._publisher.run_once().events:
                raise AssertionError("the log was to have no waiting rows")

    def _track(self) -> None:
        series = f"SELECT n FROM generate_series(1, {self._rows}) AS counted (n)"
        if not self.postgresql:
            series = f"WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {self._rows}) SELECT n FROM c"
        rows = f"INSERT INTO {self._table} SELECT n, 'a', 'b' FROM ({series}) AS numbers"
        self._run([f"CREATE TABLE {self._table} (idu integer PRIMARY KEY, c0 text, c1 text)", rows])
        track(self.engine, [self._table], TriggerOptions(style=Style.FIELD), LogNames(table=self.name))

    def _run(self, statements: list[str]) -> None:
        with self.engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))


def benchmark(*, quick: bool) -> Benchmark:
    """From a thousand rows that were published to ten million."""
    sizes, rows = (powers(1, 2), QUICK) if quick else (powers(3, 7), FEW)
    return Benchmark(
        name="growth.log",
        question="what do rows that were published long ago cost writers, polls and publishing?",
        unit="row or poll",
        contestants=[one for name in addresses() for size in sizes for one in _contestants(name, size, rows)],
        targets=targets,
        note=(
            f"The rows are marked as published and stay in the log. Writers: one statement that changes two columns of {rows:,} rows,"
            f" and {min(rows, SINGLE)} transactions of one row, captured as fields. Polls find nothing. Publishing: {rows:,} rows"
            " that wait. PostgreSQL is vacuumed and has written a checkpoint before each run."
        ),
    )


def _contestants(database: str, size: int, rows: int) -> Iterator[Contestant]:
    log = OldLog(addresses()[database], f"old_{size}", rows, size)
    contestant = partial(Contestant, size=size)
    for what, prepare, run, units in (
        ("a statement's rows", log.tracked, log.write, rows),
        ("rows, each a transaction", log.tracked, log.write_singly, min(rows, SINGLE)),
        ("empty polls", log.polling, log.poll, POLLS),
        ("publishing", log.ready, log.publish, rows),
    ):
        series = f"{what}, {database}"
        yield contestant(
            name=f"{series}: {size:,}", prepare=prepare, run=run, done=log.close, units=units, series=series
        )
