"""What Oracle's catalog is asked, tried in SQLite on tables that have what the catalog would have."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from eventlog.databases.oracle.dialect import ORACLE
from eventlog.sql.dialect import log_holes, statement
from eventlog.sql.names import LogNames

CONSTRAINTS = """
CREATE TABLE all_indexes (owner, index_name, table_owner, table_name, uniqueness, index_type);
CREATE TABLE all_ind_columns (index_owner, index_name, column_name);
CREATE TABLE all_constraints (owner, constraint_name, table_name, constraint_type, "deferrable", status, validated);
CREATE TABLE all_cons_columns (owner, constraint_name, column_name);
INSERT INTO all_indexes VALUES ('INDIRECT', 'PHONE_PK', 'INDIRECT', 'PHONE', 'UNIQUE', 'NORMAL'),
  ('INDIRECT', 'LATE', 'INDIRECT', 'PHONE', 'NONUNIQUE', 'NORMAL'),
  ('INDIRECT', 'UPPERS', 'INDIRECT', 'PHONE', 'UNIQUE', 'FUNCTION-BASED NORMAL'),
  ('INDIRECT', 'OTHERS', 'INDIRECT', 'USR', 'UNIQUE', 'NORMAL'), ('ELSE', 'ELSES', 'ELSE', 'PHONE', 'UNIQUE', 'NORMAL');
INSERT INTO all_ind_columns VALUES ('INDIRECT', 'PHONE_PK', 'ID'), ('INDIRECT', 'LATE', 'KIND'),
  ('INDIRECT', 'UPPERS', 'SYS_NC00005$'), ('INDIRECT', 'OTHERS', 'IDU'), ('ELSE', 'ELSES', 'IDU');
INSERT INTO all_constraints VALUES
  ('INDIRECT', 'PHONE_PK', 'PHONE', 'P', 'NOT DEFERRABLE', 'ENABLED', 'VALIDATED'),
  ('INDIRECT', 'NO_TWO', 'PHONE', 'U', 'NOT DEFERRABLE', 'ENABLED', 'VALIDATED'),
  ('INDIRECT', 'AT_ONCE', 'PHONE', 'U', 'NOT DEFERRABLE', 'ENABLED', 'VALIDATED'),
  ('INDIRECT', 'LATE', 'PHONE', 'U', 'DEFERRABLE', 'ENABLED', 'VALIDATED'),
  ('INDIRECT', 'OFF', 'PHONE', 'U', 'NOT DEFERRABLE', 'DISABLED', 'NOT VALIDATED'),
  ('INDIRECT', 'NEW_ONLY', 'PHONE', 'U', 'NOT DEFERRABLE', 'ENABLED', 'NOT VALIDATED'),
  ('INDIRECT', 'FILLED', 'PHONE', 'C', 'NOT DEFERRABLE', 'ENABLED', 'VALIDATED');
INSERT INTO all_cons_columns VALUES ('INDIRECT', 'PHONE_PK', 'ID'), ('INDIRECT', 'NO_TWO', 'IDU'),
  ('INDIRECT', 'NO_TWO', 'PHONENO'), ('INDIRECT', 'AT_ONCE', 'CODE'), ('INDIRECT', 'LATE', 'KIND'),
  ('INDIRECT', 'OFF', 'A'), ('INDIRECT', 'NEW_ONLY', 'B'), ('INDIRECT', 'FILLED', 'C');
"""
BETWEEN = """
CREATE TABLE all_triggers (owner, trigger_name, trigger_type, table_owner, table_name, status);
CREATE TABLE all_source (owner, name, type, text);
CREATE TABLE all_dependencies (owner, name, type, referenced_owner, referenced_name, referenced_type);
INSERT INTO all_triggers VALUES
  ('INDIRECT', 'OURS', 'COMPOUND', 'INDIRECT', 'USR', 'ENABLED'),
  ('INDIRECT', 'NUMBERS', 'BEFORE EACH ROW', 'INDIRECT', 'USR', 'ENABLED'),
  ('INDIRECT', 'FILLS_CHILDREN', 'AFTER EACH ROW', 'INDIRECT', 'USR', 'ENABLED'),
  ('INDIRECT', 'DYNAMIC', 'AFTER EACH ROW', 'INDIRECT', 'USR', 'ENABLED'),
  ('INDIRECT', 'AFTERWARDS', 'AFTER STATEMENT', 'INDIRECT', 'USR', 'ENABLED'),
  ('INDIRECT', 'SLEEPS', 'AFTER STATEMENT', 'INDIRECT', 'USR', 'DISABLED'),
  ('INDIRECT', 'ELSEWHERE', 'AFTER STATEMENT', 'INDIRECT', 'PHONE', 'ENABLED');
