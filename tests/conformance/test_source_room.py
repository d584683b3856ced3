"""How much a batch may hold, on each database: bytes of values, rows of one object, and rows that wait behind others."""

from __future__ import annotations

from time import sleep
from typing import Any

import pytest
from sqlalchemy import Engine, event

from eventlog.admin.rows import hold, release
from eventlog.core.backoff import Backoff
from eventlog.core.model import Outcome, Reason, Status
from eventlog.core.rules import Options, decide
from eventlog.core.seams import Batch
from eventlog.sources.log.source import LogSettings, LogSource
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed

SMALL = LogSettings(query_bytes=30_000, value_limit=20_000)
"""Ten thousand bytes a batch."""


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return installed(engine)


def source_of(log: LogTable, settings: LogSettings = SMALL) -> LogSource:
    return LogSource(log.engine, log.names, settings=settings)


def numbers(batch: Batch) -> list[int]:
    return [event.position[0] for event in batch.events]


def batches(source: LogSource, limit: int = 100) -> list[list[int]]:
    """What all batches hold, until nothing waits."""
    found: list[list[int]] = []
    while (batch := source.read(limit)).events:
        found.append(numbers(batch))
        source.settle(batch, [Outcome(position=event.position) for event in batch.events])
    return found


def spread(log: LogTable, lengths: list[int], key: str | None = None) -> None:
    """Rows with values of these lengths, each of its own object unless a key is given."""
    for number, length in enumerate(lengths, start=1):
        log.write(number, key=key or f"idu={number}", new_value="x" * length)


