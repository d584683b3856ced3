"""Debezium's envelopes in Avro: readers that are not ours find in them what those in JSON say."""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import ABSENT, Change, Edit, Op, Refusal, RowId, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import Message, MessagesDocument
from eventlog.version import VERSION
from tests.support.connect import read_as
from tests.support.events import SHOP, event_format, shop_changes
from tests.support.messages import read_by_both
from tests.support.shares import met, shares

GOLDEN = Path(__file__).parents[3] / "golden" / "events" / "debezium-avro.json"


def messages(changes: list[Change], catalog: Catalog, **settings: Any) -> list[Message]:
    form = event_format("debezium", topics=True, server="srv", **settings)
    made = [one for one in encode(form, changes, catalog) if isinstance(one, MessagesDocument)]
    return [message for document in made for message in document.messages]


def agree(changes: list[Change], catalog: Catalog, **settings: Any) -> int:
    """How many messages there are in both encodings, each of which says the same in both."""
    in_json = messages(changes, catalog, schemas=True, **settings)
    return alike(in_json, messages(changes, catalog, encoding="avro", **settings))


def alike(in_json: Sequence[Message], in_avro: Sequence[Message]) -> int:
    """How many there are; each is read as the one in JSON says."""
    for one, other in zip(in_json, in_avro, strict=True):
        assert (one.topic, one.positions) == (other.topic, other.positions)
        for told, content, schema, side in (
            (one.key, other.key, other.key_schema, "key"),
            (one.value, other.value, other.value_schema, "value"),
        ):
            if told is None:
                assert content is None
                assert schema is None
                continue
            assert schema is not None
            assert schema.subject == f"{other.topic}-{side}"
            said = json.loads(told)
            expected = read_as(said["schema"], said["payload"])
            assert read_by_both(schema.text, content or b"") == expected
    return len(in_avro)


def test_every_type_of_column_is_read_as_the_envelope_in_json_says() -> None:
    assert agree(shop_changes(), SHOP) == len(shop_changes()) + 1


def test_schemas_and_messages_are_as_they_were_read_and_agreed_on() -> None:
    """`EVENTLOG_GOLDEN=write` writes the file anew, to be read before it is committed."""
    made = messages(shop_changes(), SHOP, encoding="avro")
    key, value = made[0].key_schema, made[0].value_schema
    assert key is not None
    assert value is not None
    contents = [{"key": _hex(one.key), "value": _hex(one.value)} for one in made]
    schemas = {"key": json.loads(key.text), "value": json.loads(value.text)}
    told = json.dumps({**schemas, "messages": contents}, indent=1) + "\n"
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        GOLDEN.write_text(told)
    assert told == GOLDEN.read_text()


def _hex(content: bytes | None) -> str | None:
    """Bytes as hex digits, without the version and its length."""
    version = bytes([len(VERSION) * 2]) + VERSION.encode()
    return None if content is None else content.replace(version, b"\x0eVERSION").hex()


def _whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


CELLS: dict[str, st.SearchStrategy[Any]] = {
    "varchar(20)": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    "smallint": _whole(16),
    "integer": _whole(32),
    "bigint": _whole(64),
    "bigint unsigned": st.integers(0, (1 << 64) - 1),
    "boolean": st.booleans(),
    "numeric(9,2)": st.decimals(-9999999, 9999999, places=2),
    "numeric(38,0)": st.integers(-(10**38) + 1, 10**38 - 1),
    "numeric": st.decimals(
        allow_nan=False,
        allow_infinity=False,
        min_value=-(10**60),
        max_value=10**60,
    ),
    "real": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double precision": st.floats(allow_nan=False, allow_infinity=False),
    "date": st.dates(),
    "time": st.times(),
    "timestamp": st.datetimes(),
    "timestamp(3)": st.datetimes(),
    "timestamp with time zone": st.datetimes(timezones=st.just(dt.UTC)),
    "json": st.just('{"a":1}'),
    "uuid": st.uuids().map(str),
    "blob": st.binary(max_size=300),
}
"""The columns of any table, by type, and what they hold."""


