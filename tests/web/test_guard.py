"""Who may see and who may act: by machine, by token, by proxy; and never because another site asks a browser to."""

from __future__ import annotations

import string
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.web.guard import (
    SESSION_SECONDS,
    AccessRefused,
    Guard,
    RequestFacts,
    Visitor,
    foreign,
    is_local,
    is_open_door,
)
from eventlog.web.settings import WebConfig

TOKEN = "a-token-of-sixteen-or-more"
PROXIED = WebConfig(user_header="X-Forwarded-User", hosts=("log.example.net",), proxies=("10.0.0.0/8",))


def asked(peer: str = "127.0.0.1", *, now: float = 1000.0, **headers: str) -> RequestFacts:
    named = {name.replace("_", "-"): value for name, value in {"host": "localhost:8080", **headers}.items()}
    return RequestFacts(peer=peer, headers=named, now=now)


def admitted(guard: Guard, request: RequestFacts) -> Visitor:
    found = guard.visitor(request)
    assert isinstance(found, Visitor), found
    return found


def refused(guard: Guard, request: RequestFacts) -> int:
    found = guard.visitor(request)
    assert isinstance(found, AccessRefused), found
    return found.status


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8080", "LOCALHOST.:1", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080"]
)
def test_this_machine_is_believed_under_its_own_names(host: str) -> None:
    assert admitted(Guard(WebConfig()), asked(host=host)).name == "this machine"


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:8080", "localhost.evil.example", "10.0.0.1", "[fe80::1]:80"]
)
def test_a_foreign_name_for_this_machine_is_refused(host: str) -> None:
    assert refused(Guard(WebConfig()), asked(host=host)) == 421
    assert refused(Guard(WebConfig()), asked(peer="10.0.0.1", host="localhost")) == 421


def test_a_token_is_wanted_where_there_is_one() -> None:
    guard = Guard(WebConfig(token=TOKEN))
    assert refused(guard, asked()) == 401
    assert refused(guard, asked(authorization=f"Bearer {TOKEN}x")) == 401
    assert refused(guard, asked(authorization=f"Basic {TOKEN}")) == 401
    assert admitted(guard, asked(peer="10.0.0.1", host="any.example", authorization=f"bearer {TOKEN}")).bearer


def test_a_session_lasts_its_time_and_cannot_be_made_up() -> None:
    guard = Guard(WebConfig(token=TOKEN))
    session = guard.new_session("token", 1000.0)
    assert admitted(guard, asked(cookie=f"{guard.cookie}={session}")).session == session
    assert refused(guard, asked(cookie=f"{guard.cookie}={session}", now=1000.0 + SESSION_SECONDS + 1)) == 401
    until, number, signature = session.split(".")
    for forged in (f"{int(until) + 9}.{number}.{signature}", f"{until}.{number}.{'0' * 64}", "", ".", "a.b.c", "é.b.c"):
        assert refused(guard, asked(cookie=f"{guard.cookie}={forged}")) == 401
    other = Guard(WebConfig(token=f"{TOKEN} of another"))
    assert refused(other, asked(cookie=f"{other.cookie}={session}")) == 401
    assert guard.cookie != other.cookie


def test_a_visitor_without_a_login_gets_a_session_once() -> None:
    guard = Guard(WebConfig())
    first = admitted(guard, asked())
    again = admitted(guard, asked(cookie=f"{guard.cookie}={first.session}"))
    assert (first.fresh, again.fresh, again.session) == (True, False, first.session)
    assert admitted(guard, asked(cookie="\x00=;;;")).fresh
    assert admitted(guard, asked(cookie="a,b=1")).fresh


def test_a_proxy_says_who_asks_and_nobody_else_does() -> None:
    guard = Guard(PROXIED)
    request = asked(peer="10.1.2.3", host="log.example.net", x_forwarded_user="ada")
    assert admitted(guard, request).name == "ada"
    assert admitted(guard, replace(request, peer="::ffff:10.1.2.3")).name == "ada"
    assert refused(guard, replace(request, peer="127.0.0.1")) == 403
    assert refused(guard, replace(request, peer="unknown")) == 403
    assert refused(guard, asked(peer="10.1.2.3", host="log.example.net")) == 403
    assert refused(guard, asked(peer="10.1.2.3", host="log.example.net", x_forwarded_user=" ")) == 403
    assert refused(guard, asked(peer="10.1.2.3", host="evil.example", x_forwarded_user="ada")) == 421


def test_one_persons_session_is_not_anothers() -> None:
    guard = Guard(PROXIED)
    session = guard.new_session("ada", 1000.0)
    bob = asked(peer="10.1.2.3", host="log.example.net", x_forwarded_user="bob", cookie=f"{guard.cookie}={session}")
    assert admitted(guard, bob).session != session


def test_acts_need_the_proof_of_this_session() -> None:
    guard = Guard(WebConfig())
    visitor = admitted(guard, asked())
    proof = {"proof": guard.proof(visitor)}
    assert guard.may_act(visitor, asked(), proof) is None
    for wrong in ({}, {"proof": "x"}, {"proof": "é"}, {"proof": guard.proof(admitted(guard, asked()))}):
        found = guard.may_act(visitor, asked(), wrong)
        assert found is not None
        assert found.status == 403


