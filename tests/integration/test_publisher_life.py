"""The publisher as a process: it starts, publishes what comes, hears signals, beats, can be watched, and ends."""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.request import urlopen

import pytest
from sqlalchemy import Engine

from tests.conformance.event_logs import LogTable
from tests.integration.publishing import Process, published, settled, site, until
from tests.integration.scripted_server import ScriptedServer, answer

FATAL = b'<output><status level="fatal">Closed for good.</status></output>'


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    return site(sqlite)


def test_it_publishes_what_comes_and_ends_when_it_is_told_to(log: LogTable, tmp_path: Path) -> None:
    log.write(1, key="idu=1")
    with Process(log.engine, tmp_path / "out") as process:
        until(settled(log, 1), "the row that was there")
        log.write(2, key="idu=2")
        until(settled(log, 2), "the row that came")
        assert process.stop() == 0
        assert process.actions() == ["started", "seat_taken", "published", "published", "stopped"]
        assert process.journal[-1]["exit_code"] == 0
        assert process.journal[2].items() >= {"rows": 1, "changes": 1, "documents": 1, "statuses": {"S": 1}}.items()
    assert list(published(tmp_path / "out").values()) == [["1"], ["2"]]
    assert (
        log.ask(
            "SELECT name FROM event_log_mark WHERE name NOT IN ('log adopted', 'pace', 'outputs', 'log', 'epoch', 'holding', 'served')"
        )
        == []
    )


def test_a_batch_that_was_begun_is_finished_before_it_ends(log: LogTable, tmp_path: Path) -> None:
    """The signal comes while the first document is being written."""
    log.write_all(range(1, 51))
    slow = (
        "import os, signal; from eventlog.sinks.files import FileSink\n"
        "commit = FileSink.commit\n"
        "def late(self, plan, documents):\n    os.kill(os.getpid(), signal.SIGTERM); return commit(self, plan, documents)\n"
        "FileSink.commit = late"
    )
    with Process(log.engine, tmp_path / "out", program=slow) as process:
        assert process.end() == 0
    assert set(log.statuses().values()) == {"S"}
    assert len(published(tmp_path / "out")) == 50


def test_it_reads_its_configuration_again_and_keeps_the_former_when_it_must(log: LogTable, tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    heart = "[publisher]\nheartbeat_interval = 0.01\n"
    file.write_text("")
    with Process(log.engine, tmp_path / "out", "--config", str(file)) as process:
        process.wait_for("seat_taken")
        file.write_text("[publisher]\npoling_interval = 3\n")
        process.tell(signal.SIGHUP)
        assert "polling_interval" in process.wait_for("reload_failed")["error"]
        process.wait_for("seat_taken", 2)
        file.write_text(heart)
        process.tell(signal.SIGHUP)
        process.wait_for("reloaded")
        process.wait_for("heartbeat")
        log.write(1)
        until(settled(log, 1), "a row after reloading")
        assert process.stop() == 0


def test_a_fatal_answer_ends_it_with_its_own_exit_code(log: LogTable, tmp_path: Path) -> None:
    for number in (1, 2):
        log.write(number, key=f"idu={number}")
    with ScriptedServer([answer(FATAL)]) as server:
        config = tmp_path / "eventlog.toml"
        config.write_text(f'[[output]]\nsink = "http"\nurl = "http://127.0.0.1:{server.port}/"\n')
        with Process(log.engine, tmp_path / "out", "--config", str(config), program=WITHOUT_OUT) as process:
            assert process.end() == 69
        last = process.journal[-1]
    assert (last["action"], last["exit_code"], "othing more" in last["error"]) == ("fatal", 69, True)
    assert log.statuses() == {1: "F", 2: "N"}
    assert log.outcomes()[1][2] == "Closed for good."


def test_on_error_it_halts_if_that_is_wanted(log: LogTable, tmp_path: Path) -> None:
    log.write(1, event_type=9)
    with Process(log.engine, tmp_path / "out", on_error="halt") as process:
        assert process.end() == 65
        assert process.journal[-1].items() >= {"action": "fatal", "exit_code": 65}.items()
    assert log.statuses() == {1: "E"}


def test_it_can_be_watched(log: LogTable, tmp_path: Path) -> None:
    log.write(1)
    with Process(log.engine, tmp_path / "out", "--http", "127.0.0.1:0") as process:
        port = process.wait_for("watched_at")["port"]
        process.wait_for("published")
        log.run("UPDATE event_log SET event_time = '2999-01-01 00:00:00' WHERE record_id = 1")
        metrics = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        assert urlopen(f"http://127.0.0.1:{port}/ready").status == 200
    assert 'eventlog_rows_total{status="S"} 1.0\n' in metrics
    assert 'eventlog_state{state="publishing"} 1.0\n' in metrics


WITHOUT_OUT = "import sys; sys.argv.remove('--out'); sys.argv.pop(2)"
"""Takes the folder off the command line, so that the configuration's own output counts."""
