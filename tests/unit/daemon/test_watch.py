"""What others see of a running publisher: metrics, health, systemd, and a journal without secrets."""

from __future__ import annotations

import io
import json
import logging
import re
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.cli.site import read_address
from eventlog.config.settings import PublisherConfig
from eventlog.core.errors import ConfigError, SinkError, SourceError
from eventlog.core.model import Event, Status
from eventlog.daemon.health import (
    MOST_TABLES,
    SILENCE_SECONDS,
    Gauge,
    PublisherHealth,
    State,
    VitalsReading,
)
from eventlog.daemon.logging import journal, library_journal
from eventlog.daemon.signals import Systemd
from eventlog.delivery.report import Report
from eventlog.publisher.turn_report import Turn
from eventlog.sources.log.flow import STATES, Flow, OutputLag, WaitingParts
from eventlog.sql.log import Log
from eventlog.web.endpoint import Endpoint, health, ready
from eventlog.web.metrics import metrics
from tests.conformance.event_logs import installed

LINE = re.compile(r"(?:eventlog|process)_[a-z_]+(\{[a-z]+=\"[^\"]+\"(,[a-z]+=\"[^\"]+\")?\})? -?[\d.e+-]+")


def value(text: bytes, name: str) -> str:
    [line] = [line for line in text.decode().splitlines() if line.startswith(name)]
    return f"{float(line.rpartition(' ')[2]):g}"


def test_what_a_cycle_did_is_counted() -> None:
    vitals = PublisherHealth()
    statuses = {Status.SUCCESS: 4, Status.NEW: 1}
    vitals.note_cycle(Report(events=5, changes=3, documents=2, statuses=statuses, seconds=0.25))
    vitals.note_cycle(Report(seconds=0.25))
    vitals.note_flow(Flow(parts=WaitingParts(ready=7), oldest=1, lag=12.5, publishing=True))
    vitals.beat()
    assert vitals.reading().state == "publishing"
    for error in (SourceError("away"), SinkError("full"), SinkError("full")):
        vitals.note_failure(error)
    assert vitals.reading().failures == {"source": 1, "sink": 2}
    assert (vitals.reading().state, vitals.reading().error) == ("failing", "full")
    vitals.note_cycle(Report())
    reading = vitals.reading()
    assert (reading.rows, reading.changes, reading.documents) == ({"S": 4}, 3, 2)
    assert (reading.cycles, reading.active_cycles, reading.seconds, reading.heartbeats) == (3, 1, 0.5, 1)
    assert reading.flow is not None
    assert (reading.flow.parts.total, reading.flow.lag) == (7, 12.5)
    assert (reading.state, reading.error) == ("publishing", None)


def test_every_metric_is_explained_and_well_formed() -> None:
    vitals = PublisherHealth()
    vitals.note_cycle(Report(events=1, documents=1, statuses={Status.ERROR: 1}, seconds=0.1))
    lines = metrics(vitals.reading()).decode().splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert all(LINE.fullmatch(line) for line in samples), samples
    explained = {line.split()[2] for line in lines if line.startswith("# HELP")}
    told = {re.split(r"[{ ]", line)[0] for line in samples}
    assert {name if name in explained else re.sub(r"_(?:bucket|count|sum)$", "", name) for name in told} <= explained
    assert value(metrics(vitals.reading()), 'eventlog_rows_total{status="E"}') == "1"
    assert "\neventlog_waiting_rows " not in metrics(vitals.reading()).decode()  # nobody has counted yet


def test_metrics_tell_apart_what_rows_wait_for_and_how_the_log_goes_on() -> None:
    vitals = PublisherHealth()
    assert "eventlog_flow{" not in metrics(vitals.reading()).decode()
    vitals.note_turn("near", Turn(complaint="Nobody answers."))
    parts = WaitingParts(ready=1, held=2, retrying=3, suspended=4, not_due=5)
    vitals.note_flow(Flow(parts=parts, publishing=True, lags={"far": OutputLag(rows=12)}))
    told = metrics(vitals.reading())
    waits = {"ready": "1", "held": "2", "retrying": "3", "suspended": "4", "not_due": "5"}
    assert {name: value(told, f'eventlog_backlog_rows{{waits="{name}"}}') for name in waits} == waits
    assert value(told, "eventlog_waiting_rows ") == "15"
    lags = {"far": "12", "near": "0"}
    assert {name: value(told, f'eventlog_output_lag_rows{{output="{name}"}}') for name in lags} == lags
    states = {state: value(told, f'eventlog_flow{{state="{state}"}}') for state in STATES}
    assert [state for state, figure in states.items() if figure == "1"] == ["suspended"]


