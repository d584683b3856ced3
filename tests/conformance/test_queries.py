"""`<query>` and `<query-schema>` over HTTP: what the output would be told, found by association or by values; nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

import pytest
from lxml import etree
from msgspec.structs import replace
from sqlalchemy import Engine, text
from structlog import get_logger

from eventlog.capture.install import install
from eventlog.capture.track import track, untrack
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import ConfigError
from eventlog.queries.asked import ObjectQuery, PagePlace, read_token, write_token
from eventlog.tracked.options import Style, TriggerOptions
from eventlog.version import VERSION
from eventlog.web.open_page import open_page
from eventlog.xds.validate import validate
from tests.support.logged import run

TOKEN = "a-token-of-the-receiver"
TABLES = (
    "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64), lname VARCHAR(64), salary VARCHAR(20), manager INTEGER REFERENCES usr (idu))",
    "CREATE TABLE usr_phone (idu INTEGER NOT NULL REFERENCES usr (idu), phoneno VARCHAR(64) NOT NULL)",
    "CREATE TABLE secret (ids INTEGER NOT NULL PRIMARY KEY, word VARCHAR(64))",
    "INSERT INTO usr VALUES (1, 'Jack', 'Frost', '100', NULL)",
    "INSERT INTO usr VALUES (2, 'Jane', 'Doe', '200', 1)",
    "INSERT INTO usr VALUES (3, 'Jack', 'Doe', '300', 1)",
    "INSERT INTO usr_phone VALUES (1, '555-1')",
    "INSERT INTO usr_phone VALUES (1, '555-2')",
    "INSERT INTO secret VALUES (7, 'Jack')",
)
Ask = Callable[..., Any]


@pytest.fixture
def usr(engine: Engine) -> Engine:
    """Track a class with a child table, and leave a table untracked."""
    install(engine)
    run(engine, *TABLES)
    track(engine, ["usr"], TriggerOptions(style=Style.ROW_BACK))
    return engine


def config_of(engine: Engine, *steps: dict[str, Any], **query: Any) -> Config:
    settings = {
        "source": {"url": engine.url.render_as_string(hide_password=False)},
        "output": [{"sink": "stdout", "steps": [*steps]}],
        "query": {"token": TOKEN, **query},
    }
    return from_settings(settings, {}, origin="test")


@pytest.fixture
def serve(usr: Engine) -> Iterator[Callable[..., Ask]]:
    """Start a page with /query; yield a function to ask it."""
    pages = []

    def start(*steps: dict[str, Any], **query: Any) -> Ask:
        page = open_page("127.0.0.1:0", config_of(usr, *steps, **query), get_logger())
        pages.append(page)

        def ask(body: str, token: str = TOKEN) -> Any:
            return post(page.url, body, token)

        return ask

    yield start
    for page in pages:
        page.close()


def post(url: str, body: str, token: str) -> Any:
    """Ask the page, check the answer by the grammar, and return its `<output>`."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/xml"}
    connection = HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.request("POST", "/query", body.encode(), headers)
    answer = connection.getresponse().read()
    connection.close()
    assert validate(answer) == [], answer.decode()
    return etree.fromstring(answer).find("output")


def question(inside: str, head: str = 'class-name="usr" event-id="0" scope="subtree"') -> str:
    return f'<nds dtdversion="2.0"><source><contact>engine</contact></source><input><query {head}>{inside}</query></input></nds>'


def found(output: Any) -> list[str]:
    return sorted(one.findtext("association").partition(",")[0] for one in output.iterchildren("instance"))


def attributes(instance: Any) -> dict[str, list[str]]:
    return {attr.get("attr-name"): [value.text for value in attr] for attr in instance.iterchildren("attr")}


def level(output: Any) -> str:
    return str(output.find("status").get("level"))


