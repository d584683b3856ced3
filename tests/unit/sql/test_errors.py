"""Which errors of a database pass by waiting: by their class, and by their number where the class does not tell."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
from psycopg.errors import DeadlockDetected, LockNotAvailable, QueryCanceled
from pymysql.err import OperationalError as PyMysqlError
from sqlalchemy.exc import OperationalError, ProgrammingError

from eventlog.core.errors import MachineError
from eventlog.databases.mysql.dialect import MYSQL
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.sql.access import in_words, is_held_up, is_lasting
from eventlog.sql.dialect import Dialect


@pytest.mark.parametrize(
    "error, lasting",
    [
        (PyMysqlError(1213, "Deadlock found"), False),
        (PyMysqlError(2013, "Lost connection"), False),
        (PyMysqlError(3101, "Plugin instructed the server to rollback the current transaction"), False),
        (PyMysqlError(1054, "Unknown column"), True),
        (PyMysqlError(0, ""), False),
        (PyMysqlError(), False),
        (Exception("database is locked"), False),
        (None, False),
    ],
    ids=str,
)
def test_a_number_that_waiting_does_not_cure_is_lasting(error: Exception | None, lasting: bool) -> None:
    assert is_lasting(error) is lasting


class OracleError:
    """What oracledb's errors hold."""

    def __init__(self, code: int) -> None:
        self.code = code


@pytest.mark.parametrize(
    "dialect, error, held_up",
    [
        (MYSQL, PyMysqlError(1205, "Lock wait timeout exceeded"), True),
        (MYSQL, PyMysqlError(1213, "Deadlock found"), True),
        (MYSQL, PyMysqlError(2013, "Lost connection"), False),
        (POSTGRESQL, LockNotAvailable(), True),
        (POSTGRESQL, DeadlockDetected(), True),
        (POSTGRESQL, QueryCanceled(), False),
        (ORACLE, Exception(OracleError(60)), True),
        (ORACLE, Exception(OracleError(1555)), False),
        (ORACLE, None, False),
    ],
)
def test_somebody_elses_lock_is_told_from_other_troubles(
    dialect: Dialect, error: Exception | None, held_up: bool
) -> None:
    assert is_held_up(dialect, error) is held_up


@pytest.mark.parametrize("number, may_pass", [(1205, True), (1305, False)])
def test_a_commands_exit_code_goes_by_the_number(number: int, may_pass: bool) -> None:
    told = in_words(OperationalError("SELECT 1", {}, PyMysqlError(number, "said")), "Asking")
    assert isinstance(told, MachineError)
    assert told.may_pass is may_pass


def test_sqlite_has_one_class_for_a_lock_and_for_a_typing_error(tmp_path: Path) -> None:
    one, other = (sqlite3.connect(tmp_path / "a.db", timeout=0, isolation_level=None) for _ in range(2))
    one.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as locked:
        other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as mistyped:
        other.execute("SELEC 1")
    assert (is_lasting(locked.value), is_lasting(mistyped.value)) == (False, True)
    one.close()
    other.close()


def test_a_missing_right_is_called_so_and_who_mends_it_is_named() -> None:
    refused = psycopg.errors.InsufficientPrivilege("permission denied for schema log")
    said = in_words(ProgrammingError("SELECT 'secret'", {}, refused), "The database does not answer as it should")
    assert str(said).startswith(
        "A right is missing: permission denied for schema log. `eventlog rights` grants what each role"
    )
    gone = psycopg.errors.UndefinedTable('relation "app.usr" does not exist')
    other = in_words(ProgrammingError("SELECT", {}, gone), "It fails")
    assert str(other) == 'It fails: relation "app.usr" does not exist.'
