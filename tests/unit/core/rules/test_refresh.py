"""Rows that a full load wrote: what the rules, change tables and messages make of them."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from fastavro import schemaless_reader

from eventlog.core.errors import ExpressionError
from eventlog.core.model import REFRESH, Change, Document, Event, Kind, Op, Reason, Row, RowId
from eventlog.core.rules import Options, decide
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import Format, encode
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.rows import RowsDocument
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.change_tables.tables import ChangeTable
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.render import TableRenderer
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.qlik.messages.write import MessageFormat, WrittenMessage
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


def test_for_identity_manager_it_is_a_modify_with_all_attributes() -> None:
    document = published(XdsFormat(), change(load(7)))
    assert b'<remove-all-values/><add-value><value type="string">Jack</value></add-value>' in document.body


@pytest.mark.parametrize(
    "table, told, cells",
    [
        (USR, load(7), (1, "Jack")),
        (LINK, load(7, "link", "a=1+b=x"), (1, "x")),
    ],
)
def test_a_change_table_gets_an_insert(table: Table, told: Event, cells: tuple[Any, ...]) -> None:
    [row] = ChangeTable(table, ChangeTableSettings(headers=("change_oper",))).rows(change(told))
    assert row == ("I", *cells)


def test_among_many_changes_each_says_what_it_is() -> None:
    field = change(event(9, Kind.UPDATE_FIELD, column="fname", old="Jack", new="Joe"))
    form = ChangeTableFormat(settings=ChangeTableSettings(headers=("change_oper",), before_image=False))
    document = published(form, *[change(load(7)), field, change(load(10))] * 3)
    assert isinstance(document, RowsDocument)
    assert [row[0] for block in document.blocks for row in block.rows] == ["I", "U", "I"] * 3


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
    assert {told["headers"][name] for name in ("changeSequence", "timestamp", "streamPosition", "transactionId")} == {
        ""
    }
    assert loaded.key == changed.key
    assert document.id == json.loads(changed.value or b"")["headers"]["changeSequence"]
    assert document.id.endswith("2")  # the row of the full load has a number in the order of documents


@pytest.mark.parametrize("encoding", ["json", "avro"])
@pytest.mark.parametrize("mode", ["bare", "envelope"])
def test_what_is_numbered_later_is_left_alone(encoding: Any, mode: Any) -> None:
    settings = MessageSettings(mode=mode, encoding=encoding)
    [written] = MessageFormat(settings=settings).writer(CATALOG)([change(load(7))])
    assert isinstance(written, WrittenMessage)
    assert written.tail is None
    expected = published(MessageFormat(settings=settings, body=False), change(load(7)))
    assert isinstance(expected, MessagesDocument)
    assert written.head == expected.messages[0].value


def test_avro_can_be_read_to_its_end() -> None:
    from io import BytesIO

    shape = shape_of(USR, MessageSettings(mode="bare", encoding="avro"))
    pieces = TableRenderer(shape).pieces(change(load(7)))
    assert pieces is not None
    content = BytesIO(pieces[1])
    told: Any = schemaless_reader(content, json.loads(shape.data_text), None)
    assert told["headers"]["operation"] == "REFRESH"
    assert content.read() == b""


def test_half_a_character_in_the_key_is_refused() -> None:
    half = Change(row=RowId(None, "link", "a=1+b=\ud800"), op=Op.ADD, positions=((7,),), refresh=True)
    with pytest.raises(ExpressionError, match="half a character"):
        TableRenderer(shape_of(LINK, MessageSettings(mode="bare"))).pieces(half)
