"""Purging on every database: what goes and what stays, archives before deletions, logs in schemas and partitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.care.listing import Filters, newest
from eventlog.care.rows import Choice, hold, requeue
from eventlog.core.errors import SinkError
from eventlog.purge.archive import Archive, ArchiveFile
from eventlog.purge.deleting import Purge, Purged, purge
from eventlog.sql.log import Log
from eventlog.sql.names import CONTEXT, TRANSACTION, LogNames
from tests.conformance.event_logs import LogTable

DAY = 86_400
OLD = "2020-01-01 00:00:00"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive"


def done(log: Log, archive: Archive | None = None, **wanted: Any) -> Purged:
    *_, last = purge(log, Purge(age=wanted.pop("age", DAY), **wanted), archive)
    return last


def archived(folder: Path) -> list[dict[str, Any]]:
    tables: list[Any] = [parquet.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    return [row for table in tables for row in table.to_pylist()]


def note(table: LogTable, number: int, status: str, finished: str = OLD) -> None:
    table.run(
        "INSERT INTO event_log_outcome (record_id, status, reason, note, finished_at)"
        " VALUES (:n, :s, 'refused', 'why', :t)",
        {"n": number, "s": status, "t": finished},
    )


def test_old_processed_rows_go_and_everything_else_stays(table: LogTable, log: Log) -> None:
    for number, status in enumerate("SWENFX", start=1):
        table.write(number, status=status, event_time=OLD)
    table.write(7, status="S", event_time="2999-01-01 00:00:00")
    table.write(8, status="E", event_time=None)
    table.write(9, status="E", event_time=None)
    note(table, 3, "E")
    note(table, 5, "F")
    note(table, 9, "E")
    assert done(log) == Purged(rows=4)
    assert table.statuses() == {4: "N", 5: "F", 6: "X", 7: "S", 8: "E"}
    assert set(table.outcomes()) == {5}


def test_rows_that_wait_leave_the_journal_with_the_log(table: LogTable, log: Log) -> None:
    for number, time in ((1, OLD), (2, "2999-01-01 00:00:00")):
        table.write(number, event_time=time)
        table.run(
            "INSERT INTO event_log_parked (record_id, output, object, reason, attempts, due)"
            f" VALUES ({number}, 'a', 'usr/idu=1', '{'behind' if number > 1 else 'held'}', 0, NULL)"
        )
    table.run("INSERT INTO event_log_output (name, position, plans) VALUES ('a', 0, 0)")
    hold(log, [(1, 1)])
    assert done(log, statuses="N").rows == 1
    assert table.ask("SELECT record_id FROM event_log_parked") == [(2,)]
    assert table.ask("SELECT record_id FROM event_log_hold") == []


def test_the_age_is_counted_back_from_the_databases_clock(table: LogTable, log: Log) -> None:
    with log.transaction() as connection:
        ago = {age: connection.execute(log.query("cutoff"), {"age": age * 3600.0}).scalar_one() for age in (1, 3)}
    for number, time in enumerate(ago.values(), start=1):
        table.write(number, status="S", event_time=str(time))
    assert done(log, age=2 * 3600).rows == 1
    assert table.statuses() == {1: "S"}


def test_rows_stand_in_the_archive_as_they_were(table: LogTable, log: Log, folder: Path) -> None:
    table.write(1, status="S", event_time="2020-01-01 10:11:12", old_value="", new_value="Jörg", perpetrator="me")
    table.write(2, status="E", event_time=OLD, column_name=None)
    note(table, 2, "E")
    found = done(log, Archive(folder, log.name))
    assert (found.rows, found.archived, len(found.files)) == (2, 2, 1)
    first, second = archived(folder)
    assert first == {
        "record_id": 1,
        "status": "S",
        "event_type": 1,
        "event_time": "2020-01-01T10:11:12",
        "perpetrator": "me",
        "table_name": "usr",
        "table_key": "idu=1",
        "column_name": "fname",
        "old_value": "",
        "new_value": "Jörg",
        "reason": None,
        "note": None,
        TRANSACTION: None,
        CONTEXT: None,
    }
    assert (second["column_name"], second["reason"], second["note"]) == (None, "refused", "why")
    assert table.statuses() == {}


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set stretches of ten rows (PostgreSQL: a page) and files of twenty-five."""
    monkeypatch.setattr("eventlog.purge.deleting.RANGE_ROWS", 10)
    monkeypatch.setattr("eventlog.purge.deleting.FILE_ROWS", 25)


