"""How the outputs stand, and at which rate rows are finished: told by the publisher, read by anybody from the log's marks, also
when it is idle or gone.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.care.outputs import forget
from eventlog.care.status import facts
from eventlog.cli.main import exit_code
from eventlog.config.settings import Config
from eventlog.core.errors import EX_TRY_AGAIN, OK, ConfigError, SinkError
from eventlog.daemon.health import Ledger, PublisherHealth
from eventlog.daemon.publisher import Publisher
from eventlog.delivery.output import OutputState
from eventlog.publisher.reader import JournalReader
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.log import Log
from tests.integration.publishing import config_of, site

NOWHERE = "http://127.0.0.1:9/xds"


def two_outputs(engine: Engine, folder: Path) -> Config:
    """Files, and a receiver that is not there."""
    config = config_of(engine, folder)
    return replace(config, output=(*config.output, HttpOutput(url=NOWHERE)))


def test_each_output_tells_its_last_document_and_what_went_wrong(engine: Engine, tmp_path: Path) -> None:
    log = site(engine)
    log.write_all([3, 4])
    before = time.time()
    with Publisher(two_outputs(engine, tmp_path)) as publisher, pytest.raises(SinkError):
        publisher.run_once()
    found, files_name = facts(engine, log.names).outputs, f"files {tmp_path.resolve()}"
    files, http = found[files_name], found[f"http {NOWHERE}"]
    assert (files.document, files.position, files.error) == (f"{4:020}", (4,), None)
    assert files.at is not None
    assert before <= files.at <= time.time()
    assert (http.document, http.position, http.at) == ("", None, None)
    assert "cannot be reached" in str(http.error)
    with Publisher(config_of(engine, tmp_path)) as publisher, pytest.raises(ConfigError, match="has a place for http"):
        publisher.run_once()
    assert set(log.statuses().values()) == {"N"}, "they are kept for the output that is not configured any more"
    assert forget(Log(engine, log.names), f"http {NOWHERE}", [files_name], by="me") == 2
    assert set(log.statuses().values()) == {"S"}, "another output has them"


def test_the_command_shows_it_as_text_and_as_json(
    sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site(sqlite).write(1)
    with Publisher(two_outputs(sqlite, tmp_path)) as publisher, pytest.raises(SinkError):
        publisher.run_once()
    assert exit_code(["status", "--json", "--database", str(sqlite.url)]) == OK
    told = json.loads(capsys.readouterr().out)
    assert told["outputs"][f"files {tmp_path.resolve()}"]["position"] == [1]
    assert (told["rate"]["rows"], told["rate"]["seconds"], told["rate"]["per_second"]) == (0, 60, 0.0)
    assert exit_code(["status", "--database", str(sqlite.url)]) == OK
    said = " ".join(capsys.readouterr().out.split())
    assert "0.0 rows a second were finished in the last 60 s." in said
    assert f"took {1:020}, up to row 1, at 20" in said
    assert f"http {NOWHERE} did not take everything at 20" in said


def test_an_error_is_not_told_any_more_once_the_output_took_a_later_document(
    sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = site(sqlite)
    settings = tmp_path / "eventlog.toml"
    settings.write_text(
        f'[source]\nurl = "{sqlite.url}"\n[[output]]\nname = "hr"\nformat = "xds"\nsink = "files"\npath = "{tmp_path}/out"\n'
    )
    log.write(1)
    (tmp_path / "out").write_text("a file in the place of the folder")

    def told(*words: str) -> str:
        assert exit_code([*words, "--config", str(settings)]) == OK
        return " ".join(capsys.readouterr().out.split())

    assert exit_code(["run", "--until-empty", "--config", str(settings)]) != OK
    for words in (["status"], ["outputs", "list"]):
        assert "hr did not take everything at 20" in told(*words)
    [listed] = json.loads(told("outputs", "list", "--json"))
    assert (listed["state"], listed["rows"]) == ("failing", 1)
    assert "tried again" not in listed["error"]
    since = json.loads(told("status", "--json"))["outputs"]["hr"]["failing_since"]
    assert dt.datetime.fromisoformat(since).utcoffset() == dt.timedelta()
    (tmp_path / "out").unlink()
    told("run", "--until-empty")
    for words in (["status"], ["outputs", "list"]):
        assert "did not take" not in told(*words)
    [listed] = json.loads(told("outputs", "list", "--json"))
    assert listed["recovered"] is True
    stands = json.loads(told("status", "--json"))["outputs"]["hr"]
    assert stands["failing_since"] is None
    moments = [dt.datetime.fromisoformat(one[name]) for one in (stands, listed) for name in ("failed_at", "at")]
    assert all(moment.utcoffset() == dt.timedelta() for moment in moments)
    assert moments[0] < moments[1]


def test_a_command_that_ends_does_not_promise_another_try(
    sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site(sqlite).write(1)
    settings = tmp_path / "eventlog.toml"
    settings.write_text(
        f'[source]\nurl = "{sqlite.url}"\n[[output]]\nname = "hr"\nformat = "xds"\nsink = "http"\nurl = "{NOWHERE}"\n'
    )
    assert exit_code(["run", "--until-empty", "--config", str(settings)]) == EX_TRY_AGAIN
    said = capsys.readouterr().err
    assert "cannot be reached" in said
    assert "Run it again once that is repaired." in said
    assert exit_code(["status", "--config", str(settings)]) == OK
    assert "tried again" not in said + " ".join(capsys.readouterr().out.split())


def test_what_a_receiver_says_does_not_command_the_terminal(sqlite: Engine, capsys: pytest.CaptureFixture[str]) -> None:
    log = Log(sqlite, site(sqlite).names)
    lock = LogLock(log, 60.0)
    assert lock.take()
    vitals = PublisherHealth()
    vitals.serves(["out"])
    vitals.restore({"out": OutputState(error="no\x1b[2Jthing", failed_at=1.0)})
    Ledger(lock, vitals, JournalReader(log, LogSettings())).enter()
    assert exit_code(["status", "--database", str(sqlite.url)]) == OK
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert "no\\x1b[2Jthing" in said


def test_who_takes_the_lock_again_goes_on_with_the_rate_of_who_had_it_meanwhile(sqlite: Engine) -> None:
    log = Log(sqlite, site(sqlite).names)
    locks = [LogLock(log, 60.0), LogLock(log, 60.0)]
    ledgers = [Ledger(lock, PublisherHealth(), JournalReader(log, LogSettings())) for lock in locks]
    for turn, rows in enumerate((5, 7, 1)):
        lock, ledger = locks[turn % 2], ledgers[turn % 2]
        assert lock.take()
        with log.transaction() as connection:
            ledger.begin(connection)
        ledger.finished += rows
        ledger.enter(now=True)
        lock.leave()
    assert facts(sqlite, log.names).rate.rows == 13


def test_what_a_publisher_settled_is_told_as_a_rate(engine: Engine, tmp_path: Path) -> None:
    log = site(engine)
    log.write_all(range(1, 61), key="idu=1")
    assert facts(engine, log.names).rate.rows == 0
    with Publisher(config_of(engine, tmp_path / "out")) as publisher:
        assert publisher.run_once().finished == 60
    found = facts(engine, log.names)
    assert (found.rate.rows, found.rate.per_second) == (60, 1.0)
    assert "1.0 rows a second were finished in the last 60 s." in list(found.sentences())
