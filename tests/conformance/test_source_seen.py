"""What waits behind others is looked at once: a cycle costs as much with many such rows as with few, and misses none."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.admin.rows import EVERYTHING, Choice, hold, release, requeue
from eventlog.core.backoff import Backoff
from eventlog.core.errors import SourceError
from eventlog.core.model import Outcome, Reason, Status
from eventlog.core.seams import Batch
from eventlog.daemon.rest import Wakeup
from eventlog.sources.log import seen
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.log.source import LogSource
from eventlog.sql.install import install
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable

HOUR = LogSettings(backoff=Backoff(first=3600, longest=3600), on_retry="object")
HELD = "idu=1"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces and pages that a few rows fill."""
    monkeypatch.setattr(seen, "PIECE_NUMBERS", 3)
    monkeypatch.setattr(seen, "PAGE_ROWS", 7)


@pytest.fixture
def log(engine: Engine, small: None) -> LogTable:
    install(engine)
    return LogTable(engine)


def source_of(log: LogTable, settings: LogSettings = HOUR) -> LogSource:
    return LogSource(log.engine, log.names, settings=settings)


def numbers(batch: Batch) -> list[int]:
    return [event.position[0] for event in batch.events]


def cycle(source: LogSource, limit: int = 100) -> list[int]:
    """One cycle, in which all rows are published."""
    batch = source.read(limit)
    source.settle(batch, [Outcome(position=event.position) for event in batch.events])
    return numbers(batch)


def retried(source: LogSource, number: int) -> None:
    """The row is offered and not taken."""
    batch = source.read(100)
    assert numbers(batch) == [number]
    source.settle(batch, [Outcome(position=(number,), status=Status.NEW, reason=Reason.RETRY)])


def held(log: LogTable, first: int = 5, last: int = 40) -> LogSource:
    """A source that knows of the rows of one object behind a held one."""
    log.write_all(range(first, last + 1), key=HELD)
    hold(Log(log.engine, log.names), [(first, first)])
    source = source_of(log)
    assert cycle(source) == []
    assert source.seen.last == last
    return source


def test_rows_are_found_wherever_they_appear(log: LogTable) -> None:
    source = held(log)
    for number, key in ((41, "idu=2"), (2, "idu=3"), (1, HELD), (42, HELD), (44, HELD), (46, "idu=2"), (43, "idu=2")):
        log.write(number, key=key)
        assert cycle(source) == ([] if number > 1 and key == HELD else [number])
    log.write(45, key="idu=2")
    log.write(3, key="idu=2")
    log.write(47, key="idu=2")
    assert cycle(source) == [3, 45, 47]


def test_a_limit_is_kept_and_nothing_comes_before_what_is_late(log: LogTable) -> None:
    source = held(log)
    for number in (1, 2, 3, 50, 51, 52):
        log.write(number, key=f"idu={number + 100}")
    assert [cycle(source, limit=2) for _ in range(4)] == [[1, 2], [3, 50], [51, 52], []]


