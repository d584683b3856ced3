"""Messages say of columns what their edits say, for any table and any change; and JSON, Avro and reader agree."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import ABSENT, Change, Edit, Op, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.qlik.masks import bits_of_hex
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.qlik.readings import reading
from tests.support.messages import change, messages
from tests.support.shares import met, shares

CELLS: dict[str, st.SearchStrategy[Any]] = {
    "varchar(20)": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    "integer": st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(0, 99).map(str)),
    "boolean": st.sampled_from([True, False, "t", "0"]),
    "numeric(9,2)": st.decimals(-9999, 9999, places=2),
    "double precision": st.floats(allow_nan=False, allow_infinity=False),
    "date": st.dates(),
    "blob": st.binary(max_size=4),
}
TYPES = list(CELLS)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Table, Change]:
    """A table, and a change of one of its rows."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=12))
    columns = [Column(name=f"c{place}", type=kind) for place, kind in enumerate(types)]
    table = Table(schema="s", name="t", columns=(Column(name="id", type="integer", key=1), *columns))
    op = draw(st.sampled_from([Op.ADD, Op.MODIFY, Op.DELETE]))
    edits = []
    for column in draw(st.lists(st.sampled_from(columns), unique_by=lambda column: column.name)):
        cell = st.one_of(st.none(), CELLS[column.type])
        old, new = draw(st.one_of(st.just(ABSENT), cell)), draw(st.one_of(st.just(ABSENT), cell))
        same = draw(st.booleans())
        edits.append(Edit(column=column.name, old=new if same else old, new=new, reset=draw(st.booleans())))
    number = draw(st.integers(0, 99))
    row = RowId("s", "t", f"id={number}")
    return table, Change(row=row, op=op, edits=tuple(edits), positions=((1,),), whole=draw(st.booleans()))


def bits_of(table: Table, change: Change) -> tuple[int, int, int]:
    """The columns that a change is about, that were known before it, and that are known after it; the key always is."""
    places = {column.name: place for place, column in enumerate(table.columns)}
    changed, had, has = 0, 1, 1
    for edit in change.edits:
        bit, read = 1 << places[edit.column], reading(table.columns[places[edit.column]])
        new = None if edit.new in (None, ABSENT) else read(edit.new)
        old = None if edit.old in (None, ABSENT) else read(edit.old)
        was_seen = edit.old is not ABSENT and (old is not None or not edit.reset or change.op is not Op.MODIFY)
        had |= bit * was_seen
        has |= bit * (edit.new is not ABSENT)
        changed |= bit * (edit.new is not ABSENT and (not was_seen or old != new))
    if change.op is Op.MODIFY:
        return changed, had, has
    return (has, 0, has) if change.op is Op.ADD else (1, had, 0)


@shares(told=0.5)
@given(histories())
def test_masks_and_rows_are_those_of_the_edits(history: tuple[Table, Change]) -> None:
    table, change = history
    changed, had, has = bits_of(table, change)
    found = messages([change], Catalog([table]))
    met(told=found)
    if not found:
        assert change.op is Op.MODIFY
        assert not (changed | had | has) & ~1
        return
    content = msgspec.json.decode(found[0].value or b"")
    lobs = sum(1 << place for place, column in enumerate(table.columns) if column.type == "blob")
    deleted = change.op is Op.DELETE
    assert bits_of_hex(content["headers"]["changeMask"]) == changed & ~lobs
    assert bits_of_hex(content["headers"]["columnMask"]) == (had if deleted else has)
    given = {edit.column: edit.old if deleted else edit.new for edit in change.edits}
    nothing = [name for name, value in content["data"].items() if value is None]
    assert nothing == [column.name for column in table.columns[1:] if given.get(column.name, ABSENT) in (None, ABSENT)]


@shares(told=0.5)
@given(histories(), st.booleans())
def test_avro_says_what_json_says(history: tuple[Table, Change], logical: bool) -> None:
    table, change = history
    plain = messages([change], Catalog([table]))
    packed = messages([change], Catalog([table]), encoding="avro", logical_types=logical)
    met(told=plain)
    assert [one.key for one in plain] == [one.key for one in packed]
    schema = shape_of(table, MessageSettings(encoding="avro", logical_types=logical)).data_schema
    for first, second in zip(plain, packed, strict=True):
        json = msgspec.json.decode(first.value or b"")
        avro: Any = fastavro.schemaless_reader(io.BytesIO(second.value or b""), fastavro.parse_schema(schema), None)
        assert list(json["data"]) == list(avro["data"])
        if not logical:
            shown = {
                name: value.hex().upper() if isinstance(value, bytes) else value for name, value in avro["data"].items()
            }
            assert shown == json["data"]
        assert (json["beforeData"] is None) == (avro["beforeData"] is None)
        for mask in ("changeMask", "columnMask"):
            assert int.from_bytes(avro["headers"][mask], "little") == bits_of_hex(json["headers"][mask])


def test_an_update_that_only_says_what_was_is_a_message() -> None:
    [told] = messages([change(1, Op.MODIFY, (Edit(column="customer", old="x"),))])
    assert json.loads(told.value or b"")["beforeData"]["customer"] == "x"