def test_an_object_is_read_by_its_association(serve: Callable[..., Ask]) -> None:
    ask = serve()
    told = ask(question("<association>idu=1,table=usr</association>", 'class-name="usr" event-id="0" scope="entry"'))
    [instance] = told.iterchildren("instance")
    assert (instance.get("class-name"), instance.get("event-id")) == ("usr", "0")
    assert attributes(instance) == {
        "fname": ["Jack"],
        "lname": ["Frost"],
        "salary": ["100"],
        "usr_phone.phoneno": ["555-1", "555-2"],
    }
    assert level(told) == "success"
    assert found(ask(question("<association>idu=9,table=usr</association>", 'scope="entry"'))) == []


def test_objects_are_found_by_values_and_told_as_far_as_wanted(serve: Callable[..., Ask]) -> None:
    ask = serve()
    jack = '<search-attr attr-name="fname"><value type="string">Jack</value></search-attr>'
    doe = '<search-attr attr-name="lname"><value>Doe</value></search-attr>'
    phone = '<search-attr attr-name="usr_phone.phoneno"><value>555-2</value></search-attr>'
    assert found(ask(question(f'<search-class class-name="usr"/>{jack}<read-attr/>'))) == ["idu=1", "idu=3"]
    assert found(ask(question(jack + doe))) == ["idu=3"]
    assert found(ask(question(phone))) == ["idu=1"]
    assert found(ask(question('<search-attr attr-name="idu"><value>2</value></search-attr>'))) == ["idu=2"]
    assert found(ask(question('<search-attr attr-name="idu"><value>two</value></search-attr>'))) == []
    assert found(ask(question('<search-attr attr-name="fname"><value>jack</value></search-attr>'))) == []
    assert found(ask(question('<search-attr attr-name="manager"><value>1</value></search-attr>'))) == ["idu=2", "idu=3"]
    [instance] = ask(question(jack + doe + '<read-attr attr-name="fname"/><read-parent/>')).iterchildren("instance")
    assert attributes(instance) == {"fname": ["Jack"]}
    assert found(ask(question("", 'scope="subordinates"'))) == []
    assert found(ask(question("", ""))) == ["idu=1", "idu=2", "idu=3"]
    odd = '<search-attr attr-name="fname"><value>\' OR 1=1 --</value></search-attr>'
    assert found(ask(question(odd))) == []


def paged(inside: str = "", head: str = 'class-name="usr" event-id="0" scope="subtree" max-result-count="2"') -> str:
    return f'<nds dtdversion="2.0"><input><query-ex {head}>{inside}</query-ex></input></nds>'


def next_page(output: Any) -> str | None:
    """Return the token of the next page, if the answer has one."""
    token = output.find("query-token")
    return None if token is None else f"<query-token>{token.text}</query-token>"


def read_pages(ask: Ask, first: str, later: str = 'event-id="1"') -> list[list[str]]:
    """Ask for all pages of a search; each goes on with the token of the one before, and nothing else."""
    told = ask(first)
    pages = [found(told)]
    while (token := next_page(told)) is not None:
        told = ask(paged(token, later))
        assert level(told) == "success"
        pages.append(found(told))
    return pages


def test_a_search_is_answered_page_by_page(usr: Engine, serve: Callable[..., Ask]) -> None:
    ask = serve()
    run(usr, *(f"INSERT INTO usr VALUES ({number}, 'Jo', 'Doe', '1', NULL)" for number in range(4, 8)))
    assert read_pages(ask, paged()) == [["idu=1", "idu=2"], ["idu=3", "idu=4"], ["idu=5", "idu=6"], ["idu=7"]]
    # What else stands beside a token says nothing.
    other = 'class-name="none" max-result-count="1" scope="entry"'
    assert read_pages(ask, paged(), other) == read_pages(ask, paged())
    doe = '<search-attr attr-name="lname"><value>Doe</value></search-attr><read-attr attr-name="fname"/>'
    assert read_pages(ask, paged(doe)) == [["idu=2", "idu=3"], ["idu=4", "idu=5"], ["idu=6", "idu=7"]]
    [one] = ask(paged("<association>idu=1,table=usr</association>")).iterchildren("instance")
    assert attributes(one)["fname"] == ["Jack"]
    # Rows that come and go meanwhile do not double or hide others.
    told = ask(paged())
    run(usr, "DELETE FROM usr WHERE idu = 4", "UPDATE usr SET manager = NULL", "DELETE FROM usr WHERE idu = 2")
    assert found(ask(paged(str(next_page(told))))) == ["idu=3", "idu=5"]