def test_a_publisher_never_measures_that_none_works(sqlite: Engine) -> None:
    """The mark of its lock is renewed late on a busy machine, or is from before it had the lock."""
    log, vitals = Log(sqlite, installed(sqlite).names), PublisherHealth(watched=True)
    states: tuple[tuple[State, bool], ...] = (("standby", False), ("publishing", True))
    for state, publishes in states:
        vitals.now(state)
        Gauge(log, PublisherConfig()).measure(vitals)
        flow = vitals.reading().flow
        assert flow is not None
        assert flow.publishing is publishes


def test_a_publisher_that_nobody_asks_does_not_load_what_writes_metrics() -> None:
    program = (
        "import sys, eventlog.daemon.command, eventlog.daemon.publisher; sys.exit('prometheus_client' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    "state, silent, healthy, prepared",
    [
        ("publishing", 0, 200, 200),
        ("standby", 0, 200, 200),
        ("starting", 0, 200, 503),
        ("failing", 0, 200, 503),
        ("stopping", 0, 200, 503),
        ("publishing", SILENCE_SECONDS, 503, 503),
    ],
)
def test_health_is_about_life_and_readiness_about_work(
    state: State, silent: float, healthy: int, prepared: int
) -> None:
    reading = VitalsReading(state=state, silent=silent)
    assert (health(reading).status, ready(reading).status) == (healthy, prepared)
    assert json.loads(health(replace(reading, error="why")).body) == {
        "state": state,
        "silent_seconds": silent,
    }


def test_the_endpoint_answers_three_questions() -> None:
    vitals = PublisherHealth()
    endpoint = Endpoint("127.0.0.1:0", vitals)
    try:
        with pytest.raises(HTTPError) as unready:
            urlopen(f"http://127.0.0.1:{endpoint.port}/ready")
        with pytest.raises(HTTPError) as lost:
            urlopen(f"http://127.0.0.1:{endpoint.port}/elsewhere")
        vitals.now("publishing")
        answers = [
            urlopen(f"http://127.0.0.1:{endpoint.port}/{path}").read() for path in ("ready", "health", "metrics")
        ]
    finally:
        endpoint.close()
    assert (unready.value.code, lost.value.code) == (503, 404)
    assert b'"state":"publishing"' in answers[0]
    assert value(answers[2], 'eventlog_state{state="publishing"}') == "1"
    unready.value.close()
    lost.value.close()


@pytest.mark.parametrize(
    "text, address",
    [
        ("9187", ("127.0.0.1", 9187)),
        (":9187", ("127.0.0.1", 9187)),
        ("10.0.0.1:1", ("10.0.0.1", 1)),
        ("[::1]:5", ("::1", 5)),
    ],
)
def test_without_a_host_only_this_machine_can_ask(text: str, address: tuple[str, int]) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize("text", ["", "localhost", "host:port", "host:99999", "²", "h:٣", f"h:{'9' * 5000}", "h:-1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is no address; it is written as"):
        read_address(text)


def test_an_address_that_is_taken_is_told() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(ConfigError, match=r"[0-9]: Address already in use\. End"),
    ):
        Endpoint(f"127.0.0.1:{other.getsockname()[1]}", PublisherHealth())


def test_systemd_hears_what_it_wants_to_hear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.0, 0.09, 0.11, 0.11])  # a quarter of the watchdog's time is 0.1 s
    monkeypatch.setattr("eventlog.daemon.signals.monotonic", lambda: next(clock))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.settimeout(30)
        systemd = Systemd({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "400000"})
        systemd.ready()
        systemd.alive()
        systemd.alive()  # too soon to be worth a word
        systemd.reloading()
        systemd.alive()
        systemd.stopping()
        heard = [listener.recv(200).decode() for _ in range(5)]
    assert heard[:2] == ["READY=1", "WATCHDOG=1"]
    assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", heard[2])
    assert heard[3:] == ["WATCHDOG=1", "STOPPING=1"]


NOBODY = {"NOTIFY_SOCKET": "/nonexistent/socket", "WATCHDOG_USEC": "1000000"}


