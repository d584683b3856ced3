"""Rows that a full load wrote: what the rules, change tables and messages make of them."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from eventlog.core.errors import ExpressionError
from eventlog.core.model import REFRESH, Change, Document, Event, Kind, Op, Reason, Row, RowId
from eventlog.core.rules import Options, decide
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Format, encode
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.change_tables.tables import ChangeTable
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.render import TableRenderer
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.qlik.messages.write import MessageFormat
from eventlog.xds.validate import validate
from eventlog.xds.write import XdsFormat

USR = Table(name="usr", columns=(Column(name="idu", type="integer", key=1), Column(name="fname", type="varchar(20)")))
LINK = Table(name="link", columns=(Column(name="a", type="integer", key=1), Column(name="b", type="varchar", key=2)))
CATALOG = Catalog([USR, LINK])
ROWS: dict[RowId, Row] = {
    RowId(None, "usr", "idu=1"): {"fname": "Jack"},
    RowId(None, "link", "a=1+b=x"): {},
}
TIME = dt.datetime(2026, 1, 2, 3, 4, 5)


def event(number: int, kind: Kind, table: str = "usr", key: str = "idu=1", **others: Any) -> Event:
    return Event(position=(number,), kind=kind, table=table, key=key, time=TIME, **others)


def load(number: int, table: str = "usr", key: str = "idu=1", by: str = REFRESH) -> Event:
    return event(number, Kind.INSERT_ROW_BACK, table, key, perpetrator=by)


def change(*events: Event, **options: Any) -> Change:
    decision = decide(events, ROWS, catalog=CATALOG, options=Options(**options))
    [told] = decision.changes
    return told


def published(form: Format, *changes: Change) -> Document:
    [document] = encode(form, changes, CATALOG, "")
    assert isinstance(document, Document)
    return document


@pytest.mark.parametrize("by", [REFRESH, f"{REFRESH}    "])
@pytest.mark.parametrize("options", [{}, {"coalesce": True}, {"user": "idm"}])
def test_a_row_of_a_full_load_is_told_whole_and_says_that_nothing_happened(by: str, options: dict[str, Any]) -> None:
    told = change(load(7, by=by), **options)
    assert (told.op, told.refresh, told.positions, told.time) == (Op.MODIFY, True, ((7,),), TIME)
    assert [(edit.column, edit.new, edit.reset) for edit in told.edits] == [("fname", "Jack", True)]


@pytest.mark.parametrize("by", [f"{REFRESH}\t", f"{REFRESH}X", f" {REFRESH}"])
def test_who_is_named_almost_like_a_full_load_is_somebody_else(by: str) -> None:
    assert not change(load(7, by=by)).refresh


def test_fields_that_changed_meanwhile_stand_in_the_row_and_a_later_read_back_is_a_change() -> None:
    field = event(8, Kind.UPDATE_FIELD, column="fname", old="Jim", new="Jack")
    assert change(load(7), field).refresh
    assert not change(load(7), event(8, Kind.UPDATE_ROW_BACK, perpetrator="idm")).refresh


def test_a_row_that_is_gone_or_comes_again_is_not_told_twice() -> None:
    decision = decide([load(7), event(8, Kind.DELETE_ROW), load(9)], ROWS, catalog=CATALOG)
    assert [(one.op, one.refresh) for one in decision.changes] == [(Op.DELETE, False), (Op.MODIFY, True)]
    assert decision.outcomes[0].reason is Reason.VANISHED
    assert decide([load(7, key="idu=2")], ROWS, catalog=CATALOG).changes == []


def test_a_table_that_is_all_key_tells_that_a_row_is_there() -> None:
    told = change(load(7, "link", "a=1+b=x"))
    assert (told.op, told.edits, told.refresh) == (Op.ADD, (), True)
    document = published(XdsFormat(), told)
    assert b'<add class-name="link"' in document.body
    assert validate(document.body) == []
    inserted = change(load(7, "link", "a=1+b=x", by="idm"))
    assert (inserted.op, inserted.edits, inserted.refresh) == (Op.ADD, (), False)


@pytest.mark.parametrize("name, key, cells", [("usr", "idu=1", (1, "Jack")), ("link", "a=1+b=x", (1, "x"))])
def test_a_change_table_gets_an_insert(name: str, key: str, cells: tuple[Any, ...]) -> None:
    table = {"usr": USR, "link": LINK}[name]
    [row] = ChangeTable(table, ChangeTableSettings(headers=("change_oper",))).rows(change(load(7, name, key)))
    assert row == ("I", *cells)


@pytest.mark.parametrize("key", ["row", "table", "none"])
def test_a_message_has_neither_number_nor_time_but_the_key_of_its_changes(key: Any) -> None:
    settings = MessageSettings(mode="bare", key=key)
    field = change(event(9, Kind.UPDATE_FIELD, column="fname", old="Jack", new="Joe"))
    document = published(MessageFormat(settings=settings), change(load(7)), field)
    assert isinstance(document, MessagesDocument)
    loaded, changed = document.messages
    told = json.loads(loaded.value or b"")
    assert told["data"] == {"idu": 1, "fname": "Jack"}
    assert told["beforeData"] is None
    assert told["headers"]["operation"] == "REFRESH"
    for name in ("changeSequence", "timestamp", "streamPosition", "transactionId"):
        assert told["headers"][name] == ""
    assert loaded.key == changed.key
    assert document.id == json.loads(changed.value or b"")["headers"]["changeSequence"]
    assert document.id.endswith("2")  # the row of the full load has a number in the order of documents


def test_half_a_character_in_the_key_is_refused() -> None:
    half = Change(row=RowId(None, "link", "a=1+b=\ud800"), op=Op.ADD, positions=((7,),), refresh=True)
    with pytest.raises(ExpressionError, match="half a character"):
        TableRenderer(shape_of(LINK, MessageSettings(mode="bare"))).pieces(half)
