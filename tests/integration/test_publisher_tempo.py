"""The rate that `eventlog status` shows: entered by a publisher now and then, readable by anybody, in each database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.admin.status import facts
from eventlog.cli.main import exit_code
from eventlog.core.errors import OK, OccupiedError
from eventlog.daemon.publisher import Publisher
from eventlog.daemon.vitals import Tempo
from eventlog.sources.log.lock import LogLock
from eventlog.sql.log import Log
from tests.integration.publishing import config_of, site


def test_what_a_publisher_settled_is_told_as_a_rate(engine: Engine, tmp_path: Path) -> None:
    log = site(engine)
    log.write_all(range(1, 61), key="idu=1")
    assert facts(engine, log.names).rate.rows == 0
    with Publisher(config_of(engine, tmp_path / "out")) as publisher:
        assert publisher.run_once().settled == 60
    found = facts(engine, log.names)
    assert (found.rate.rows, found.rate.per_second) == (60, 1.0)
    assert "1.0 rows a second were finished in the last 60 s." in list(found.sentences())


def test_the_command_shows_it_as_text_and_as_json(
    sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = site(sqlite)
    log.write(1)
    with Publisher(config_of(sqlite, tmp_path / "out")) as publisher:
        publisher.run_once()
    assert exit_code(["status", "--json", "--database", str(sqlite.url)]) == OK
    told = json.loads(capsys.readouterr().out)["rate"]
    assert (told["rows"], told["seconds"]) == (1, 60)
    assert told["per_second"] == pytest.approx(1 / 60)
    assert exit_code(["status", "--database", str(sqlite.url)]) == OK
    assert "0.0 rows a second were finished in the last 60 s." in capsys.readouterr().out


def test_entries_are_few_and_nothing_is_forgotten_between_them(sqlite: Engine) -> None:
    log = Log(sqlite, site(sqlite).names)
    lock = LogLock(log, 60.0)
    assert lock.take()
    tempo = Tempo(lock)
    for _ in range(5):
        tempo.rows += 10
        tempo.enter()
    assert facts(sqlite, log.names).rate.rows == 10
    tempo.enter(now=True)
    assert facts(sqlite, log.names).rate.rows == 50
    lock.leave()


def test_who_has_lost_the_seat_enters_nothing(sqlite: Engine) -> None:
    log = Log(sqlite, site(sqlite).names)
    former = LogLock(log, 60.0)
    assert former.take()
    with log.transaction() as connection:
        connection.exec_driver_sql(
            "UPDATE event_log_mark SET value = '2999-01-01 00:00:00 other' WHERE name = 'publisher'"
        )
    tempo = Tempo(former)
    tempo.rows += 10
    with pytest.raises(OccupiedError):
        tempo.enter()
    assert facts(sqlite, log.names).rate.rows == 0
