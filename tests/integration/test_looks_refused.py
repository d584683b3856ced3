"""Where the database refuses every look for new rows, and nothing else, rows go out by turns; it is told once, and `check` knows why."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine

from eventlog.check.journal import journal_points
from eventlog.check.point import PointLevel
from eventlog.core.errors import SourceError
from eventlog.daemon.publisher import Publisher
from eventlog.publisher.reader import JournalReader
from tests.integration.publishing import config_of, finished, in_thread, site, until


def test_rows_go_out_though_every_look_is_refused(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "eventlog")
    log, config = site(engine), config_of(engine, tmp_path, polling_interval=1)
    looks, really = list[bool](), JournalReader.anything

    def refuse(self: JournalReader, connection: Connection) -> bool:
        looks.append(bool(self.places))
        raise SourceError("The event log cannot be used: statement is forbidden.", may_pass=False)

    def find_warnings() -> list[str]:
        return [
            point.said
            for point in journal_points(engine, log.names, config)
            if point.level is PointLevel.WARNING and point.name == "looks"
        ]

    monkeypatch.setattr(JournalReader, "anything", refuse)
    with in_thread(Publisher(config)):
        until(lambda: len(looks) > 2, "it looks")
        log.write(1)
        until(finished(log, 1), "a turn publishes the row")
        [warning] = find_warnings()
        assert "statement is forbidden" in warning
        log.write(2, key="idu=2")
        until(finished(log, 2), "a turn publishes the next one")
        monkeypatch.setattr(JournalReader, "anything", really)
        until(lambda: not find_warnings(), "it looks again, and check is content")
    told = [record.getMessage().split()[0] for record in caplog.records if "looks_" in record.getMessage()]
    assert told == ["looks_refused", "looks_again"]


def test_a_new_start_knows_nothing_of_looks_that_were_refused_before(engine: Engine, tmp_path: Path) -> None:
    log, config = site(engine), config_of(engine, tmp_path)
    with Publisher(config) as publisher:
        publisher.run_once()
        publisher.post._tell_looks("no")
        assert any(point.name == "looks" for point in journal_points(engine, log.names, config))
    with Publisher(config) as publisher:
        publisher.run_once()
    assert not any(point.name == "looks" for point in journal_points(engine, log.names, config))
