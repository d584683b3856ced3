"""The page over HTTP, without JavaScript: what is shown, who gets in, what may be done, and what nobody is told."""

from __future__ import annotations

import io
import json
import re
from base64 import b64encode
from hashlib import sha256

import pytest

from eventlog.config.settings import Config, SourceConfig
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.logging import journal, library_journal
from eventlog.web.collector import Collector
from eventlog.web.log_pages import LogPages
from eventlog.web.open_page import open_page
from eventlog.web.server import PageServer
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import until
from tests.web.visiting import Visit, bare, opened

TOKEN = "the-token-that-nobody-guesses"

NOBODY = "<strong>No publisher:</strong>"


def test_the_first_page_says_how_it_goes(page: PageServer) -> None:
    visit = Visit(page)
    until(lambda: "not yet" not in visit.get("/").body, "rows are counted")
    body = visit.get("/").body
    assert NOBODY in body
    assert '<a href="/rows/2">row 2</a>' in body
    assert '<a href="/rows?status=E"><span class="badge bad"><b>E</b> error</span></a></th><td>7</td>' in bare(body)
    assert body.count("<svg") >= 8
    assert "files " in body


@pytest.mark.parametrize("path", ["/", "/rows", "/rows/2", "/confirm?action=hold&id=2", "/rows/404", "/nowhere"])
def test_every_page_is_closed_to_scripts_and_frames(page: PageServer, path: str) -> None:
    answered = Visit(page).get(path)
    policy = answered.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert answered.headers["cache-control"] == "no-store"
    assert not re.search(r"<[^>]+\s(style|on\w+)=", answered.body)
    assert not re.search(r"<script(?! src=\"/static/)", answered.body)
    assert not re.search(r"(?:src|href)=\"(?:https?:|//|javascript:)", answered.body)


def test_a_row_tells_what_was_recorded_and_what_the_rules_say(page: PageServer) -> None:
    body = Visit(page).get("/rows/2").body
    assert "Jack" in body
    assert "John" in body
    assert "&lt;modify-attr attr-name=&#34;fname&#34;&gt;" in body
    assert "Read with 1 other row of the same object" in body or "Read alone" in body
    assert Visit(page).get("/rows/404").status == 404
    assert "has no row 404" in Visit(page).get("/rows/404").body
    nowhere = Visit(page).get("/no/such-page")
    assert (nowhere.status, "There is no page /no/such-page." in nowhere.body) == (404, True)
    assert '<a href="/">To the overview</a>' in nowhere.body


def test_a_key_leads_to_its_timeline(page: PageServer) -> None:
    visit = Visit(page)
    [to] = set(re.findall(r'href="(/rows\?table=usr&amp;key=idu%3D1)&amp;near=2"', visit.get("/rows/2").body))
    body = visit.get(to.replace("&amp;", "&")).body
    assert re.findall(r'scope="row"><a href="/rows/(\d+)"', body) == ["2", "1"]
    assert "The timeline of" in body


def test_rows_are_requeued_held_and_released_after_asking_once_more(page: PageServer, log: LogTable) -> None:
    visit = Visit(page)
    asked = visit.get("/confirm?action=requeue&id=3&id=10")
    assert log.statuses()[3] == "E"
    done = visit.post("/act", {"action": "requeue", "id": [3, 10], "proof": asked.proof})
    assert (done.status, done.headers["location"]) == (303, "/rows/3?done=requeue+2")
    assert (log.statuses()[3], log.statuses()[10]) == ("N", "N")
    assert "2 rows are waiting again now." in visit.get("/rows/3?done=requeue+2").body
    for action, held in (("hold", [(2,)]), ("release", [])):
        asked = visit.get(f"/confirm?action={action}&id=2")
        assert visit.post("/act", {"action": action, "id": 2, "proof": asked.proof}).status == 303
        assert log.ask("SELECT record_id FROM event_log_hold") == held


