"""Events field for field: golden files, and properties that hold for any value."""

from __future__ import annotations

import json
import os
from base64 import b64decode
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ConfigError
from eventlog.core.model import Change, Document, Edit, Op, Refusal, RowId
from eventlog.core.plugins import FormatOrder
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import Message, MessagesDocument
from eventlog.sinks.events.cloudevents import binary
from eventlog.sinks.events.plugin import CLOUDEVENTS, DEBEZIUM
from eventlog.sinks.events.settings import CloudEventsSettings, DebeziumSettings, JsonLinesSettings
from eventlog.sinks.kafka.plugin import KAFKA, KafkaOutput
from eventlog.sinks.outputs import FILES, FilesOutput
from eventlog.sinks.webhook.plugin import WEBHOOK
from tests.support.events import KINDS, SHOP, event_format, shop_changes

GOLDEN = Path(__file__).parents[3] / "golden" / "events"
forbidden = {*map(chr, (*range(32), *range(127, 160))), "\ufffe", "\uffff"}


def documents(kind: str, changes: list[Change], catalog: Catalog = SHOP, **settings: Any) -> list[Document]:
    return [made for made in encode(event_format(kind, **settings), changes, catalog) if isinstance(made, Document)]


def events(kind: str, changes: list[Change], catalog: Catalog = SHOP, **settings: Any) -> list[dict[str, Any]]:
    lines = [line for made in documents(kind, changes, catalog, **settings) for line in made.body.splitlines()]
    return [json.loads(line) for line in lines]


def messages(kind: str, **settings: Any) -> list[Message]:
    [made] = documents(kind, shop_changes(), topics=True, **settings)
    assert isinstance(made, MessagesDocument)
    assert made.body == b""
    return list(made.messages)


@pytest.mark.parametrize("kind", KINDS)
def test_events_are_as_they_were_read_and_agreed_on(kind: str) -> None:
    """`EVENTLOG_GOLDEN=write` writes the files anew, to be read before they are committed."""
    body = b"".join(made.body for made in documents(kind, shop_changes())).replace(version(), b"VERSION")
    file = GOLDEN / f"{kind}.jsonl"
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        file.write_bytes(body)
    assert body == file.read_bytes()


def version() -> bytes:
    from eventlog.version import VERSION

    return VERSION.encode()


def test_a_schema_describes_each_field_of_debezium() -> None:
    [_, made, *_] = messages("debezium", schemas=True, server="srv")
    value, key = json.loads(made.value or b""), json.loads(made.key or b"")
    file = GOLDEN / "debezium-schema.json"
    schemas = json.dumps({"key": key["schema"], "value": value["schema"]}, indent=1) + "\n"
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        file.write_text(schemas)
    assert schemas == file.read_text()


def test_messages_of_debezium_have_keys_topics_and_tombstones() -> None:
    made = messages("debezium", server="srv")
    assert {one.topic for one in made} == {"srv.shop.goods"}
    assert [one.value is None for one in made] == [False, False, False, False, True, False]
    assert made[3].key == made[4].key == b'{"id":9007199254740993,"region":"a,b"}'
    assert made[5].key is None
    assert all(one.value is not None for one in messages("debezium", tombstones=False))


def test_cloudevents_in_kafka_are_structured_or_binary() -> None:
    structured, binary_ = messages("cloudevents")[0], messages("cloudevents", mode="binary")[0]
    assert structured.headers == (("content-type", b"application/cloudevents+json; charset=UTF-8"),)
    event = json.loads(structured.value or b"")
    assert dict(binary_.headers) == {
        "content-type": b"application/json",
        **{f"ce_{name}": event[name].encode() for name in event if name not in ("data", "datacontenttype")},
    }
    assert json.loads(binary_.value or b"") == event["data"]


def test_an_array_holds_several_and_an_object_one() -> None:
    [several] = documents("jsonl", shop_changes(), batch=9, array=True)
    alone = documents("jsonl", shop_changes(), batch=1, array=True)
    assert json.loads(several.body) == [json.loads(one.body) for one in alone]
    assert isinstance(json.loads(documents("jsonl", shop_changes()[:1], batch=9, array=True)[0].body), list)


ANY = Table(
    name="t", columns=(Column(name="id", key=1), Column(name="v", type="numeric"), Column(name="w", type="text"))
)
numbers = st.decimals(
    allow_nan=False, allow_infinity=False, places=None, min_value=Decimal("-1e50"), max_value=Decimal("1e50")
)


def changed(value: Any, text: str | None = None, key: str = "id=1") -> Change:
    edits = (Edit(column="v", new=value), Edit(column="w", new=text))
    return Change(row=RowId(None, "t", key), op=Op.ADD, edits=edits, positions=((1,),))


