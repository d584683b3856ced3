"""How much a batch may hold, on each database: bytes of values, rows of one object, and rows that wait behind others."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, event

from eventlog.care.rows import hold, release
from eventlog.core.model import Outcome
from eventlog.core.rules import Options, decide
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.log import Log
from tests.conformance.event_logs import LogTable, installed
from tests.support.log_rows import LogRows, TakenRows

SMALL = LogSettings(query_bytes=30_000, value_limit=20_000)
"""Ten thousand bytes a batch."""


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return installed(engine)


def source_of(log: LogTable, settings: LogSettings = SMALL) -> LogRows:
    return LogRows(log.engine, log.names, settings=settings)


def numbers(batch: TakenRows) -> list[int]:
    return [event.position[0] for event in batch.events]


def batches(source: LogRows, limit: int = 100) -> list[list[int]]:
    """Settle batch after batch until no row waits, and return their numbers."""
    found: list[list[int]] = []
    while (batch := source.read(limit)).events:
        found.append(numbers(batch))
        source.settle(batch, [Outcome(position=event.position) for event in batch.events])
    return found


def spread(log: LogTable, lengths: list[int], key: str | None = None) -> None:
    """Write rows with values of these lengths, each of its own object unless a key is given."""
    for number, length in enumerate(lengths, start=1):
        log.write(number, key=key or f"idu={number}", new_value="x" * length)


class Fetched:
    """Counts rows that statements about waiting rows bring, and the longest value among them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = 0
        self.longest = 0
        usual = Log.rows

        def rows(connection: Any, query: Any, parameters: Any = None) -> list[tuple[Any, ...]]:
            found = usual(connection, query, parameters)
            self.rows += len(found)
            texts = [len(value) for row in found for value in row if isinstance(value, str)]
            self.longest = max([self.longest, *texts])
            return found

        monkeypatch.setattr(Log, "rows", staticmethod(rows))


ROOMS = {
    "values": ([4000, 4000, 4000, 9000, 100, 100], 100, [[1, 2], [3], [4, 5, 6]]),
    "a value that has no room with others": ([100, 15_000, 100], 100, [[1], [2], [3]]),
    "many short values": ([500] * 50, 100, [[*range(1, 21)], [*range(21, 41)], [*range(41, 51)]]),
    "bytes, without a limit of rows": ([4000] * 5, 0, [[1, 2], [3, 4], [5]]),
}


@pytest.mark.parametrize("what", ROOMS)
def test_a_batch_ends_where_its_values_have_no_more_room(log: LogTable, what: str) -> None:
    lengths, limit, expected = ROOMS[what]
    spread(log, lengths)
    source = source_of(log)
    first = source.read(limit)
    assert [len(event.new or "") for event in first.rows] == lengths[: len(expected[0])]
    assert batches(source, limit) == expected


def test_an_object_is_only_cut_that_has_no_room_in_one_batch(log: LogTable) -> None:
    keys = ["a=1", "a=2", "a=2", "a=3", "a= 3", "a=3", "a=3", "a=4"]
    for number, key in enumerate(keys, start=1):
        log.write(number, key=key, new_value="x" * 3000)
    assert batches(source_of(log)) == [[1, 2, 3], [4, 5, 6], [7, 8]]


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
    again = source.read(100)
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
    fetched.rows = 0
    assert numbers(source.read(100)) == [1002, 1003, 1004]
    assert fetched.rows < 200
    release(Log(log.engine, log.names), [(1, 1)])
    assert sorted(numbers(source.read(0))) == list(range(1, 1005))


def test_rows_before_a_held_one_go_and_another_writing_of_a_name_is_another_object(log: LogTable) -> None:
    for number, key in enumerate(["idu=a", "idu=a", "idu=A", "idu=a", 'idu="a "', 'i"du=a', "idu=a'"], start=1):
        log.write(number, key=key)
    log.write(8, key="idu=a", table_name="USR")
    log.write(9, key="idu=a", table_name="other")
    hold(Log(log.engine, log.names), [(2, 2)])
    assert numbers(source_of(log).read(100)) == [1, 3, 5, 6, 7, 9]
