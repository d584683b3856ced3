"""Lists: pages in order, nothing twice and nothing left out, and never more than a stretch of the log read for one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from eventlog.capture.install import install
from eventlog.care import listing as module
from eventlog.care.listing import Cursor, Filters, Listing, listing, newest, one_row
from eventlog.sql.log import Log
from eventlog.sql.log_indexes import has_number_index
from eventlog.sql.names import LogNames
from tests.conformance.event_logs import LogTable, installed
from tests.conformance.test_rowcare_poll import fill
from tests.support.servers import mysqls

NAMES = LogNames()
COUNT = 40_000
FILTERS = {
    "all": Filters(),
    "errors": Filters(statuses="EF"),
    "waiting": Filters(statuses="N"),
    "reason": Filters(reason="published"),
    "object": Filters(table="usr", key="idu=7"),
    "words": Filters(text="nowhere"),
    "waiting words": Filters(statuses="N", text="nowhere"),
}
PARKED = (
    (2, "a", "behind", 0, None),
    (2, "b", "retry", 3, 1_742_727_439_000),
    (4, "a", "retry", 1, None),
    (6, "a", "behind", 0, None),
    (8, "a", "behind", 0, 0),
    (12, "b", "retry", 1, 0),
)
"""Rows that wait, for which output, why, after how many attempts, and until when."""


@pytest.fixture
def log(engine: Engine) -> Log:
    table = installed(engine)
    for number in range(1, 31):
        key = f"idu={number % 3}"
        table.write(
            number, key, status="E" if number % 10 == 0 else "S" if number % 2 else "N", new_value=f"50%_{number}!"
        )
    table.run("INSERT INTO event_log_outcome (record_id, status, reason, note) VALUES (10, 'E', 'refused', 'no Such')")
    table.run("INSERT INTO event_log_hold (record_id, note) VALUES (4, 'held since noon')")
    for number, output, reason, attempts, due in PARKED:
        columns = "record_id, output, object, reason, note, attempts, due"
        values = f"{number}, '{output}', 'x', '{reason}', 'a {reason}', {attempts}, {'NULL' if due is None else due}"
        table.run(f"INSERT INTO event_log_parked ({columns}) VALUES ({values})")
    return Log(engine, NAMES)


def pages(log: Log, filters: Filters, *, limit: int, numbered: bool) -> Iterator[Listing]:
    cursor: Cursor | None = Cursor()
    while cursor is not None:
        found = listing(log, filters, cursor, numbered=numbered, limit=limit)
        yield found
        cursor = found.further


def numbers(log: Log, filters: Filters, *, limit: int = 4, numbered: bool = True) -> list[int]:
    return [row.record_id for found in pages(log, filters, limit=limit, numbered=numbered) for row in found.rows]


@pytest.mark.parametrize("numbered", [True, False])
def test_pages_have_every_row_once_the_newest_first(log: Log, numbered: bool) -> None:
    for limit in (1, 4, 30, 100):
        assert numbers(log, Filters(), limit=limit, numbered=numbered) == list(range(30, 0, -1))


@pytest.mark.parametrize("numbered", [True, False])
def test_filters_find_what_they_say(log: Log, numbered: bool) -> None:
    for filters, expected in (
        (Filters(statuses="E"), [30, 20, 10]),
        (Filters(statuses="NE"), list(range(30, 0, -2))),
        (Filters(statuses="N"), [n for n in range(30, 0, -1) if n % 2 == 0 and n % 10]),
        (Filters(reason="held"), [4]),
        (Filters(reason="behind"), [8, 6]),
        (Filters(reason="retry"), [12, 2]),
        (Filters(text="a retry"), [12, 2]),
        (Filters(reason="refused"), [10]),
        (Filters(reason="published", key="idu=1"), [25, 19, 13, 7, 1]),
        (Filters(table="USR", key="idu=1", statuses="E"), [10]),
        (Filters(table="elsewhere"), []),
        (Filters(text="50%_7!"), [7]),
        (Filters(text="NO SUCH"), [10]),
        (Filters(text="%"), list(range(30, 0, -1))),
        (Filters(text="5__"), []),
        (Filters(text="fname", statuses="E"), [30, 20, 10]),
    ):
        assert numbers(log, filters, numbered=numbered) == expected, filters


def test_a_row_says_what_it_waits_for_and_when_it_comes_again(log: Log) -> None:
    found = {row.record_id: row for row in listing(log, Filters(statuses="N"), Cursor(), numbered=True).rows}
    said = {number: (row.reason, row.note, row.attempts, row.next_attempt) for number, row in found.items()}
    assert said[2] == ("retry", "a retry", 3, "2025-03-23 10:57:19")
    assert said[4] == ("held", "held since noon", 1, None)
    assert said[6] == said[8] == ("behind", "a behind", None, None)
    assert said[14] == (None, None, None, None)


def test_a_row_that_somebody_ended_while_it_waited_says_nothing_of_waiting(log: Log) -> None:
    with log.transaction() as connection:
        connection.exec_driver_sql("UPDATE event_log SET status = 'S' WHERE record_id IN (2, 4)")
    shown = {row.record_id: row for row in listing(log, Filters(), Cursor(), numbered=True).rows}
    for number in (2, 4):
        row = shown[number]
        assert (row.reason, row.note, row.attempts, row.next_attempt) == ("published", None, None, None)
    assert numbers(log, Filters(text="held since")) == numbers(log, Filters(reason="held")) == []


def test_short_stretches_lose_nothing(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REACH_ROWS", 3)
    assert numbers(log, Filters()) == list(range(30, 0, -1))
    assert numbers(log, Filters(statuses="E")) == [30, 20, 10]
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.0)
    found = list(pages(log, Filters(statuses="E"), limit=4, numbered=True))
    assert [row.record_id for page in found for row in page.rows] == [30, 20, 10]
    assert max(len(page.rows) for page in found) == 1  # without patience, one stretch a page


def test_the_newest_rows_come_oldest_first_and_only_a_part_is_in_memory(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READ_ROWS", 3)
    most, read = [0], Log.rows

    def rows(*asked: Any) -> list[tuple[Any, ...]]:
        found = read(*asked)
        most.append(len(found))
        return found

    monkeypatch.setattr(Log, "rows", staticmethod(rows))
    for reach in (1, 4, 100):
        for limit in (1, 4, 100):
            for filters, expected in (
                (Filters(), range(1, 31)),
                (Filters(statuses="S"), range(1, 31, 2)),
                (Filters(statuses="E"), range(10, 31, 10)),
                (Filters(key="idu=1"), range(1, 31, 3)),
                (Filters(since="2025-03-23 10:57:19.000000"), range(1, 31)),
                (Filters(since="2025-03-23 10:57:20.000000"), ()),
            ):
                found = [row.record_id for row in newest(log, filters, limit=limit, width=10, reach=reach)]
                assert found == list(expected)[-limit:]
    found = [row.record_id for row in newest(log, Filters(), limit=100, width=10, after=20)]
    assert found == list(range(21, 31))
    some = newest(log, Filters(statuses="S"), limit=4, width=10, before=21, reach=3)
    assert [row.record_id for row in some] == [13, 15, 17, 19]
    assert max(most) == 3


def test_an_empty_log_has_one_empty_page(engine: Engine) -> None:
    installed(engine)
    for numbered in (True, False):
        found = listing(Log(engine, NAMES), Filters(), Cursor(), numbered=numbered)
        assert (found.rows, found.further) == ((), None)


def test_a_row_is_shown_whole_and_one_that_is_not_there_not_at_all(log: Log) -> None:
    found = one_row(log, 10)
    assert found is not None
    assert (found.record_id, found.new_value, found.note) == (10, "50%_10!", "no Such")
    assert one_row(log, 31) is None


def test_the_index_of_numbers_is_looked_for(sqlite: Engine, postgresql: Engine) -> None:
    install(sqlite)
    install(postgresql)
    assert has_number_index(sqlite, NAMES)
    assert has_number_index(postgresql, NAMES)  # one of the waiting rows and one of the others
    table = LogTable(postgresql)
    for index, leads in (
        ("(record_id) WHERE status <> 'N'", False),  # not those without a letter
        ("(record_id) WHERE status = 'S'", False),
        ("USING hash (record_id)", False),
        ("(table_key) WHERE status IS DISTINCT FROM 'N'", False),
        ("(record_id, table_key) WHERE status IS DISTINCT FROM 'N'", True),
        ("(record_id)", True),
    ):
        table.run("DROP INDEX event_log_done")
        table.run(f"CREATE INDEX event_log_done ON event_log {index}")
        assert has_number_index(postgresql, NAMES) is leads, index


@pytest.mark.parametrize("database", ["postgresql", "sqlite", *mysqls()])
def test_the_first_page_has_the_newest_rows_also_where_they_lie_in_room_that_a_vacuum_made(
    database: str, request: pytest.FixtureRequest
) -> None:
    engine: Engine = request.getfixturevalue(database)
    _fill(engine, indexed=True)
    table = LogTable(engine)
    table.run("DELETE FROM event_log WHERE record_id BETWEEN 1000 AND 5000")
    if database == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM event_log")
    for number in range(COUNT + 1, COUNT + 61):
        table.write(number, "idu=new", status="S")
    newest = list(range(COUNT + 60, COUNT + 10, -1))
    found = listing(Log(engine, NAMES), Filters(), Cursor(), numbered=has_number_index(engine, NAMES))
    assert found.ordered
    assert [row.record_id for row in found.rows] == newest
    found = listing(Log(engine, NAMES), Filters(statuses="S"), Cursor(), numbered=True)
    assert [row.record_id for row in found.rows] == newest


@pytest.mark.parametrize("indexed", [False, True])
def test_postgresql_reads_a_stretch_whatever_is_asked_for(postgresql: Engine, indexed: bool) -> None:
    _fill(postgresql, indexed=indexed)
    log = Log(postgresql, NAMES)
    for asked, filters in FILTERS.items():
        for statement, parameters in _sent(log, filters, numbered=indexed):
            with postgresql.connect() as connection:
                # Of a table of this size, several workers may read all for what the joins of one stretch are reckoned at.
                connection.exec_driver_sql("SET max_parallel_workers_per_gather = 0")
                plan = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar_one()
            nodes = list(_nodes((plan if isinstance(plan, list) else json.loads(plan))[0]["Plan"]))
            assert [node for node in nodes if "Seq Scan" in node] == [], asked
            assert any("event_log" in node for node in nodes), asked


def test_sqlite_reads_a_stretch_whatever_is_asked_for(sqlite: Engine) -> None:
    _fill(sqlite, indexed=True)
    for asked, filters in FILTERS.items():
        for statement, parameters in _sent(Log(sqlite, NAMES), filters, numbered=True):
            with sqlite.connect() as connection:
                plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            # The rows of the page, which are few, are gone through once more.
            scanned = [step for step in plan if step.startswith("SCAN") and "row_range" not in step]
            assert scanned in ([], ["SCAN entry"]), (asked, plan)
            assert any(step.startswith("SEARCH entry USING") for step in plan), (asked, plan)


@pytest.mark.parametrize("database", mysqls())
def test_mariadb_and_mysql_read_a_stretch_whatever_is_asked_for(database: str, request: pytest.FixtureRequest) -> None:
    server: Engine = request.getfixturevalue(database)
    _fill(server, indexed=True)
    for asked, filters in FILTERS.items():
        for statement, parameters in _sent(Log(server, NAMES), filters, numbered=True):
            with server.connect() as connection:
                plan = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).mappings().all()
            steps = {str(step["table"]): step for step in plan}
            assert [name for name, step in steps.items() if step["type"] == "ALL" and "derived" not in name] == [], (
                asked,
                plan,
            )
            assert steps["entry"]["key"], (asked, plan)


@pytest.mark.parametrize("database", ["postgresql", "sqlite", *mysqls()])
def test_what_is_measured_again_and_again_reads_no_table(database: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(database)
    _fill(engine, indexed=False)
    log = Log(engine, NAMES)
    for name, kept in (("count_waiting", ""), ("oldest_waiting", "kept_any")):
        query = log.query(name, **({"among": "among_all", "kept": kept} if kept else {}))
        query = query.bindparams(beyond=0, limit=1) if name == "oldest_waiting" else query
        sent = str(query.compile(engine, compile_kwargs={"literal_binds": True}))
        with engine.connect() as connection:
            plan = connection.exec_driver_sql(f"EXPLAIN {'QUERY PLAN ' if database == 'sqlite' else ''}{sent}").all()
        said = " ".join(str(cell) for row in plan for cell in row)
        assert not re.search(r"Seq Scan|\bALL\b", said), (name, said)
        assert re.search(r"(?i)index|SEARCH|ref|range", said), (name, said)
        assert not re.search(r"SCAN event_log(?! USING)", said), (name, said)


def _fill(engine: Engine, *, indexed: bool) -> None:
    """A log of processed rows, longer than any stretch, with a few that wait; and a companion that is large too."""
    table = LogTable(engine)
    if engine.dialect.name == "mysql":
        install(engine)
        table.run(
            "INSERT INTO event_log (table_key, status, event_type, table_name, column_name)"
            f" SELECT CONCAT('idu=', seq % 5000), 'S', 2, 'usr', 'fname'"
            f" FROM JSON_TABLE(CONCAT('[0', REPEAT(',0', {COUNT - 1}), ']'), '$[*]' COLUMNS (seq FOR ORDINALITY)) AS numbers"
        )
    else:
        fill(engine, COUNT)
    table.run("UPDATE event_log SET status = 'N' WHERE record_id <= 500 OR record_id > 39500")
    table.run(
        "INSERT INTO event_log_outcome (record_id, status, reason) SELECT record_id, 'S', 'superseded' FROM event_log"
        " WHERE record_id % 4 = 0"
    )
    table.run("INSERT INTO event_log_hold (record_id) SELECT record_id FROM event_log")
    table.run(
        "INSERT INTO event_log_parked (record_id, output, object, reason, attempts)"
        " SELECT record_id, 'a', 'x', 'behind', 0 FROM event_log"
    )
    if engine.dialect.name == "postgresql":
        table.run("UPDATE event_log SET new_value = repeat('x', 1500)")
    if not indexed and engine.dialect.name == "postgresql":
        table.run("DROP INDEX event_log_done")
    if engine.dialect.name == "postgresql":
        table.run("ANALYZE event_log, event_log_outcome, event_log_hold, event_log_parked")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        mysql = engine.dialect.name == "mysql"
        connection.execute(
            text("ANALYZE TABLE event_log, event_log_outcome, event_log_hold, event_log_parked" if mysql else "ANALYZE")
        )


def _sent(log: Log, filters: Filters, *, numbered: bool) -> list[tuple[str, Any]]:
    """What the database is asked about the log for a page."""
    sent: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "event_log AS" in statement:
            sent.append((statement, parameters))

    event.listen(log.engine, "before_cursor_execute", note)
    listing(log, filters, Cursor(), numbered=numbered)
    event.remove(log.engine, "before_cursor_execute", note)
    assert sent
    return sent


def _nodes(plan: dict[str, Any]) -> Iterator[str]:
    yield f"{plan['Node Type']} {plan.get('Relation Name', '')} {plan.get('Index Name', '')}"
    for inner in plan.get("Plans", []):
        yield from _nodes(inner)
