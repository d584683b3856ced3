"""`<query>` and `<query-schema>` over HTTP: what the output would be told, found by association or by values; nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from lxml import etree
from sqlalchemy import Engine, text
from structlog import get_logger

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import ConfigError
from eventlog.tracked.options import Style, TriggerOptions
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
