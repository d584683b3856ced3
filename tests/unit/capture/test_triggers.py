"""Planning and rendering without a database: what is refused, what is remembered, and what a hash notices."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.capture.plan import TriggerPlan, plan
from eventlog.capture.render import Trigger, render
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.schema import WHOLE_ROW, Child, Column, Made, Table
from eventlog.databases.mysql.dialect import MYSQL
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.databases.sqlite.dialect import SQLITE
from eventlog.sql.dialect import Dialect, offers
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions, keep_captured_columns
from tests.support.shares import met, shares

USR = Table(
    name="usr",
    columns=(Column(name="idu", type="INTEGER", key=1), Column(name="fname"), Column(name="photo", type="BLOB")),
    children=(
        Child(
            name="usr_phone", parent_key=("idu",), columns=(Column(name="idu", type="INTEGER"), Column(name="phoneno"))
        ),
    ),
)
NAMES = LogNames()


def watched(found: TriggerPlan) -> list[str]:
    own = [one.name for one in found.watched]
    return own + [one.name for child in found.children for one in child.watched]


def test_everything_but_keys_is_watched_unless_said_otherwise() -> None:
    assert watched(plan(USR)) == ["fname", "photo", "usr_phone.phoneno"]
    assert watched(plan(USR, TriggerOptions(columns=("FNAME", "usr_phone.phoneno")))) == ["fname", "usr_phone.phoneno"]
    assert watched(plan(USR, TriggerOptions(exclude=("photo", "usr_phone.phoneno")))) == ["fname"]


def test_events_that_were_logged_before_may_name_what_is_left_out_now() -> None:
    found = keep_captured_columns(USR, TriggerOptions(exclude=("photo", "usr_phone.phoneno")))
    assert {"photo", "usr_phone.phoneno"} <= set(found.loggable)
    assert not {"photo", "usr_phone.phoneno"} & found.attribute_names


def test_options_that_leave_nothing_are_refused() -> None:
    with pytest.raises(UsageError, match="nothing of usr is watched"):
        plan(USR, TriggerOptions(exclude=("fname", "photo", "usr_phone.phoneno")))


@pytest.mark.parametrize("dialect", [SQLITE, POSTGRESQL], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "options", [TriggerOptions(columns=("usr_phone.phoneno",)), TriggerOptions(exclude=("fname", "photo"))]
)
@pytest.mark.parametrize("style", Style)
def test_where_only_child_tables_are_of_interest_a_new_parent_is_still_told(
    dialect: Dialect, options: TriggerOptions, style: Style
) -> None:
    found = plan(USR, replace(options, style=style))
    assert watched(found) == ["idu", "usr_phone.phoneno"]
    texts = [text for rows in (False, True) for trigger in _rendered(found, dialect, rows) for text in trigger.create]
    assert not [text for text in texts if "()" in re.sub(r"\w\(\)", "", text)], "a condition of nothing is no SQL"


def text_of(trigger: Trigger) -> str:
    return "\n".join(trigger.create)


def _rendered(found: TriggerPlan, dialect: Dialect, rows: bool) -> list[Trigger]:
    return list(render(replace(found, options=replace(found.options, rows=rows)), dialect, NAMES))


@pytest.mark.parametrize("name", ["a=b", "a+b", 'a"b', " a", "a ", "a,b", "a\\b"])
def test_a_key_column_that_a_table_key_cannot_carry_is_refused(name: str) -> None:
    with pytest.raises(InstallError, match="cannot carry"):
        plan(Table(name="t", columns=(Column(name=name, key=1),)))


@shares(rows=0.2, conditional=0.2)
@given(name=st.text("abcxyz", min_size=1, max_size=70), rows=st.booleans(), conditional=st.booleans())
def test_of_a_foreign_table_what_reads_has_no_rights_of_ours_and_fires_before_what_writes(
    name: str, rows: bool, conditional: bool
) -> None:
    met(rows=rows, conditional=conditional)
    options = TriggerOptions(style=Style.FIELD, rows=rows, foreign=True, when="fname = 'Ann'" if conditional else None)
    found = render(plan(replace(USR, name=name), options), POSTGRESQL, LogNames(schema="own"))
    parts = dict.fromkeys("SECURITY INVOKER" in text_of(one) for one in found if "eventlog.facts" in text_of(one))
    assert set(parts) == {True, False}
    assert len({one.name for one in found}) == len(found)
    for reading, writing in pairwise(found):
        if "SECURITY INVOKER" in text_of(reading):
            assert reading.name.encode() < writing.name.encode()
            assert "SECURITY DEFINER" in text_of(writing)
            assert reading.table == writing.table
            assert "own.event_log" not in text_of(reading).partition("AS $eventlog$")[2].partition("$eventlog$")[0]
    for one in found:  # whoever has our rights looks at the types, or at nothing but what was handed over
        if "SECURITY DEFINER" in text_of(one):
            assert "pg_typeof" in text_of(one) or "eventlog.facts" in text_of(one)


def test_a_value_of_a_made_type_is_turned_into_text_by_no_cast() -> None:
    made = Table(
        name="usr",
        columns=(
            Column(name="idu", type="date", key=1, made=Made.TYPE),
            Column(name="code", type="INTEGER", made=Made.DOMAIN),
            Column(name="photo", type="bytea", made=Made.TYPE),
        ),
    )
    for trigger in render(plan(made, TriggerOptions(style=Style.FIELD)), POSTGRESQL, NAMES):
        spoken = re.sub(r"concat\([on]\.\w+\)|[on]\.\w+ IS DISTINCT FROM NULL", "", text_of(trigger))
        assert not re.search(r"\b[on]\.(idu|code|photo)\b", spoken)


def test_a_hash_notices_what_changes_a_trigger_and_nothing_else() -> None:
    def hashes(table: Table, options: TriggerOptions) -> dict[str, str]:
        return {trigger.name: trigger.hash for trigger in render(plan(table, options), SQLITE, NAMES)}

    field = TriggerOptions(style=Style.FIELD)
    more = Table(name="usr", columns=(*USR.columns, Column(name="mail")), children=USR.children)
    differing = {name for name, digest in hashes(USR, field).items() if hashes(more, field)[name] != digest}
    assert differing == {"event_log_usr_insert", "event_log_usr_update"}
    assert hashes(USR, TriggerOptions(style=Style.FIELD, exclude=("nothing",)[:0])) == hashes(USR, field)


def test_a_trigger_of_a_table_and_one_of_a_child_never_share_a_name() -> None:
    child = Table(name="usr_phone", columns=(Column(name="id", key=1), Column(name="x")))
    names = [trigger.name for table in (USR, child) for trigger in render(plan(table), SQLITE, NAMES)]
    assert len(set(names)) == len(names)


def test_the_text_of_a_row_without_a_key_is_of_what_is_captured_in_the_order_of_names() -> None:
    columns = [Column(name=name) for name in ("z", "secret", "a")]
    label = Column(name="label", formula="z || a")
    note = Table(name="note", columns=(Column(name=WHOLE_ROW, type="varchar(64)", key=1), *columns, label))
    options = TriggerOptions(style=Style.IMAGE, key=(WHOLE_ROW,), exclude=("secret",), foreign=True)
    for dialect in (POSTGRESQL, SQLITE, MYSQL):
        texts = ["\n".join(one.create) for one in render(plan(note, options), dialect, NAMES)]
        speaking = [text for text in texts if ',"a":' in text]
        assert len(speaking) >= 3
        for text in speaking:
            places = [text.index(f',"{name}":') for name in ("a", "label", "z")]
            assert places == sorted(places)
            assert not re.search(rf"(NEW|OLD|o|n)\.{WHOLE_ROW}", text)
            assert '"secret":' not in text
    assert not offers(ORACLE, "whole_row")
