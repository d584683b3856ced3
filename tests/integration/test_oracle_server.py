"""Level oracle: installation, triggers, publishing and read-backs on a real Oracle server, where there is one."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Engine, inspect, text

from eventlog.capture.install import find_migration, install, uninstall
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states
from eventlog.core.model import Outcome, Reason, RowId, Status
from eventlog.core.schema import Catalog
from eventlog.core.tablekey import TableKey
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import reflect
from eventlog.sql.rows import SqlRowReader
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.log_rows import LogRows
from tests.support.reflected import reflect_table

pytestmark = pytest.mark.xdist_group("oracle")
USR = """
CREATE TABLE usr (idu NUMBER(10) PRIMARY KEY, fname VARCHAR2(64), abbr CHAR(5), shares NUMBER, born DATE,
  photo RAW(200), story CLOB)
"""
PHONE = "CREATE TABLE usr_phone (idu NUMBER(10) REFERENCES usr ON DELETE CASCADE, phoneno VARCHAR2(32))"
CHANGES = (
    "INSERT INTO usr (idu, fname, shares) VALUES (1, 'Jack', 0.5)",
    "UPDATE usr SET fname = 'Jack', shares = 0.50",
    "UPDATE usr SET fname = 'JACK', abbr = 'x', born = DATE '2025-03-23'",
    "UPDATE usr SET photo = HEXTORAW('AAAA'), fname = ''",
    "UPDATE usr SET story = 'upon'",
    "INSERT INTO usr_phone VALUES (1, '22')",
    "UPDATE usr_phone SET phoneno = '23'",
    "DELETE FROM usr_phone",
    "UPDATE usr SET idu = 2",
    "DELETE FROM usr",
)
FIELDS: list[tuple[Any, ...]] = [
    (1, "IDU=1", "FNAME", None, "Jack"),
    (1, "IDU=1", "SHARES", None, "0.5"),
    (7, "IDU=1", "STORY", None, None),
    (2, "IDU=1", "FNAME", "Jack", "JACK"),
    (2, "IDU=1", "ABBR", None, "x"),
    (2, "IDU=1", "BORN", None, "2025-03-23 00:00:00.000000000"),
    (2, "IDU=1", "FNAME", "JACK", None),
    (2, "IDU=1", "PHOTO", None, "qqo="),
    (8, "IDU=1", "STORY", None, None),
    (1, "IDU=1", "USR_PHONE.PHONENO", None, "22"),
    (2, "IDU=1", "USR_PHONE.PHONENO", "22", None),
    (1, "IDU=1", "USR_PHONE.PHONENO", None, "23"),
    (2, "IDU=1", "USR_PHONE.PHONENO", "23", None),
    (4, "IDU=1", None, None, None),
    (1, "IDU=2", "ABBR", None, "x"),
    (1, "IDU=2", "SHARES", None, "0.5"),
    (1, "IDU=2", "BORN", None, "2025-03-23 00:00:00.000000000"),
    (1, "IDU=2", "PHOTO", None, "qqo="),
    (7, "IDU=2", "STORY", None, None),
    (4, "IDU=2", None, None, None),
]


def run(engine: Engine, *statements: str) -> None:
    for statement in statements:
        with engine.begin() as connection:
            connection.execute(text(statement))


def ask(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def logged(engine: Engine, *changes: str) -> list[tuple[Any, ...]]:
    run(engine, *changes)
    columns = "event_type, table_key, column_name, old_value, new_value"
    return ask(engine, f"SELECT {columns} FROM event_log ORDER BY record_id")


@pytest.fixture
def usr(oracle: Engine) -> Engine:
    """A log, and tables to capture."""
    install(oracle)
    run(oracle, USR, PHONE)
    return oracle


@pytest.mark.parametrize("sequence", [None, "event_log_seq"])
def test_a_log_is_made_numbers_its_rows_and_goes(oracle: Engine, sequence: str | None) -> None:
    names = LogNames(sequence=sequence)
    install(oracle, names)
    run(oracle, USR)
    track(oracle, ["usr"], names=names)
    run(oracle, "INSERT INTO usr (idu) VALUES (1)", "DELETE FROM usr")
    assert len(ask(oracle, "SELECT record_id FROM event_log WHERE record_id > 0")) == 2
    uninstall(oracle, names, purge=True)
    assert inspect(oracle).get_table_names() == ["usr"]
    assert ask(oracle, "SELECT sequence_name FROM user_sequences WHERE sequence_name = 'EVENT_LOG_SEQ'") == []


def test_triggers_log_fields(usr: Engine) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD))
    assert logged(usr, *CHANGES) == FIELDS


def test_triggers_log_rows_to_read_back(usr: Engine) -> None:
    track(usr, ["usr"])
    kinds = [(row[0], row[1]) for row in logged(usr, *CHANGES)]
    back = [(5, "IDU=1"), (6, "IDU=1"), (6, "IDU=1"), (6, "IDU=1"), (6, "IDU=1"), (6, "IDU=1"), (6, "IDU=1")]
    assert kinds == [*back, (4, "IDU=1"), (5, "IDU=2"), (4, "IDU=2")]


def test_deleting_a_parent_deletes_its_children_and_fails_nobody(usr: Engine) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD, when="idu < 100"))
    rows = logged(usr, "INSERT INTO usr (idu) VALUES (1)", "INSERT INTO usr_phone VALUES (1, '2')", "DELETE FROM usr")
    assert rows[-1] == (4, "IDU=1", None, None, None)


def test_the_session_of_the_writer_decides_nothing(usr: Engine) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD, columns=("FNAME", "SHARES", "BORN")))
    with usr.begin() as connection:
        for setting in ("NLS_COMP = LINGUISTIC", "NLS_SORT = BINARY_CI", "NLS_NUMERIC_CHARACTERS = ',.'"):
            connection.execute(text(f"ALTER SESSION SET {setting}"))
        connection.execute(text("INSERT INTO usr (idu, fname, shares, born) VALUES (1, 'a', 1/2, DATE '2025-03-23')"))
        connection.execute(text("UPDATE usr SET fname = 'A'"))
    rows = [row[2:] for row in logged(usr)]
    assert rows == [
        ("FNAME", None, "a"),
        ("SHARES", None, "0.5"),
        ("BORN", None, "2025-03-23 00:00:00.000000000"),
        ("FNAME", "a", "A"),
    ]


def test_keys_parse_back(oracle: Engine) -> None:
    install(oracle)
    run(oracle, "CREATE TABLE t (k VARCHAR2(100) PRIMARY KEY)")
    track(oracle, ["t"])
    keys = ["plain", " a", "a ", ", ; ' + \" = \\ < >", "a b", "ä\n€", "\\", '"']
    with oracle.begin() as connection:
        for key in keys:
            connection.execute(text("INSERT INTO t VALUES (:k)"), {"k": key})
    found = ask(oracle, "SELECT table_key FROM event_log ORDER BY record_id")
    assert [TableKey.parse(row[0]).columns for row in found] == [{"K": key} for key in keys]


def test_triggers_are_current_until_somebody_disables_them(usr: Engine) -> None:
    track(usr, ["usr"])
    assert {state.state for state in trigger_states(usr)} == {TriggerCondition.CURRENT}
    track(usr, ["usr"])
    run(usr, "ALTER TRIGGER event_log_usr_change DISABLE")
    assert TriggerCondition.DISABLED in {state.state for state in trigger_states(usr)}


def test_a_log_of_somebody_else_is_adopted(oracle: Engine) -> None:
    columns = "status CHAR(1), event_type NUMBER, event_time DATE, perpetrator VARCHAR2(30), table_name VARCHAR2(30)"
    more = "table_key VARCHAR2(400), column_name VARCHAR2(30), old_value VARCHAR2(4000), new_value VARCHAR2(4000)"
    run(oracle, f"CREATE TABLE indirect_process (record_id NUMBER, {columns}, {more})")
    names = log_columns(oracle, LogNames(table="INDIRECT_PROCESS"))
    install(oracle, names)
    assert find_migration(oracle, names) is not None
    row = "(7, 'N', 6, TO_DATE('2025-03-23 10:57:19', 'YYYY-MM-DD HH24:MI:SS'), NULL, 'USR', 'IDU=1', NULL, NULL, NULL)"
    run(oracle, f"INSERT INTO indirect_process VALUES {row}")
    (event,) = LogRows(oracle, names).read(10).rows
    assert (event.position, event.key, event.time) == ((7,), "IDU=1", "2025-03-23 10:57:19.000000")


def test_rows_are_read_marked_and_recorded_however_many_they_are(oracle: Engine) -> None:
    install(oracle)
    make = "SELECT 'IDU=' || MOD(LEVEL, 7), 6, 'USR' FROM dual CONNECT BY LEVEL <= 3000"
    run(oracle, f"INSERT INTO event_log (table_key, event_type, table_name) {make}")
    source = LogRows(oracle)
    batch = source.read(0)
    repeated = source.read(0)
    assert (len(batch.events), len(repeated.events)) == (3000, 3000)
    odd = [event.position for event in batch.events if event.position[0] % 2]
    even = [event.position for event in batch.events if not event.position[0] % 2]
    outcomes = [Outcome(position=position) for position in odd]
    outcomes += [
        Outcome(position=place, status=Status.WARNING, reason=Reason.VANISHED, note="x" * 5000) for place in even
    ]
    source.settle(batch, outcomes)
    assert sorted(ask(oracle, "SELECT status, COUNT(*) FROM event_log GROUP BY status")) == [("S", 1500), ("W", 1500)]
    assert ask(oracle, "SELECT COUNT(*) FROM event_log_outcome WHERE DBMS_LOB.GETLENGTH(note) = 5000") == [(1500,)]


@pytest.mark.parametrize(
    "type_, literal, value",
    [
        ("NUMBER(10,0)", "42", 42),
        ("NUMBER(12,3)", "1.25", Decimal("1.25")),
        ("VARCHAR2(9)", "'ab '", "ab "),
        ("CHAR(5)", "'ab'", "ab"),
        ("CLOB", "'story'", "story"),
        ("BLOB", "HEXTORAW('AAAA')", b"\xaa\xaa"),
        ("RAW(9)", "HEXTORAW('AAAA')", b"\xaa\xaa"),
        ("DATE", "DATE '2025-03-23'", "2025-03-23 00:00:00"),
        ("TIMESTAMP(6)", "TIMESTAMP '2025-03-23 10:57:19.25'", "2025-03-23 10:57:19.250000000"),
        ("BINARY_DOUBLE", "0.5", 0.5),
    ],
)
def test_values_are_read_back(oracle: Engine, type_: str, literal: str, value: Any) -> None:
    run(oracle, f"CREATE TABLE t (k DATE PRIMARY KEY, v {type_})")
    run(oracle, f"INSERT INTO t VALUES (TO_DATE('{dt.date(2025, 1, 2)}', 'YYYY-MM-DD'), {literal})")
    table = reflect_table(oracle, "t")
    row = RowId(table.schema, "T", "K=2025-01-02 00:00:00.000000000")
    assert SqlRowReader(oracle, Catalog([table])).rows({row: frozenset({"V"})}) == {row: {"V": value}}


def test_classes_are_reflected_with_names_as_oracle_reports_them(usr: Engine) -> None:
    (table,) = reflect(usr, ["usr"]).tables
    assert (table.name, table.key, [child.name for child in table.children]) == ("USR", ("IDU",), ["USR_PHONE"])
    types = {column.name: column.type for column in table.columns}
    assert (types["IDU"], types["FNAME"], types["BORN"]) == ("NUMBER(10,0)", "VARCHAR2(64)", "DATE")
