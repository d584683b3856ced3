"""A password in a URL's query, on a real server: nothing that is printed, kept or shown anywhere has it."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from pathlib import Path
from threading import Thread

import pytest
from sqlalchemy import Engine

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.logging import journal, library_journal
from eventlog.daemon.service import Service
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.web.open_page import open_page
from tests.acceptance.command import eventlog
from tests.integration.publishing import finished, site, until, url_of
from tests.integration.scripted_server import ScriptedServer, answer
from tests.web.visiting import Visit

SECRET = "geheim-5f"
BASIC = b64encode(f"idm:{SECRET}".encode()).decode()
KEY = "schluessel-77"
QUERY = f"password={SECRET}&sslpassword={SECRET}"


def url_with_secrets(engine: Engine) -> str:
    url = url_of(engine)
    return f"{url}{'&' if '?' in url else '?'}{QUERY}"


def test_nothing_that_a_publisher_says_or_keeps_has_it(postgresql: Engine) -> None:
    log = site(postgresql)
    log.run("INSERT INTO usr (idu, fname, lname) VALUES (1, 'Jack', 'Frost')")
    url = url_with_secrets(postgresql)
    config = Config(source=SourceConfig(url=url), output=(DatabaseOutput(url=url),))
    said = io.StringIO()
    vitals = PublisherHealth(watched=True)
    service = Service(lambda: config, journal("json", stream=said, level="debug"), vitals)
    page = open_page("127.0.0.1:0", config, library_journal(), vitals)
    runner = Thread(target=service.run, args=(config,), daemon=True)
    runner.start()
    try:
        log.write(1)
        until(finished(log, 1), "the row is published")
        bodies = [Visit(page).get(path).body for path in ("/", "/rows", "/rows/1", "/health", "/ready", "/metrics")]
    finally:
        service.stop()
        runner.join(30)
        page.close()
    marks = [str(row) for row in log.ask("SELECT name, value FROM event_log_mark")]
    assert any("database " in mark for mark in marks), marks
    words = [said.getvalue(), *bodies, *marks]
    assert '"started"' in words[0]
    assert not [text for text in words if SECRET in text]


def test_a_password_that_is_a_part_of_our_words_changes_none_of_them(postgresql: Engine, tmp_path: Path) -> None:
    """As the audit found it: with role and password pub the journal said "***lished"."""
    log = site(postgresql)
    log.run("INSERT INTO usr (idu, fname, lname) VALUES (1, 'Jack', 'Frost')")
    log.write(1)
    url = postgresql.url.set(password="pub").render_as_string(hide_password=False)
    file = tmp_path / "eventlog.toml"
    file.write_text(f'[source]\nurl = "{url}"\n[[output]]\nsink = "files"\npath = "{tmp_path / "out"}"\n')
    done = eventlog("run", "--until-empty", "--log-format", "json", "--config", file)
    actions = [json.loads(line)["action"] for line in done.stderr.splitlines()]
    assert (actions.count("weak_secret"), "published" in actions) == (0, True), (
        "`check` says it, and a service when it begins"
    )
    assert "pub" not in done.stderr.replace("published", "").replace("publisher", "")
    assert "***" not in done.stderr.replace("postgres:***@", "")
    (weak,) = [line for line in eventlog("check", "--config", file).stdout.splitlines() if "source.url: " in line]
    assert weak.startswith("warning")


COMPLAINT = f"idm, {SECRET} is no password, Basic {BASIC} no login, {KEY} no key"
"""What a receiver says that repeats all by which it was asked."""


def test_nothing_that_a_receiver_repeats_gets_anywhere(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    log.run("INSERT INTO usr (idu, fname, lname) VALUES (1, 'Jack', 'Frost')")
    log.write(1)
    refusal = f'<nds><output><status level="error" event-id="1">{COMPLAINT}</status></output></nds>'
    said, vitals = io.StringIO(), PublisherHealth(watched=True)
    with ScriptedServer([answer(COMPLAINT.encode(), "500 No"), answer(refusal.encode())]) as receiver:
        url = f"http://127.0.0.1:{receiver.port}/xds?key={KEY}"
        output = HttpOutput(url=url, authorization=f"Basic {BASIC}")
        source = SourceConfig(url=url_of(sqlite))
        config = Config(source=source, publisher=PublisherConfig(allow_loopback=True), output=(output,))
        service = Service(lambda: config, journal("json", stream=said, level="debug"), vitals)
        page = open_page("127.0.0.1:0", config, library_journal(), vitals)
        runner = Thread(target=service.run, args=(config,), daemon=True)
        runner.start()
        try:
            until(finished(log, 1, "E"), "the row is refused")
            paths = ("/", "/rows", "/rows/1", "/output?name=http", "/health", "/ready", "/metrics")
            bodies = [Visit(page).get(path).body for path in paths]
        finally:
            service.stop()
            runner.join(30)
            page.close()
    (tmp_path / "eventlog.toml").write_text(
        f'[source]\nurl = "{source.url}"\n[[output]]\nsink = "http"\nurl = "{url}"\nauthorization = "Basic {BASIC}"\n'
    )
    commands = (["status"], ["status", "--json"], ["explain", "1"], ["log"], ["outputs", "list"], ["check"])
    printed = [eventlog(*command, "--config", tmp_path / "eventlog.toml") for command in commands]
    kept = [str(row) for table in ("mark", "outcome") for row in log.ask(f"SELECT * FROM event_log_{table}")]
    texts = [said.getvalue(), *bodies, *kept, *(done.stdout + done.stderr for done in printed)]
    assert len([text for text in texts if "is no password" in text]) > 5
    for secret in (SECRET, BASIC, KEY):
        assert not [text for text in texts if secret in text], secret


@pytest.mark.parametrize("command", [["check"], ["status"], ["run", "--once"]])
def test_nothing_that_a_command_prints_has_it(postgresql: Engine, tmp_path: Path, command: list[str]) -> None:
    site(postgresql).write(1)
    file = tmp_path / "eventlog.toml"
    url = url_with_secrets(postgresql)
    file.write_text(f'[source]\nurl = "{url}"\n[[output]]\nsink = "database"\nurl = "{url}"\n')
    for asked in (
        ["--config", file],
        ["--database", url.replace(f"/{postgresql.url.database}", "/nowhere")],
        ["--database", url.replace("postgresql+psycopg", "postgresql+nothing")],
        ["--database", f"{url}&nonsense=1"],
    ):
        done = eventlog("--debug", *command, *asked)
        assert SECRET not in done.stdout + done.stderr, asked


@pytest.mark.parametrize(
    "target",
    [
        ["--to", "xds", "--out", "out"],
        ["--to", "change-tables", "--to-database"],
        ["--to", "messages", "--kafka", f"127.0.0.1:1,sasl://u:{SECRET}@127.0.0.1:1"],
    ],
)
def test_nothing_that_a_conversion_prints_or_writes_has_it(
    postgresql: Engine, tmp_path: Path, target: list[str]
) -> None:
    site(postgresql).write(1)
    url = url_with_secrets(postgresql)
    target = [*target, url] if target[-1] == "--to-database" else target
    for source in (url, f"nothing:{url}"):
        done = eventlog("--debug", "convert", "database", source, "--engine", "local", *target, cwd=tmp_path)
        assert SECRET not in done.stdout + done.stderr, source
    found = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert not [file for file in found if SECRET.encode() in file.read_bytes()]
