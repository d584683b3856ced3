"""The data source `eventlog` in Spark: a log as a DataFrame and as a stream, by the calls that the documentation shows."""

from __future__ import annotations

import datetime as dt
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.datasource import InputPartition
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

from eventlog.care.rows import hold, release
from eventlog.core.errors import EventlogError, InstallError
from eventlog.sql.log import Log
from eventlog_spark import EventLogSource
from eventlog_spark.faults import FaultError, arriving, read
from eventlog_spark.gaps import Step, read_offset
from eventlog_spark.limits import ReadAllAvailable, ReadMaxRows
from eventlog_spark.options import LogOptions, NumberRange, read_options
from eventlog_spark.source import LogReader
from eventlog_spark.stream import LogStream
from tests.conformance.event_logs import NAMES, installed
from tests.integration.publishing import until
from tests.support.compiled import engine_on
from tests.support.servers import absent, postgres_binaries, postgresql_running

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def loaded(spark: SparkSession, engine: Engine, **options: str) -> DataFrame:
    spark.dataSource.register(EventLogSource)
    url = engine.url.render_as_string(hide_password=False)
    return spark.read.format("eventlog").option("url", url).option("patience", "60").options(**options).load()


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_log_is_a_table_of_ten_columns(spark: SparkSession, database: str, request: pytest.FixtureRequest) -> None:
    log = installed(request.getfixturevalue(database))
    log.write_all(range(1, 101))
    log.run("UPDATE event_log SET status = 'S' WHERE record_id > 60")
    frame = loaded(spark, log.engine, log="event_log", partitions="3")
    assert frame.schema.simpleString() == (
        "struct<record_id:bigint,status:string,event_type:bigint,event_time:timestamp,perpetrator:string,"
        "table_name:string,table_key:string,column_name:string,old_value:string,new_value:string>"
    )
    assert frame.selectExpr("count(*)", "sum(record_id)", "count(new_value)").collect() == [(100, 5050, 0)]
    assert loaded(spark, log.engine, status="N", partitions="3").count() == 60


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_contexts_are_a_column_more(database: str, request: pytest.FixtureRequest) -> None:
    """They come beside transactions, or alone; where the log does not say them they are NULL."""
    log = installed(request.getfixturevalue(database))
    log.write_all([1])
    url = log.engine.url.render_as_string(hide_password=False)

    def told(transactions: bool = False) -> tuple[list[str], list[Any]]:
        options = LogOptions(url=url, context=True, transactions=transactions)
        [batch] = LogReader(options).read(InputPartition(NumberRange(first=1, last=9)))
        return batch.schema.names[10:], batch.column("eventlog_context").to_pylist()

    both = ["eventlog_transaction", "eventlog_context"]
    assert told(transactions=True) == (both, [None])
    log.run("ALTER TABLE event_log ADD eventlog_context VARCHAR(400)")
    log.run("UPDATE event_log SET eventlog_context = 'alice'")
    assert told() == (both[1:], ["alice"])
    assert told(transactions=True) == (both, ["alice"])


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_transactions_are_an_eleventh_column(database: str, request: pytest.FixtureRequest) -> None:
    """At rest and as a stream; NULL where the log does not say them."""
    log = installed(request.getfixturevalue(database))
    log.write_all([1])
    options = LogOptions(url=log.engine.url.render_as_string(hide_password=False), transactions=True)

    def told() -> list[Any]:
        rest, stream = LogReader(options), LogStream(options)
        found = [*rest.read(InputPartition(NumberRange(first=1, last=9)))]
        found += stream.read(InputPartition((Step(first=1, last=9),)))
        return [value for batch in found for value in batch.column("eventlog_transaction").to_pylist()]

    assert told() == [None, None]
    log.run("ALTER TABLE event_log ADD eventlog_transaction VARCHAR(20)")
    log.run("UPDATE event_log SET eventlog_transaction = '4711'")
    assert told() == ["4711", "4711"]


def test_what_is_wrong_with_the_log_arrives_as_what_it_is(spark: SparkSession, sqlite: Engine) -> None:
    installed(sqlite)
    with pytest.raises(InstallError, match="no event log nowhere"), arriving():
        loaded(spark, sqlite, log="nowhere").count()
    with pytest.raises(EventlogError, match="There is no option tabel"), arriving():
        loaded(spark, sqlite, tabel="event_log").count()


@pytest.mark.in_turn
def test_a_stream_gives_every_row_once_and_goes_on_where_it_stopped(
    spark: SparkSession, sqlite: Engine, tmp_path: Path
) -> None:
    log = installed(sqlite)
    spark.dataSource.register(EventLogSource)
    log.write_all(range(1, 26))
    assert streamed(spark, sqlite, tmp_path) == list(range(1, 26))
    log.write_all([30, 27])
    assert streamed(spark, sqlite, tmp_path) == [*range(1, 26), 27, 30]


