"""New objects that are read back: a modify in XDS, an INSERT in change tables and messages."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core.model import Change, Event, Op, Row, RowId
from eventlog.core.rules import Options, decide
from eventlog.core.seams import encode
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.xds.write import XdsFormat
from tests.support.strategies import CATALOG, PHONE

USR1 = RowId(None, "usr", "idu=1")
FOUND: Row = {"fname": "Jack", "lname": None, PHONE: ("1", "2")}
COALESCE = Options(coalesce=True)


def log(*rows: tuple[Any, ...]) -> list[Event]:
    return [
        Event(
            position=(number,), kind=kind, table="usr", key="idu=1", time="2026-01-01", column=column, new="x", old="y"
        )
        for number, (kind, column) in enumerate(rows, 1)
    ]


def told(*rows: tuple[Any, ...], options: Options | None = None) -> list[Change]:
    return decide(log(*rows), {USR1: FOUND}, catalog=CATALOG, options=options).changes


@pytest.mark.parametrize("options", [Options(), COALESCE])
@pytest.mark.parametrize(
    "rows",
    [
        ((5, None),),
        ((5, None), (6, None)),
        ((1, "fname"), (6, None)),
        ((7, "fname"), (7, "lname")),
        ((7, "fname"), (8, "lname")),
        ((1, "fname"), (8, "fname")),
        ((8, PHONE), (5, None)),
        ((4, None), (5, None), (2, "fname")),
    ],
)
def test_the_first_change_of_a_new_object_creates_it(rows: tuple[Any, ...], options: Options) -> None:
    changes = [one for one in told(*rows, options=options) if one.op is not Op.DELETE]
    assert [(one.op, one.created) for one in changes] == [(Op.MODIFY, True)]


@pytest.mark.parametrize("options", [Options(), COALESCE])
@pytest.mark.parametrize(
    "rows",
    [
        ((6, None),),
        ((8, "fname"),),
        ((1, PHONE), (6, None)),
        ((7, PHONE),),
        ((2, "fname"),),
        ((5, None), (4, None), (6, None)),
        ((5, None), (2, "fname"), (4, None)),
    ],
)
def test_what_was_there_before_or_is_gone_again_is_not_created(rows: tuple[Any, ...], options: Options) -> None:
    assert not any(one.created for one in told(*rows, options=options))


def test_only_the_first_change_creates() -> None:
    changes = told((7, "fname"), (8, "fname"))
    assert [one.created for one in changes] == [True, False]


def test_an_object_whose_row_is_gone_is_not_created() -> None:
    changes = decide(log((5, None), (2, "fname")), {}, catalog=CATALOG).changes
    assert [(one.op, one.created) for one in changes] == [(Op.MODIFY, False)]


def test_change_tables_and_messages_say_insert_and_xds_stays_a_modify() -> None:
    [change] = told((5, None))
    assert XdsFormat().fragment(change, CATALOG) == XdsFormat().fragment(replace(change, created=False), CATALOG)
    [rows] = encode(ChangeTableFormat(settings=ChangeTableSettings()), [change], CATALOG, "")
    [row] = [row for block in rows.blocks for row in block.rows]  # type: ignore[union-attr]  # change tables give blocks
    assert (row[1], row[4]) == ("I", "INSERT")
    [document] = encode(MessageFormat(settings=MessageSettings(mode="bare")), [change], CATALOG, "")
    assert isinstance(document, MessagesDocument)
    said = json.loads(document.messages[0].value or b"")
    assert (said["headers"]["operation"], said["beforeData"]) == ("INSERT", None)
    assert said["headers"]["changeMask"] == said["headers"]["columnMask"]


def test_among_many_changes_each_says_what_it_is() -> None:
    [change] = told((5, None))
    changes = [replace(change, created=place % 2 == 0, positions=((place + 1,),)) for place in range(20)]
    [rows] = encode(ChangeTableFormat(settings=ChangeTableSettings()), changes, CATALOG, "")
    found = [row[1] for block in rows.blocks for row in block.rows]  # type: ignore[union-attr]  # as above
    assert found == ["I", "U"] * 10
