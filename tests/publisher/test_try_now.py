"""An operator who has mended a receiver does not wait: the output's next try happens at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.care.outputs import pause, try_now
from eventlog.core.backoff import Backoff
from eventlog.core.errors import OccupiedError, SourceError, UsageError
from eventlog.daemon import scheduling
from eventlog.daemon.publisher import Publisher
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.conformance.event_logs import LogTable
from tests.integration.lagging import Outputs, all_settled, config, write
from tests.integration.publishing import in_thread, site, until

HOUR_SECONDS = 3600.0


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def log(request: pytest.FixtureRequest) -> LogTable:
    engine: Engine = request.getfixturevalue(request.param)
    return site(engine)


@pytest.fixture(autouse=True)
def hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever fails waits for an hour: nothing happens by itself in these tests."""
    monkeypatch.setattr(scheduling, "FAILURES", Backoff(first=HOUR_SECONDS, longest=HOUR_SECONDS))


def log_of(log: LogTable) -> Log:
    return Log(log.engine, LogNames())


def test_the_only_output_is_tried_at_once(log: LogTable, tmp_path: Path) -> None:
    outputs = Outputs("far")
    outputs["far"].away = True
    write(log, 1, 3)
    publisher = Publisher(config(log, tmp_path), outputs=outputs.made())
    with in_thread(publisher):
        until(lambda: publisher.vitals.reading().state == "failing", "it fails")
        outputs["far"].away = False
        try_now(log_of(log), "far", ["far"])
        until(all_settled(log, 3), "all is settled")
    assert outputs["far"].numbers == [1, 2, 3]


def test_one_of_several_is_tried_at_once(log: LogTable, tmp_path: Path) -> None:
    outputs = Outputs("near", "far")
    outputs["far"].away = True
    write(log, 1, 3)
    publisher = Publisher(config(log, tmp_path), outputs=outputs.made())
    with in_thread(publisher):
        until(lambda: publisher.vitals.reading().outputs.get("far") is not None, "far fails")
        outputs["far"].away = False
        try_now(log_of(log), "far", ["near", "far"])
        until(all_settled(log, 3), "all is settled")
    assert outputs["far"].numbers == [1, 2, 3]


@pytest.mark.parametrize("on_retry", ["stop", "object"])
def test_rows_that_a_receiver_did_not_take_go_again_at_once(log: LogTable, tmp_path: Path, on_retry: str) -> None:
    outputs = Outputs("far")
    outputs["far"].asks = {(2,)}
    write(log, 1, 3)
    publisher = Publisher(config(log, tmp_path, on_retry=on_retry), outputs=outputs.made(["far"]))
    with in_thread(publisher):
        until(lambda: outputs["far"].asked > 0, "row 2 is not taken")
        until(lambda: bool(log.ask("SELECT 1 FROM event_log_parked WHERE reason = 'retry'")), "it is parked")
        outputs["far"].asks = set()
        log.run("UPDATE event_log_parked SET due = due + 3600000 WHERE reason = 'retry'")
        log.run("UPDATE event_log_mark SET value = 'changed' WHERE name = 'holding'")
        try_now(log_of(log), "far", ["far"])
        until(all_settled(log, 3), "all is settled")
    assert sorted(outputs["far"].numbers) == [1, 2, 3]


def test_what_cannot_be_tried_is_refused(sqlite: Engine, tmp_path: Path) -> None:
    log, outputs = site(sqlite), Outputs("far")
    with pytest.raises(UsageError, match="No publisher has worked with the output far yet"):
        try_now(log_of(log), "far", ["far"])
    with Publisher(config(log, tmp_path), outputs=outputs.made()) as publisher:
        publisher.run_once()
    pause(log_of(log), "far", ["far"], by="ada")
    with pytest.raises(UsageError, match="is paused"):
        try_now(log_of(log), "far", ["far"])
    with pytest.raises(UsageError, match="no output of the configuration"):
        try_now(log_of(log), "fra", ["far"])


def test_a_wait_outlives_a_log_that_cannot_be_asked(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, outputs, asked = site(sqlite), Outputs("far"), list[object]()
    outputs["far"].away = True
    write(log, 1, 1)
    with Publisher(config(log, tmp_path), outputs=outputs.made()) as publisher:

        def away(names: object) -> list[str]:
            asked.append(names)
            publisher.stop()
            raise SourceError("The database is away.")

        monkeypatch.setattr(publisher.post, "list_wanted_now", away)
        assert [*publisher.rounds()] == []
    assert asked == [["far"]]


def test_who_has_lost_the_lock_hears_no_wish_that_is_meant_for_another(log: LogTable, tmp_path: Path) -> None:
    with Publisher(config(log, tmp_path), outputs=Outputs("far").made()) as publisher:
        publisher.run_once()
        try_now(log_of(log), "far", ["far"])
        log.run("UPDATE event_log_mark SET value = '2099-01-01T00:00:00.000 another' WHERE name = 'publisher'")
        with pytest.raises(OccupiedError):
            publisher.post.list_wanted_now(["far"])
    assert log.ask("SELECT 1 FROM event_log_mark WHERE name = 'try now: far'")
