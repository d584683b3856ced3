"""What Oracle cannot hold fails no writer, reads nothing without a limit, and needs no quotes; nothing is asked of a server."""

from __future__ import annotations

import re

import oracledb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.capture.plan import plan
from eventlog.capture.render import Trigger, render
from eventlog.core.errors import SourceError
from eventlog.core.model import RowId, Unreadable
from eventlog.core.schema import Catalog, Table
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.sql.access import in_words
from eventlog.sql.names import LogNames
from eventlog.sql.rows import Room, SqlRowReader
from eventlog.tracked.options import Style, TriggerOptions
from tests.oracle.generated import AWKWARD, TABLES, columns
from tests.oracle.recorder import Recorder

LONG_ONES = Table(
    name="DOC",
    columns=columns(
        "ID:NUMBER(10,0)", "BODY:VARCHAR2(32767)", "SHORT:VARCHAR2(4000)", "SCAN:RAW(32767)", "SIGN:RAW(2000)", keys=1
    ),
)


def body(table: Table, style: Style) -> str:
    [trigger] = render(plan(table, TriggerOptions(style=style)), ORACLE, LogNames())
    return next(text for text in trigger.create if text.startswith("CREATE OR REPLACE PACKAGE BODY"))


@pytest.mark.parametrize("style", Style)
def test_a_raw_whose_base64_is_too_long_is_read_back(style: Style) -> None:
    made = body(LONG_ONES, style)
    assert "BASE64_ENCODE(new_4)" not in made
    assert ("BASE64_ENCODE(new_5)" in made) == (style in (Style.FIELD, Style.FIELD_REPLACE, Style.IMAGE))


def test_the_longest_raw_of_a_trigger_has_a_base64_that_pl_sql_holds() -> None:
    digits = 4 * -(-ORACLE.ddl.unseen_lengths["raw"] // 3)
    assert digits + 2 * (digits // 64) <= 32_767


def test_a_text_that_may_be_long_is_escaped_as_a_lob_in_an_image() -> None:
    made = body(LONG_ONES, Style.IMAGE)
    assert r"REPLACE(REPLACE(TO_CLOB(new_2), '\', '\\')" in made
    assert r"REPLACE(REPLACE(new_3, '\', '\\')" in made


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
@pytest.mark.parametrize("style", [Style.FIELD, Style.ROW_BACK])
def test_no_key_is_assigned_where_its_length_would_fail_the_writer(table: Table, style: Style) -> None:
    for trigger in render(plan(table, TriggerOptions(style=style)), ORACLE, LogNames()):
        made = "".join(trigger.create)
        for side in ("old_key", "new_key"):
            assert re.search(rf"BEGIN\n  {side} := (?:(?!:=).)*?;\nEXCEPTION\n  WHEN VALUE_ERROR THEN", made, re.DOTALL)
            assert f"{side} IS NULL OR LENGTHB({side}) > 4000" in made


def names_of(triggers: list[Trigger]) -> set[str]:
    return {name for trigger in triggers for name in (trigger.name, trigger.function.rpartition(".")[2])}


def test_names_that_we_make_are_in_capitals_and_need_no_quotes() -> None:
    made = names_of(render(plan(AWKWARD, TriggerOptions()), ORACLE, LogNames()))
    # Without quotes small letters are capitals.
    assert {name for name in made if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,29}|[a-z][a-z0-9_]{0,29}", name)} == set()


@given(st.lists(st.text(min_size=1, max_size=40), min_size=2, max_size=2, unique=True))
def test_two_names_stay_two(names: list[str]) -> None:
    one, other = (ORACLE.shorten_name(f"event_log_{name}") for name in names)
    assert one != other
    assert max(len(name.encode()) for name in (one, other)) <= ORACLE.identifier_bytes
    assert all(ORACLE.quote(name) == name for name in (one, other) if not name.isupper())


def test_a_usual_name_is_what_it_was() -> None:
    assert ORACLE.shorten_name("event_log_usr_change") == "event_log_usr_change"
    assert ORACLE.shorten_name("EVENT_LOG_USR_CHANGE") == "EVENT_LOG_USR_CHANGE"


@pytest.mark.parametrize("sql_type, value", [("LONG", "x" * 2001), ("LONG RAW", b"x" * 2001)])
def test_a_long_beyond_the_limit_of_a_row_is_not_published(sql_type: str, value: str | bytes) -> None:
    table = Table(name="DOC", columns=columns("ID:NUMBER(10,0)", f"BODY:{sql_type}", "NAME:CLOB", keys=1))
    oracle = Recorder(lambda statement: [(0, value, "a", None)] if "JSON_TABLE" in statement else [])
    wanted = {RowId(None, "DOC", "ID=1"): frozenset({"BODY", "NAME"})}
    for limit, refused in ((2000, True), (3000, False)):
        reader = SqlRowReader(oracle.engine, Catalog([table]), Room(share=1000, value_limit=limit))
        [found] = dict(reader.rows(wanted)).values()
        note = found.note if isinstance(found, Unreadable) else ""
        assert bool(note) is refused
        assert ("2001 bytes" in note) is refused


class Code(str):
    __slots__ = ("code",)
    code: int


def test_a_tablespace_without_assm_is_told_what_it_lacks() -> None:
    from sqlalchemy.exc import DatabaseError

    said = Code("ORA-43853: SECUREFILE lobs cannot be used in non-ASSM tablespace")
    said.code = 43853
    told = in_words(DatabaseError("CREATE TABLE", None, oracledb.DatabaseError(said)), "The log cannot be made")
    assert isinstance(told, SourceError)
    assert "ASSM" in str(told.hint)
    assert not told.may_pass