def test_pages_go_over_all_classes_and_what_a_policy_leaves_out(usr: Engine, serve: Callable[..., Ask]) -> None:
    track(usr, ["secret"], TriggerOptions(style=Style.ROW_BACK))
    everything = read_pages(serve(), paged(head='max-result-count="1"'))
    assert sorted(chain.from_iterable(everything)) == ["ids=7", "idu=1", "idu=2", "idu=3"]
    assert [len(page) for page in everything] == [1, 1, 1, 1]
    steps = {"do": "where", "classes": ["usr"], "condition": "new.fname != 'Jane'"}
    assert sorted(chain.from_iterable(read_pages(serve(steps), paged()))) == ["idu=1", "idu=3"]


def test_a_page_has_what_there_is_room_for(usr: Engine, serve: Callable[..., Ask]) -> None:
    ask = serve(most_rows=3, most_bytes=10_000)
    run(usr, *(f"INSERT INTO usr VALUES ({number}, '{'x' * 60}', 'Doe', '1', NULL)" for number in range(4, 12)))
    assert [len(page) for page in read_pages(ask, paged(head='class-name="usr"'))] == [3, 3, 3, 2]
    long = "y" * 3000
    pages = read_pages(ask, paged(head=f'class-name="usr" event-id="{long}"'), f'event-id="{long}"')
    assert sorted(chain.from_iterable(pages)) == sorted(f"idu={number}" for number in range(1, 12))
    assert max(map(len, pages)) < 3
    assert level(ask(paged(head=f'event-id="{long * 3}"'))) == "error"


@pytest.mark.parametrize(
    "token", ["", "x", "e30=", "bnVsbA==", "\u00fc", "eyJwYWdlIjogMSwgImFmdGVyIjogeyJ0YWJsZSI6ICJ1c3IifX0="]
)
def test_a_token_of_somebody_else_is_refused(serve: Callable[..., Ask], token: str) -> None:
    told = serve()(paged(f"<query-token>{token}</query-token>"))
    assert (level(told), found(told)) == ("error", [])
    assert "query-token" in told.findtext("status")


def test_a_token_gives_nothing_that_a_query_does_not(usr: Engine, serve: Callable[..., Ask]) -> None:
    ask = serve({"do": "drop", "attributes": ["salary"]}, most_rows=2)

    first = next_page(ask(paged(head='max-result-count="1"')))
    given_out = read_token(etree.fromstring(str(first)).text or "")
    assert given_out.after is not None
    usr_table = given_out.after.table

    def forge(**given: Any) -> Any:
        asked = ObjectQuery(**{"page": 100, "after": PagePlace(table=usr_table, key="idu=1"), **given})
        return ask(paged(f"<query-token>{write_token(asked)}</query-token>"))

    assert found(forge()) == ["idu=2", "idu=3"]
    assert level(forge(after=PagePlace(table="secret", key="ids=1"))) == "error"
    for key in ("idu=", "idu=1+fname=Jack", "no key"):
        assert found(forge(after=PagePlace(table=usr_table, key=key))) == []
    assert level(forge(search=(("salary", "200"),), classes=("usr",))) == "error"
    assert level(forge(page=0)) == "error"
    # A table that is not captured any more has no next page.
    token = str(next_page(ask(paged())))
    untrack(usr, ["usr"])
    assert level(serve()(paged(token))) == "error"