INSERT INTO all_source VALUES ('INDIRECT', 'DYNAMIC', 'TRIGGER', '  execute immediate statement;');
INSERT INTO all_dependencies VALUES
  ('INDIRECT', 'NUMBERS', 'TRIGGER', 'INDIRECT', 'USR', 'TABLE'),
  ('INDIRECT', 'NUMBERS', 'TRIGGER', 'INDIRECT', 'USR_SEQ', 'SEQUENCE'),
  ('INDIRECT', 'NUMBERS', 'TRIGGER', 'SYS', 'STANDARD', 'PACKAGE'),
  ('INDIRECT', 'FILLS_CHILDREN', 'TRIGGER', 'INDIRECT', 'PHONE', 'TABLE');
"""
LOSSY = """
CREATE TABLE all_tab_columns (owner, table_name, column_name, data_type, column_id);
CREATE TABLE nls_database_parameters (parameter, value);
INSERT INTO all_tab_columns VALUES ('INDIRECT', 'USR', 'FNAME', 'NVARCHAR2', 2), ('INDIRECT', 'USR', 'CODE', 'NCHAR', 3),
  ('INDIRECT', 'USR', 'STORY', 'NCLOB', 4), ('INDIRECT', 'USR', 'LNAME', 'VARCHAR2', 5), ('ELSE', 'USR', 'X', 'NCHAR', 1);
INSERT INTO nls_database_parameters VALUES ('NLS_NCHAR_CHARACTERSET', 'AL16UTF16');
"""
RIGHTS = """
CREATE TABLE dual (dummy);
INSERT INTO dual VALUES ('X');
CREATE TABLE dba_role_privs (grantee, granted_role);
CREATE TABLE dba_tab_privs (grantee, owner, table_name, privilege);
CREATE TABLE dba_sys_privs (grantee, privilege);
CREATE TABLE all_tab_privs (grantee, table_schema, table_name, privilege);
CREATE TABLE all_users (username);
INSERT INTO all_users VALUES ('APP'), ('IDM'), ('INDIRECT');
INSERT INTO dba_role_privs VALUES ('APP', 'CLERK'), ('CLERK', 'EVERYBODY'), ('IDM', 'PUBLISHER');
INSERT INTO dba_sys_privs VALUES ('CLERK', 'SELECT ANY TABLE'), ('PUBLISHER', 'DELETE ANY TABLE'), ('APP', 'CREATE SESSION');
INSERT INTO dba_tab_privs VALUES ('EVERYBODY', 'INDIRECT', 'EVENT_LOG', 'INSERT'), ('APP', 'ELSE', 'EVENT_LOG', 'DELETE'),
  ('PUBLISHER', 'INDIRECT', 'EVENT_LOG', 'UPDATE');
INSERT INTO all_tab_privs SELECT * FROM dba_tab_privs;
"""
UNSEEN = """
CREATE TABLE all_objects (owner, object_name, subobject_name, object_type, created, last_ddl_time);
CREATE TABLE all_tab_modifications (table_owner, table_name, partition_name, truncated, timestamp);
INSERT INTO all_objects VALUES ('APP', 'USR_EL', NULL, 'TRIGGER', 100, 100), ('APP', 'GRP_EL', NULL, 'TRIGGER', 100, 100),
  ('APP', 'AUDIT', NULL, 'TRIGGER', 1, 1);
