"""New objects that are read back: a modify in XDS, an INSERT in change tables and messages."""

from __future__ import annotations

import json

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

FOUND: dict[RowId, Row] = {RowId(None, "usr", "idu=1"): {"fname": "Jack", "lname": None, PHONE: ("1", "2")}}


def told(rows: str, *, coalesce: bool = False, found: dict[RowId, Row] = FOUND) -> list[Change]:
    """The changes of rows, each of which is written as its type and its column: `7:fname 5`."""
    events = []
    for number, row in enumerate(rows.split(), 1):
        kind, _, column = row.partition(":")
        of_row = Event(position=(number,), kind=int(kind), table="usr", key="idu=1", time="2026-01-01")
        events.append(replace(of_row, column=column or None, new="x", old="y"))
    return decide(events, found, catalog=CATALOG, options=Options(coalesce=coalesce)).changes


@pytest.mark.parametrize("coalesce", [False, True])
@pytest.mark.parametrize(
    "rows, created",
    [
        ("5", True),
        ("5 6", True),
        ("1:fname 6", True),
        ("7:fname 7:lname", True),
        ("7:fname 8:lname", True),
        ("1:fname 8:fname", True),
        (f"8:{PHONE} 5", True),
        ("4 5 2:fname", True),
        ("6", False),
        ("8:fname", False),
        (f"1:{PHONE} 6", False),
        (f"7:{PHONE}", False),
        ("2:fname", False),
        ("5 4 6", False),
        ("5 2:fname 4", False),
    ],
)
def test_the_first_change_of_an_object_that_was_not_there_creates_it(rows: str, created: bool, coalesce: bool) -> None:
    changes = [one for one in told(rows, coalesce=coalesce) if one.op is not Op.DELETE]
    assert [one.op for one in changes if one.created] == ([Op.MODIFY] if created else [])
    assert len(changes) == 1 or not created


def test_only_the_first_change_creates_and_only_a_row_that_is_there() -> None:
    assert [one.created for one in told("7:fname 8:fname")] == [True, False]
    assert [(one.op, one.created) for one in told("5 2:fname", found={})] == [(Op.MODIFY, False)]


def test_change_tables_and_messages_say_insert_and_xds_stays_a_modify() -> None:
    [change] = told("5")
    assert XdsFormat().fragment(change, CATALOG) == XdsFormat().fragment(replace(change, created=False), CATALOG)
    changes = [replace(change, created=place % 2 == 0, positions=((place + 1,),)) for place in range(20)]
    [rows] = encode(ChangeTableFormat(settings=ChangeTableSettings()), changes, CATALOG, "")
    found = [row for block in rows.blocks for row in block.rows]  # type: ignore[union-attr]  # change tables give blocks
    assert [(row[1], row[4]) for row in found] == [("I", "INSERT"), ("U", "UPDATE")] * 10
    [document] = encode(MessageFormat(settings=MessageSettings(mode="bare")), [change], CATALOG, "")
    assert isinstance(document, MessagesDocument)
    said = json.loads(document.messages[0].value or b"")
    assert (said["headers"]["operation"], said["beforeData"]) == ("INSERT", None)
    assert said["headers"]["changeMask"] == said["headers"]["columnMask"]