@given(numbers)
def test_a_decimal_of_debezium_is_its_number(number: Decimal) -> None:
    made = list(encode(event_format("debezium"), [changed(number)], Catalog([ANY])))
    told = json.loads(made[-1].body)["after"]["v"] if isinstance(made[-1], Document) else None
    assert told is not None
    whole = int.from_bytes(b64decode(told["value"]), "big", signed=True)
    assert Fraction(whole, 10 ** told["scale"]) == Fraction(number)


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")) | st.none())
def test_any_text_is_read_back_and_in_no_header_that_is_not_allowed(key: str, text: str | None) -> None:
    from eventlog.core.tablekey import format_parts

    change = changed(None, text, format_parts([("id", key)]))
    [event] = events("cloudevents", [change], Catalog([ANY]))
    assert event["data"]["after"] == {"id": key, "v": None, "w": text}
    assert forbidden.isdisjoint(event["subject"])
    headers, body = binary(json.dumps(event).encode())
    assert json.loads(body) == event["data"]
    assert all(value.isascii() and value.isprintable() and " " not in value for value in headers.values())
    assert unquote(headers["ce-subject"]) == event["subject"]


@pytest.mark.parametrize(
    "kind, value, why",
    [
        ("jsonl", "x", "is not a number"),
        ("debezium", Decimal("Infinity"), "decimal_handling_mode"),
        ("debezium", Decimal("1e500"), "more digits"),
    ],
)
def test_a_value_that_cannot_be_told_is_left_out_and_said(kind: str, value: Any, why: str) -> None:
    refusal, made = encode(event_format(kind), [changed(value, "a")], Catalog([ANY]))
    assert isinstance(refusal, Refusal)
    assert refusal.partial
    assert why in refusal.note
    assert isinstance(made, Document)
    assert json.loads(made.body)["after"] == {"id": "1", "w": "a"}


def test_what_nobody_describes_is_refused() -> None:
    [unknown] = encode(event_format("jsonl"), [changed(None)], Catalog([]))
    assert isinstance(unknown, Refusal)
    assert "the columns of t are not known" in unknown.note
    odd = Table(name="t ü", columns=ANY.columns)
    change = Change(row=RowId(None, "t ü", "id=1"), op=Op.ADD, positions=((1,),))
    [refusal] = encode(event_format("debezium", topics=True), [change], Catalog([odd]))
    assert isinstance(refusal, Refusal)
    assert "no topic can be called" in refusal.note
    [half] = encode(event_format("jsonl", on_value="refuse-object"), [changed(None, "\ud800")], Catalog([ANY]))
    assert isinstance(half, Refusal)
    assert "half a character" in half.note


AVRO, PLAIN = DebeziumSettings(encoding="avro"), FilesOutput(path="x")


def built(form: Any, settings: Any, output: Any = PLAIN, sink: Any = FILES) -> None:
    """As a configuration of such an output builds it."""
    form.build(FormatOrder(settings=settings, output=output, sink=sink, publisher=None))


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: JsonLinesSettings(batch_size=-1), "output.jsonl.batch_size is -1"),
        (lambda: DebeziumSettings(topic=""), "output.debezium.topic is empty"),
        (lambda: JsonLinesSettings(topic="{server}"), "output.jsonl.topic names {server}"),
        (lambda: CloudEventsSettings(source=""), "output.cloudevents.source must hold something"),
        (lambda: CloudEventsSettings(type="a b"), "output.cloudevents.type must hold something"),
        (lambda: built(CLOUDEVENTS, CloudEventsSettings(mode="binary")), "this sink has not"),
        (
            lambda: built(CLOUDEVENTS, CloudEventsSettings(mode="binary", batch_size=2), sink=WEBHOOK),
            "one event a request",
        ),
        (lambda: built(DEBEZIUM, AVRO), 'needs sink = "kafka"'),
        (lambda: built(DEBEZIUM, AVRO, KafkaOutput(servers="x"), KAFKA), "output.registry is missing"),
        (
            lambda: built(DEBEZIUM, DebeziumSettings(encoding="avro", schemas=True), None, KAFKA),
            "output.debezium.schemas is for JSON",
        ),
        (
            lambda: built(DEBEZIUM, DebeziumSettings(transaction_topic="a b")),
            "output.debezium.transaction_topic is 'a b'",
        ),
        (lambda: built(DEBEZIUM, DebeziumSettings(transaction_topic="t", topic="t")), "name a topic of its own"),
        (lambda: built(DEBEZIUM, DebeziumSettings(transaction_topic="t")), 'needs sink = "kafka"'),
    ],
)
def test_settings_that_cannot_be_are_refused(make: Any, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert why in str(caught.value)