@pytest.mark.in_turn
def test_a_run_until_nothing_is_left_obeys_its_limit_and_ends_where_it_began(
    spark: SparkSession, sqlite: Engine, tmp_path: Path
) -> None:
    log = installed(sqlite)
    spark.dataSource.register(EventLogSource)
    log.write_all(range(1, 61))
    sizes: list[int] = []

    def take(batch: DataFrame, _: int) -> None:
        sizes.append(batch.count())
        # What is written meanwhile is of the next run.
        log.write_all([100 + len(sizes)])

    def run(**trigger: bool) -> None:
        source = spark.readStream.format("eventlog").option("url", str(sqlite.url)).option("rows", "25").load()
        writer = source.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        with arriving():
            writer.foreachBatch(take).trigger(**trigger).start().awaitTermination()

    run(availableNow=True)
    assert sizes == [25, 25, 10]
    log.write_all(range(200, 260))
    run(once=True)
    assert sizes[3:] == [63]


def test_a_stream_has_batches_of_the_size_that_spark_asks_for(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog_spark.stream.LOOK_NUMBERS", 4)
    log, stream = installed(sqlite), LogStream(LogOptions(url=str(sqlite.url), rows=3))
    log.write_all([*range(1, 11), 14, 15])
    assert stream.getDefaultReadLimit() == ReadMaxRows(3)
    start = stream.initialOffset()
    assert [stream.latestOffset(start, limit)["upto"] for limit in (None, ReadMaxRows(5), ReadAllAvailable())] == [
        3,
        5,
        15,
    ]
    assert stream.reportLatestOffset() == {"upto": 15}
    end = stream.latestOffset(start, ReadAllAvailable())
    assert [number for numbers in _numbers(stream, start, end) for number in numbers] == [*range(1, 11), 14, 15]


def _numbers(stream: LogStream, start: dict[str, Any], end: dict[str, Any]) -> list[list[int]]:
    return [_ids(batch) for part in stream.partitions(start, end) for batch in stream.read(part)]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_times_are_times_however_they_are_written(database: str, request: pytest.FixtureRequest) -> None:
    log = installed(request.getfixturevalue(database))
    log.run("ALTER TABLE event_log RENAME COLUMN event_time TO other")
    log.run("ALTER TABLE event_log ADD event_time VARCHAR(40)")
    log.run("UPDATE event_log SET other = other")
    noon = dt.datetime(2026, 1, 2, 12, 0, 0, 500_000, tzinfo=dt.UTC)
    told = ["2026-01-02 12:00:00.5", "2026-01-02T13:00:00.500+01:00", "2026-01-02-12.00.00.500000", "soon", None]
    for number, time in enumerate(told, 1):
        log.write(number, event_time=time)
    url = log.engine.url.render_as_string(hide_password=False)

    def times(**options: str) -> list[Any]:
        reader = LogReader(read_options({"url": url, **options}))
        return [value for rows in reader.read(InputPartition(ALL)) for value in rows.column("event_time").to_pylist()]

    assert times() == [noon, noon, noon, None, None]
    assert times(event_time="text") == told


ALL = NumberRange(first=1, last=99)


def streamed(spark: SparkSession, engine: Engine, place: Path) -> list[int]:
    """The numbers of the rows in the output of a stream that ran until nothing was left, ten rows a batch."""
    source = spark.readStream.format("eventlog").option("url", str(engine.url)).option("rows", "10").load()
    writer = source.writeStream.format("parquet").option("checkpointLocation", str(place / "checkpoint"))
    with arriving():
        query = writer.start(str(place / "out"))
        query.processAllAvailable()
        query.stop()
    return sorted(row.record_id for row in spark.read.parquet(str(place / "out")).collect())


def test_a_stream_waits_for_a_row_that_commits_late_and_not_for_one_that_never_comes(postgresql: Engine) -> None:
    log = installed(postgresql)
    stream = LogStream(LogOptions(url=postgresql.url.render_as_string(hide_password=False)))
    offset = stream.initialOffset()

    def taken() -> list[int]:
        nonlocal offset
        end = stream.latestOffset(offset)
        parts = stream.partitions(offset, end)
        offset = end
        return sorted(number for part in parts for batch in stream.read(part) for number in _ids(batch))

    with postgresql.connect() as slow, postgresql.connect() as failing:
        _write(slow, 1)
        _write(failing, 2)
        log.write_all([3])
        assert taken() == [3]
        failing.rollback()
        assert taken() == []
        log.write_all([4])
        assert taken() == [4]
        slow.commit()
        assert taken() == [1]
    assert taken() == []
    assert read_offset(offset).gaps == ()


def test_a_stream_waits_for_a_prepared_transaction_although_the_server_starts_anew() -> None:
    """The server calls the transaction otherwise then: it has no session any more."""
    binaries = postgres_binaries()
    if binaries is None:
        absent("postgres", "its binaries are not there")
    settings = {"max_prepared_transactions": "1", "synchronous_commit": "on"}
    with postgresql_running(binaries, **settings) as server:
        engine = engine_on(f"{server}postgres", isolation_level="AUTOCOMMIT")
        log, offset = installed(engine), LogStream(LogOptions(url=str(engine.url))).initialOffset()

        def taken() -> list[int]:
            nonlocal offset
            stream = LogStream(LogOptions(url=str(engine.url)))
            end = stream.latestOffset(offset)
            parts = stream.partitions(offset, end)
            offset = end
            return [number for part in parts for batch in stream.read(part) for number in _ids(batch)]

        with engine.connect() as connection:
            connection.exec_driver_sql("BEGIN")
            _write(connection, 1)
            log.write_all([2])
            assert taken() == [2]
            connection.exec_driver_sql("PREPARE TRANSACTION 'slow'")
            (backend,) = connection.exec_driver_sql("SELECT pg_backend_pid()").scalars()
        os.kill(backend, signal.SIGKILL)  # the server ends all sessions then, and recovers
        engine.dispose()
        until(lambda: _answers_without(engine, backend), "the server answers again")
        assert taken() == []
        log.run("COMMIT PREPARED 'slow'")
        assert taken() == [1]
        assert read_offset(offset).gaps == ()
        engine.dispose()


def _answers_without(engine: Engine, backend: int) -> bool:
    """Say whether the server has recovered: until it sees that a session was killed, it still answers and lists it."""
    with suppress(OperationalError), engine.connect() as connection:
        gone = text("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = :backend)")
        return bool(connection.execute(gone, {"backend": backend}).scalar())
    return False


def test_a_log_whose_numbers_begin_again_is_told_and_one_that_is_purged_is_not(postgresql: Engine) -> None:
    log = installed(postgresql)
    stream = LogStream(LogOptions(url=postgresql.url.render_as_string(hide_password=False)))
    log.run("ALTER TABLE event_log ALTER record_id ADD GENERATED BY DEFAULT AS IDENTITY")
    row = "INSERT INTO event_log (table_key, status, event_type, event_time) VALUES ('idu=1', 'N', 6, '2026-01-01')"
    for _ in range(3):
        log.run(row)
    end = stream.latestOffset(stream.initialOffset())
    log.run("DELETE FROM event_log")
    assert stream.latestOffset(end) == end
    log.run("TRUNCATE event_log RESTART IDENTITY")
    log.run(row)
    with pytest.raises(FaultError) as told:
        stream.latestOffset(end)
    assert "its last one is 1, and rows up to 3 were read before." in str(read(str(told.value)))


def test_a_stream_that_can_keep_no_more_rows_that_are_held_says_so(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = installed(sqlite)
    for module in ("gaps", "stream"):
        monkeypatch.setattr(f"eventlog_spark.{module}.MOST_GAPS", 2)
    log.write_all(range(1, 9))
    # Each row is of an object of its own: one that is held holds nothing else back.
    log.run("UPDATE event_log SET table_key = 'idu=' || record_id")
    hold(Log(sqlite, NAMES), [(2, 2), (4, 4), (6, 6)])
    stream = LogStream(LogOptions(url=str(sqlite.url)))
    end = stream.latestOffset(stream.initialOffset())
    assert end["upto"] == 5
    with pytest.raises(FaultError) as told:
        stream.latestOffset(end)
    assert "Held rows are at 2 separate places of the log" in str(read(str(told.value)))
    release(Log(sqlite, NAMES), [(2, 2)])
    assert stream.latestOffset(end)["upto"] == 8


def test_a_stream_follows_the_log_of_every_database(engine: Engine) -> None:
    log = installed(engine)
    stream = LogStream(LogOptions(url=engine.url.render_as_string(hide_password=False), rows=3, start=1, patience=0))
    offset = stream.initialOffset()
    log.write_all([1, 2, 5, 6, 7])
    hold(Log(engine, NAMES), [(5, 5)])
    taken = []
    for look in range(4):
        if look == 2:
            release(Log(engine, NAMES), [(5, 5)])
        end = stream.latestOffset(offset)
        taken.append([n for part in stream.partitions(offset, end) for rows in stream.read(part) for n in _ids(rows)])
        offset = end
    # All rows are of one object, so those behind the held one wait with it.
    assert [sorted(numbers) for numbers in taken] == [[2], [], [5, 6, 7], []]
    assert read_offset(offset).gaps == ()


def _write(connection: Connection, number: int) -> None:
    columns = "record_id, table_key, status, event_type, event_time, table_name"
    values = f"{number}, 'idu=1', 'N', 6, '2025-03-23 10:57:19', 'usr'"
    connection.execute(text(f"INSERT INTO event_log ({columns}) VALUES ({values})"))


def _ids(batch: Any) -> list[int]:
    return list(batch.column("record_id").to_pylist())