@pytest.fixture
def many(table: LogTable, pieces: None) -> list[int]:
    """Old rows over several stretches, waiting ones between them, gaps in the numbers."""
    sql = (
        "INSERT INTO event_log (record_id, table_key, status, event_type, event_time, table_name, column_name, new_value)"
        " VALUES (:n, 'idu=1', :s, 1, :t, 'usr', 'fname', :v)"
    )
    numbers = [number * 3 for number in range(1, 301)]
    rows = [{"n": n, "s": "N" if n % 5 == 0 else "S", "t": OLD, "v": "x" * 200} for n in numbers]
    table.run(sql, rows)
    return [number for number in numbers if number % 5]


def test_many_rows_go_in_pieces_and_are_archived_once(table: LogTable, log: Log, many: list[int], folder: Path) -> None:
    steps = list(purge(log, Purge(age=DAY), Archive(folder, log.name)))
    assert steps[-1].rows == steps[-1].archived == len(many)
    assert len(steps[-1].files) >= 3
    assert len({step.rows for step in steps}) > 5
    assert sorted(row["record_id"] for row in archived(folder)) == many
    assert set(table.statuses().values()) == {"N"}


@pytest.mark.parametrize("stop", [1, 4, 9])
def test_broken_off_anywhere_no_row_is_lost_and_a_repeat_finishes(
    table: LogTable, log: Log, many: list[int], folder: Path, stop: int
) -> None:
    steps = purge(log, Purge(age=DAY), Archive(folder, log.name))
    for _ in range(stop):
        next(steps)
    steps.close()  # type: ignore[attr-defined]  # it is a generator
    kept = {row["record_id"] for row in archived(folder)}
    assert kept | set(table.statuses()) >= set(many)
    done(log, Archive(folder, log.name))
    numbers = [row["record_id"] for row in archived(folder)]
    assert set(numbers) == set(many)
    assert max(map(numbers.count, numbers)) <= 2
    assert not list(folder.glob(".*"))