@pytest.mark.parametrize("environment, watchdog", [({}, None), (NOBODY, 1.0), (NOBODY | {"WATCHDOG_PID": "1"}, None)])
def test_without_systemd_or_a_watchdog_of_ours_nothing_happens(
    environment: dict[str, str], watchdog: float | None
) -> None:
    systemd = Systemd(environment)
    systemd.ready()
    systemd.alive()
    assert systemd.watchdog == watchdog


def test_a_record_is_one_line_of_json_that_begins_with_time_level_and_action() -> None:
    stream = io.StringIO()
    journal("json", stream=stream).info("published", rows=3, folder=Path("out"))
    record = json.loads(stream.getvalue())
    assert list(record)[:3] == ["time", "level", "action"]
    assert {**record, "time": ""} == {"time": "", "level": "info", "action": "published", "rows": 3, "folder": "out"}
    assert stream.getvalue().count("\n") == 1


@pytest.mark.parametrize("style", ["json", "console"])
def test_a_secret_never_gets_into_the_journal(style: str) -> None:
    stream = io.StringIO()
    teller = journal("json" if style == "json" else "console", secrets=["", "s3cret"], stream=stream)
    teller.warning("failed", error="password s3cret for postgresql://idm:other@db/app", attempt=1)
    assert "s3cret" not in stream.getvalue()
    assert "other" not in stream.getvalue()
    assert "postgresql://idm:***@db/app" in stream.getvalue()


def test_a_person_reads_an_error_as_a_sentence_in_one_line() -> None:
    stream = io.StringIO()
    journal("console", stream=stream).error("fatal", error="The log's table\nis gone.", exit_code=78)
    assert stream.getvalue().rstrip().endswith(r"fatal: The log's table\nis gone. exit_code=78")
    assert stream.getvalue().count("\n") == 1


def test_a_library_speaks_through_the_standard_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="eventlog"):
        library_journal().info("published", rows=3)
    [record] = caplog.records
    assert (record.name, record.getMessage(), record.__dict__["rows"]) == ("eventlog", "published", 3)


def event(number: int, table: str | None = "usr", time: str | None = None) -> Event:
    return Event(position=(number,), kind=1, table=table, key="id=1", time=time)


def test_each_output_has_its_own_figures() -> None:
    vitals = PublisherHealth(watched=True)
    vitals.serves(["near", "far"])
    now = datetime.now(UTC)
    times = [now.isoformat(), (now - timedelta(seconds=20)).isoformat(), "no time", None]
    events = [event(number, time=time) for number, time in enumerate(times)]
    vitals.note_turn("near", Turn(documents=2, last=("d", (3,)), delivered=events, seconds=0.2))
    vitals.note_turn("far", Turn(complaint="Nobody answers.", seconds=7.0), failed=True)
    told = metrics(vitals.reading())
    assert value(told, 'eventlog_output_documents_total{output="near"}') == "2"
    assert value(told, 'eventlog_output_documents_total{output="far"}') == "0"
    assert value(told, 'eventlog_output_failures_total{output="far"}') == "1"
    assert value(told, 'eventlog_delivery_seconds_bucket{le="5.0",output="near"}') == "1"
    assert value(told, 'eventlog_delivery_seconds_bucket{le="5.0",output="far"}') == "0"
    assert value(told, 'eventlog_delivery_seconds_count{output="far"}') == "1"
    assert value(told, 'eventlog_delay_seconds_bucket{le="10.0",output="near"}') == "1"
    assert value(told, 'eventlog_delay_seconds_count{output="near"}') == "2"
    assert 'eventlog_output_last_document_timestamp_seconds{output="far"}' not in told.decode()
    vitals.serves(["near"])
    assert 'output="far"' not in metrics(vitals.reading()).decode()


def test_tables_are_counted_by_name_while_they_are_few() -> None:
    vitals = PublisherHealth()
    for number in range(MOST_TABLES + 3):
        vitals.note_cycle(Report(events=2, tables={f"t{number}": 2}, seconds=0.3))
    told = metrics(vitals.reading())
    assert value(told, 'eventlog_table_rows_total{table="t49"}') == "2"
    assert value(told, 'eventlog_table_rows_total{table="other"}') == "6"
    assert value(told, 'eventlog_batch_seconds_bucket{le="0.25"}') == "0"
    assert value(told, "eventlog_batch_seconds_count ") == str(MOST_TABLES + 3)
