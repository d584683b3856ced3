"""What `check` finds of changes that fired no trigger on Oracle, in tables that have what its catalog would have."""

from __future__ import annotations

import sqlite3

import pytest

from eventlog.sql.dialect import statement
from eventlog.sql.oracle.dialect import ORACLE

UNSEEN = """
CREATE TABLE all_triggers (owner, trigger_name, table_owner, table_name);
CREATE TABLE all_source (owner, name, type, text);
CREATE TABLE all_objects (owner, object_name, subobject_name, object_type, created, last_ddl_time);
CREATE TABLE all_tab_modifications (table_owner, table_name, partition_name, truncated, timestamp);
INSERT INTO all_triggers VALUES ('APP', 'USR_EL', 'APP', 'USR'), ('APP', 'GRP_EL', 'APP', 'GRP'), ('APP', 'AUDIT', 'APP', 'THEIRS');
INSERT INTO all_source VALUES ('APP', 'USR_EL', 'TRIGGER', '/* eventlog {"a": 1} */'),
  ('APP', 'GRP_EL', 'TRIGGER', '/* eventlog {"a": 1} */'), ('APP', 'AUDIT', 'TRIGGER', 'BEGIN');
INSERT INTO all_objects VALUES ('APP', 'USR_EL', NULL, 'TRIGGER', 100, 100), ('APP', 'GRP_EL', NULL, 'TRIGGER', 100, 100),
  ('APP', 'AUDIT', NULL, 'TRIGGER', 1, 1);
"""


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
    catalog = sqlite3.connect(":memory:")
    catalog.create_function("TO_CHAR", 2, lambda moment, _form: str(moment))
    catalog.executescript(UNSEEN)
    catalog.execute(f"INSERT INTO {what}")
    rows = catalog.execute(statement(ORACLE, "unseen_states").replace("SYSDATE", "200")).fetchall()
    catalog.close()
    assert len(rows) == len(found)
    assert [said for _, said, _ in rows if not said.startswith(tuple(found))] == []
    assert {severity for severity, _, _ in rows} <= {"warning"}