def test_a_crash_between_archive_and_deletion_repeats_the_same_file(
    table: LogTable, log: Log, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write(1, status="S", event_time=OLD)
    with monkeypatch.context() as crash:
        crash.setattr("eventlog.purge.deleting.id_list", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            done(log, Archive(folder, log.name))
    assert (len(archived(folder)), table.statuses()) == (1, {1: "S"})
    done(log, Archive(folder, log.name))
    assert (len(archived(folder)), table.statuses()) == (1, {})


def test_an_archive_that_cannot_be_written_deletes_nothing(
    table: LogTable, log: Log, many: list[int], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("eventlog.purge.archive.flush", full)
    with pytest.raises(SinkError, match="No space left"):
        done(log, Archive(folder, log.name))
    assert set(table.statuses()) >= set(many)
    assert list(folder.iterdir()) == []


def test_a_row_that_is_requeued_after_it_was_archived_stays_with_what_is_known_of_it(
    table: LogTable, log: Log, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2):
        table.write(number, status="E", event_time=OLD)
        note(table, number, "E")
    original = ArchiveFile.finish

    def meanwhile(self: ArchiveFile) -> str | None:
        requeue(log, [(2, 2)], Choice(statuses="E"))
        hold(log, [(2, 2)])
        return original(self)

    monkeypatch.setattr(ArchiveFile, "finish", meanwhile)
    assert done(log, Archive(folder, log.name)).rows == 1
    assert table.statuses() == {2: "N"}
    assert table.ask("SELECT record_id FROM event_log_hold") == [(2,)]


def test_a_row_that_ends_otherwise_after_it_was_archived_stays(
    table: LogTable, log: Log, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is requeued and published meanwhile; on PostgreSQL it may stand elsewhere in the table."""
    for number in range(1, 200):
        table.write(number, status="E", event_time=OLD, new_value="x" * 200)
        note(table, number, "E")
    original = ArchiveFile.finish

    def meanwhile(self: ArchiveFile) -> str | None:
        requeue(log, [(2, 2)], Choice(statuses="E"))
        table.run("UPDATE event_log SET status = 'W' WHERE record_id = 2")
        note(table, 2, "W")
        return original(self)

    with monkeypatch.context() as patch:
        patch.setattr(ArchiveFile, "finish", meanwhile)
        assert done(log, Archive(folder, log.name)).rows == 198
    assert table.statuses() == {2: "W"}
    assert set(table.outcomes()) == {2}
    assert done(log, Archive(folder, log.name)).rows == 1
    assert [row["status"] for row in archived(folder) if row["record_id"] == 2] == ["E", "W"]
    assert table.outcomes() == {}


@pytest.mark.usefixtures("pieces")
def test_what_is_known_of_a_row_goes_with_the_row_and_not_before(
    table: LogTable, log: Log, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row may move to another place of the table after it was archived, as one that is updated does on PostgreSQL."""
    for number in range(1, 100):
        table.write(number, status="E", event_time=OLD, new_value="x" * 200)
        note(table, number, "E")
    original, moved = ArchiveFile.finish, list[int]()

    def meanwhile(self: ArchiveFile) -> str | None:
        if not moved:
            moved.append(2)
            table.run("DELETE FROM event_log WHERE record_id = 2")
            table.write(2, status="E", event_time=OLD)
        return original(self)

    monkeypatch.setattr(ArchiveFile, "finish", meanwhile)
    done(log, Archive(folder, log.name))
    assert {row["reason"] for row in archived(folder)} == {"refused"}
    assert (table.statuses(), table.outcomes()) == ({}, {})


COUNT = 3000
FILL = (
    "INSERT INTO {log} (record_id, table_key, status, event_type, event_time, table_name, column_name)"
    " SELECT n, 'idu=1', CASE WHEN n % 10 = 0 THEN 'N' ELSE 'S' END, 1, '2020-01-01', 'usr', 'fname'"
    " FROM generate_series(1, :count) AS n"
)
PARTITIONED = (
    "CREATE TABLE event_log (record_id BIGINT NOT NULL, table_key TEXT, status CHAR(1), event_type INTEGER,"
    " event_time TIMESTAMP, perpetrator TEXT, table_name TEXT, column_name TEXT, old_value TEXT, new_value TEXT)"
    " PARTITION BY HASH (record_id)"
)


def filled(engine: Engine, names: LogNames) -> Log:
    log = Log(engine, names)
    with engine.begin() as connection:
        connection.execute(text(FILL.format(log=log.dialect.qualify(names.schema, names.table))), {"count": COUNT})
    return log


def check_purge(log: Log) -> None:
    """Purge: everything processed goes, in more than one step, and waiting rows stay."""
    steps = list(purge(log, Purge(age=60)))
    assert steps[-1].rows == COUNT * 9 // 10
    assert len(steps) > 2
    left = [*newest(log, Filters(), limit=COUNT, width=9)]
    assert [row.record_id for row in left] == list(range(10, COUNT + 1, 10))


@pytest.mark.usefixtures("pieces")
def test_a_log_in_a_schema_is_cared_for(postgresql: Engine) -> None:
    names = LogNames(table="Event Log", schema="Own")
    with postgresql.begin() as connection:
        connection.execute(text('CREATE SCHEMA "Own"'))
    install(postgresql, names)
    log = filled(postgresql, names)
    assert hold(log, [(1, 100)]).rows == 10
    check_purge(log)
    assert len([*newest(log, Filters(reason="held"), limit=99, width=9)]) == 10


@pytest.mark.usefixtures("pieces")
def test_every_partition_of_a_log_is_purged(postgresql: Engine) -> None:
    with postgresql.begin() as connection:
        connection.execute(text(PARTITIONED))
        for part in range(3):
            connection.execute(
                text(f"CREATE TABLE part_{part} PARTITION OF event_log FOR VALUES WITH (MODULUS 3, REMAINDER {part})")
            )
    names = LogNames()
    install(postgresql, names)
    check_purge(filled(postgresql, names))
