"""Tables of one name in two schemas: each has a page of its own. PostgreSQL."""

from __future__ import annotations

import re
from html import unescape

from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from tests.integration.publishing import until
from tests.support.logged import run
from tests.web.visiting import Visit, opened


def test_each_table_has_its_own_page(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE SCHEMA own",
        "CREATE TABLE usr (idu integer PRIMARY KEY, here text)",
        "CREATE TABLE own.usr (idu integer PRIMARY KEY, there text)",
    )
    track(postgresql, ["usr", "own.usr"])
    run(postgresql, "INSERT INTO usr VALUES (11, 'x')", "INSERT INTO own.usr VALUES (22, 'x'), (23, 'y')")
    with opened(postgresql) as page:
        visit = Visit(page)
        until(lambda: "being read" not in visit.get("/tables").body, "triggers are looked at")
        links = [unescape(link) for link in re.findall(r'href="(/table\?[^"]*)"', visit.get("/tables").body)]
        assert sorted(links) == ["/table?schema=own&name=usr", "/table?schema=public&name=usr"]
        rows = {link: re.findall(r"idu=\d+", visit.get(link).body) for link in links}
        assert set(rows["/table?schema=public&name=usr"]) == {"idu=11"}
        assert set(rows["/table?schema=own&name=usr"]) == {"idu=22", "idu=23"}
        assert "Nobody has started a refresh" in visit.get("/table?schema=own&name=usr").body
        assert visit.get("/table?name=usr").status == 404, "two tables have that name"
        asked = visit.get("/confirm?action=refresh&table=own.usr")
        done = visit.post("/act", {"action": "refresh", "table": "own.usr", "proof": asked.proof})
        assert done.headers["location"].startswith("/table?schema=own&name=usr&done=refresh")
