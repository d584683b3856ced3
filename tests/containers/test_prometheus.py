"""A real Prometheus scrapes a publisher at work: every panel has an answer, no alert fires without a reason, each accident has its own.

Alerts wait for minutes before they fire. The waiting is taken out of the rules here, and nothing else: their expressions
are those of the chart, over windows that are shorter.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml
from sqlalchemy import Engine, create_engine, text

from tests.containers.test_watching import ALERTS, QUERIES
from tests.hardening.ledger.stream import Receiver, receiving
from tests.support.servers import found, free_port, postgres_binaries, postgresql_running

pytestmark = pytest.mark.containers

EVENTLOG = (sys.executable, "-m", "eventlog")
PATIENCE_SECONDS = 120.0
QUIET_SECONDS = 20.0


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
    """The rules without their waiting."""
    rules = re.sub(r"(?m)^        for: .*\n", "", rules)
    return re.sub(r"\[(10|15)m\]", "[15s]", rules)


def until(is_so: Any, what: str) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, what
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
        until(answers, "Prometheus does not begin")
        yield there, ports
    finally:
        server.terminate()
        server.wait(30)


class Site:
    """A log whose table somebody writes to all the time, and two publishers with two outputs."""

    def __init__(self, engine: Engine, folder: Path, ports: list[int], receiver: Receiver) -> None:
        self.engine = engine
        self.folder = folder
        self.ports = ports
        url = engine.url.render_as_string(hide_password=False)
        (folder / "eventlog.toml").write_text(
            f'[source]\nurl = "{url}"\n[publisher]\nallow_loopback = true\npolling_interval = 1\nlease = 1\nretry_longest = 1\n'
            f'[[output]]\nsink = "files"\npath = "{folder}/out"\n[[output]]\n{receiver.config()}'
        )
        self.run("CREATE TABLE usr (id integer PRIMARY KEY, fname text, lname text)")
        for command in (["install"], ["track", "usr", "--events", "field"]):
            subprocess.run([*EVENTLOG, *command, "--config", folder / "eventlog.toml"], check=True, capture_output=True)
        self.publishers = [self.publisher(port) for port in ports]
        self._stop = Event()
        self.writing = Thread(target=self._write, daemon=True)

    def publisher(self, port: int) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{port}.log").open("ab")
        words = [*EVENTLOG, "run", "--config", str(self.folder / "eventlog.toml"), "--http", f"127.0.0.1:{port}"]
        with log:
            return subprocess.Popen(words, stdout=log, stderr=log)

    def run(self, *statements: str) -> None:
        with self.engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def _write(self) -> None:
        number = 0
        while not self._stop.wait(0.05):
            number += 1
            self.run(
                f"INSERT INTO usr VALUES ({number}, 'Jack', 'Frost')", f"UPDATE usr SET fname = 'J' WHERE id = {number}"
            )

    def quiet(self) -> None:
        """Nobody writes any more."""
        self._stop.set()
        self.writing.join(30)

    def end(self) -> None:
        self.quiet()
        for publisher in self.publishers:
            publisher.kill()
            publisher.wait()


@pytest.fixture
def site(
    database: Engine, prometheus: tuple[Prometheus, list[int]], tmp_path: Path
) -> Iterator[tuple[Site, Prometheus, Receiver]]:
    """All of it at work: rows flow, and Prometheus looks."""
    there, ports = prometheus
    with receiving(Receiver(1, "success")) as receiver:
        begun = Site(database, tmp_path, ports, receiver)
        try:
            begun.writing.start()
            yield begun, there, receiver
        finally:
            begun.end()


def fires(there: Prometheus, alert: str) -> None:
    until(lambda: alert in there.firing(), f"{alert} does not fire; there are {there.firing()}")


def expect_quiet(there: Prometheus) -> None:
    until(lambda: not there.firing(), f"{there.firing()} do not end")


def test_every_panel_has_an_answer_and_no_alert_fires_while_rows_flow(
    site: tuple[Site, Prometheus, Receiver],
) -> None:
    _, there, _ = site
    until(lambda: there.asked("eventlog_documents_total > 20"), "nothing is published")
    began, fired = time.monotonic(), set[str]()
    while time.monotonic() < began + QUIET_SECONDS:
        fired |= there.firing()
        time.sleep(0.5)
    assert fired == set()
    queries = [re.sub(r"\$__(range|rate_interval)", "15s", query).replace("$job", ".*") for query in QUERIES]
    assert [query for query in queries if not there.asked(query)] == []


def test_an_alert_fires_in_its_accident_and_ends_with_it(site: tuple[Site, Prometheus, Receiver]) -> None:
    here, there, receiver = site
    until(lambda: there.asked("eventlog_documents_total > 20"), "nothing is published")
    receiver.set_away(True)
    fires(there, "EventlogOutputLags")
    here.quiet()
    receiver.set_away(False)
    expect_quiet(there)
    here.run(
        "INSERT INTO event_log (status, event_type, event_time, perpetrator, table_name, table_key)"
        " VALUES ('N', 4, now(), 'somebody', 'nowhere', 'id=1')"
    )
    fires(there, "EventlogRowsInError")
    here.run(
        "INSERT INTO event_log (status, event_type, event_time, perpetrator, table_name, table_key, column_name, new_value)"
        " VALUES ('N', 2, now() - interval '1 hour', 'somebody', 'usr', 'id=1', 'fname', 'Late')"
    )
    fires(there, "EventlogDelay")
    expect_quiet(there)
    here.run("ALTER TABLE usr ADD COLUMN phone text")
    fires(there, "EventlogTriggersBehind")
    here.run("ALTER TABLE usr DROP COLUMN lname")
    fires(there, "EventlogWritersFail")
    for publisher in here.publishers:
        publisher.kill()
    fires(there, "EventlogNoPublisher")
