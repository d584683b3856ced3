"""Who gets in and who may act, over HTTP: by token, by proxy, by machine; nobody is told a secret."""

from __future__ import annotations

import io
import json
from http.client import HTTPConnection
from urllib.parse import quote

import pytest
from sqlalchemy import Engine

from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import ConfigError
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.logging import journal, library_journal
from eventlog.web.open_page import open_page
from eventlog.web.server import PageServer
from eventlog.web.settings import WebConfig
from tests.conformance.event_logs import LogTable
from tests.web.visiting import Visit, buttons, opened, watched

TOKEN = "the-token-that-nobody-guesses"


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


def test_a_page_that_only_shows_has_no_buttons_and_does_nothing(log: LogTable) -> None:
    with opened(log.engine, WebConfig(read_only=True)) as page:
        visit = Visit(page)
        assert buttons(visit.get("/rows/3").body) == []
        assert '<input type="checkbox"' not in visit.get("/rows").body
        assert buttons(visit.get("/output?name=files+out").body) == []
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
    config = Config(source=SourceConfig(url=str(log.engine.url)), tables={"web": web})
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


def test_programs_ask_the_same_port_as_ever(log: LogTable) -> None:
    vitals = PublisherHealth(watched=True)
    with opened(log.engine, WebConfig(token=TOKEN), vitals) as page:
        program = Visit(page, Host="anything.example")
        assert (program.get("/health").status, program.get("/ready").status) == (200, 503)
        vitals.now("publishing")
        assert program.get("/ready").status == 200
        assert 'eventlog_state{state="publishing"} 1' in program.get("/metrics").body
        assert "version=0.0.4" in program.get("/metrics").headers["content-type"]
        vitals.note_failure(ConfigError("it is broken"))
        body = Visit(page, Authorization=f"Bearer {TOKEN}").get("/").body
        assert "it is broken" in body


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"])
def test_nothing_listens_where_everybody_could_look(log: LogTable, address: str) -> None:
    config = Config(source=SourceConfig(url=str(log.engine.url)))
    with pytest.raises(ConfigError, match="would be open to everybody"):
        open_page(address, config, library_journal())


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


def test_a_cookie_opens_nothing_after_logout(log: LogTable) -> None:
    with opened(log.engine, WebConfig(token=TOKEN)) as page:
        visit = Visit(page)
        visit.post("/login", {"token": TOKEN})
        kept = dict(visit.cookies)
        stream = HTTPConnection("127.0.0.1", page.port, timeout=30)
        stream.request("GET", "/events", headers={"Cookie": "; ".join(f"{n}={v}" for n, v in kept.items())})
        live = stream.getresponse()
        assert live.status == 200
        assert visit.post("/logout", {"proof": visit.get("/confirm?action=hold&id=2").proof}).status == 303
        visit.cookies = kept
        assert visit.get("/rows").status == 401
        assert visit.post("/act", {"action": "hold", "id": 2}).status == 401
        live.read()  # ends with the session
        stream.close()
        visit.post("/login", {"token": TOKEN})
        assert visit.get("/rows").status == 200


@pytest.mark.parametrize("name", ["ada\r\nX-Evil: 1", "<b>ada</b>", "ada; Path=/", "a" * 3000])
def test_no_text_of_others_reaches_a_header(log: LogTable, name: str) -> None:
    web = WebConfig(user_header="X-Forwarded-User", hosts=("log.example.net",))
    with opened(log.engine, web) as page:
        visit = Visit(page, Host="log.example.net")
        for path in ("/rows", "/rows/2", "/confirm?action=hold&id=2"):
            for query in (f"{path}?x=", f"{path}&done="):
                answer = visit.get(query + quote(name), X_Forwarded_User=name.partition("\r")[0])
                assert not [entry for entry in answer.headers.values() if "\r" in entry or "\n" in entry]
                assert "x-evil" not in answer.headers
                assert "ada" not in str({n: e for n, e in answer.headers.items() if n != "set-cookie"})
        asked = visit.get("/confirm?action=hold&id=2", X_Forwarded_User="ada")
        sent = {"action": f"hold{name}", "id": 2, "proof": asked.proof}
        done = visit.post("/act", sent, X_Forwarded_User="ada")
        assert (done.status, "location" in done.headers) == (400, False)