@st.composite
def histories(draw: st.DrawFn) -> tuple[Table, Change]:
    """A table, and a change of one of its rows."""
    types = draw(st.lists(st.sampled_from(list(CELLS)), min_size=1, max_size=12))
    columns = [Column(name=f"c-{place}", type=kind) for place, kind in enumerate(types)]
    key = draw(st.sampled_from([1, None]))
    first = Column(name="id", type="integer", key=key)
    table = Table(schema="s", name="t-1", columns=(first, *columns))
    edits = []
    for column in draw(st.lists(st.sampled_from(columns), unique_by=lambda one: one.name)):
        cell = st.one_of(st.none(), CELLS[column.type])
        old, new = draw(st.one_of(st.just(ABSENT), cell)), draw(cell)
        edits.append(Edit(column=column.name, old=old, new=new))
    op = draw(st.sampled_from([Op.ADD, Op.MODIFY, Op.DELETE]))
    if op is Op.DELETE:
        edits = [Edit(column=one.column, old=one.new, new=ABSENT) for one in edits]
    row = RowId("s", "t-1", f"id={draw(st.integers(0, 99))}" if key else "")
    found = st.builds(Transaction, id=_whole(64), time=st.datetimes())
    return table, Change(
        row=row,
        op=op,
        edits=tuple(edits),
        positions=((draw(_whole(63)),),),
        whole=draw(st.booleans()),
        refresh=op is Op.ADD and draw(st.booleans()),
        transaction=draw(st.none() | found),
        time=draw(st.none() | st.datetimes()),
    )


@shares(read=0.8)
@given(histories(), st.sampled_from(["precise", "string", "double"]))
def test_any_change_of_any_table_is_read_as_the_envelope_in_json_says(
    history: tuple[Table, Change], decimals: str
) -> None:
    table, change = history
    read = agree([change], Catalog([table]), decimal_handling_mode=decimals)
    met(read=read)
    assert read <= 2


@pytest.mark.parametrize(
    "kind, value, why",
    [
        ("smallint", 40000, "outside -32768 to 32767"),
        ("integer", 1 << 31, "outside"),
        ("bigint", 1 << 63, "outside"),
        ("real", 1e300, "too large for a float"),
        ("numeric(3,1)", 100, "more than 3 digits"),
        ("numeric(3,1)", "1.25", "more than 1 digits behind the point"),
    ],
)
def test_a_value_that_avro_cannot_hold_is_left_out_and_said(
    kind: str,
    value: Any,
    why: str,
) -> None:
    columns = (
        Column(name="id", type="integer", key=1),
        Column(name="v", type=kind),
        Column(name="w"),
    )
    edits = (Edit(column="v", new=value), Edit(column="w", new="a"))
    change = Change(row=RowId(None, "t", "id=1"), op=Op.ADD, edits=edits, positions=((1,),))
    form = event_format("debezium", topics=True, encoding="avro")
    refusal, made = encode(form, [change], Catalog([Table(name="t", columns=columns)]))
    assert isinstance(refusal, Refusal)
    assert refusal.partial
    assert why in refusal.note
    assert isinstance(made, MessagesDocument)
    [message] = made.messages
    assert message.value_schema is not None
    told = read_by_both(message.value_schema.text, message.value or b"")
    assert told["after"] == {"id": 1, "v": None, "w": "a"}


def test_a_schema_changes_where_the_table_does_and_its_subject_is_that_of_the_topic() -> None:
    """Also where a policy routes an event elsewhere; names that come to the same are told apart."""
    change = Change(row=RowId(None, "t", "id=1"), op=Op.ADD, positions=((1,),), route="elsewhere")
    former = Table(name="t", columns=(Column(name="id", type="integer", key=1), Column(name="a b")))
    latter = Table(name="t", columns=(*former.columns, Column(name="a-b"), Column(name="a_b")))
    [one] = messages([change], Catalog([former]), encoding="avro")
    [two] = messages([change], Catalog([latter]), encoding="avro")
    assert one.key_schema == two.key_schema
    assert one.value_schema is not None
    assert two.value_schema is not None
    assert one.value_schema != two.value_schema
    assert one.value_schema.subject == two.value_schema.subject == "elsewhere-value"
    told = read_by_both(two.value_schema.text, two.value or b"")
    assert list(told["after"]) == ["id", "a_b_2", "a_b_3", "a_b"]


@pytest.mark.parametrize("decimals", ["string", "double"])
def test_decimals_are_read_in_each_handling(decimals: str) -> None:
    assert agree(shop_changes(), SHOP, decimal_handling_mode=decimals)