def test_a_search_is_ended_and_a_wrong_number_refused(serve: Callable[..., Ask]) -> None:
    ask = serve()
    ended = ask(paged(str(next_page(ask(paged()))), 'cancel="true" event-id="5"'))
    assert (level(ended), found(ended), next_page(ended)) == ("success", [], None)
    for wrong in ("0", "-1", "two", "1.5", "1" * 20):
        refused = ask(paged(head=f'max-result-count="{wrong}"'))
        assert (level(refused), "max-result-count" in refused.findtext("status")) == ("error", True)


def test_the_driver_says_who_it_is(serve: Callable[..., Ask]) -> None:
    asked = '<search-class class-name="__driver_identification_class__"/><read-attr/>'
    [one] = serve()(question(asked, 'event-id="query-driver-ident" scope="entry"')).iterchildren("instance")
    told = attributes(one)
    assert told["query-ex-supported"] == ["true"]
    assert told["driver-version"] == [VERSION]


def test_the_schema_is_told(serve: Callable[..., Ask]) -> None:
    told = serve()('<nds dtdversion="2.0"><input><query-schema event-id="7"/></input></nds>')
    [described] = told.find("schema-def")
    assert described.get("class-name") == "usr"
    kinds = {one.get("attr-name"): (one.get("type"), one.get("multi-valued")) for one in described}
    assert kinds["idu"] == ("int", "false")
    assert kinds["usr_phone.phoneno"] == ("string", "true")
    assert told.find("status").get("event-id") == "7"


def test_nothing_leaves_that_the_output_is_not_told(serve: Callable[..., Ask]) -> None:
    ask = serve(
        {"do": "drop", "attributes": ["salary"]},
        {"do": "redact", "attributes": ["lname"]},
        {"do": "rename", "class_name": "User", "attributes": {"fname": "Given Name"}},
        {"do": "where", "condition": "new['Given Name'] != 'Jane'"},
    )
    everybody = ask(question("", 'event-id="0"'))
    assert found(everybody) == ["idu=1", "idu=3"]
    told = etree.tostring(everybody).decode()
    assert "Given Name" in told
    assert not any(word in told for word in ("salary", "100", "Frost", "Doe", "secret"))
    # Nor can anybody find out by searching: an attribute that is hidden is none.
    for name, value in (("salary", "100"), ("lname", "Frost"), ("fname", "Jack")):
        searched = f'<search-attr attr-name="{name}"><value>{value}</value></search-attr>'
        refused = ask(question(searched, 'class-name="User" event-id="0"'))
        assert (found(refused), level(refused)) == ([], "error")
    assert found(ask(question('<search-attr attr-name="Given Name"><value>Jane</value></search-attr>', ""))) == []
    assert found(ask(question("<association>idu=2,table=usr</association>", ""))) == []
    assert found(ask(question("<association>ids=7,table=secret</association>", ""))) == []
    schema = etree.tostring(ask("<input><query-schema/></input>")).decode()
    assert "salary" not in schema
    assert "secret" not in schema


def test_a_log_that_others_fill_answers_for_the_tables_of_the_configuration(engine: Engine) -> None:
    """Nobody has tracked a table there: before, no query found anything."""
    install(engine)
    run(engine, *TABLES)
    base = config_of(engine)
    page = open_page("127.0.0.1:0", replace(base, source=replace(base.source, tables=("usr",))), get_logger())
    try:
        assert found(post(page.url, question("<association>idu=2,table=usr</association>"), TOKEN)) == ["idu=2"]
        assert level(post(page.url, question("", 'class-name="secret" event-id="0"'), TOKEN)) == "error"
    finally:
        page.close()


def test_rows_that_triggers_leave_out_are_not_told(usr: Engine, serve: Callable[..., Ask]) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.ROW_BACK, when="usr.lname = 'Doe'", exclude=("salary",)))
    ask = serve()
    assert found(ask(question(""))) == ["idu=2", "idu=3"]
    assert found(ask(question("<association>idu=1,table=usr</association>"))) == []
    assert "salary" not in etree.tostring(ask(question(""))).decode()
    assert level(ask(question('<search-attr attr-name="salary"><value>200</value></search-attr>'))) == "error"


