"""What is pasted into the search box is found: a row, a table, a key however its table is written, or words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.care import listing as module
from eventlog.care.listing import Filters
from eventlog.core.errors import KeySyntaxError
from eventlog.core.tablekey import parse
from eventlog.web.finding import Sought, read_sought
from eventlog.web.server import PageServer
from tests.conformance.event_logs import LogTable
from tests.web.visiting import Visit, opened

TABLES = ((None, "usr"), ("hr", "usr"), ("hr", "person"), ("a.b", "c"))


@pytest.mark.parametrize(
    "text, sought",
    [
        ("1742", Sought(number=1742, filters=Filters(text="1742"))),
        (" row 1742 ", Sought(number=1742, filters=Filters(text="row 1742"))),
        ("Row #1742", Sought(number=1742, filters=Filters(text="Row #1742"))),
        ("idu=5", Sought(filters=Filters(key="idu=5"))),
        ("idu = 5", Sought(filters=Filters(key="idu=5"))),
        ('a=1+b="x y"', Sought(filters=Filters(key="a=1+b=x y"))),
        ("usr idu=5", Sought(filters=Filters(table="usr", key="idu=5"))),
        ("usr.idu=5", Sought(filters=Filters(table="usr", key="idu=5"))),
        ("usr: idu=5", Sought(filters=Filters(table="usr", key="idu=5"))),
        ("hr.usr.idu=5", Sought(filters=Filters(table="hr.usr", key="idu=5"))),
        ("hr.usr mail=a.b@c.d", Sought(filters=Filters(table="hr.usr", key="mail=a.b@c.d"))),
        ("mail=a.b@c.d", Sought(filters=Filters(key="mail=a.b@c.d"))),
        ("person", Sought(place=("hr", "person"))),
        ("HR.Usr", Sought(place=("hr", "usr"))),
        ('"a.b".c', Sought(place=("a.b", "c"))),
        ("Jack Frost", Sought(filters=Filters(text="Jack Frost"))),
        ("=", Sought(filters=Filters(text="="))),
        ("", Sought()),
    ],
)
def test_a_text_is_read_as_what_it_is(text: str, sought: Sought) -> None:
    assert read_sought(text, TABLES) == sought


@given(st.text(max_size=60))
def test_any_text_is_looked_for_as_something(text: str) -> None:
    sought = read_sought(text, TABLES)
    assert (
        sought.number is not None
        or sought.place is not None
        or sought.filters.key
        or sought.filters.text
        or not text.replace("\0", "").strip()
    )
    if sought.filters.key:
        assert parse(sought.filters.key).canonical == sought.filters.key


@given(st.text('ab=+". ', max_size=12))
def test_each_key_is_found_as_a_key(text: str) -> None:
    try:
        key = parse(" ".join(text.split())).canonical
    except KeySyntaxError:
        return
    assert read_sought(text, ()).filters.key or not key


def test_the_box_leads_to_what_is_meant(page: PageServer) -> None:
    visit = Visit(page)
    for text, place in (
        ("3", "/rows/3"),
        ("row+2", "/rows/2"),
        ("99999", "/rows?text=99999"),
        ("idu%3D1", "/rows?key=idu%3D1"),
        ("usr.idu%3D1", "/rows?table=usr&key=idu%3D1"),
        ("Jack", "/rows?text=Jack"),
        ("%3Cscript%3E", "/rows?text=%3Cscript%3E"),
    ):
        found = visit.get(f"/find?q={text}")
        assert (found.status, found.headers["location"]) == (303, place), text
    assert "idu=1" in visit.get("/rows?key=idu%3D1").body
    assert 'name="q"' in visit.get("/rows/99999").body, "the box is on every page"


def test_a_table_and_its_key_are_found_as_the_log_writes_them(postgresql: Engine) -> None:
    log = LogTable(postgresql)
    install(postgresql)
    for statement in ("CREATE SCHEMA hr", "CREATE TABLE hr.usr (idu integer PRIMARY KEY)"):
        log.run(statement)
    track(postgresql, ["hr.usr"])
    log.run("INSERT INTO hr.usr VALUES (5)")
    with opened(postgresql) as page:
        visit = Visit(page)
        assert visit.get("/find?q=usr").headers["location"] == "/table?schema=hr&name=usr"
        for text in ("usr.idu%3D5", "hr.usr+idu%3D5"):
            place = visit.get(f"/find?q={text}").headers["location"]
            assert place == "/rows?table=hr.usr&key=idu%3D5"
            assert "1 row in all" in visit.get(place).body


def test_an_old_row_is_found_by_pages_that_follow_each_other_and_its_timeline_at_once(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(module, "REACH_ROWS", 50)
    install(sqlite)
    log = LogTable(sqlite)
    log.write_all(range(2, 1000))
    log.write(1, "idu=old", status="S")
    with opened(sqlite) as page:
        visit = Visit(page)
        asked = "/rows?key=idu%3Dold"
        pages = 0
        while 'rows/1"' not in (body := visit.get(asked).body):
            pages += 1
            assert 'data-searches="yes"' in body
            asked = body.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0].replace("&amp;", "&")
        assert pages == 19
        assert 'href="/rows?table=usr&amp;key=idu%3Dold&amp;near=1"' in visit.get("/rows/1").body
        monkeypatch.setattr("eventlog.web.log_pages.REACH_ROWS", 50)
        near = visit.get("/rows?table=usr&key=idu%3Dold&near=1").body
        assert 'href="/rows/1"' in near.partition("<tbody>")[2]
