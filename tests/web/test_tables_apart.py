"""Tables of one name in two schemas: each has a page of its own. PostgreSQL."""

from __future__ import annotations

import re
from functools import partial
from html import unescape
from urllib.parse import urlencode

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions
from tests.integration.publishing import until
from tests.support.logged import run
from tests.web.visiting import Visit, opened


def changed(body: str) -> set[str]:
    """The keys of the last changes."""
    return set(re.findall(r"idu=\d+", body.partition("<main")[2]))


def test_each_table_has_its_own_page(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE SCHEMA own",
        "CREATE TABLE usr (idu integer PRIMARY KEY, here text)",
        "CREATE TABLE own.usr (idu integer PRIMARY KEY, there text)",
    )
    made = track(postgresql, ["usr", "own.usr"])
    assert {trigger.place for trigger in made} == {"public.usr", "own.usr"}
    run(postgresql, "INSERT INTO usr VALUES (11, 'x')", "INSERT INTO own.usr VALUES (22, 'x'), (23, 'y')")
    with opened(postgresql) as page:
        visit = Visit(page)
        until(lambda: "being read" not in visit.get("/tables").body, "triggers are looked at")
        links = [unescape(link) for link in re.findall(r'href="(/table\?[^"]*)"', visit.get("/tables").body)]
        assert sorted(links) == ["/table?schema=own&name=usr", "/table?schema=public&name=usr"]
        rows = {link: changed(visit.get(link).body) for link in links}
        assert rows["/table?schema=public&name=usr"] == {"idu=11"}
        assert rows["/table?schema=own&name=usr"] == {"idu=22", "idu=23"}
        assert "Nobody has started a refresh" in visit.get("/table?schema=own&name=usr").body
        assert visit.get("/table?name=usr").status == 404, "two tables have that name"
        asked = visit.get("/confirm?action=refresh&schema=own&table=usr")
        form = {"action": "refresh", "schema": "own", "table": "usr", "proof": asked.proof}
        done = visit.post("/act", form)
        assert done.headers["location"].startswith("/table?schema=own&name=usr&done=refresh")


def follow(visit: Visit, place: str) -> str:
    """Refresh a table by what stands on its page, as a browser would; where that leads."""
    body = visit.get(place).body
    form = body.partition('aria-label="With this table"')[0].rpartition("<form")[2]
    fields = {name: unescape(entry) for name, entry in re.findall(r'name="(\w+)" value="([^"]*)"', form)}
    asked = visit.get("/confirm?" + urlencode({**fields, "action": "refresh"}))
    assert asked.status == 200, asked.body
    sent = asked.body.partition('action="/act"')[2]
    fields = {name: unescape(entry) for name, entry in re.findall(r'name="(\w+)" value="([^"]*)"', sent)}
    return visit.post("/act", fields).headers["location"]


def is_refreshed(visit: Visit, place: str) -> bool:
    return "Ended." in visit.get(place).body


@pytest.mark.parametrize("schema", ["public", "audit"])
def test_a_table_of_any_name_is_shown_and_refreshed_wherever_the_log_stands(postgresql: Engine, schema: str) -> None:
    """The log in a schema of its own too; names have dots and quotes; a class has a table in another schema."""
    run(postgresql, "CREATE SCHEMA IF NOT EXISTS audit", 'CREATE SCHEMA "my.own"')
    names = LogNames(schema=schema, table="event_log")
    install(postgresql, names)
    tables = {("public", "usr"): "usr", ("my.own", "usr"): '"my.own".usr', ("my.own", 'a."b'): '"my.own"."a.""b"'}
    for written in tables.values():
        run(postgresql, f"CREATE TABLE {written} (idu integer PRIMARY KEY, x text)")
    track(
        postgresql,
        ["public.usr", *[written for (place, _), written in tables.items() if place != "public"]],
        names=names,
    )
    for number, written in enumerate(tables.values(), 1):
        run(postgresql, f"INSERT INTO {written} VALUES ({number}, 'x')")
    with opened(postgresql, log=f"{schema}.event_log") as page:
        visit = Visit(page)
        until(lambda: "being read" not in visit.get("/tables").body, "triggers are looked at")
        links = [unescape(link) for link in re.findall(r'href="(/table\?[^"]*)"', visit.get("/tables").body)]
        assert sorted(links) == sorted(f"/table?{urlencode({'schema': place, 'name': name})}" for place, name in tables)
        for number, (place, name) in enumerate(tables, 1):
            address = f"/table?{urlencode({'schema': place, 'name': name})}"
            assert changed(visit.get(address).body) == {f"idu={number}"}, "its last changes"
            led = follow(visit, address)
            assert led.startswith(address), led
            until(partial(is_refreshed, visit, address), "it was refreshed")


def test_a_table_of_a_class_leads_to_the_class_in_its_own_schema(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE SCHEMA own",
        "CREATE TABLE own.usr (idu integer PRIMARY KEY)",
        "CREATE TABLE own.phone (idu integer REFERENCES own.usr, phone text, PRIMARY KEY (idu, phone))",
    )
    track(postgresql, ["own.usr"], TriggerOptions(children=("phone",)))
    with opened(postgresql) as page:
        body = Visit(page).get("/table?schema=own&name=phone").body
    [link] = re.findall(r'It is refreshed with <a href="([^"]*)"', body)
    assert unescape(link) == "/table?schema=own&name=usr"