def test_who_may_ask_and_how_much(serve: Callable[..., Ask]) -> None:
    ask = serve(most_rows=2)
    assert level(ask(question(""))) == "error"
    assert "query.most_rows" in ask(question("")).findtext("status")
    for token in ("", "another-token-of-16"):
        refused = ask(question(""), token)
        assert (found(refused), level(refused)) == ([], "error")
    assert level(ask("<nds")) == "error"
    assert level(ask("<!DOCTYPE nds [<!ENTITY a 'b'>]><nds dtdversion='2'><input/></nds>")) == "error"
    changed = ask(
        '<input><delete class-name="usr" event-id="3"><association>idu=1,table=usr</association></delete></input>'
    )
    assert level(changed) == "error"
    assert "changes nothing" in changed.findtext("status")
    assert level(ask(question("", 'scope="up"'))) == "error"
    assert level(ask("<input>" + "<query/>" * 101 + "</input>")) == "error"
    assert level(serve(most_bytes=10_000)(question("", 'event-id="' + "x" * 9000 + '"'))) == "error"


def test_queries_change_nothing(usr: Engine, serve: Callable[..., Ask]) -> None:
    ask = serve()
    before = counts(usr)
    ask(question("<association>idu=1,table=usr</association>"))
    ask("<input><query-schema/></input>")
    assert counts(usr) == before


def counts(engine: Engine) -> list[int]:
    tables = ("event_log", "event_log_outcome", "event_log_mark", "event_log_seen")
    with engine.connect() as connection:
        return [
            connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() for table in tables
        ]  # names of ours


def test_a_configuration_says_whose_policies_hold() -> None:
    outputs = [{"sink": "stdout"}, {"sink": "files", "path": "out"}]
    with pytest.raises(ConfigError, match=r"query\.output"):
        from_settings({"output": outputs, "query": {"token": TOKEN}}, {}, origin="test")
    with pytest.raises(ConfigError, match="no output is called so"):
        from_settings({"output": outputs, "query": {"token": TOKEN, "output": "x"}}, {}, origin="test")
    with pytest.raises(ConfigError, match="16 ASCII"):
        from_settings({"query": {"token": "short"}}, {}, origin="test")


@pytest.mark.parametrize(
    "body, words",
    [
        (question("<search-attr><value>1</value></search-attr>"), "no attr-name"),
        (question('<search-attr attr-name="fname"/>'), "no <value>"),
        (question("").replace("</input>", '</input><input><query class-name="usr"/></input>'), "one <input>"),
    ],
)
def test_what_is_not_whole_is_refused(serve: Callable[..., Ask], body: str, words: str) -> None:
    """Of two <input> the second got no answer."""
    told = serve()(body)
    assert (level(told), found(told)) == ("error", [])
    assert words in told.findtext("status")


@pytest.mark.parametrize(
    "method, login, status",
    [
        ("POST", f"Bearer {TOKEN}", 200),
        ("POST", f"bearer {TOKEN}", 200),
        ("POST", TOKEN, 401),
        ("POST", f"Basic {TOKEN}", 401),
        ("GET", f"Bearer {TOKEN}", 405),
        ("GET", "", 401),
    ],
)
def test_who_asks_has_the_token_and_posts(usr: Engine, method: str, login: str, status: int) -> None:
    page = open_page("127.0.0.1:0", config_of(usr), get_logger())
    try:
        connection = HTTPConnection(urlsplit(page.url).netloc, timeout=60)
        connection.request(method, "/query", question("").encode(), {"Authorization": login} if login else {})
        answer = connection.getresponse()
        assert (answer.status, validate(answer.read())) == (status, [])
        connection.close()
    finally:
        page.close()
