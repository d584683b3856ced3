"""The page over HTTP, without JavaScript: what is shown, who gets in, what may be done, and what nobody is told."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.config import Config, SourceConfig
from eventlog.daemon.vitals import Vitals
from eventlog.errors import ConfigError
from eventlog.journal import journal, library_journal
from eventlog.web import desk
from eventlog.web.app import LARGEST
from eventlog.web.collector import Collector
from eventlog.web.door import open_page
from eventlog.web.server import PageServer
from eventlog.websettings import WebConfig
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import until
from tests.web.visiting import HOSTILE, Visit, opened, watched

TOKEN = "the-token-that-nobody-guesses"


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    return watched(sqlite)


@pytest.fixture
def page(log: LogTable) -> Iterator[PageServer]:
    with opened(log.engine) as page:
        yield page


def test_the_first_page_says_how_it_goes(page: PageServer) -> None:
    visit = Visit(page)
    until(lambda: "not yet" not in visit.get("/").body, "rows are counted")
    body = visit.get("/").body
    assert "no publisher works on this log" in body.lower()
    assert '<a href="/rows/2">row 2</a>' in body
    assert '<a href="/rows?status=E">E</a></th><td>7</td>' in body
    assert body.count("<svg") >= 8
    assert "files " in body


@pytest.mark.parametrize("path", ["/", "/rows", "/rows/2", "/confirm?action=hold&id=2", "/rows/404", "/nowhere"])
def test_every_page_is_closed_to_scripts_and_frames(page: PageServer, path: str) -> None:
    answered = Visit(page).get(path)
    if answered.status != 404 or path != "/nowhere":
        policy = answered.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answered.headers["x-content-type-options"] == "nosniff"
        assert answered.headers["cache-control"] == "no-store"
    assert not re.search(r"<[^>]+\s(style|on\w+)=", answered.body)
    assert not re.search(r"<script(?! src=\"/static/)", answered.body)
    assert not re.search(r"(?:src|href)=\"(?:https?:|//|javascript:)", answered.body)


@pytest.mark.parametrize(
    "path", ["/rows", "/rows?status=E", *(f"/rows/{number}" for number in range(10, 10 + len(HOSTILE)))]
)
def test_what_is_in_the_log_stays_text(page: PageServer, path: str) -> None:
    body = Visit(page).get(path).body
    for hostile in HOSTILE[:5]:
        assert hostile not in body.replace(f'"{hostile}"', "") or hostile.startswith("javascript:")
    assert "&lt;" in body or "javascript:" in body or "\u202e" in body


def test_a_row_tells_what_was_recorded_and_what_the_rules_say(page: PageServer) -> None:
    body = Visit(page).get("/rows/2").body
    assert "Jack" in body
    assert "John" in body
    assert "&lt;modify-attr attr-name=&quot;fname&quot;&gt;" in body
    assert "Read with" in body
    assert Visit(page).get("/rows/404").status == 404
    assert "has no row 404" in Visit(page).get("/rows/404").body


def test_a_key_leads_to_its_timeline(page: PageServer) -> None:
    visit = Visit(page)
    [to] = set(re.findall(r'href="(/rows\?table=usr&amp;key=idu%3D1)"', visit.get("/rows/2").body))
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
    for action, held in (("hold", 1), ("release", 0)):
        asked = visit.get(f"/confirm?action={action}&id=2")
        assert visit.post("/act", {"action": action, "id": 2, "proof": asked.proof}).status == 303
        assert log.ask("SELECT held FROM event_log_outcome WHERE record_id = 2") == [(held,)]


@pytest.mark.parametrize(
    "form, headers",
    [
        ({}, {}),
        ({"proof": "made up"}, {}),
        (None, {"Origin": "https://evil.example"}),
        (None, {"Sec_Fetch_Site": "cross-site"}),
        (None, {"Host": "evil.example"}),
    ],
)
def test_another_site_cannot_make_a_browser_act(
    page: PageServer, log: LogTable, form: dict[str, str] | None, headers: dict[str, str]
) -> None:
    visit = Visit(page)
    proof = visit.get("/confirm?action=requeue&id=3").proof
    sent = {"action": "requeue", "id": 3, **({"proof": proof} if form is None else form)}
    assert visit.post("/act", sent, **headers).status in (403, 421)
    assert log.statuses()[3] == "E"
    visit.cookies.clear()
    assert visit.post("/act", {**sent, "proof": proof}).status == 403


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


def test_a_page_that_only_shows_has_no_buttons_and_does_nothing(log: LogTable) -> None:
    with opened(log.engine, WebConfig(read_only=True)) as page:
        visit = Visit(page)
        assert "<button" not in visit.get("/rows/3").body
        assert 'type="checkbox"' not in visit.get("/rows").body
        proof = visit.get("/confirm?action=requeue&id=3").proof
        assert visit.post("/act", {"action": "requeue", "id": 3, "proof": proof}).status == 403
    assert log.statuses()[3] == "E"


def test_with_a_token_a_login_is_asked_for(log: LogTable) -> None:
    with opened(log.engine, WebConfig(token=TOKEN)) as page:
        visit = Visit(page)
        assert visit.get("/").status == 401
        assert visit.get("/", Accept="text/html").headers["location"] == "/login"
        assert visit.get("/events").status == 401
        assert "That was not the token." in visit.post("/login", {"token": "wrong"}).body
        assert visit.get("/rows").status == 401
        assert visit.post("/login", {"token": TOKEN}).status == 303
        body = visit.get("/rows").body
        assert TOKEN not in body
        assert "Log out" in body
        assert visit.post("/logout", {"proof": visit.get("/confirm?action=hold&id=2").proof}).status == 303
        visit.cookies.clear()
        assert Visit(page, Authorization=f"Bearer {TOKEN}").get("/rows").status == 200


def test_a_program_with_the_token_acts_without_a_form(log: LogTable) -> None:
    with opened(log.engine, WebConfig(token=TOKEN)) as page:
        program = Visit(page, Authorization=f"Bearer {TOKEN}")
        assert program.post("/act", {"action": "requeue", "id": 3}).status == 303
    assert log.statuses()[3] == "N"


def test_cookies_are_for_this_page_alone(page: PageServer) -> None:
    cookie = Visit(page).get("/").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert "Secure" not in cookie  # plain HTTP on loopback


def test_through_a_proxy_people_have_names_and_cookies_are_secure(log: LogTable) -> None:
    written = io.StringIO()
    web = WebConfig(user_header="X-Forwarded-User", hosts=("log.example.net",))
    config = Config(source=SourceConfig(url=str(log.engine.url)), web=web)
    page = open_page("127.0.0.1:0", config, journal("json", stream=written))
    try:
        assert Visit(page, Host="log.example.net").get("/").status == 403
        ada = Visit(page, Host="log.example.net", X_Forwarded_User="ada", X_Forwarded_Proto="https")
        asked = ada.get("/confirm?action=requeue&id=3")
        assert "Secure" in asked.headers["set-cookie"]
        assert ada.post("/act", {"action": "requeue", "id": 3, "proof": asked.proof}).status == 303
    finally:
        page.close()
    [record] = [json.loads(line) for line in written.getvalue().splitlines()]
    assert (record["action"], record["by"], record["rows"]) == ("rows_requeue", "ada", 1)


def test_a_form_that_is_too_long_is_not_read(page: PageServer) -> None:
    assert Visit(page).post("/act", {"action": "x" * LARGEST}).status == 404


def test_the_live_part_comes_as_a_stream_and_ends_with_the_page(log: LogTable) -> None:
    with opened(log.engine) as page:
        connection = HTTPConnection("127.0.0.1", page.port, timeout=30)
        connection.request("GET", "/events")
        response = connection.getresponse()
        first = response.readline()
        assert response.headers["content-type"].startswith("text/event-stream")
        response.close()
        connection.close()
    assert first.startswith(b'data: <div id="live">')


def test_styles_and_scripts_are_kept_by_browsers(page: PageServer) -> None:
    visit = Visit(page)
    for name in ("style.css", "live.js"):
        [at] = re.findall(rf'"(/static/\w+/{name})"', visit.get("/").body)
        found = visit.get(at)
        assert (found.status, "immutable" in found.headers["cache-control"]) == (200, True)
    assert visit.get("/static/x/secrets.toml").status == 404


def test_programs_ask_the_same_port_as_ever(log: LogTable) -> None:
    vitals = Vitals(watched=True)
    with opened(log.engine, WebConfig(token=TOKEN), vitals) as page:
        program = Visit(page, Host="anything.example")
        assert (program.get("/health").status, program.get("/ready").status) == (200, 503)
        vitals.now("publishing")
        assert program.get("/ready").status == 200
        assert 'eventlog_state{state="publishing"} 1' in program.get("/metrics").body
        assert "version=0.0.4" in program.get("/metrics").headers["content-type"]
        vitals.failed(ConfigError("it is broken"))
        body = Visit(page, Authorization=f"Bearer {TOKEN}").get("/").body
        assert "The publisher fails: it is broken" in body


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"])
def test_nothing_listens_where_everybody_could_look(log: LogTable, address: str) -> None:
    config = Config(source=SourceConfig(url=str(log.engine.url)))
    with pytest.raises(ConfigError, match="would be open to everybody"):
        open_page(address, config, library_journal())


def test_with_a_token_others_may_come(log: LogTable) -> None:
    with opened(log.engine, WebConfig(token=TOKEN), address="0.0.0.0:0") as page:
        assert Visit(page, Authorization=f"Bearer {TOKEN}").get("/").status == 200


def test_the_database_password_is_nowhere(postgresql: Engine) -> None:
    log = watched(postgresql)
    url = postgresql.url.set(password="not-for-pages")
    config = Config(source=SourceConfig(url=url.render_as_string(hide_password=False)))
    page = open_page("127.0.0.1:0", config, library_journal())
    try:
        visit = Visit(page)
        bodies = [visit.get(path).body for path in ("/", "/rows", "/rows/2", "/rows/404")]
    finally:
        page.close()
    assert "***" in bodies[0]
    assert all("not-for-pages" not in body for body in bodies)
    assert log.statuses()[2] == "N"


def test_a_database_that_is_away_is_said_and_waited_for(log: LogTable) -> None:
    config = Config(source=SourceConfig(url=str(log.engine.url), log="not_yet"))
    page = open_page("127.0.0.1:0", config, library_journal())
    try:
        answered = Visit(page).get("/")
        assert answered.status == 503
        assert "not_yet" in answered.body
        log.run("ALTER TABLE event_log RENAME TO not_yet")
        log.run("ALTER TABLE event_log_outcome RENAME TO not_yet_outcome")
        log.run("ALTER TABLE event_log_mark RENAME TO not_yet_mark")
        until(lambda: Visit(page).get("/").status == 200, "the page opens")
        assert Visit(page).get("/rows/2").status == 200
    finally:
        page.close()


def test_settings_of_the_command_line_add_to_the_files(log: LogTable) -> None:
    config = Config(source=SourceConfig(url=str(log.engine.url)))
    page = open_page("127.0.0.1:0", replace(config, web=WebConfig(token=TOKEN)), library_journal(), read_only=True)
    try:
        assert Visit(page, Authorization=f"Bearer {TOKEN}").post("/act", {"action": "hold", "id": 2}).status == 403
    finally:
        page.close()


def test_a_fault_is_told_to_who_operates_and_not_to_who_looks(log: LogTable, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("hidden words")

    written = io.StringIO()
    monkeypatch.setattr(desk.Desk, "rows", broken)
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
