"""The triggers of a few classes as plain files, for each database: what a change of the program does to them is read there.

That they log what they should, servers say (tests/conformance), and SQLite does so everywhere. These files have the clauses
of databases that may not be here. `EVENTLOG_GOLDEN=write` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from eventlog.capture.install import install_sql, uninstall_sql
from eventlog.capture.log_tables import UNSAID, Storage
from eventlog.capture.plan import plan
from eventlog.capture.render import render
from eventlog.core.schema import WHOLE_ROW, Child, Column, Made, Table
from eventlog.databases.mysql.dialect import MYSQL
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.sql.dialect import Dialect
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions

FOLDER = Path(__file__).resolve().parents[2] / "golden" / "triggers"
SCRIPTS = FOLDER.parent / "scripts"
PHONE = Child(
    name="usr_phone",
    parent_key=("idu",),
    columns=(Column(name="idu", type="integer"), Column(name="phoneno"), Column(name="kind", type="integer")),
)
USR = Table(
    name="usr",
    columns=(
        Column(name="idu", type="integer", key=1, nullable=False),
        Column(name="fname", type="varchar(64)"),
        Column(name="photo", type="blob"),
        Column(name="seen", type="timestamp"),
    ),
    children=(PHONE,),
)
ROOM = Table(
    name="room",
    columns=(
        Column(name="house", type="varchar(9)", key=1, nullable=False),
        Column(name="nr", type="numeric(4,1)", key=2, nullable=False, made=Made.DOMAIN),
        Column(name="open", type="boolean"),
        Column(name="colour", type="colour", made=Made.TYPE),
    ),
)
VIEW = Table(name="people", view=True, columns=(Column(name="pk_id"), Column(name="sv_name"), Column(name="mv_mail")))
CLASSES: dict[str, tuple[Table, TriggerOptions]] = {
    "row-back": (USR, TriggerOptions()),
    "field": (USR, TriggerOptions(style=Style.FIELD, when="fname = 'Ann'", deferred=True)),
    "field-replace": (
        USR,
        TriggerOptions(style=Style.FIELD_REPLACE, columns=("fname", "usr_phone.phoneno"), rows=True),
    ),
    "field-back": (ROOM, TriggerOptions(style=Style.FIELD_BACK)),
    "image": (USR, TriggerOptions(style=Style.IMAGE, exclude=("photo",), repeated=("usr_phone.phoneno",))),
    "image-rows": (ROOM, TriggerOptions(style=Style.IMAGE, rows=True)),
    "view": (VIEW, TriggerOptions(style=Style.FIELD)),
}
LABELLED = replace(ROOM, columns=(*ROOM.columns, Column(name="label", type="varchar(20)", formula="house || '-'")))
NOTE = Table(
    name="note",
    columns=(
        Column(name=WHOLE_ROW, type="varchar(64)", key=1),
        *(Column(name=name, type=kind) for name, kind in (("b", "varchar(9)"), ("a", "integer"), ("photo", "blob"))),
    ),
)
WITHOUT_KEY = {"whole-row": (NOTE, TriggerOptions(style=Style.IMAGE, key=(WHOLE_ROW,)))}
OWN = {
    "computed": (LABELLED, TriggerOptions(style=Style.FIELD, when="label <> 'x'")),
    "foreign": (USR, TriggerOptions(style=Style.FIELD, foreign=True, always=True)),
    "foreign-rows": (USR, TriggerOptions(style=Style.IMAGE, foreign=True, rows=True, when="fname = 'Ann'")),
}
"""What PostgreSQL alone has."""
SOME = {name: CLASSES[name] for name in ("field", "field-back", "image")}
AT_ONCE = {"row-back-at-once": (USR, TriggerOptions(at_once=True)), "view": CLASSES["view"]}
"""What Oracle writes row by row, without a compound trigger."""
CASES = [
    (dialect, name, *one)
    for dialect, classes in (
        (POSTGRESQL, CLASSES | OWN | WITHOUT_KEY),
        (MYSQL, SOME | WITHOUT_KEY),
        (ORACLE, SOME | AT_ONCE),
    )
    for name, one in classes.items()
]


@pytest.mark.parametrize("dialect, name, table, options", CASES, ids=[f"{one[0].name}-{one[1]}" for one in CASES])
def test_triggers_are_those_of_their_golden_file(
    dialect: Dialect, name: str, table: Table, options: TriggerOptions
) -> None:
    found = render(plan(table, options), dialect, LogNames(schema="own", transaction="eventlog_transaction"))
    text = "\n".join(f"-- {one.name} on {one.table}\n" + "\n".join(one.create) + "\n" for one in found)
    file = FOLDER / f"{dialect.name}-{name}.sql"
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("what", ["install", "install-stored", "uninstall"])
def test_scripts_for_oracle_are_those_of_their_golden_file(what: str) -> None:
    names = LogNames(table="INDIRECT_PROCESS", schema="INDIRECT", sequence="SEQ_LOG")
    storage = Storage(tablespace="log_data", partition_rows=1_000_000) if what == "install-stored" else UNSAID
    text = (
        uninstall_sql("oracle://", names) if what == "uninstall" else install_sql("oracle://", names, storage=storage)
    )
    file = SCRIPTS / f"oracle-{what}.sql"
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
