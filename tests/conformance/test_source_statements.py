"""Statements that are handed to the driver directly end as SQLAlchemy's do, on every database."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import DBAPIError

from eventlog.core.errors import SourceError
from eventlog.sql import access
from eventlog.sql.access import execute, fetch, transaction


@pytest.fixture
def table(engine: Engine) -> Engine:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE kept (number INTEGER NOT NULL, told VARCHAR(40))"))
    return engine


INSERT = text("INSERT INTO kept (number, told) VALUES (:number, :told)")
FIND = text(
    "SELECT number, told FROM kept WHERE told LIKE '%x%' OR number = :number OR number = :number - 1 ORDER BY 1"
)


def test_a_statement_finds_and_changes_what_it_does_by_sqlalchemy(table: Engine) -> None:
    rows: list[dict[str, Any]] = [{"number": number, "told": told} for number, told in enumerate(["é%s", None, "axb"])]
    with transaction(table, "The table") as connection:
        assert [execute(connection, INSERT, row) for row in rows] == [1, 1, 1]
        assert execute(connection, text("UPDATE kept SET told = 'b' WHERE number > 9")) == 0
        found = fetch(connection, FIND, {"number": 1, "more": "than is asked"})
        by_sqlalchemy = connection.execute(FIND, {"number": 1}).all()
    assert [tuple(row) for row in found] == [tuple(row) for row in by_sqlalchemy]
    assert len(found) == 3


def test_a_transaction_that_fails_leaves_nothing(table: Engine) -> None:
    with pytest.raises(SourceError), transaction(table, "The table") as connection:  # noqa: PT012  # the second one fails
        execute(connection, INSERT, {"number": 1, "told": "a"})
        execute(connection, INSERT, {"number": None, "told": "b"})
    with transaction(table, "The table", lone=True) as connection:
        assert fetch(connection, text("SELECT COUNT(*) FROM kept")) == [(0,)]


def test_what_the_driver_refuses_is_an_error_of_sqlalchemy(table: Engine) -> None:
    with table.begin() as connection, pytest.raises(DBAPIError):
        fetch(connection, text("SELECT nothing FROM nowhere"))


def test_who_listens_hears_these_statements_too(table: Engine) -> None:
    heard: list[str] = []

    def note(_connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
        heard.append(statement)

    event.listen(table, "before_cursor_execute", note)
    with transaction(table, "The table", lone=True) as connection:
        fetch(connection, text("SELECT number FROM kept"))
    event.remove(table, "before_cursor_execute", note)
    assert heard[-1] == "SELECT number FROM kept"


def test_who_has_lost_one_connection_uses_none_of_those_beside_it(postgresql: Engine) -> None:
    with postgresql.connect() as one, postgresql.connect() as other:
        lost = [connection.execute(text("SELECT pg_backend_pid()")).scalar() for connection in (one, other)]
    with pytest.raises(DBAPIError) as refused, postgresql.begin() as connection:  # noqa: PT012  # the last one fails
        mine = fetch(connection, text("SELECT pg_backend_pid()"))[0][0]
        for number in {*lost} - {mine}:
            connection.execute(text("SELECT pg_terminate_backend(:number, 5000)"), {"number": number})
        fetch(connection, text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert refused.value.connection_invalidated
    for _ in lost:
        with transaction(postgresql, "The database", lone=True) as connection:
            assert fetch(connection, text("SELECT 1")) == [(1,)]


def test_no_more_statements_are_kept_than_may_be(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MOST_SPELLINGS", 10)
    with transaction(sqlite, "The database") as connection:
        for number in range(50):
            assert fetch(connection, text(f"SELECT {number}")) == [(number,)]
            assert len(access._spelled[sqlite.dialect]) <= 10
