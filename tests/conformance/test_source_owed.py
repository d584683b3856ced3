"""Rows that only lagging outputs are owed are passed over, and every other row is found wherever it appears."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, Engine

from eventlog.admin.outputs import forget, skip
from eventlog.admin.rows import PROCESSED, Choice, hold, requeue
from eventlog.core.backoff import Backoff
from eventlog.core.errors import SourceError
from eventlog.core.model import Outcome, Reason, Status
from eventlog.core.seams import Batch
from eventlog.sources.log import seen
from eventlog.sources.log.lagging import LaggingSource
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.owed import join, leave_behind
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.log.source import LogSource
from eventlog.sources.marks import Marks, Stretches, read_owed
from eventlog.sources.notes import Counted, read_counted, write_counted
from eventlog.sql.install import install
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable

SETTINGS = LogSettings(on_retry="object", backoff=Backoff(first=0.0, longest=0.0))


@pytest.fixture
def log(engine: Engine) -> LogTable:
    install(engine)
    return LogTable(engine)


def known(log: LogTable) -> Log:
    return Log(log.engine, log.names)


def source_of(log: LogTable, settings: LogSettings = SETTINGS) -> LogSource:
    return LogSource(log.engine, log.names, settings=settings)


def left_behind(log: LogTable, *names: str) -> None:
    with known(log).transaction() as connection:
        leave_behind(connection, known(log), {name: (name,) for name in names})


def lagging(log: LogTable, lock: LogLock, name: str = "far", settings: LogSettings = SETTINGS) -> LaggingSource:
    return LaggingSource(log.engine, log.names, name, None, settings, lock)


@pytest.fixture
def lock(log: LogTable) -> LogLock:
    found = LogLock(known(log), lease=600.0)
    assert found.take()
    return found


def numbers(batch: Batch) -> list[int]:
    return [event.position[0] for event in batch.events]


def cycle(source: LogSource | LaggingSource, limit: int = 100, *others: Outcome) -> list[int]:
    batch = source.read(limit)
    said = {one.position: one for one in others}
    source.settle(batch, [said.get(event.position, Outcome(position=event.position)) for event in batch.events])
    return numbers(batch)


def owed(log: LogTable, name: str = "far") -> list[int]:
    with known(log).transaction() as connection:
        return [*read_owed(Marks(known(log)).all(connection)).get(name, Stretches())]


def write(log: LogTable, *numbers: int) -> None:
    for number in numbers:
        log.write(number, key=f"idu={number}")


def test_what_is_owed_keeps_its_letter_and_is_not_read_again(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far")
    source = source_of(log)
    write(log, 5, 6, 7)
    assert cycle(source) == [5, 6, 7]
    assert cycle(source) == []
    assert owed(log) == [5, 6, 7]
    assert set(log.statuses().values()) == {"N"}
    write(log, 1, 9)
    assert cycle(source_of(log)) == [1, 9], "who comes anew knows what is owed as well"
    assert cycle(lagging(log, lock)) == [1, 5, 6, 7, 9]
    assert set(log.statuses().values()) == {"S"}
    assert owed(log) == []


@pytest.mark.parametrize("few", [True, False])
def test_rows_between_are_found(log: LogTable, lock: LogLock, monkeypatch: pytest.MonkeyPatch, few: bool) -> None:
    """Also where there are more gaps than a statement can name, and more rows than a page has."""
    if few:
        monkeypatch.setattr(seen, "MOST_GAPS", 3)
        monkeypatch.setattr(seen, "SLOTS", 32)
        monkeypatch.setattr(seen, "PAGE_ROWS", 4)
    left_behind(log, "far")
    source = source_of(log)
    write(log, *range(10, 200, 3))
    assert cycle(source, 1000) == [*range(10, 200, 3)]
    write(log, 2, 11, 12, 101, 170, 198, 203)
    assert [cycle(source, 3) for _ in range(3)] == [[2, 11, 12], [101, 170, 198], [203]]
    assert cycle(source) == []


def test_objects_behind_a_held_row_and_owed_rows_are_both_passed_over(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far")
    source = source_of(log)
    log.write_all(range(10, 20), key="idu=1")
    hold(known(log), [(10, 10)])
    write(log, 30, 31)
    assert cycle(source) == [30, 31]
    assert cycle(source) == []
    write(log, 21, 32)
    assert cycle(source) == [21, 32]
    assert owed(log) == [21, 30, 31, 32]


def test_times_that_have_come_are_read_beside_what_is_owed(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far")
    source = source_of(log, LogSettings(handle_future_events=True))
    write(log, *range(1, 8))
    assert cycle(source, 3) == [1, 2, 3]
    assert cycle(source, 3) == [4, 5, 6]
    assert cycle(source, 3) == [7]
    assert cycle(lagging(log, lock, settings=LogSettings(handle_future_events=True))) == [*range(1, 8)]


def test_reading_ahead_goes_on_beside_what_is_owed(log: LogTable, lock: LogLock) -> None:
    if log.engine.dialect.name == "sqlite":
        pytest.skip("nothing is read ahead in a database that has one writer")
    left_behind(log, "far")
    source = source_of(log)
    write(log, *range(2, 9))
    assert cycle(source, 3) == [2, 3, 4]
    batch = source.read(2)
    ahead = source.read_ahead(2, [batch])
    assert (numbers(batch), numbers(ahead)) == ([5, 6], [7, 8])
    write(log, 1)
    assert numbers(source.read_ahead(2, [batch])) == [], "nothing overtakes a row that came late"


def test_who_lags_gets_whole_objects_and_what_it_wants_again(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far")
    log.write_all([1, 2], key="idu=1")
    log.write_all([3, 4, 5], key="idu=2")
    log.write_all([6], key="idu=1")
    cycle(source_of(log))
    slow = LogSettings(on_retry="object", backoff=Backoff(first=3600.0, longest=3600.0))
    source = lagging(log, lock, settings=slow)
    again = Outcome(position=(2,), status=Status.NEW, reason=Reason.RETRY, note="later")
    assert cycle(source, 1, again) == [1, 2]
    batch = source.read(1)
    assert (numbers(batch), batch.attempts) == ([3, 4, 5], {(2,): 1})
    source.settle(batch, [Outcome(position=event.position) for event in batch.events])
    left = source.read(10)
    assert numbers(left) == [], "row 6 comes behind row 2"
    assert left.later is not None
    assert left.later > 1700
    assert log.outcomes()[2] == ("N", "retry", "later", 1)
    assert cycle(lagging(log, lock)) == [2, 6], "who comes anew tries at once"
    assert log.outcomes()[2][0] == "S"
    assert set(log.statuses().values()) == {"S"}


def test_where_all_waits_nothing_else_comes(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far")
    write(log, 1, 2)
    cycle(source_of(log))
    stopping = LogSettings(on_retry="stop", backoff=Backoff(first=3600.0, longest=3600.0))
    source = lagging(log, lock, settings=stopping)
    held = Outcome(position=(2,), status=Status.NEW, reason=Reason.HELD)
    cycle(source, 9, Outcome(position=(1,), status=Status.NEW, reason=Reason.RETRY), held)
    waiting = source.read(9)
    assert (numbers(waiting), (waiting.later or 0) > 1700) == ([], True)
    again = lagging(log, lock, settings=stopping).read(9)
    assert (numbers(again), again.repeated) == ([1, 2], True)


def test_what_others_have_in_hand_is_waited_for(log: LogTable, lock: LogLock) -> None:
    """An output is left behind with a batch that the others have not settled: it goes on with that once they have."""
    source = source_of(log)
    write(log, 1, 2)
    batch = source.read(9)
    source.note({"far": '{"done":"1"}', "near": '{"done":"1,2"}', "decided": "{}"})
    left_behind(log, "far")
    mine = lagging(log, lock)
    assert numbers(mine.read(9)) == []
    again = source.read(9)
    assert (again.repeated, set(again.notes)) == (True, {"near", "decided"})
    source.settle(batch, [Outcome(position=event.position) for event in batch.events])
    repeated = mine.read(9)
    assert (numbers(repeated), repeated.repeated, set(repeated.notes)) == ([1, 2], True, {"far", "decided"})
    mine.note({"far": '{"done":"1,2"}'})
    assert lagging(log, lock).read(9).notes["far"] == '{"done":"1,2"}'
    with known(log).transaction() as connection:
        assert not join(connection, known(log), "far")


def test_who_is_owed_nothing_is_in_step_again(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far", "farther")
    write(log, 1)
    cycle(source_of(log))
    cycle(lagging(log, lock))
    assert log.statuses() == {1: "N"}, "the other one is owed it still"
    with known(log).transaction() as connection:
        assert join(connection, known(log), "far")
        assert not join(connection, known(log), "farther")
    cycle(lagging(log, lock, "farther"))
    assert log.statuses() == {1: "S"}


def test_rows_that_somebody_took_away_are_forgotten(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far")
    write(log, 1, 2, 3)
    cycle(source_of(log))
    log.run("DELETE FROM event_log WHERE record_id = 2")
    log.run("UPDATE event_log SET status = 'S' WHERE record_id = 3")
    source = lagging(log, lock)
    assert cycle(source) == [1]
    assert owed(log) == [2, 3]
    assert numbers(source.read(9)) == []
    source.gone()
    assert owed(log) == []
    source.gone()


def test_what_is_requeued_goes_to_all_again(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far")
    write(log, 1, 2, 3)
    source, mine = source_of(log), lagging(log, lock)
    cycle(source)
    cycle(mine, 2)
    requeue(known(log), [(1, 1)], Choice(letters=PROCESSED))
    assert cycle(source) == [1]
    assert owed(log) == [1, 3]
    assert cycle(mine) == [1, 3]


def test_windows_that_are_passed_over_hide_nothing_behind_them(
    log: LogTable, lock: LogLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.sources.log.lagging.WINDOW_ROWS", 2)
    left_behind(log, "far")
    log.write_all(range(1, 9), key="idu=1")
    write(log, 9, 10)
    cycle(source_of(log))
    hold(known(log), [(1, 1)])
    source = lagging(log, lock)
    assert cycle(source, 1) == [9]
    assert cycle(source, 0) == [10]
    log.run("DELETE FROM event_log WHERE record_id > 2")
    source.read(9)
    source.gone()
    assert owed(log) == [1, 2]


def test_who_was_forgotten_while_it_works_is_told_so(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far")
    write(log, 1)
    cycle(source_of(log))
    source = lagging(log, lock)
    batch = source.read(9)
    assert forget(known(log), "far", [], by="me") == 1
    with pytest.raises(SourceError, match="Somebody has forgotten the output far"):
        source.settle(batch, [Outcome(position=(1,))])
    with pytest.raises(SourceError, match="Somebody has forgotten the output far"):
        source.read(9)
    assert log.statuses() == {1: "W"}


def test_nothing_comes_between_giving_up_rows_and_forgetting_the_output(
    log: LogTable, lock: LogLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are settled meanwhile would wait for nobody then, and go to all others twice."""
    left_behind(log, "far")
    write(log, 1, 2)
    source = source_of(log)
    assert cycle(source, 1) == [1]
    transaction = Log.transaction
    read: list[int] = []

    @contextmanager
    def interrupted(mine: Log, *, lone: bool = False) -> Iterator[Connection]:
        with transaction(mine, lone=lone) as connection:
            yield connection
        if not read:
            read.append(1)
            read.extend(cycle(source))

    monkeypatch.setattr(Log, "transaction", interrupted)
    assert forget(known(log), "far", [], by="me") == 1
    monkeypatch.undo()
    assert read == [1, 2]
    assert log.statuses() == {1: "W", 2: "S"}