class Fetched:
    """Counts rows that statements about waiting rows bring, and the longest value among them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        self.longest = 0
        usual = Log.rows

        def rows(log: Log, connection: Any, query: Any, parameters: Any = None) -> list[tuple[Any, ...]]:
            found = usual(log, connection, query, parameters)
            self.rows += len(found)
            texts = [len(value) for row in found for value in row if isinstance(value, str)]
            self.longest = max([self.longest, *texts])
            return found

        monkeypatch.setattr(Log, "rows", rows)


def test_a_batch_ends_where_its_values_have_no_more_room(log: LogTable) -> None:
    spread(log, [4000, 4000, 4000, 9000, 100, 100])
    source = source_of(log)
    batch = source.read(100)
    assert (numbers(batch), batch.more) == ([1, 2], True)
    assert [len(event.new or "") for event in batch.rows] == [4000, 4000]
    assert batches(source) == [[1, 2], [3], [4, 5, 6]]


def test_a_row_that_has_no_room_with_others_comes_alone(log: LogTable) -> None:
    spread(log, [100, 15_000, 100])
    source = source_of(log)
    assert batches(source) == [[1], [2], [3]]


def test_many_short_values_are_counted_too(log: LogTable) -> None:
    spread(log, [500] * 50)
    assert batches(source_of(log)) == [list(range(first, min(first + 20, 51))) for first in (1, 21, 41)]


def test_without_a_limit_the_bytes_count(log: LogTable) -> None:
    spread(log, [4000] * 5)
    assert batches(source_of(log), limit=0) == [[1, 2], [3, 4], [5]]


def test_an_object_is_only_cut_that_has_no_room_in_one_batch(log: LogTable) -> None:
    keys = ["a=1", "a=2", "a=2", "a=3", "a= 3", "a=3", "a=3", "a=4"]
    for number, key in enumerate(keys, start=1):
        log.write(number, key=key, new_value="x" * 3000)
    assert batches(source_of(log)) == [[1, 2, 3], [4, 5, 6], [7, 8]]


def test_an_object_with_very_many_rows_is_cut(log: LogTable) -> None:
    """Past the limit there is room for twenty rows more."""
    log.write(1, key="idu=9")
    log.write_all(range(2, 152))
    found = batches(source_of(log, LogSettings(query_bytes=60_000)), limit=10)
    assert [number for batch in found for number in batch] == list(range(1, 152))
    assert found[0] == [1]
    assert max(map(len, found)) <= 50


def test_a_batch_that_was_made_smaller_comes_again_as_it_was(log: LogTable) -> None:
    spread(log, [4000, 4000, 4000])
    source_of(log).read(100)
    again = source_of(log, LogSettings(query_bytes=300)).read(100)
    assert (numbers(again), again.repeated) == ([1, 2], True)
    assert [len(event.new or "") for event in again.rows] == [4000, 4000]


def test_what_is_read_ahead_shares_the_room(log: LogTable) -> None:
    if log.engine.dialect.name == "sqlite":
        pytest.skip("nothing is read ahead in a database that has one writer")
    spread(log, [6000, 6000, 6000, 6000, 9000])
    source = source_of(log)
    batch = source.read(100)
    ahead = source.read_ahead(100, [batch])
    third = source.read_ahead(100, [batch, ahead])
    assert [numbers(one) for one in (batch, ahead, third)] == [[1], [2], [3]]
    assert (ahead.weight, ahead.more) == (6000, True)
    oversized = Batch(events=batch.events, weight=30_000)
    assert numbers(source.read_ahead(100, [oversized])) == []
    nearly = Batch(events=batch.events, weight=25_000)
    assert numbers(source.read_ahead(100, [nearly])) == []


def test_a_large_row_takes_twice_its_room_because_its_document_stands_beside_it(log: LogTable) -> None:
    if log.engine.dialect.name == "sqlite":
        pytest.skip("nothing is read ahead in a database that has one writer")
    spread(log, [6000, 40_000])
    source = source_of(log, LogSettings(query_bytes=3_030_000))
    batch = source.read(1)
    for weight, found in [(1_000_000, [2]), (1_500_001, [])]:
        in_hand = Batch(events=batch.events, weight=weight)
        assert numbers(source.read_ahead(100, [in_hand])) == found


def test_what_is_read_ahead_cuts_no_object_that_has_room_alone(log: LogTable) -> None:
    if log.engine.dialect.name == "sqlite":
        pytest.skip("nothing is read ahead in a database that has one writer")
    spread(log, [6000])
    for number in (2, 3):
        log.write(number, key="idu=2", column_name=f"c{number}", new_value="x" * 4000)
    source = source_of(log)
    batch = source.read(1)
    nearly = Batch(events=batch.events, weight=24_000)
    assert numbers(source.read_ahead(100, [nearly])) == []
    assert numbers(source.read_ahead(100, [batch])) == [2, 3]


def test_a_value_that_is_too_large_is_not_fetched_and_its_row_says_so(
    log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    spread(log, [100, 20_001, 100, 20_000])
    log.run("UPDATE event_log SET old_value = 'xx' WHERE record_id = 4")
    log.write(5, key="idu=5", column_name=None, new_value="y" * 30_000)
    source, fetched = source_of(log), Fetched(monkeypatch)
    batch = source.read(100)
    assert numbers(batch) == [1, 2, 3, 4, 5]
    assert fetched.longest < 1000
    outcomes = decide(batch.rows, options=Options()).outcomes
    assert [outcome.status for outcome in outcomes] == [*"SESEE"]
    assert outcomes[1].note == (
        "old_value and new_value of usr idu=2, column fname have 20001 bytes together, more than publisher.value_limit,"
        " which is 20000. Raise it and requeue the row."
    )
    again = source_of(log).read(100)
    assert [event.fault is None for event in again.rows] == [True, False, True, False, False]
    assert fetched.longest < 1000


def test_lengths_are_counted_in_bytes_where_letters_have_several(log: LogTable) -> None:
    spread(log, [10])
    log.write(2, key="idu=2", new_value="ж" * 10_001)
    batch = source_of(log).read(100)
    limit = log.engine.dialect.name == "oracle"
    assert [event.fault is None for event in batch.rows] == [True, limit]


def test_a_row_that_goes_between_its_length_and_its_value_is_left_out(log: LogTable) -> None:
    if log.engine.dialect.name == "sqlite":
        pytest.skip("nobody can write between two statements of a transaction")
    spread(log, [4000, 4000, 100])
    gone: list[str] = []

    def delete(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "octet_length" in statement.lower() or "LENGTH(" in statement:
            gone.append(statement)
            if len(gone) == 1:
                log.run("DELETE FROM event_log WHERE record_id = 2")

    source = source_of(log)
    event.listen(log.engine, "after_cursor_execute", delete)
    try:
        batch = source.read(100)
    finally:
        event.remove(log.engine, "after_cursor_execute", delete)
    assert numbers(batch) == [1, 3]


@pytest.mark.parametrize("key", ["idu=1", "idu= 1"])
def test_rows_behind_a_held_one_are_not_fetched(log: LogTable, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """However they write its key."""
    log.write(1, key=key)
    log.write_all(range(2, 1002))
    log.write(1002, key="idu=2")
    log.write(1003, key="no key")
    log.write(1004, key="idu=1", table_name=None)
    hold(Log(log.engine, log.names), [(1, 1)])
    source, fetched = source_of(log, LogSettings()), Fetched(monkeypatch)
    assert numbers(source.read(100)) == [1002, 1003, 1004]
    assert fetched.rows < 200
    release(Log(log.engine, log.names), [(1, 1)])
    assert numbers(source.read(0))[:2] == [1002, 1003]


def test_rows_before_a_held_one_go_and_another_writing_of_a_name_is_another_object(log: LogTable) -> None:
    for number, key in enumerate(["idu=a", "idu=a", "idu=A", "idu=a", 'idu="a "', 'i"du=a', "idu=a'"], start=1):
        log.write(number, key=key)
    log.write(8, key="idu=a", table_name="USR")
    log.write(9, key="idu=a", table_name="other")
    hold(Log(log.engine, log.names), [(2, 2)])
    assert numbers(source_of(log).read(100)) == [1, 3, 5, 6, 7, 9]


def test_rows_of_an_object_that_is_offered_again_are_not_fetched(
    log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = LogSettings(backoff=Backoff(first=3600, longest=3600), on_retry="object")
    source = source_of(log, settings)
    log.write(5)
    batch = source.read(0)
    source.settle(batch, [Outcome(position=(5,), status=Status.NEW, reason=Reason.RETRY)])
    log.write_all([*range(1, 5), *range(6, 1000)])
    log.write(1000, key="idu=2")
    fetched = Fetched(monkeypatch)
    assert numbers(source.read(100)) == [1000]
    assert fetched.rows < 200


def test_only_of_rows_that_have_waited_longest_it_is_recorded_what_they_wait_for(
    log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.sources.log.left_out.NOTED_ROWS", 10)
    log.write_all(range(1, 100))
    hold(Log(log.engine, log.names), [(1, 1)])
    source_of(log).read(100)
    recorded = log.outcomes()
    assert sorted(recorded) == list(range(1, 11))
    assert recorded[10][2] == "row 1 of the same object comes first."


def test_rows_of_a_table_that_may_not_be_read_wait_while_others_go_on(log: LogTable) -> None:
    source = source_of(log, LogSettings(backoff=Backoff(first=3600, longest=3600)))
    log.write(1, table_name="secret")
    log.write(2)
    batch = source.read(1)
    refused = Outcome(position=(1,), status=Status.NEW, reason=Reason.NO_RIGHT, note="permission denied.")
    source.settle(batch, [refused])
    log.write(3, table_name="secret", key="idu=3")
    log.write(4, table_name=None)
    assert log.ask("SELECT value FROM event_log_mark WHERE name = 'unread'") == [('{"secret":"permission denied."}',)]
    batch = source.read(1)
    assert numbers(batch) == [2]
    source.settle(batch, [Outcome(position=(2,))])
    batch = source.read(10)
    assert numbers(batch) == [4]
    source.settle(batch, [Outcome(position=(4,))])
    assert numbers(source.read(10)) == []
    anew = source_of(log)  # one that was started again tries at once
    batch = anew.read(10)
    assert numbers(batch) == [1, 3]
    anew.settle(batch, [Outcome(position=event.position) for event in batch.events])
    assert log.ask("SELECT value FROM event_log_mark WHERE name = 'unread'") == []
    assert log.outcomes() == {}


def test_a_table_whose_rows_are_gone_is_forgotten(log: LogTable) -> None:
    source = source_of(log, LogSettings(backoff=Backoff(first=0.001, longest=0.001)))
    log.write(1, table_name="secret")
    batch = source.read(1)
    source.settle(batch, [Outcome(position=(1,), status=Status.NEW, reason=Reason.NO_RIGHT, note="no")])
    log.run("DELETE FROM event_log")
    assert log.ask("SELECT count(*) FROM event_log_mark WHERE name = 'unread'") == [(1,)]
    sleep(0.01)
    assert numbers(source.read(1)) == []
    assert log.ask("SELECT count(*) FROM event_log_mark WHERE name = 'unread'") == [(0,)]
