"""RowRanges of a log read in bulk: the same rows from every database, as of one moment where it can be had."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.convert.reading import read_log
from eventlog.convert.settings import Conversion, LogInput
from eventlog.core.errors import ConfigError, DataError, SourceError
from eventlog.sql.names import STANDARD, TRANSACTION
from eventlog_spark.exchange import rows_of
from eventlog_spark.log import ROWS, BulkLog, batches, cut_numbers
from eventlog_spark.options import LogOptions, NumberRange, read_options
from eventlog_spark.snapshot import hold
from eventlog_spark.source import plan_ranges
from tests.conformance.event_logs import LogTable, installed

EVERYTHING = NumberRange(first=1, last=10**9)
values = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
awkward = st.sampled_from(["", "\\N", "\\.", "NULL", '"', "a,b", "a\nb", "a\r\nb", " ", "'", "\t", "é😀"])


def options(engine: Engine, **told: Any) -> LogOptions:
    return LogOptions(url=engine.url.render_as_string(hide_password=False), **told)


def read(told: LogOptions, row_range: NumberRange = EVERYTHING) -> list[dict[str, Any]]:
    table = pa.Table.from_batches(batches(BulkLog(told), row_range), ROWS)
    return sorted(table.to_pylist(), key=lambda row: row["record_id"])


@pytest.fixture
def log(engine: Engine) -> LogTable:
    return installed(engine)


def test_rows_come_as_they_stand_in_the_log(log: LogTable) -> None:
    log.write(1, key="idu=1", perpetrator="app", old_value="", new_value='a\n"b",\\c')
    log.write(2, key='idu="2"', status="S", event_type=6, column_name=None, new_value=None)
    first, second = read(options(log.engine))
    assert list(first) == list(STANDARD)
    assert (first["record_id"], first["event_type"], first["status"]) == (1, 1, "N")
    assert (first["perpetrator"], first["old_value"], first["new_value"]) == ("app", "", 'a\n"b",\\c')
    assert first["event_time"].startswith("2025-03-23 10:57:19")
    assert (second["table_key"], second["column_name"], second["new_value"]) == ('idu="2"', None, None)


def test_a_conversion_reads_transactions_with_the_rows_as_the_local_engine_does(postgresql: Engine) -> None:
    install(postgresql)
    write = "INSERT INTO event_log (table_key, event_type, table_name, column_name) VALUES"
    for rows in ("('idu=1', 1, 'usr', 'fname'), ('idu=2', 1, 'usr', 'fname')", "('idu=3', 1, 'usr', 'fname')"):
        with postgresql.begin() as connection:
            connection.execute(text(f"{write} {rows}"))
    source = LogInput(url=postgresql.url.render_as_string(hide_password=False))
    conversion = Conversion(input=source, destination=Path("nowhere"))
    found = pa.Table.from_batches(rows_of(conversion, EVERYTHING)).sort_by("record_id")
    assert found.equals(pa.Table.from_batches(read_log(source)).sort_by("record_id"))
    first, second, third = found.column(TRANSACTION).to_pylist()
    assert None not in (first, third)
    assert first == second != third
    assert [*read(options(postgresql))[0]] == [*STANDARD]


def test_times_of_a_place_come_in_utc_where_the_clock_is_said(log: LogTable) -> None:
    log.write(1, event_time="2025-10-26 02:30:00")
    log.write(2, event_time="2025-10-26 03:30:00")
    assert [row["event_time"] for row in read(options(log.engine, clock="Europe/Berlin"))] == [
        "2025-10-26 00:30:00",
        "2025-10-26 02:30:00",
    ]
    given = {"url": "sqlite://", "clock": "Asia/Tokyo"}
    assert read_options(given).names.clock == "Asia/Tokyo"
    assert read_options(given | {"clock": "database"}).clock == "database"


def test_only_the_stretch_and_only_the_letters_that_are_asked_for(log: LogTable) -> None:
    log.write_all(range(1, 11))
    log.run("UPDATE event_log SET status = 'S' WHERE record_id > 5")
    assert [row["record_id"] for row in read(options(log.engine), NumberRange(first=3, last=7))] == [3, 4, 5, 6, 7]
    assert [row["record_id"] for row in read(options(log.engine, status="N"))] == [1, 2, 3, 4, 5]
    assert [row["record_id"] for row in read(options(log.engine, status="SE"))] == [6, 7, 8, 9, 10]


def test_a_plan_covers_the_log_and_no_row_twice(log: LogTable) -> None:
    log.write_all([1, 2, 3, 50, 51, 99, 1000])
    told = options(log.engine, partitions=4, patience=30)
    found = [row["record_id"] for row_range in plan_ranges(told) for row in read(told, row_range)]
    assert found == [1, 2, 3, 50, 51, 99, 1000]


def test_an_empty_log_is_read_as_no_rows(log: LogTable) -> None:
    told = options(log.engine, patience=30)
    (row_range,) = plan_ranges(told)
    assert read(told, row_range) == []


def test_all_stretches_of_a_plan_see_the_same_moment(postgresql: Engine) -> None:
    log = installed(postgresql)
    log.write_all(range(1, 9))
    told = options(postgresql, partitions=2, patience=30)
    plan = plan_ranges(told)
    log.run("DELETE FROM event_log WHERE record_id < 8")
    log.write_all([9])
    assert [row["record_id"] for row_range in plan for row in read(told, row_range)] == list(range(1, 9))


@pytest.mark.in_turn
def test_a_snapshot_lasts_as_long_as_somebody_reads_and_not_longer(postgresql: Engine) -> None:
    log = installed(postgresql)
    log.write_all([1])
    bulk = BulkLog(options(postgresql))
    snapshot = hold(bulk.engine, 3)
    with bulk.connection(snapshot):
        time.sleep(4.5)
    assert read(options(postgresql), NumberRange(first=1, last=9, snapshot=snapshot))
    deadline = time.monotonic() + 120
    while log.ask("SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with pytest.raises(SourceError, match="has ended"):
        read(options(postgresql), NumberRange(first=1, last=9, snapshot=snapshot))


def test_a_reader_that_stops_early_leaves_a_session_that_is_closed(postgresql: Engine) -> None:
    log = installed(postgresql)
    log.run("INSERT INTO event_log SELECT n, repeat('k', 1000), 'N', 1, now() FROM generate_series(1, 9000) AS n")
    bulk = BulkLog(options(postgresql))
    reading: Any = batches(bulk, EVERYTHING)
    assert len(next(reading)) < 9000
    reading.close()
    deadline = time.monotonic() + 120  # the server sees a closed connection when it writes to it next
    while log.ask("SELECT 1 FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active'"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@settings(max_examples=15)
@given(st.lists(st.tuples(values | awkward, values | awkward), max_size=30))
def test_copy_brings_every_text_as_it_is(postgresql_server: str, pairs: list[tuple[str | None, str | None]]) -> None:
    from sqlalchemy import create_engine

    engine = create_engine(f"{postgresql_server}postgres")
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS texts"))
        columns = ", ".join(f"{name} {'bigint' if name == 'record_id' else 'text'}" for name in STANDARD)
        connection.execute(text(f"CREATE TABLE texts ({columns})"))
        for number, (old, new) in enumerate(pairs):
            sql = text("INSERT INTO texts (record_id, event_type, old_value, new_value) VALUES (:n, '1', :old, :new)")
            connection.execute(sql, {"n": number + 1, "old": old, "new": new})
    found = [(row["old_value"], row["new_value"]) for row in read(options(engine, log="texts"))]
    engine.dispose()
    assert found == pairs


def test_a_column_that_holds_no_numbers_is_named(postgresql: Engine) -> None:
    log = installed(postgresql)
    log.run("ALTER TABLE event_log ALTER COLUMN event_type TYPE text")
    log.write(1, event_type="six")
    with pytest.raises(DataError, match="six"):
        read(options(postgresql))


@pytest.mark.parametrize(
    "given, told",
    [
        ({}, "The option url is missing"),
        ({"url": "sqlite://", "lgo": "x"}, r"There is no option lgo\. Did you mean log\?"),
        ({"url": "sqlite://", "clock": "Asia/Tokio"}, "The option clock = 'Asia/Tokio' names no time zone"),
        ({"url": "sqlite://", "partitions": "many"}, "The option partitions is 'many'; it must be a whole number"),
    ],
)
def test_options_that_are_wrong_are_named(given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_options(given)


@given(st.integers(-50, 50), st.integers(0, 200), st.integers(1, 20))
def test_stretches_lie_side_by_side(first: int, width: int, count: int) -> None:
    found = cut_numbers(first, first + width, count)
    assert len(found) <= count
    numbers = [number for one in found for number in range(one.first, one.last + 1)]
    assert numbers == list(range(first, first + width + 1))