def test_what_was_given_up_while_it_was_on_its_way_may_be_published_anew(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far")
    write(log, 1, 2)
    source, mine = source_of(log), lagging(log, lock)
    cycle(source)
    batch = mine.read(9)
    assert skip(known(log), "far", Stretches([(1, 1)]), by="me") == 1
    requeue(known(log), [(1, 1)], Choice(letters=PROCESSED))
    mine.settle(batch, [Outcome(position=event.position) for event in batch.events])
    assert log.statuses() == {1: "N", 2: "S"}
    assert (cycle(source), cycle(mine)) == ([1], [1])
    assert log.statuses() == {1: "S", 2: "S"}


def test_what_was_said_of_a_row_that_somebody_settled_himself_is_not_said_of_it_again(
    log: LogTable, lock: LogLock
) -> None:
    left_behind(log, "far")
    write(log, 1)
    source, mine = source_of(log), lagging(log, lock)
    cycle(source, 9, Outcome(position=(1,), status=Status.ERROR, reason=Reason.REFUSED, note="no"))
    log.run("UPDATE event_log SET status = 'S' WHERE record_id = 1")
    assert cycle(mine) == []
    mine.gone()
    requeue(known(log), [(1, 1)], Choice(letters=PROCESSED))
    assert (cycle(source), cycle(mine)) == ([1], [1])
    assert log.statuses() == {1: "S"}


def test_rows_that_are_deleted_when_they_are_done_stay_for_who_lags(log: LogTable, lock: LogLock) -> None:
    left_behind(log, "far", "farther")
    settings = LogSettings(delete_from_log=True)
    write(log, 1, 2)
    assert cycle(source_of(log, settings)) == [1, 2]
    assert cycle(lagging(log, lock, settings=settings)) == [1, 2]
    assert log.statuses() == {1: "N", 2: "N"}
    refused = Outcome(position=(2,), status=Status.ERROR, reason=Reason.REFUSED, note="no")
    assert cycle(lagging(log, lock, "farther", settings), 9, refused) == [1, 2]
    assert log.statuses() == {2: "E"}


def test_who_is_left_behind_with_a_batch_takes_it_along_into_step(log: LogTable, lock: LogLock) -> None:
    source = source_of(log)
    write(log, 1, 2)
    batch = source.read(9)
    source.note({"far": '{"done":"1"}', "near": '{"done":"2"}'})
    left_behind(log, "far")
    with known(log).transaction() as connection:
        assert join(connection, known(log), "far", with_batch=True)
    again = source.read(9)
    assert dict(again.notes) == {"far": '{"done":"1"}', "near": '{"done":"2"}'}
    left_behind(log, "far")
    source = source_of(log)
    source.read(9)
    source.settle(batch, [Outcome(position=event.position) for event in batch.events])
    with known(log).transaction() as connection:
        assert not join(connection, known(log), "far", with_batch=True), "it is owed that now"


def test_transactions_are_counted_on_by_who_is_in_step_again(log: LogTable, lock: LogLock) -> None:
    source = source_of(log)
    write(log, 1, 2)
    batch = source.read(1)
    counted = write_counted(Counted(told={"far": {7: 1}, "near": {7: 1}}))
    source.settle(batch, [Outcome(position=(1,))], counted)
    left_behind(log, "far")
    assert cycle(source_of(log)) == [2]
    mine = lagging(log, lock)
    batch = mine.read(9)
    assert read_counted(batch.counted).told["far"] == {7: 1}
    mine.settle(batch, [Outcome(position=(2,))], write_counted(Counted(told={"far": {7: 2, 8: 5}})))
    with known(log).transaction() as connection:
        assert join(connection, known(log), "far")
    assert read_counted(source_of(log).read(9).counted).told == {"far": {7: 2, 8: 5}}
