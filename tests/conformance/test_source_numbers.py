"""Rows with odd numbers, or with one that another row has: none is published, and `check` finds them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.care.outputs import pause, resume
from eventlog.care.rows import Choice, hold, release, requeue
from eventlog.check.examine import check
from eventlog.check.point import Point, PointLevel
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import SourceError
from eventlog.daemon.publisher import Publisher
from eventlog.publisher import reader
from eventlog.sinks.outputs import FilesOutput
from eventlog.sources.log.reading import LOOKAHEAD_ROWS, LogSettings, Request, WaitingRows
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.support.logged import USR, run

LOG = (
    "CREATE TABLE event_log (record_id BIGINT, status CHAR(1), event_type INTEGER, event_time TIMESTAMP NULL,"
    " perpetrator VARCHAR(9), table_name VARCHAR(64), table_key VARCHAR(99), column_name VARCHAR(64),"
    " old_value {TEXT}, new_value {TEXT})"
)


@pytest.fixture
def adopted(engine: Engine) -> Engine:
    long_text = "LONGTEXT" if engine.dialect.name in {"mysql", "mariadb"} else "TEXT"
    run(
        engine,
        LOG.replace("{TEXT}", long_text),
        *USR,
        "INSERT INTO usr (idu, fname) VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    )
    install(engine)
    return engine


def write(engine: Engine, *rows: tuple[int | None, int, str]) -> None:
    for number, kind, key in rows:
        values = f"{'NULL' if number is None else number}, 'N', {kind}, '2020-01-01 00:00:00', 'usr', '{key}'"
        names = "record_id, status, event_type, event_time, table_name, table_key"
        run(engine, f"INSERT INTO event_log ({names}) VALUES ({values})")


def config(engine: Engine, folder: Path, limit: int = 10_000) -> Config:
    return Config(
        source=SourceConfig(url=engine.url.render_as_string(hide_password=False)),
        publisher=PublisherConfig(query_limit=limit),
        output=(FilesOutput(path=str(folder)),),
    )


def statuses(engine: Engine) -> list[tuple[int, str]]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT record_id, status FROM event_log ORDER BY 1, 2")).all()
    return [(int(row[0]), str(row[1])) for row in rows]


def found(engine: Engine, folder: Path) -> list[Point]:
    return [point for point in check(lambda: config(engine, folder)) if point.name == "numbers"]


def notes(engine: Engine) -> dict[int, str]:
    with engine.connect() as connection:
        return {
            int(number): str(note)
            for number, note in connection.execute(text("SELECT record_id, note FROM event_log_outcome"))
        }


@pytest.mark.parametrize("limit", [1, 2, 10_000])
def test_rows_of_one_number_are_refused_together(adopted: Engine, tmp_path: Path, limit: int) -> None:
    write(adopted, (7, 9, "idu=1"), (7, 6, "idu=2"), (0, 6, "idu=1"), (-4, 6, "idu=3"), (8, 9, "x"), (8, 9, "y"))
    write(adopted, (9, 6, "idu=3"), (9, 6, "idu=3"), *[(11, 6, "idu=2")] * 40, (12, 6, "idu=1"))
    with Publisher(config(adopted, tmp_path, limit)) as publisher:
        for _ in range(9):
            publisher.run_once()
        assert {*statuses(adopted)} == {*((number, "E") for number in (-4, 0, 7, 8, 9, 11)), (12, "S")}
        assert published(tmp_path) == ["idu=1"]
        noted = notes(adopted)
        assert [noted[-4], noted[0]] == [
            "record_id is -4; it must be positive.",
            "record_id is 0; it must be positive.",
        ]
        assert noted[7] == "record_id 7 is in several rows; give each a number of its own, and requeue them."
        run(adopted, "UPDATE event_log SET record_id = 13 WHERE table_key = 'idu=2' AND record_id = 7")
        run(adopted, "UPDATE event_log SET event_type = 6 WHERE record_id = 7")
        log = Log(adopted, log_columns(adopted, LogNames()))
        requeue(log, [(7, 7), (13, 13)], Choice(statuses="E"))
        publisher.run_once()
        publisher.run_once()
    assert published(tmp_path) == ["idu=1", "idu=2"]
    assert statuses(adopted)[-2:] == [(12, "S"), (13, "S")]


def test_no_look_ends_between_rows_of_one_number(adopted: Engine) -> None:
    last = LOOKAHEAD_ROWS + 1
    # Of one object, and more than a look may have: all are taken that it has.
    write(adopted, *[(number, 6, "idu=1") for number in range(1, last)], *[(last, 6, "idu=1")] * 2)
    log = Log(adopted, log_columns(adopted, LogNames()))
    reader = WaitingRows(log, None, LogSettings(query_bytes=1_000))
    with log.transaction() as connection:
        rows = reader.next(connection, Request(limit=1, room=1_000)).rows
        assert [event.position[0] for event in rows] == [*range(1, last)]
        above = Request(limit=1, room=1_000, among="among_beyond", bounds={"beyond": last - 1})
        [shared] = reader.next(connection, above).rows
    assert shared.fault is not None
    assert shared.fault.startswith(f"record_id {last} is in several rows;")


def test_rows_of_one_number_are_held_together(adopted: Engine, tmp_path: Path) -> None:
    write(adopted, (6, 6, "idu=3"), (7, 6, "idu=1"))
    log = Log(adopted, log_columns(adopted, LogNames()))
    with Publisher(config(adopted, tmp_path)) as publisher:
        hold(log, [(7, 7)])
        publisher.run_once()
        write(adopted, (7, 6, "idu=2"))
        publisher.run_once()
        assert statuses(adopted) == [(6, "S"), (7, "N"), (7, "N")]
        release(log, [(7, 7)])
        publisher.run_once()
    assert statuses(adopted) == [(6, "S"), (7, "E"), (7, "E")]
    assert published(tmp_path) == ["idu=3"]


def test_check_finds_odd_numbers(adopted: Engine, tmp_path: Path) -> None:
    write(adopted, (7, 6, "idu=1"), (7, 6, "idu=2"), (7, 6, "idu=2"), (0, 6, "idu=1"))
    said = [point.said for point in found(adopted, tmp_path) if point.level is PointLevel.WARNING]
    assert [one.partition(" with")[0] for one in said if "with a record_id" in one] == ["2 rows", "1 row"]
    write(adopted, (None, 6, "idu=1"))
    assert "1 row without a record_id" in {p.level: p.said for p in found(adopted, tmp_path)}[PointLevel.FAILURE]
    with Publisher(config(adopted, tmp_path)) as publisher, pytest.raises(SourceError, match="has no record_id"):
        publisher.run_once()


@pytest.fixture
def own(postgresql: Engine) -> Engine:
    """Make a log of ours on PostgreSQL, where no key forbids a number twice."""
    run(postgresql, *USR, "INSERT INTO usr (idu, fname) VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    install(postgresql)
    return postgresql


def published(folder: Path) -> list[str]:
    """Return the keys of all published documents, and remove these."""
    documents = sorted(folder.glob("*.xml"))
    keys = [key for file in documents for key in ("idu=1", "idu=2", "idu=3") if key in file.read_text()]
    for file in documents:
        file.unlink()
    return keys


def test_a_number_that_was_processed_is_given_to_no_other_row(own: Engine, tmp_path: Path) -> None:
    with Publisher(config(own, tmp_path)) as publisher:
        write(own, (100, 6, "idu=1"), (101, 6, "idu=2"))
        publisher.run_once()
        assert published(tmp_path) == ["idu=1", "idu=2"]
        # This publisher has processed 101 itself; 102 nobody has, and 99 came late.
        write(own, (101, 6, "idu=3"), (99, 6, "idu=1"), (102, 6, "idu=2"), (0, 6, "idu=3"))
        publisher.run_once()
        assert sorted(published(tmp_path)) == ["idu=1", "idu=2"]
    assert statuses(own) == [(0, "E"), (99, "S"), (100, "S"), (101, "E"), (101, "S"), (102, "S")]
    requeue(Log(own, LogNames()), [(99, 100)], Choice(statuses="S"))
    write(own, (102, 6, "idu=3"))
    # Another publisher knows it from the log; rows that wait again have numbers of their own.
    with Publisher(config(own, tmp_path)) as publisher:
        publisher.run_once()
    assert published(tmp_path) == ["idu=1"]
    assert statuses(own)[1:3] == [(99, "S"), (100, "S")]
    assert statuses(own)[-2:] == [(102, "E"), (102, "S")]


def test_a_number_that_somebody_else_processed_is_given_to_no_other_row(
    own: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "CLOCK_SECONDS", 0.0)
    with Publisher(config(own, tmp_path)) as publisher:
        write(own, (100, 6, "idu=1"))
        publisher.run_once()
        write(own, (200, 6, "idu=2"))
        run(own, "UPDATE event_log SET status = 'X' WHERE record_id = 200")
        write(own, (200, 6, "idu=3"))
        publisher.run_once()
    assert published(tmp_path) == ["idu=1"]
    assert statuses(own) == [(100, "S"), (200, "E"), (200, "X")]


def test_a_row_that_waited_is_compared_with_processed_ones_too(own: Engine, tmp_path: Path) -> None:
    both = msgspec.structs.replace(
        config(own, tmp_path),
        output=tuple(FilesOutput(path=str(tmp_path / name), name=name) for name in ("one", "two")),
    )
    log, names = Log(own, LogNames()), ["one", "two"]
    with Publisher(both) as publisher:
        write(own, (100, 6, "idu=1"), (101, 6, "idu=2"))
        publisher.run_once()
        publisher.run_once()
        assert [published(tmp_path / name) for name in names] == [["idu=1", "idu=2"]] * 2
        pause(log, "two", names, by="ann")
        write(own, (101, 6, "idu=3"))
        publisher.run_once()
    resume(log, both.publisher, "two", names)
    with Publisher(both) as publisher:  # it reads what is ahead of `two` again
        write(own, (100, 6, "idu=3"))
        hold(log, [(100, 100)])
        publisher.run_once()
        publisher.run_once()
        release(log, [(100, 100)])
        publisher.run_once()
        publisher.run_once()
    assert [published(tmp_path / name) for name in names] == [[], []]
    assert statuses(own) == [(100, "E"), (100, "S"), (101, "E"), (101, "S")]


def test_a_publisher_of_one_output_works_in_one_session(own: Engine, tmp_path: Path) -> None:
    # Two would take turns, and all that the server keeps for a session be read twice.
    with Publisher(config(own, tmp_path)) as publisher:
        for key in ("idu=1", "idu=2"):
            run(own, f"INSERT INTO event_log (event_type, table_name, table_key) VALUES (6, 'usr', '{key}')")
            publisher.run_once()
        assert published(tmp_path) == ["idu=1", "idu=2"]
        with own.connect() as connection:
            ours = "datname = current_database() AND application_name = 'eventlog'"
            sessions = connection.execute(text(f"SELECT COUNT(*) FROM pg_stat_activity WHERE {ours}"))
            # And one that looks who may still write rows with lower numbers.
            assert sessions.scalar_one() <= 2


def write_values(engine: Engine, *rows: tuple[int, str, str]) -> None:
    for number, key, value in rows:
        names = "record_id, status, event_type, event_time, table_name, table_key, column_name, new_value"
        # The time is text: Python's sqlite3 takes no datetime from 3.12 on.
        given = ":number, 'N', 2, '2020-01-01 00:00:00', 'usr', :key, 'fname', :value"
        with engine.begin() as connection:
            insert = text(f"INSERT INTO event_log ({names}) VALUES ({given})")
            connection.execute(insert, {"number": number, "key": key, "value": value})


@pytest.mark.parametrize("most", [32_000_000, 100_000])
def test_long_values_of_rows_of_one_number_delay_no_others(adopted: Engine, tmp_path: Path, most: int) -> None:
    large, long = "A" * 30_000, "B" * 30_000
    write_values(adopted, (6, "idu=3", "first"), (7, "idu=1", large), (7, "idu=2", long), (8, "idu=3", large))
    write_values(adopted, (9, "idu=1", "C" * 600), (9, "idu=2", "D" * 70_000), (10, "idu=3", "E" * 70_000))
    write_values(adopted, (11, "idu=1", long))
    settings = msgspec.structs.replace(
        config(adopted, tmp_path), publisher=PublisherConfig(value_limit=60_000, query_bytes=most)
    )
    with Publisher(settings) as publisher:
        for _ in range(6):
            publisher.run_once()
    ended = [(6, "S"), (7, "E"), (7, "E"), (8, "S"), (9, "E"), (9, "E"), (10, "E"), (11, "S")]
    assert statuses(adopted) == ended
    assert [note.partition(" ")[0] for number, note in sorted(notes(adopted).items())] == ["record_id"] * 2 + [
        "old_value"
    ]
    written = "".join(file.read_text() for file in sorted(tmp_path.glob("*.xml")))
    assert [written.count(f">{value}<") for value in ("first", large, long)] == [1, 1, 1]
    assert not any(letters in written for letters in ("CCC", "DDD", "EEE"))
