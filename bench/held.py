"""What a million rows behind one that somebody holds cost the publisher: its first turns, and a new row of another object."""

from __future__ import annotations

import os
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import text

from bench.backlog import Backlog, backlog, engine
from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.care.journal import hold, release
from eventlog.daemon.publisher import Publisher
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames

ROWS: Final = 1_000_000
QUICK_ROWS: Final = 2_000
NEW_ROWS: Final = 20
"""Rows of other objects that are published one by one."""

FIRST_SECONDS: Final = 3.0
NEW_SECONDS: Final = 0.05
MOST_MEGABYTES: Final = 200

ONE_OBJECT: Final = """
INSERT INTO {log} (record_id, table_key, event_type, perpetrator, table_name, column_name, old_value, new_value)
SELECT n + 1, 'idu=1', 2, 'app', 'usr', ({names})[1], 'old ' || n, 'new ' || n FROM generate_series(0, :count - 1) AS n
"""
BETWEEN: Final = """
INSERT INTO {log} (record_id, table_key, event_type, perpetrator, table_name, column_name, old_value, new_value)
SELECT n + 1, 'idu=' || CASE WHEN n % 2 = 0 THEN 1 ELSE n + 1 END, 2, 'app', 'usr', ({names})[1], 'old ' || n, 'new ' || n
FROM generate_series(0, :count - 1) AS n
"""
"""Every second row is of the object of which one is held, and has to wait."""

NEW: Final = """
INSERT INTO {log} (record_id, table_key, event_type, perpetrator, table_name, column_name, new_value)
VALUES (:number, 'idu=' || :number, 2, 'app', 'usr', 'fname', 'new')
"""
FIRST, START, HOLD, RELEASE = (
    f"the first turn {when}" for when in ("of all", "of a new start", "after a hold", "after a release")
)
PARKED, ANOTHER = "until all of them are set aside", "a new row of another object"
AMONG, ANOTHER_AMONG = "until the rows between others are set aside", "a new row after a new start among them"


class Held:
    """A log whose first row is held, all others behind it, and its publisher."""

    def __init__(self, log: Backlog) -> None:
        self.log = log
        self._log = Log(engine(), log_columns(engine(), LogNames(table=log.name)))
        self._number = log.count
        self._publisher = Publisher(log.config())
        self._hold(1)

    def turn(self) -> None:
        self._publisher.run_once()

    def all_aside(self) -> None:
        """Turns until the last row that has to wait is parked."""
        while self._parked() < self.log.count - 1:
            self.turn()

    def begin_again(self) -> None:
        self._publisher.close()
        self._publisher = Publisher(self.log.config())

    def hold_another(self) -> None:
        self._hold(5)

    def release_another(self) -> None:
        with self._log.transaction() as connection:
            release(connection, self._log, [(5, 5)])

    def another(self) -> float:
        """The median of the seconds in which a row of an object that nobody waits for has its letter."""
        took: list[float] = []
        self.turn()
        done = self._done()
        for new in range(1, NEW_ROWS + 1):
            self._number += 1
            with engine().begin() as connection:
                connection.execute(text(NEW.format(log=self.log.name)), {"number": self._number})
            began = time.perf_counter()
            self.turn()
            took.append(time.perf_counter() - began)
            if self._done() != done + new:
                raise AssertionError("the new row was not published in one turn")
        return statistics.median(took)

    def another_after_a_start(self) -> float:
        self.begin_again()
        return self.another()

    def memory(self) -> float:
        """Megabytes that this process has."""
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def end(self) -> None:
        self._publisher.close()

    def _hold(self, number: int) -> None:
        with self._log.transaction() as connection:
            hold(connection, self._log, [(number, number)], "somebody")

    def _done(self) -> int:
        with engine().connect() as connection:
            return int(connection.scalar(text(f"SELECT count(*) FROM {self.log.name} WHERE status = 'S'")) or 0)

    def _parked(self) -> int:
        # Rows are parked in their order, so that the last one says it: counting a million costs more than a turn.
        with engine().connect() as connection:
            asked = text(f"SELECT coalesce(max(record_id), 0) FROM {self.log.name}_parked")
            return int(connection.execute(asked).scalar_one())


def benchmark(*, quick: bool) -> Benchmark:
    """Two logs, whose rows are set aside once; nobody has looked at the tables' statistics."""
    count = QUICK_ROWS if quick else ROWS
    held = Held(backlog("held_log", count, ONE_OBJECT))
    among = Held(backlog("held_among_log", count // 5, BETWEEN))
    once = partial(Contestant, once=True)
    return Benchmark(
        name="held",
        question=f"what do {count:,} rows behind one that is held cost?",
        unit="turn",
        contestants=[
            once(name=FIRST, run=held.turn),
            once(name=PARKED, run=held.all_aside),
            once(name=START, prepare=held.begin_again, run=held.turn),
            once(name=HOLD, prepare=held.hold_another, run=held.turn),
            once(name=RELEASE, prepare=held.release_another, run=held.turn),
            once(name=ANOTHER, run=held.another),
            once(name=AMONG, run=among.all_aside),
            once(name=ANOTHER_AMONG, run=among.another_after_a_start),
        ],
        targets=partial(_targets, held, among),
        note="The table was filled at once and never analysed. Memory is that of the benchmark's whole process.",
    )


def _targets(held: Held, among: Held, timings: Timings) -> list[Target]:
    slowest = max(timings[name].median for name in (FIRST, START, HOLD, RELEASE))
    another, memory = max(timings[ANOTHER].median, timings[ANOTHER_AMONG].median), held.memory()
    held.end()
    among.end()
    return [
        Target(
            promise=f"a first turn under {FIRST_SECONDS:g} s",
            measured=f"{slowest:.2f} s",
            reached=slowest < FIRST_SECONDS,
        ),
        Target(
            promise=f"a new row of another object in under {NEW_SECONDS * 1000:g} ms",
            measured=f"{another * 1000:.0f} ms",
            reached=another < NEW_SECONDS,
        ),
        Target(
            promise=f"memory under {MOST_MEGABYTES} MB", measured=f"{memory:.0f} MB", reached=memory < MOST_MEGABYTES
        ),
    ]