def test_a_transaction_that_is_committed_between_two_looks_comes_whole(
    log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row of its object lies in a gap, the next one above all that was seen; the row of another object comes later."""
    if log.engine.dialect.name == "sqlite":
        pytest.skip("nobody writes there while somebody reads")
    source = held(log)
    log.write(50, key="idu=9")
    late = seen.SeenNumbers.late

    def committed_just_before(self: seen.SeenNumbers, *arguments: Any) -> list[int]:
        for number, key in ((2, "idu=7"), (49, "idu=8"), (51, "idu=7")):
            log.write(number, key=key)
        monkeypatch.undo()
        return late(self, *arguments)

    monkeypatch.setattr(seen.SeenNumbers, "late", committed_just_before)
    assert cycle(source) == [2, 50, 51]
    assert cycle(source) == [49]


def test_what_is_released_comes_all(log: LogTable) -> None:
    source = held(log)
    log.write(41, key="idu=2")
    assert cycle(source) == [41]
    release(Log(log.engine, log.names), [EVERYTHING])
    assert cycle(source) == list(range(5, 41))


def test_what_is_requeued_comes_again(log: LogTable) -> None:
    source = held(log)
    log.write(41, key="idu=2")
    log.write(42, key=HELD)
    log.write(43, key="idu=2")
    assert cycle(source) == [41, 43]
    assert source.seen.last == 43
    requeue(Log(log.engine, log.names), [(41, 43)], Choice(letters="S"))
    assert cycle(source) == [41, 43]


def test_what_somebody_sets_to_n_by_sql_comes_after_a_while(log: LogTable) -> None:
    source = held(log)
    for number in (41, 43):
        log.write(number, key="idu=2")
    assert cycle(source) == [41, 43]
    log.write(44, key="idu=2")
    cycle(source)
    log.run("UPDATE event_log SET status = 'N' WHERE record_id = 41")
    assert [found for _ in range(20) if (found := cycle(source))] == [[41]]


def test_rows_of_an_object_that_is_offered_again_come_when_its_time_has_come(log: LogTable) -> None:
    source = held(log)
    log.write(41, key="idu=2")
    retried(source, 41)
    for number in range(42, 60):
        log.write(number, key="idu=2" if number % 2 else HELD)
    assert cycle(source) == []
    assert source.seen.last == 59
    log.write(60, key="idu=3")
    assert cycle(source) == [60]
    log.run("UPDATE event_log_outcome SET next_attempt = '2000-01-01 00:00:00' WHERE next_attempt IS NOT NULL")
    assert cycle(source) == [41, *range(43, 60, 2)]
    assert cycle(source) == []
    release(Log(log.engine, log.names), [EVERYTHING])
    assert cycle(source) == [*range(5, 41), *range(42, 60, 2)]


def test_of_two_held_objects_each_comes_when_it_is_released(log: LogTable) -> None:
    for number in range(1, 30):
        log.write(number, key=f"idu={number % 3}")
    care = Log(log.engine, log.names)
    hold(care, [(1, 2)])
    source = source_of(log)
    assert cycle(source) == list(range(3, 30, 3))
    release(care, [(2, 2)])
    assert cycle(source) == list(range(2, 30, 3))
    assert cycle(source) == []
    release(care, [(1, 1)])
    assert cycle(source) == list(range(1, 30, 3))


def test_after_an_error_everything_is_read_anew(log: LogTable) -> None:
    """A server that came back may not have what was settled last."""
    source = held(log)
    log.write(41, key="idu=2")
    log.write(42, key=HELD)
    assert cycle(source) == [41]
    log.run("UPDATE event_log SET status = 'N' WHERE record_id = 41")
    with pytest.raises(SourceError), source._transaction() as connection:
        connection.execute(text("SELECT nothing FROM nowhere"))
    assert cycle(source) == [41]


def test_numbers_that_fall_and_numbers_far_apart(log: LogTable) -> None:
    """Adopted logs number as they like."""
    log.write(10**12, key=HELD)
    hold(Log(log.engine, log.names), [(10**12, 10**12)])
    source = source_of(log)
    found = []
    for step in range(1, 12):
        log.write(10**12 + step * 10**9, key=HELD)
        log.write(10**12 - step, key="idu=2")
        found.append(cycle(source))
    assert found == [[10**12 - step] for step in range(1, 12)]


def test_with_too_many_gaps_nothing_is_remembered(log: LogTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "MOST_GAPS", 5)
    monkeypatch.setattr(seen, "SLOTS", 32)
    log.write_all(range(1, 100, 2), key=HELD)
    hold(Log(log.engine, log.names), [(1, 1)])
    source = source_of(log)
    for number in (2, 101, 40):
        log.write(number, key="idu=2")
        assert cycle(source) == [number]
    assert not source.seen.known


def test_a_row_that_wakes_the_publisher_is_one_that_it_can_read(log: LogTable) -> None:
    source = held(log)
    wakeup = Wakeup(source.log)
    try:
        assert wakeup._looked()
        wakeup.seen = source.seen
        assert not wakeup._looked()
        log.write(41, key=HELD)
        assert not wakeup._looked()
        for number in (2, 42):
            log.write(number, key="idu=2")
            assert wakeup._looked()
            assert cycle(source) == [number]
            assert not wakeup._looked()
        release(Log(log.engine, log.names), [EVERYTHING])
        assert wakeup._looked()
    finally:
        wakeup.close()


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_each_cycle_has_what_it_should(log: LogTable, seed: int) -> None:
    """Rows appear anywhere, are held, released and requeued, and the model says what is to be published."""
    dice, care, source = Random(seed), Log(log.engine, log.names), source_of(log)
    keys: dict[int, str] = {}
    waiting: set[int] = set()
    held: set[int] = set()
    free = dice.sample(range(1, 400), 399)
    for _ in range(60):
        deed = dice.choice(["write"] * 8 + ["hold", "release", "release all", "requeue"])
        if deed == "write":
            key = dice.choice([HELD, HELD, "idu=2", "idu=3"])
            new = [free.pop() for _ in range(dice.randint(0, 6))]
            log.write_all(new, key=key) if new else None
            keys |= dict.fromkeys(new, key)
            waiting.update(new)
        elif deed == "hold" and waiting:
            held.add(chosen := dice.choice(sorted(waiting)))
            hold(care, [(chosen, chosen)])
        elif deed == "release" and held:
            held.remove(chosen := dice.choice(sorted(held)))
            release(care, [(chosen, chosen)])
        elif deed == "release all":
            held.clear()
            release(care, [EVERYTHING])
        elif deed == "requeue":
            first, last = sorted(dice.sample(range(1, 400), 2))
            requeue(care, [(first, last)], Choice(letters="S"))
            waiting.update(number for number in keys if first <= number <= last)
        ahead = {key: min(number for number in held if keys[number] == key) for key in {keys[one] for one in held}}
        expected = sorted(one for one in waiting if one < ahead.get(keys[one], one + 1))
        limit = dice.choice([3, 1000])
        found = cycle(source, limit)
        assert found[:limit] == expected[:limit]
        assert found == expected[: len(found)]
        waiting.difference_update(found)


FEW, MANY = 5_000, 30_000


def fill(log: LogTable, first: int, last: int) -> None:
    """Very many rows of one object, by one statement."""
    digits = f"(SELECT 0 AS d{''.join(f' UNION ALL SELECT {digit}' for digit in range(1, 10))})"
    crossed = " CROSS JOIN ".join(f"{digits} AS d{place}" for place in range(5))
    number = f"{first} + {' + '.join(f'd{place}.d * {10**place}' for place in range(5))}"
    log.run(
        "INSERT INTO event_log (record_id, table_key, status, event_type, table_name, column_name)"
        f" SELECT {number}, '{HELD}', 'N', 2, 'usr', 'fname' FROM {crossed} WHERE {number} <= {last}"
    )


class Work:
    """What a database does for the sessions of an engine: rows and entries of indexes that are read, or steps."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._steps = 0
        if engine.dialect.name == "sqlite":
            with engine.connect() as connection:
                driver: Any = connection.connection.driver_connection
                driver.set_progress_handler(self._step, 100)

    def done(self) -> int:
        """All of it until now."""
        if self._engine.dialect.name == "sqlite":
            return self._steps
        with self._engine.connect() as connection:
            if self._engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_stat_force_next_flush()"))
                connection.commit()
                query = (
                    "SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes)"
                    " + (SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname = 'event_log')"
                )
                return int(connection.execute(text(query)).scalar_one())
            found = connection.execute(text("SHOW SESSION STATUS LIKE 'Handler_read%'"))
            return sum(int(value) for _, value in found)

    def _step(self) -> int:
        self._steps += 1
        return 0


def cost(log: LogTable, source: LogSource, work: Work, number: int) -> int:
    """What the cycle takes in which a row of another object is published."""
    log.write(number, key="idu=2")
    before = work.done()
    assert cycle(source) == [number]
    return work.done() - before


@pytest.mark.parametrize("how", ["held", "offered again"])
@pytest.mark.parametrize("analyzed", [False, True], ids=["new", "analyzed"])
def test_a_cycle_costs_as_much_with_many_rows_that_wait_as_with_few(engine: Engine, how: str, analyzed: bool) -> None:
    install(engine)
    log = LogTable(engine)
    log.write(1, key=HELD)
    source = source_of(log)
    if how == "held":
        hold(Log(engine, log.names), [(1, 1)])
    else:
        retried(source, 1)
    work = Work(engine)
    costs = []
    for first, last in ((2, FEW), (FEW + 20, MANY)):
        fill(log, first, last)
        if analyzed:
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("ANALYZE TABLE event_log" if engine.dialect.name == "mysql" else "ANALYZE"))
        cost(log, source, work, last + 1)
        costs.append([cost(log, source, work, last + place) for place in (2, 4, 7, 3, 5)])
    few, many = (sorted(found)[len(found) // 2] for found in costs)
    assert many < 2 * few, costs
    assert max(costs[1]) < 3 * few, costs
