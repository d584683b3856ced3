"""What policies hide from every output, the page and `eventlog explain` hide too: of planted secrets they show none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from sqlalchemy import Engine

from eventlog.config.settings import Config, SourceConfig
from eventlog.daemon.logging import library_journal
from eventlog.explain.rows import explain
from eventlog.policies import steps
from eventlog.policies.steps import Steps
from eventlog.sinks.outputs import FilesOutput, StdoutOutput
from eventlog.sql.names import LogNames
from eventlog.web.open_page import open_page
from tests.conformance.event_logs import LogTable, installed
from tests.integration.publishing import until, url_of
from tests.web.visiting import Visit

SECRET = "a secret of tests only"
COLUMNS = ("salary", "email", "phone", "pin", "gone")
TAINTS = [f"taint-{number:04d}" for number in range(300)]
HIDING: Steps = (
    steps.Drop(attributes=("salary",)),
    steps.Hash(attributes=("idu", "email"), secret=SECRET),
    steps.Rename(attributes={"phone": "Telephone"}),
    steps.Encrypt(attributes=("Telephone",), secret=SECRET),
    steps.Redact(attributes=("pin",)),
)


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    """Secrets in every column that is hidden, in keys, in a column that is no more, in notes, in a table that is no more."""
    found = installed(sqlite)
    found.run(
        "CREATE TABLE usr (idu VARCHAR(40) PRIMARY KEY, fname VARCHAR(40), salary INTEGER, email TEXT, phone TEXT, pin TEXT)"
    )
    rows, notes = [], []
    for number, taint in enumerate(TAINTS, 1):
        row = {"number": number, "key": f"idu={taint}" if number % 7 else taint, "status": "NSE"[number % 3]}
        row |= {"kind": 2 if number % 9 else 4, "table": "usr" if number % 11 else "gone"}
        rows.append(row | {"column": COLUMNS[number % len(COLUMNS)], "old": f"{taint} before", "new": taint})
        if number % 13 == 0:
            notes.append({"n": number, "note": f"table_key idu={taint} is odd, and so is {taint} before."})
    found.run(
        "INSERT INTO event_log (record_id, table_key, status, event_type, table_name, column_name, old_value, new_value,"
        " event_time) VALUES (:number, :key, :status, :kind, :table, :column, :old, :new, '2025-03-23 10:57:19')",
        rows,
    )
    found.run(
        "INSERT INTO event_log_outcome (record_id, status, reason, note) VALUES (:n, 'E', 'invalid', :note)", notes
    )
    found.write(2001, "idu=visible", event_type=2, column_name="fname", old_value="Jack", new_value="John")
    return found


def config(log: LogTable, *all_steps: Steps) -> Config:
    outputs = [FilesOutput(path=f"out{place}", steps=one) for place, one in enumerate(all_steps)]
    return Config(source=SourceConfig(url=url_of(log.engine)), output=tuple(outputs))


@pytest.fixture
def visit(log: LogTable) -> Iterator[Visit]:
    page = open_page("127.0.0.1:0", config(log, HIDING, HIDING[1:] + HIDING[:1]), library_journal(), None)
    try:
        yield Visit(page)
    finally:
        page.close()


def tainted(text: str) -> list[str]:
    return re.findall(r".{0,80}taint-\d.{0,20}", text)


def test_of_hundreds_of_secrets_the_page_shows_none(visit: Visit) -> None:
    path, rows = "/rows", 0
    while path:
        body = visit.get(path).body
        assert not tainted(body)
        rows += body.count('<th scope="row">')
        older = re.search(r'href="([^"]+)" class="button" rel="next"', body)
        path = older[1].replace("&amp;", "&") if older else ""
    assert rows == len(TAINTS) + 1
    until(lambda: "The last error" in visit.get("/").body, "rows are counted")
    overview = visit.get("/").body
    assert "(hidden) is odd" in overview
    assert not tainted(overview)
    for number in range(1, 301, 97):
        assert not tainted(visit.get(f"/rows/{number}").body)
        assert not tainted(visit.get(f"/rows/{number}/document").body)
    assert not tainted(visit.get("/table?name=usr").body)
    assert "John" in visit.get("/rows/2001").body
    assert "(hidden)" in visit.get("/rows/2001").body


def test_a_search_finds_only_what_is_shown(visit: Visit) -> None:
    assert '<th scope="row">' not in visit.get(f"/rows?text={quote(TAINTS[3])}").body.replace("taint-0003", "")
    assert visit.get("/rows?text=John").body.count('<th scope="row">') == 1
    key = f"/rows?table=usr&key={quote(f'idu={TAINTS[0]}')}"
    assert '<th scope="row">' not in visit.get(key).body


def test_explain_shows_none_either_unless_it_is_asked_to(log: LogTable) -> None:
    hiding = config(log, HIDING)
    for number in (1, 5, 7, 9, 11, 13, 26, 250):
        assert not tainted(str(explain(log.engine, LogNames(), hiding, number)))
        assert tainted(str(explain(log.engine, LogNames(), hiding, number, values=True)))


def test_explain_shows_each_step_without_what_is_hidden(log: LogTable) -> None:
    explained = explain(log.engine, LogNames(), config(log, HIDING[1:4]), 2)
    [policy] = explained.policies
    assert [one.step for one in policy.steps] == ["1. hash", "2. rename", "3. encrypt"]
    assert policy.steps[1].before["phone"] == "(hidden)"
    assert policy.steps[2].before["Telephone"] == "(hidden)"
    assert "(hidden)" not in policy.told["Telephone"]
    assert explained.document is None


def test_what_one_output_is_told_is_shown(log: LogTable) -> None:
    for told in (config(log, HIDING, ()), config(log, HIDING, HIDING[4:]), config(log)):
        assert tainted(str(explain(log.engine, LogNames(), told, 2)))
    some = explain(log.engine, LogNames(), config(log, HIDING, HIDING[4:]), 3)
    assert "(hidden)" in str(some.rows)
    assert "pin" not in (some.document or "")
    left_out = Config(
        source=SourceConfig(url=url_of(log.engine)),
        output=(StdoutOutput(steps=(steps.WithoutTables(classes=("usr",)),)),),
    )
    assert not tainted(str(explain(log.engine, LogNames(), left_out, 2)))