"""
REGISTRY = """
CREATE TABLE event_log_tracked (id, schema_name, table_name);
CREATE TABLE event_log_trigger (tracked, name, table_name);
INSERT INTO event_log_tracked VALUES (1, 'INDIRECT', 'USR'), (2, 'APP', 'USR'), (3, 'APP', 'GRP');
INSERT INTO event_log_trigger VALUES (1, 'OURS', 'USR'), (2, 'USR_EL', 'USR'), (3, 'GRP_EL', 'GRP');
"""
OF_USR = {"schema": "INDIRECT", "table": "USR"}
OF_APP = {"role": "APP", "schema": "INDIRECT", "table": "EVENT_LOG"}


def answer(tables: str, query: str, asked: dict[str, str]) -> list[Any]:
    with closing(sqlite3.connect(":memory:")) as catalog:
        catalog.create_function("TO_CHAR", 2, lambda moment, _form: str(moment))
        catalog.executescript(tables)
        catalog.executescript(REGISTRY)
        said = (
            statement(ORACLE, query, **log_holes(ORACLE, LogNames()))
            .replace(".deferrable", '."deferrable"')
            .replace("SYSDATE", "200")
        )
        return catalog.execute(said, asked).fetchall()


def charset(name: str) -> str:
    return f"{LOSSY}; INSERT INTO nls_database_parameters VALUES ('NLS_CHARACTERSET', '{name}')"


@pytest.mark.parametrize(
    "tables, query, asked, found",
    [
        (BETWEEN, "triggers_between", OF_USR, ["AFTERWARDS", "DYNAMIC", "FILLS_CHILDREN"]),
        (charset("AL32UTF8"), "lossy_columns", OF_USR, []),
        (charset("UTF8"), "lossy_columns", OF_USR, []),
        (charset("WE8MSWIN1252"), "lossy_columns", OF_USR, ["FNAME", "CODE"]),
        (charset("CL8ISO8859P5"), "lossy_columns", OF_USR, ["FNAME", "CODE"]),
        (RIGHTS, "held_rights", OF_APP, ["INSERT", "SELECT ANY TABLE"]),
        (RIGHTS, "held_rights", OF_APP | {"role": "INDIRECT"}, ["own"]),
        (
            RIGHTS,
            "held_rights_seen",
            OF_APP,
            ["INSERT if it has the role EVERYBODY", "UPDATE if it has the role PUBLISHER"],
        ),
    ],
    ids=[
        "a trigger that only numbers its rows lets ours write many at once",
        "all letters of Unicode have room",
        "and in its former form",
        "national characters are lost in another one",
        "and in that of Cyrillic letters",
        "rights by way of roles are found, and none on tables of others",
        "an owner needs none",
        "who sees his own rights alone is told of roles",
    ],
)
def test_the_catalog_is_understood(tables: str, query: str, asked: dict[str, str], found: list[str]) -> None:
    assert [name for (name,) in answer(tables, query, asked)] == found


def test_a_constraint_that_may_be_deferred_is_not_always_unique() -> None:
    found = answer(CONSTRAINTS, "always_unique", OF_USR)
    assert {(index, column) for table, index, column in found if table == "PHONE"} == {
        ("PHONE_PK", "ID"),
        ("NO_TWO", "IDU"),
        ("NO_TWO", "PHONENO"),
        ("AT_ONCE", "CODE"),
    }


@pytest.mark.parametrize(
    "what, found",
    [
        ("all_tab_modifications VALUES ('APP', 'USR', NULL, 'YES', 170)", ["APP.USR was truncated, about 170"]),
        ("all_tab_modifications VALUES ('APP', 'USR', NULL, 'YES', 99)", []),  # before there was a trigger
        ("all_tab_modifications VALUES ('APP', 'USR', NULL, 'NO', 170)", []),
        ("all_tab_modifications VALUES ('APP', 'THEIRS', NULL, 'YES', 170)", []),
        ("all_objects VALUES ('APP', 'USR', 'P1', 'TABLE PARTITION', 50, 180)", ["Partitions of APP.USR were"]),
        ("all_objects VALUES ('APP', 'USR', 'P1', 'TABLE SUBPARTITION', 150, 180)", ["Partitions of APP.USR were"]),
        ("all_objects VALUES ('APP', 'USR', 'P1', 'TABLE PARTITION', 180, 180)", []),  # one that was added
        ("all_objects VALUES ('APP', 'USR', 'P1', 'TABLE PARTITION', 50, 90)", []),
        ("all_objects VALUES ('APP', 'USR', 'P1', 'TABLE PARTITION', 50, 169)", []),  # more than 30 days ago
        ("all_objects VALUES ('APP', 'USR', NULL, 'TABLE', 50, 180)", []),  # any column that was added
        ("all_objects VALUES ('APP', 'USR', 'P1', 'INDEX PARTITION', 50, 180)", []),
        ("all_objects VALUES ('APP', 'THEIRS', 'P1', 'TABLE PARTITION', 50, 180)", []),
    ],
)
def test_changes_that_fired_no_trigger_are_seen_as_far_as_the_catalog_tells(what: str, found: list[str]) -> None:
    """Days are numbers."""
    rows = answer(f"{UNSEEN}; INSERT INTO {what}", "unseen_states", {})
    assert len(rows) == len(found)
    assert [said for _, said, _ in rows if not said.startswith(tuple(found))] == []
    assert {severity for severity, _, _ in rows} <= {"warning"}
