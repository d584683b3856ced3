"""A real Prometheus scrapes a publisher at work: every panel has an answer, no alert fires without a reason, each accident has its own.

Alerts wait for minutes before they fire. The waiting is made short here, and nothing else: the expressions are those of
the chart, over shorter windows, and what is silent or stalled is so after seconds.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml
from sqlalchemy import Engine, create_engine, text

from tests.containers.test_watching import ALERTS, QUERIES, RULES
from tests.hardening.ledger.stream import Receiver, receiving
from tests.support.servers import found, free_port, postgres_binaries, postgresql_running

pytestmark = [pytest.mark.containers, pytest.mark.xdist_group("prometheus")]

EVENTLOG = (sys.executable, "-m", "eventlog")
PATIENCE_SECONDS = 120.0
FIRED: Final[set[str]] = set()
"""The alerts that fired in accidents so far."""

QUIET_SECONDS = 20.0
STILL_SECONDS = 12
"""A loop that has not moved for so long is silent; rows that were not finished in that time are stalled."""

FROM_AN_HOUR_AGO = (
    "INSERT INTO event_log (status, event_type, event_time, perpetrator, table_name, table_key, column_name, new_value)"
    " VALUES ('N', 2, now() - interval '1 hour', 'somebody', 'usr', '{key}', 'fname', 'Late')"
)
READ_BACK = (
    "INSERT INTO event_log (status, event_type, event_time, perpetrator, table_name, table_key)"
    " VALUES ('N', 6, now(), 'somebody', 'usr', '{key}')"
)
OF_NO_TABLE = (
    "INSERT INTO event_log (status, event_type, event_time, perpetrator, table_name, table_key)"
    " VALUES ('N', 4, now(), 'somebody', 'nowhere', 'id=1')"
)


class Prometheus:
    """One that scrapes two publishers of one log each second."""

    def __init__(self, url: str) -> None:
        self.url = url

    def asked(self, query: str) -> list[dict[str, Any]]:
        """What it answers to a query."""
        with urlopen(f"{self.url}/api/v1/query?{urlencode({'query': query})}", timeout=30) as answer:  # noqa: S310  # an address of this machine
            result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return result

    def firing(self) -> set[str]:
        """The alerts that fire now."""
        return {one["metric"]["alertname"] for one in self.asked('ALERTS{alertstate="firing"}')}


def quick(rules: str) -> str:
    """The rules with little of their waiting; with none, one look while a publisher begins would be an alert."""
    rules = re.sub(r"for: .*", "for: 3s", rules)
    rules = re.sub(r"(silent_seconds|stalled_seconds)\) > \d+", rf"\1) > {STILL_SECONDS}", rules)
    return re.sub(r"\[(10|15)m\]", "[15s]", rules)


def until(is_so: Callable[[], object], what: Callable[[], str]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, what()
        time.sleep(0.3)


@pytest.fixture
def database() -> Iterator[Engine]:
    """A server of our own, which may be stopped."""
    binaries = postgres_binaries()
    assert binaries is not None
    with postgresql_running(binaries) as server:
        engine = create_engine(server + "postgres", isolation_level="AUTOCOMMIT")
        yield engine
        engine.dispose()


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[tuple[Prometheus, list[int]]]:
    """Prometheus, and the ports at which publishers are expected."""
    program = found("prometheus", "prometheus") / "usr" / "bin" / "prometheus"
    ports, own = [free_port(), free_port()], free_port()
    (tmp_path / "alerts.yml").write_text(quick(ALERTS.read_text()))
    scrapes = [{"job_name": "hr", "static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports]}]}]
    settings = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "scrape_configs": scrapes}
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump({**settings, "rule_files": ["alerts.yml"]}))
    words = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    with (tmp_path / "prometheus.log").open("wb") as log:
        server = subprocess.Popen([program, *words, f"--web.listen-address=127.0.0.1:{own}"], stdout=log, stderr=log)
    there = Prometheus(f"http://127.0.0.1:{own}")

    def answers() -> bool:
        assert server.poll() is None, (tmp_path / "prometheus.log").read_text()
        try:
            return there.asked("vector(1)") != []
        except URLError:
            return False

    try:
        until(answers, lambda: "Prometheus does not begin")
        yield there, ports
    finally:
        server.terminate()
        server.wait(30)


class Moody(Receiver):
    """A receiver that can want everything again, or answer nobody for as long as a test likes."""

    def __init__(self) -> None:
        super().__init__(1, "success")
        self.wants_again = False
        self.may_answer = Event()
        self.may_answer.set()

    def take(self, headers: Mapping[str, str], body: bytes) -> str:
        self.may_answer.wait(PATIENCE_SECONDS)
        return "retry" if self.wants_again else super().take(headers, body)


class Site:
    """A log whose table somebody writes to all the time, and two publishers with the rights that they need."""

    def __init__(self, engine: Engine, folder: Path, ports: list[int], outputs: Sequence[str]) -> None:
        self.engine = engine
        self.folder = folder
        self.ports = ports
        url = engine.url.render_as_string(hide_password=False)
        self.publisher_url = engine.url.set(username="pub", password="pub-of-a-test").render_as_string(
            hide_password=False
        )
        sinks = "".join([f"[[output]]\n{output}" for output in outputs])
        (folder / "eventlog.toml").write_text(
            f'[source]\nurl = "{url}"\n[publisher]\npolling_interval = 1\nlease = 3\nretry_longest = 1\n'
            f'on_retry = "object"\n{sinks}'
        )
        self.run("CREATE TABLE usr (id integer PRIMARY KEY, fname text, lname text)")
        self.run("CREATE ROLE pub LOGIN PASSWORD 'pub-of-a-test'")
        for command in (["install"], ["track", "usr", "--events", "field"], ["rights", "--publisher", "pub"]):
            self.command(*command)
        self.publishers = [self.publisher(port) for port in ports]
        self._stop = Event()
        self.writing = Thread(target=self._write, daemon=True)

    def command(self, *words: str) -> None:
        """A command of an operator."""
        words = (*EVENTLOG, *words, "--config", str(self.folder / "eventlog.toml"))
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def publisher(self, port: int) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{port}.log").open("ab")
        surroundings = os.environ | {"EVENTLOG_SOURCE__URL": self.publisher_url}
        words = [*EVENTLOG, "run", "--config", str(self.folder / "eventlog.toml"), "--http", f"127.0.0.1:{port}"]
        with log:
            return subprocess.Popen(words, stdout=log, stderr=log, env=surroundings)

    def run(self, *statements: str) -> None:
        with self.engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def late_row(self, number: int) -> int:
        """A row of an hour ago, of an object that nobody else writes; its number."""
        self.run(FROM_AN_HOUR_AGO.format(key=f"id={-number}"))
        with self.engine.connect() as connection:
            last = connection.execute(
                text("SELECT max(record_id) FROM event_log WHERE table_key = :key"), {"key": f"id={-number}"}
            )
            return int(last.scalar_one())

    def _write(self) -> None:
        number = 0
        while not self._stop.wait(0.05):
            number += 1
            self.run(
                f"INSERT INTO usr VALUES ({number}, 'Jack', 'Frost')", f"UPDATE usr SET fname = 'J' WHERE id = {number}"
            )

    def quiet(self) -> None:
        """Nobody writes any more, and nothing waits: how late a log is says the first row that does."""
        self._stop.set()
        self.writing.join(30)
        until(lambda: not self.waiting(), lambda: f"{self.waiting()} rows wait")

    def waiting(self) -> int:
        with self.engine.connect() as connection:
            return int(connection.execute(text("SELECT count(*) FROM event_log WHERE status = 'N'")).scalar_one())

    def end(self) -> None:
        self._stop.set()
        self.writing.join(30)
        for publisher in self.publishers:
            publisher.kill()
            publisher.wait()


@pytest.fixture
def two_outputs(
    database: Engine, prometheus: tuple[Prometheus, list[int]], tmp_path: Path
) -> Iterator[tuple[Site, Prometheus, Moody]]:
    """All of it at work, with files and a receiver: rows flow, and Prometheus looks."""
    (there, ports), receiver = prometheus, Moody()
    with receiving(receiver):
        outputs = [f'sink = "files"\npath = "{tmp_path}/out"\n', receiver.config()]
        yield from _at_work(Site(database, tmp_path, ports, outputs), there, receiver)


@pytest.fixture
def one_output(
    database: Engine, prometheus: tuple[Prometheus, list[int]], tmp_path: Path
) -> Iterator[tuple[Site, Prometheus, Moody]]:
    """All of it at work, with a receiver alone."""
    (there, ports), receiver = prometheus, Moody()
    with receiving(receiver):
        yield from _at_work(Site(database, tmp_path, ports, [receiver.config()]), there, receiver)


def _at_work(site: Site, there: Prometheus, receiver: Moody) -> Iterator[tuple[Site, Prometheus, Moody]]:
    try:
        site.writing.start()
        until(lambda: there.asked("eventlog_documents_total > 20"), lambda: "nothing is published")
        yield site, there, receiver
    finally:
        receiver.may_answer.set()
        site.end()


def expect_firing(there: Prometheus, *alerts: str) -> None:
    """Each of them fires; not all at the same moment."""
    left = set(alerts)

    def fired() -> bool:
        left.difference_update(there.firing())
        return not left

    until(fired, lambda: f"{left} do not fire, {there.firing()} do; the log is {there.asked('eventlog_flow == 1')}")
    FIRED.update(alerts)


def expect_quiet(there: Prometheus) -> None:
    until(lambda: not there.firing(), lambda: f"{there.firing()} do not end")


def test_every_panel_has_an_answer_and_no_alert_fires_while_rows_flow(
    two_outputs: tuple[Site, Prometheus, Moody],
) -> None:
    _, there, _ = two_outputs
    began, fired = time.monotonic(), set[str]()
    while time.monotonic() < began + QUIET_SECONDS:
        fired |= there.firing()
        time.sleep(0.5)
    assert fired == set()
    queries = [re.sub(r"\$__(range|rate_interval)", "15s", query).replace("$job", ".*") for query in QUERIES]
    assert [query for query in queries if not there.asked(query)] == []


def test_alerts_of_rows_and_outputs_fire_in_their_accidents_and_end(
    two_outputs: tuple[Site, Prometheus, Moody],
) -> None:
    site, there, receiver = two_outputs
    receiver.set_away(True)
    expect_firing(there, "EventlogOutputLags", "EventlogOutputFails")
    receiver.set_away(False)
    expect_quiet(there)

    site.quiet()
    receiver.wants_again = True
    site.late_row(1)
    expect_firing(there, "EventlogRetrying", "EventlogLag")
    receiver.wants_again = False
    expect_firing(there, "EventlogDelay")
    expect_quiet(there)

    site.run("REVOKE SELECT ON usr FROM pub", READ_BACK.format(key="id=1"))
    site.run(OF_NO_TABLE)
    expect_firing(there, "EventlogSuspended", "EventlogRowsInError")
    site.run("GRANT SELECT ON usr TO pub")
    expect_quiet(there)

    site.run("ALTER TABLE usr ADD COLUMN phone text")
    expect_firing(there, "EventlogTriggersBehind")
    site.run("ALTER TABLE usr DROP COLUMN lname")
    expect_firing(there, "EventlogWritersFail")
    site.command("track", "usr", "--events", "field")
    expect_quiet(there)
    assert there.firing() == set()


def test_alerts_of_publishers_fire_in_their_accidents_and_end(one_output: tuple[Site, Prometheus, Moody]) -> None:
    site, there, receiver = one_output
    site.quiet()
    receiver.may_answer.clear()
    site.late_row(1)
    expect_firing(there, "EventlogSilent", "EventlogStandbyStalled", "EventlogStuck")
    receiver.may_answer.set()
    expect_quiet(there)

    receiver.set_away(True)
    site.run(READ_BACK.format(key="id=1"))
    expect_firing(there, "EventlogFailing")
    receiver.set_away(False)
    expect_quiet(there)

    receiver.wants_again = True
    held = site.late_row(2)
    site.command("hold", str(held))
    receiver.wants_again = False
    expect_firing(there, "EventlogHeld")
    site.command("release", str(held))
    expect_quiet(there)

    for publisher in site.publishers:
        publisher.kill()
    expect_firing(there, "EventlogNoPublisher")
    assert "EventlogNoPublisher" in there.firing()


def test_each_alert_had_its_accident() -> None:
    """Stands last in this file, whose tests run in their order."""
    assert {rule["alert"] for rule in RULES} == FIRED
