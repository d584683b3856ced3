"""After SIGHUP the page shows what the publisher works with: outputs, log, and who may come; idle outputs say how they stand."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.config.settings import Config, SourceConfig
from eventlog.daemon.logging import journal, library_journal
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.names import LogNames
from eventlog.web.collector import SAMPLE_SECONDS, Collector
from eventlog.web.log_opener import LogOpener
from eventlog.web.open_page import open_page
from eventlog.web.server import PageServer
from eventlog.web.settings import WebConfig
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import Process, site, until, url_of
from tests.web.visiting import Visit

TOKEN = "the-token-that-nobody-guesses"
EVERYWHERE = ".".join("0000")


def config(log: LogTable, folder: str, web: WebConfig | None = None, table: str = "event_log") -> Config:
    source = SourceConfig(url=url_of(log.engine), log=table)
    return Config(source=source, output=(FilesOutput(path=folder),), tables={"web": web or WebConfig()})


@contextmanager
def shown(asked: Config, address: str = "127.0.0.1:0", stream: io.StringIO | None = None) -> Iterator[PageServer]:
    said = library_journal() if stream is None else journal("json", stream=stream)
    page = open_page(address, asked, said)
    try:
        yield page
    finally:
        page.close()


def test_outputs_are_those_of_the_new_configuration_and_the_hour_stays(log: LogTable) -> None:
    with shown(config(log, "former")) as page:
        visit = Visit(page)
        until(lambda: "now 1 row," in visit.get("/").body, "it is measured")
        page.adopt(config(log, "latter"))
        first = visit.get("/").body
        assert "now 1 row," in first  # what was measured before is still there
        until(lambda: "/latter</bdi>" in visit.get("/").body, "the new output is shown")
        assert "/former</bdi>" not in visit.get("/").body


def test_another_log_is_shown_without_the_hour_of_the_former(log: LogTable) -> None:
    install(log.engine, LogNames(table="other_log"))
    with shown(config(log, "out")) as page:
        visit = Visit(page)
        until(lambda: "now 1 row," in visit.get("/").body, "it is measured")
        page.adopt(config(log, "out", table="other_log"))
        assert "now 1 row," not in visit.get("/").body
        assert visit.get("/rows/2").status == 404
        assert "other_log" in visit.get("/rows").body


def test_a_token_that_was_changed_opens_nothing_any_more(log: LogTable) -> None:
    with shown(config(log, "out", WebConfig(token=TOKEN))) as page:
        former = Visit(page, Authorization=f"Bearer {TOKEN}")
        assert former.get("/rows").status == 200
        page.adopt(config(log, "out", WebConfig(token=TOKEN.upper(), read_only=True)))
        assert former.get("/rows").status == 401
        latter = Visit(page, Authorization=f"Bearer {TOKEN.upper()}")
        assert "read-only" in latter.get("/rows").body


def test_a_configuration_that_would_let_everybody_in_changes_nobodys_rights(log: LogTable) -> None:
    written = io.StringIO()
    with shown(config(log, "out", WebConfig(token=TOKEN)), f"{EVERYWHERE}:0", written) as page:
        page.adopt(config(log, "out"))
        assert Visit(page).get("/rows").status == 401
        assert Visit(page, Authorization=f"Bearer {TOKEN}").get("/rows").status == 200
    [error] = [json.loads(line)["error"] for line in written.getvalue().splitlines()]
    assert "web.token" in error


def test_live_updates_begin_anew_with_the_new_configuration(log: LogTable) -> None:
    with shown(config(log, "former")) as page:
        assert Visit(page).get("/").status == 200
        connection = HTTPConnection("127.0.0.1", page.port, timeout=30)
        connection.request("GET", "/events")
        response = connection.getresponse()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.readline().startswith(b'data: <div id="live" data-stream="/events?range=1h">')
        page.adopt(config(log, "latter"))
        Visit(page).get("/")
        response.read()  # the stream ends, whereupon a browser asks again
        assert response.isclosed()
        connection.close()


def test_the_page_of_a_publisher_follows_its_signal(sqlite: Engine, tmp_path: Path) -> None:
    log = site(sqlite)
    file = tmp_path / "eventlog.toml"
    written = '[[output]]\nsink = "files"\npath = "{}"\n'
    file.write_text(written.format(tmp_path / "former"))
    start = ("--config", str(file), "--http", "127.0.0.1:0")
    with Process(log.engine, tmp_path / "unused", *start, out=False) as process:
        port = process.wait_for("watched_at")["port"]
        process.wait_for("lock_taken")
        assert "/former</bdi>" in asked(port)
        assert "eventlog_state" in asked(port, "/metrics")
        until(lambda: ">publishing</span></dd>" in asked(port), "it publishes")
        renamed = f'former_names = ["files {tmp_path / "former"}"]\n'  # else the log would keep rows for it
        file.write_text(written.format(tmp_path / "latter") + renamed)
        process.tell(signal.SIGHUP)
        process.wait_for("reloaded")
        until(lambda: "/latter</bdi>" in asked(port), "the page shows the new output")
        log.write(1)
        until(lambda: '<a href="/rows/1">row 1</a>' in asked(port), "the page says how far it is")
        assert process.stop() == 0


def asked(port: int, path: str = "/") -> str:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    body = connection.getresponse().read().decode()
    connection.close()
    return body


@pytest.mark.parametrize("module", ["log_opener", "collector"])
def test_an_end_that_comes_right_behind_another_wish_is_not_forgotten(
    log: LogTable, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    class Late(Event):
        """The end comes just before the thread forgets what it was woken for."""

        def clear(self) -> None:
            if closing.ident is None:
                closing.start()
                until(self.is_set, "the end is asked for")
            super().clear()

    monkeypatch.setattr(f"eventlog.web.{module}.Flag", Late)
    asked = config(log, "out")
    thread = LogOpener(asked) if module == "log_opener" else Collector(log.engine, log.names, asked)
    closing = Thread(target=thread.close, daemon=True)
    thread.start()
    until(lambda: closing.ident is not None, "the thread looks")
    closing.join(SAMPLE_SECONDS - 1)
    assert not closing.is_alive()
