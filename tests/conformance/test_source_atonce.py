"""Rows of PostgreSQL in one go: the same as row by row from the driver, errors and all."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from psycopg import DatabaseError
from sqlalchemy import Engine, text

from eventlog.core.errors import SourceError
from eventlog.databases.postgresql.keys import fetch_at_once
from eventlog.sql.access import fetch, transaction
from tests.support.servers import postgresql_database

QUERY = "SELECT 1, NULL, 'Jürgen %', CAST(:small AS CHAR(5)), :small + 1 WHERE 'a%' LIKE :pattern"


@pytest.mark.parametrize("lone", [True, False])
def test_the_rows_are_those_of_the_driver(postgresql: Engine, lone: bool) -> None:
    query = text(QUERY)
    values: dict[str, int | str | list[Any]] = {"small": 41, "pattern": "a%"}
    with transaction(postgresql, "The query", lone=lone) as connection:
        found = fetch_at_once(connection, query, values)
        assert found == fetch(connection, query, values)
    assert len(found) == 1
    assert found[0][:3] == (1, None, "Jürgen %")
    assert int(found[0][4]) == 42


def test_names_and_values_go_in_the_encoding_of_the_session(postgresql_server: str, postgresql_admin: Engine) -> None:
    settings = " ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    with postgresql_database(postgresql_server, postgresql_admin, settings) as engine:
        with engine.begin() as connection:
            connection.execute(text("CREATE TABLE person (größe TEXT)"))
            connection.execute(text("INSERT INTO person VALUES ('Jürgen')"))
        with transaction(engine, "The query", lone=True) as connection:
            query = text("SELECT größe FROM person WHERE größe = :name")
            assert fetch_at_once(connection, query, {"name": "Jürgen"}) == [("Jürgen",)]


def test_arrays_are_bound_by_the_driver(postgresql: Engine) -> None:
    with transaction(postgresql, "The query", lone=True) as connection:
        query = text("SELECT unnest(CAST(:keys AS text[]))")
        assert fetch_at_once(connection, query, {"keys": ["a,b", '"']}) == [("a,b",), ('"',)]


def test_what_the_database_refuses_is_told_as_ever(postgresql: Engine) -> None:
    with (
        pytest.raises(SourceError, match=r"The query cannot be used: .*division by zero") as told,
        transaction(postgresql, "The query", lone=True) as connection,
    ):
        fetch_at_once(connection, text("SELECT 1 / :number"), {"number": 0})
    assert not told.value.may_pass
    with transaction(postgresql, "The query", lone=True) as connection:
        assert fetch_at_once(connection, text("SELECT :number"), {"number": 1}) == [("1",)]


def ask_when_cut(engine: Engine, asked_before: int) -> None:
    """Ask in a session ended by somebody meanwhile."""
    query = text("SELECT :number")
    with transaction(engine, "The query", lone=True) as connection:
        session = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
        with engine.begin() as other:
            other.execute(text("SELECT pg_terminate_backend(:session)"), {"session": session})
        for _ in range(asked_before):
            with suppress(DatabaseError):
                fetch_at_once(connection, query, {"number": 1})
        fetch_at_once(connection, query, {"number": 1})


@pytest.mark.parametrize("asked_before", [0, 1])
def test_a_connection_that_is_cut_is_trouble_that_passes(postgresql: Engine, asked_before: int) -> None:
    """Told by the server, and by the library alone once there is none."""
    with pytest.raises(SourceError) as told:
        ask_when_cut(postgresql, asked_before)
    assert told.value.may_pass, told.value