def test_acts_of_a_bearer_need_no_form_and_read_only_allows_none() -> None:
    bearer = Visitor(name="bearer", session="", bearer=True)
    assert Guard(WebConfig(token=TOKEN)).may_act(bearer, asked(), {}) is None
    found = Guard(WebConfig(token=TOKEN, read_only=True)).may_act(bearer, asked(), {})
    assert found is not None
    assert found.why == "This page is read-only."


@pytest.mark.parametrize(
    "headers, expected",
    [
        ({}, False),
        ({"origin": "http://localhost:8080"}, False),
        ({"sec_fetch_site": "same-origin", "origin": "http://localhost:8080"}, False),
        ({"sec_fetch_site": "cross-site"}, True),
        ({"sec_fetch_site": "same-site"}, True),
        ({"origin": "https://evil.example"}, True),
        ({"origin": "http://localhost:9999"}, True),
        ({"origin": "null"}, True),
    ],
)
def test_what_another_site_sends_is_foreign(headers: dict[str, Any], expected: bool) -> None:
    request = asked(**headers)
    assert foreign(request) is expected
    guard = Guard(WebConfig())
    visitor = admitted(guard, asked())
    assert (guard.may_act(visitor, request, {"proof": guard.proof(visitor)}) is not None) is expected


def test_a_door_is_open_where_others_reach_it_and_nobody_asks_them() -> None:
    anywhere = ".".join("0000")
    assert [is_open_door(host, WebConfig()) for host in ("127.0.0.1", "::1", anywhere, "10.0.0.1", "::")] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert not is_open_door(anywhere, WebConfig(token=TOKEN))
    assert not is_open_door(anywhere, PROXIED)
    assert is_local("[::1]")


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"token": "short"}, "16 ASCII characters or more"),
        ({"token": "ä" * 20}, "ASCII"),
        ({"user_header": "X Bad", "hosts": ("a",)}, "is no name of an HTTP header"),
        ({"user_header": "X-User"}, "needs web.hosts"),
        ({"proxies": ("somewhere",)}, "'somewhere', which is no address"),
    ],
)
def test_settings_that_guard_nothing_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        WebConfig(**settings)
    assert "short" not in str(error.value)


def test_settings_do_not_tell_the_token() -> None:
    assert TOKEN not in repr(WebConfig(token=TOKEN))


def test_a_session_that_was_ended_lets_nobody_in() -> None:
    guard = Guard(WebConfig(token=TOKEN))
    first, second = (guard.new_session("token", 1000.0) for _ in range(2))
    visitor = admitted(guard, asked(cookie=f"{guard.cookie}={first}"))
    guard.end(visitor, 1000.0)
    assert refused(guard, asked(cookie=f"{guard.cookie}={first}")) == 401
    assert not guard.lives(visitor, 1000.0)
    assert guard.lives(admitted(guard, asked(cookie=f"{guard.cookie}={second}")), 1000.0)
    guard.end(Visitor(name="bearer", session="", bearer=True), 1000.0)
    assert guard.lives(Visitor(name="bearer", session="", bearer=True), 1000.0)


def test_another_spelling_of_an_ended_session_lets_nobody_in() -> None:
    """Base64 leaves bits over, so that several texts are one signature; whatever is let in has ended with it."""
    guard = Guard(WebConfig(token=TOKEN))
    session = guard.new_session("token", 1000.0)
    statuses = string.ascii_letters + string.digits + "-_"
    spellings = [session[:-1] + letter for letter in statuses] + [session + "=", session + "é"]
    let_in = [one for one in spellings if isinstance(guard.visitor(asked(cookie=f"{guard.cookie}={one}")), Visitor)]
    assert session in let_in
    guard.end(admitted(guard, asked(cookie=f"{guard.cookie}={session}")), 1000.0)
    assert [refused(guard, asked(cookie=f"{guard.cookie}={one}")) for one in spellings] == [401] * len(spellings)


def test_sessions_end_with_their_token_and_stay_ended_whatever_else_is_set() -> None:
    guard = Guard(WebConfig(token=TOKEN))
    ended, other = (guard.new_session("token", 1000.0) for _ in range(2))
    guard.end(Visitor(name="token", session=ended), 1000.0)
    same = guard.adopting(WebConfig(token=TOKEN, read_only=True), 1001.0)
    assert refused(same, asked(cookie=f"{same.cookie}={ended}")) == 401
    assert admitted(same, asked(cookie=f"{same.cookie}={other}")).session == other
    changed = same.adopting(WebConfig(token=f"{TOKEN} anew"), 1002.0)
    assert refused(changed, asked(cookie=f"{changed.cookie}={other}")) == 401
    back = changed.adopting(WebConfig(token=TOKEN), 1003.0)
    assert refused(back, asked(cookie=f"{back.cookie}={other}", now=1003.0)) == 401
    new = back.new_session("token", 1003.5)
    assert admitted(back, asked(cookie=f"{back.cookie}={new}", now=1003.5)).session == new
