"""What a trigger's function becomes when its table is altered: numbers stand for every name that may change."""

from __future__ import annotations

import re
from base64 import b64decode

import msgspec
import pytest

from eventlog.capture.ddl import HERE, Bridge, watching
from eventlog.capture.plan import Numbered, Style, TriggerOptions, TriggerPlan, plan
from eventlog.capture.render import render
from eventlog.core.errors import InstallError
from eventlog.core.schema import Child, Column, Table
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.sql.names import LogNames

LOG = LogNames(schema="capture")
USR = Table(
    schema="app",
    name="usr",
    columns=(Column(name="idu", type="integer", key=1), Column(name="fname"), Column(name="salary")),
    children=(
        Child(
            name="usr_phone",
            parent_key=("held",),
            columns=(Column(name="held", type="integer"), Column(name="phoneno")),
        ),
    ),
)
NUMBERED = (
    Numbered(number=16411, keys=((1, 23),), watch="[[16411,null]]", shape="a1"),
    Numbered(number=16423, keys=((2, 23),), watch="[[16423,null],[16411,[1]]]", shape="b2"),
)
NAMES = re.compile(r"\b(usr|usr_phone|idu|fname|salary|held|phoneno)\b")


def followed(style: Style = Style.FIELD, *, rows: bool = False, foreign: bool = False) -> TriggerPlan:
    options = TriggerOptions(style=style, exclude=("salary",), rows=rows, foreign=foreign, follow_ddl=True)
    return msgspec.structs.replace(plan(USR, options), numbered=NUMBERED)


@pytest.mark.parametrize("style", list(Style))
@pytest.mark.parametrize("foreign", [False, True])
@pytest.mark.parametrize("rows", [False, True])
def test_a_bridge_names_nothing_that_may_get_another_name(style: Style, rows: bool, foreign: bool) -> None:
    triggers = render(followed(style, rows=rows, foreign=foreign), POSTGRESQL, LOG)
    for trigger in triggers:
        told = re.search(r"/\* eventlog ddl (\S+) (\S+) (\S+) \*/", trigger.source)
        assert told is not None
        bridge = msgspec.json.decode(b64decode(told[3]), type=Bridge)
        assert (told[1], told[2]) == (
            ("[[16423,null],[16411,[1]]]", "b2") if "phone" in trigger.name else ("[[16411,null]]", "a1")
        )
        assert NAMES.findall(bridge.body) == []
        assert HERE in bridge.body
        assert bridge.head.startswith(f"CREATE OR REPLACE FUNCTION capture.{trigger.name}()")
        assert (bridge.name, bridge.parent, bridge.key) == (trigger.table, 16411, [1])
        assert bridge.marker.options.exclude == ("salary",)
        assert "salary" not in bridge.marker.watched


def test_what_is_watched_is_all_of_a_table_or_some_columns_and_of_a_parent_its_key() -> None:
    assert watching(16411, None) == "[[16411,null]]"
    assert watching(16411, [2, 1]) == "[[16411,[1,2]]]"
    assert watching(16423, None, 16411, [1]) == "[[16423,null],[16411,[1]]]"


def test_a_name_that_would_end_the_text_is_refused() -> None:
    table = Table(name="usr", columns=(Column(name="idu", type="integer", key=1), Column(name="a$eventlog$; DROP")))
    with pytest.raises(InstallError, match="would end the text"):
        render(plan(table, TriggerOptions(style=Style.FIELD)), POSTGRESQL, LOG)