def test_the_question_counts_the_rows_with_which_that_can_be_done(page: PageServer, log: LogTable) -> None:
    visit = Visit(page)
    refused = visit.get("/confirm?action=release&id=2&id=3")
    assert (refused.status, "None of these rows can be released now." in refused.body) == (400, True)
    log.run("INSERT INTO event_log_hold (record_id) VALUES (2)")
    asked = visit.get("/confirm?action=release&id=2&id=3&id=404")
    assert "Release 1 row?" in asked.body
    assert "Of the 3 rows that you chose, the others cannot be released now." in asked.body
    assert "/rows/3" not in asked.body


@pytest.mark.parametrize(
    "query",
    [
        "action=drop&id=3",
        "action=hold",
        "action=hold&id=x",
        "action=hold" + "&id=1" * 3 + "".join(f"&id={n}" for n in range(600)),
    ],
)
def test_what_cannot_be_done_is_said(page: PageServer, query: str) -> None:
    answered = Visit(page).get(f"/confirm?{query}")
    assert answered.status == 400
    assert "This cannot be done" in answered.body


def test_scripts_are_kept_by_browsers(page: PageServer) -> None:
    visit = Visit(page)
    for name, path in (("live.js", "/"), ("rows.js", "/rows")):
        [at] = re.findall(rf'"(/static/\w+/{name})"', visit.get(path).body)
        found = visit.get(at)
        assert (found.status, "immutable" in found.headers["cache-control"]) == (200, True)
    assert visit.get("/static/x/secrets.toml").status == 404


def test_a_database_that_is_away_is_said_and_waited_for(log: LogTable) -> None:
    config = Config(source=SourceConfig(url=str(log.engine.url), log="not_yet"))
    page = open_page("127.0.0.1:0", config, library_journal())
    try:
        answered = Visit(page).get("/")
        assert answered.status == 503
        assert "not_yet" in answered.body
        for (name,) in log.ask(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'event!_log%' ESCAPE '!'"
        ):
            log.run(f"ALTER TABLE {name} RENAME TO {name.replace('event_log', 'not_yet')}")
        until(lambda: Visit(page).get("/").status == 200, "the page opens")
        assert Visit(page).get("/rows/2").status == 200
    finally:
        page.close()


def test_the_page_of_a_publisher_never_says_that_none_works(log: LogTable) -> None:
    """The mark of its lock may have been read before it had it, and is renewed late on a busy machine."""
    vitals = PublisherHealth()
    with opened(log.engine, vitals=vitals) as page:
        visit = Visit(page)
        until(lambda: NOBODY in visit.get("/").body, "the log has been measured")
        vitals.now("publishing")
        body = visit.get("/").body
        assert NOBODY not in body
        assert '<dd><span class="good">publishing</span></dd>' in body
        vitals.now("stopping")
        assert NOBODY in visit.get("/").body


def test_a_fault_is_told_to_who_operates_and_not_to_who_looks(log: LogTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("hidden words")

    written = io.StringIO()
    monkeypatch.setattr(LogPages, "rows", broken)
    monkeypatch.setattr(Collector, "_sample", broken)
    page = open_page(
        "127.0.0.1:0", Config(source=SourceConfig(url=str(log.engine.url))), journal("json", stream=written)
    )
    try:
        visit = Visit(page)
        answered = visit.get("/rows")
        until(lambda: "ZeroDivisionError, which is a fault" in visit.get("/").body, "the fault is seen")
    finally:
        page.close()
    assert (answered.status, "hidden words" in answered.body) == (500, False)
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert json.loads(written.getvalue())["error"] == "ZeroDivisionError: hidden words"


def test_a_page_needs_no_second_answer_before_it_is_shown(page: PageServer) -> None:
    answered = Visit(page).get("/")
    [style] = re.findall(r"<style>(.*?)</style>", answered.body, re.DOTALL)
    assert 'rel="stylesheet"' not in answered.body
    known = b64encode(sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{known}';" in answered.headers["content-security-policy"]
