"""Messages as the reference shows them: data, beforeData, headers, masks, keys, topics, and what is refused."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from eventlog.config.build import outputs_of
from eventlog.config.settings import from_settings
from eventlog.core.errors import ConfigError
from eventlog.core.model import Change, CutTransaction, Edit, Op, Refusal, RowId, Transaction
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.core.seams import FormerNames, encode
from eventlog.policies.bound import PolicyFormat
from eventlog.policies.steps import Rename
from eventlog.qlik.messages.metadata import structure_of
from eventlog.qlik.messages.reader import MessageReader
from eventlog.qlik.messages.render import Moments
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.qlik.messages.write import MessageFormat, WrittenMessage
from tests.support.messages import ORDERS, change, documents, encoded, inserted, messages, refusals, updated

BEFORE = {"order_id": 1001, "customer": "Ada", "amount": "19.90", "placed_on": "2024-05-05", "note": None}
AFTER = {**BEFORE, "customer": "Ada L.", "placed_on": "2024-05-06"}
EXAMPLE = updated(
    1001,
    customer=("Ada", "Ada L."),
    amount=("19.90", "19.9"),
    placed_on=(dt.date(2024, 5, 5), dt.date(2024, 5, 6)),
    note=(None, None),
)
LAST = "20240506070809120000000000000004710"


def told(one: Change, catalog: Catalog | None = None, **settings: Any) -> dict[str, Any]:
    """The message of a change."""
    [found] = messages([one], catalog or Catalog([ORDERS]), **settings)
    content: dict[str, Any] = msgspec.json.decode(found.value or b"")
    return content


def test_the_example_of_the_reference() -> None:
    [document] = documents([EXAMPLE], after=LAST)
    [message] = document.messages
    assert (message.topic, message.key, message.positions) == ("shop.orders", b"1001", ((1001,),))
    assert document.id == "20240506070809120000000000000004711"
    assert document.covers == {"1001": ((1001,),)}
    assert msgspec.json.decode(message.value or b"") == {
        "data": AFTER,
        "beforeData": BEFORE,
        "headers": {
            "operation": "UPDATE",
            "changeSequence": "20240506070809120000000000000004711",
            "timestamp": "2024-05-06T07:08:08.950",
            "streamPosition": "log:1001",
            "transactionId": "000000000000000000000007000003E8",
            "changeMask": "0A",
            "columnMask": "1F",
            "transactionEventCounter": 1,
            "transactionLastEvent": True,
        },
    }


NONE = dict.fromkeys(("amount", "placed_on", "note"))


@pytest.mark.parametrize(
    "one, data, before, masks",
    [
        (inserted(7, customer="Ada", amount=None), {"customer": "Ada", **NONE}, None, "07 07"),
        (change(7, Op.DELETE, (Edit(column="customer", old="Ada"),)), {"customer": "Ada", **NONE}, None, "01 03"),
        (
            change(7, Op.MODIFY, (Edit(column="customer", new="A", reset=True),), whole=False),
            {"customer": "A", **NONE},
            None,
            "02 03",
        ),
        (
            updated(7, customer=("A", "B"), note=("x", "x")),
            {"customer": "B", **NONE, "note": "x"},
            {"order_id": 7, "customer": "A", **NONE, "note": "x"},
            "02 13",
        ),
    ],
    ids=["an insert", "a delete", "read back", "an update"],
)
def test_each_operation_has_its_rows_and_masks(
    one: Change, data: dict[str, Any], before: dict[str, Any] | None, masks: str
) -> None:
    found = told(one)
    assert (found["data"], found["beforeData"]) == ({"order_id": 7, **data}, before)
    assert f"{found['headers']['changeMask']} {found['headers']['columnMask']}" == masks


def test_the_masks_of_ten_columns() -> None:
    table = Table(name="t", columns=tuple([Column(name=f"c{n:02d}", key=1 if n == 1 else None) for n in range(1, 11)]))
    values = {f"c{n:02d}": ("a", "b" if n in (2, 3, 5, 10) else "a") for n in range(2, 11)}
    edits = tuple([Edit(column=name, old=old, new=new) for name, (old, new) in values.items()])
    row = RowId(None, "t", "c01=1")
    update = told(change(1, Op.MODIFY, edits, row=row), Catalog([table]))
    delete = told(change(1, Op.DELETE, row=row), Catalog([table]))
    assert (update["headers"]["changeMask"], update["headers"]["columnMask"]) == ("0216", "03FF")
    assert delete["headers"]["changeMask"] == "0001"


def test_what_only_a_log_knows_is_left_empty() -> None:
    plain = change(7, Op.ADD, transaction=None, stream=None, time="2024-05-06 07:08:08.95")
    headers = told(plain)["headers"]
    assert headers["timestamp"] == "2024-05-06T07:08:08.950"
    assert (headers["streamPosition"], headers["transactionId"]) == ("7", "")
    assert (headers["transactionEventCounter"], headers["transactionLastEvent"]) == (None, None)
    assert told(change(7, Op.ADD, time=None))["headers"]["timestamp"] == "2024-05-06T07:08:09.120"
    assert told(change(7, Op.ADD, time="yesterday", transaction=None))["headers"]["timestamp"] == ""


def test_numbers_go_on_and_refused_changes_take_none() -> None:
    found = encoded(
        [inserted(1), change(2, Op.TRUNCATE), inserted(3, amount="much"), inserted(4)],
        after=LAST,
        on_value="refuse-object",
    )
    notes = [one.note for one in found if isinstance(one, Refusal)]
    assert "empties a table" in notes[0]
    assert "'amount': 'much' is not a number" in notes[1]
    assert [one.id[-4:] for one in found if not isinstance(one, Refusal)] == ["4712"]


def test_a_document_says_which_transactions_it_has_a_part_of() -> None:
    form = MessageFormat(settings=MessageSettings(batch_size=2), body=False)
    changes = [change(number, Op.DELETE, transaction=Transaction(id=number // 4)) for number in range(1, 8)]
    written = [one for one in form.writer(Catalog([ORDERS]))(changes) if isinstance(one, WrittenMessage)]
    places = [(1, False), (2, False), (3, True), (1, False), (2, False), (3, False), (4, True)]
    found = form.bind([one.counted(*place) for one, place in zip(written, places, strict=True)])
    assert [one.cut for one in found] == [
        (CutTransaction(0, 0, 2, False),),
        (CutTransaction(0, 2, 3, True), CutTransaction(1, 0, 1, False)),
        (CutTransaction(1, 1, 3, False),),
        (CutTransaction(1, 3, 4, True),),
    ]


def test_tables_of_one_name_in_two_schemas_are_two_tables() -> None:
    both = Catalog([ORDERS, replace(ORDERS, schema="mart", columns=(*ORDERS.columns, Column(name="more")))])
    changes = [inserted(1, note="a"), replace(inserted(2, more="b"), row=RowId("mart", "orders", "order_id=2"))]
    [document] = documents(changes, both, batch_size=2)
    rows = [json.loads(one.value or b"")["data"] for one in document.messages]
    assert [("more" in row, row["order_id"]) for row in rows] == [(False, 1), (True, 2)]


A, B = Column(name="a", type="integer", key=1), Column(name="b", key=2)


@pytest.mark.parametrize(
    "columns, settings, key, expected",
    [
        ((A, B), {}, "a=1+b=x", b"a=1+b=x"),
        ((A, B), {}, 'a=1+b="x+y"', b'a=1+b="x+y"'),
        ((A, B), {"key_separator": "|"}, 'a=1+b="x+y"', b"1|x+y"),
        ((A, B), {"key": "table"}, "a=1+b=x", b"s.t"),
        ((A, B), {"key": "none"}, "a=1+b=x", None),
        ((B,), {}, 'b="x \\"y\\""', b'x "y"'),
        ((Column(name="a"),), {}, "", b"s.t"),
    ],
)
def test_keys(columns: tuple[Column, ...], settings: dict[str, Any], key: str, expected: bytes | None) -> None:
    catalog = Catalog([Table(schema="s", name="t", columns=columns)])
    edits = () if key else (Edit(column="a", new="x"),)
    [found] = messages([change(1, Op.ADD, edits, row=RowId("s", "t", key))], catalog, **settings)
    assert found.key == expected


def test_a_change_of_a_child_table_alone_is_no_message() -> None:
    child = Child(name="tag", parent_key=("order_id",), columns=(Column(name="order_id"), Column(name="word")))
    catalog = Catalog([Table(schema="shop", name="orders", columns=ORDERS.columns, children=(child,))])
    tagged = change(1, Op.MODIFY, (Edit(column="tag.word", new=("a", "b"), reset=True),), whole=False)
    assert encoded([tagged], catalog) == []
    born = change(1, Op.ADD, (Edit(column="tag.word", new=("a",)), Edit(column="note", new="x")), whole=False)
    assert told(born, catalog)["headers"]["columnMask"] == "11"
    assert refusals([change(1, Op.ADD, (Edit(column="tag.wrod", new=None),))], catalog) == [
        "'orders' 'order_id=1': 'tag.wrod' is no column of orders; is the schema up to date?."
    ]


def test_tombstones_come_only_when_they_are_wanted() -> None:
    assert [one.value is None for one in messages([change(1, Op.DELETE)])] == [False]
    found = messages([change(1, Op.DELETE)], tombstones=True, mode="registry", encoding="avro")
    assert [(one.key, one.value is None, one.value_schema is None) for one in found] == [
        (b"1", False, False),
        (b"1", True, True),
    ]


def test_topics_are_made_from_a_template() -> None:
    assert messages([inserted(1)], topic="{task}-{server}.{table}", task="t1", server="s1")[0].topic == "t1-s1.orders"
    odd = Catalog([Table(name="Bestellungen ü", columns=(Column(name="a", key=1),))])
    row = RowId(None, "Bestellungen ü", "a=1")
    assert messages([change(1, Op.ADD, row=row)], odd, topic="all")[0].topic == "all"
    assert "no topic can be called 'Bestellungen ü'" in refusals([change(1, Op.ADD, row=row)], odd)[0]


def test_a_table_that_nobody_described_is_refused() -> None:
    unknown = change(1, Op.ADD, row=RowId("shop", "nowhere", "a=1"))
    assert "a schema that describes it" in refusals([unknown, unknown])[1]
    [refused] = encode(MessageFormat(), [unknown], None)
    assert isinstance(refused, Refusal)


@pytest.mark.parametrize(
    "key, problem",
    [
        ("a=x+b=y", "column 'a': 'x' is not a whole number"),
        ("a=1+c=y", "the key names 'c', which is no column of t"),
    ],
)
def test_a_key_that_fits_no_column_is_refused(key: str, problem: str) -> None:
    table = Table(schema="s", name="t", columns=(Column(name="a", type="integer", key=1), Column(name="b", key=2)))
    assert problem in refusals([change(1, Op.ADD, row=RowId("s", "t", key))], Catalog([table]))[0]
    assert (
        "'order_id': 'x' is not a whole number"
        in refusals([change(1, Op.ADD, row=RowId("shop", "orders", "order_id=x"))])[0]
    )


def test_half_a_character_is_refused_wherever_it_stands() -> None:
    assert "half a character" in refusals([change(1, Op.ADD, stream="\ud800")])[0]
    assert (
        "column 'note': '\\ud800' cannot be written"
        in refusals([inserted(1, customer="Ada", note="\ud800")], on_value="refuse-object")[0]
    )
    named = Table(name="t", columns=(Column(name="a", key=1), Column(name="\ud800")))
    assert "the name of a column" in refusals([change(1, Op.ADD, row=RowId(None, "t", "a=1"))], Catalog([named]))[0]


def test_a_name_that_json_escapes_is_a_name_too() -> None:
    table = Table(name="t", columns=(Column(name="a", key=1), Column(name='b "c"\\')))
    found = told(change(1, Op.ADD, (Edit(column='b "c"\\', new="x"),), row=RowId(None, "t", "a=1")), Catalog([table]))
    assert found["data"] == {"a": "1", 'b "c"\\': "x"}


def test_a_table_may_have_any_number_of_masks() -> None:
    columns = [Column(name=f"c{place}") for place in range(13)]
    table = Table(name="t", columns=(Column(name="id", key=1), *columns))
    changes = [
        change(
            n,
            Op.ADD,
            tuple([Edit(column=f"c{p}", new="") for p in range(13) if n >> p & 1]),
            row=RowId(None, "t", "id=1"),
        )
        for n in range(5000)
    ]
    found = messages(changes, Catalog([table]), encoding="avro")
    reader = MessageReader(schema=shape_of(table, MessageSettings(encoding="avro")).data_text)
    assert [reader.read(one.value).present for one in found[-2:]] == [
        ("id", *[f"c{place}" for place in range(13) if number >> place & 1]) for number in (4998, 4999)
    ]


def test_a_body_of_avro_is_in_base64_and_begins_with_metadata() -> None:
    form = MessageFormat(settings=MessageSettings(encoding="avro", mode="metadata", tombstones=True))
    [document] = encode(form, [inserted(1), change(1, Op.DELETE)], Catalog([ORDERS]))
    lines = [msgspec.json.decode(line) for line in document.body.splitlines()]  # type: ignore[union-attr]  # none is refused
    assert [line["topic"] for line in lines] == ["eventlog.metadata", "shop.orders", "shop.orders", "shop.orders"]
    assert all(line["value"].startswith("YXRNU0cE") for line in lines[:-1])
    assert lines[-1]["value"] is None


@pytest.mark.parametrize(
    "settings, problem",
    [
        ({"mode": "registry"}, "Avro only"),
        ({"avro_key": True}, "avro_key needs"),
        ({"batch_size": 0}, "between 1 and 10000"),
        ({"topic": "{database}"}, "names {database}; it knows {schema}"),
        ({"topic": "{schema"}, "no template"),
        ({"topic": ""}, "is empty"),
        ({"metadata_topic": "a b"}, "which no topic can be called"),
        ({"mode": "metadata", "topic": "x", "metadata_topic": "x"}, "one of their own"),
    ],
)
def test_settings_that_fit_nothing_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MessageSettings(**settings)
    assert problem in str(caught.value)


def test_a_message_may_name_its_table() -> None:
    assert list(told(EXAMPLE))[:1] == ["data"]
    found = told(EXAMPLE, table_names=True)
    assert list(found) == ["schema", "table", "data", "beforeData", "headers"]
    assert (found["schema"], found["table"], found["data"]) == ("shop", "orders", AFTER)
    enveloped = told(EXAMPLE, table_names=True, mode="metadata")
    assert enveloped["message"] == found
    bare = Catalog([Table(name='o"d', columns=(Column(name="id", type="integer", key=1),))])
    odd = told(change(1, Op.ADD, row=RowId(None, 'o"d', "id=1")), bare, table_names=True, topic="t")
    assert (odd["schema"], odd["table"]) == ("", 'o"d')
    assert MessageReader().read_json(found).table == "shop.orders"


def metadata_of(table: Table, settings: MessageSettings) -> Any:
    """The line with the metadata message of a table."""
    form = MessageFormat(settings=settings)
    [document] = form.bind(one for one in form.writer(Catalog([table]))([EXAMPLE]) if isinstance(one, WrittenMessage))
    return msgspec.json.decode(document.body.splitlines()[0])


@pytest.mark.parametrize("key, expected", [("table", b"shop.orders"), ("schema-id", None), ("none", None)])
def test_the_key_of_metadata_messages(key: Any, expected: bytes | None) -> None:
    settings = MessageSettings(mode="metadata", metadata_key=key)
    shape = shape_of(ORDERS, settings)
    expected = shape.schema_id.encode() if key == "schema-id" else expected
    assert structure_of(shape).key == expected
    first = metadata_of(ORDERS, settings)
    assert (first["topic"], first["key"]) == ("eventlog.metadata", expected and expected.decode())


def test_metadata_tell_the_version_that_the_table_has() -> None:
    later = replace(ORDERS, version=4)
    settings = MessageSettings(mode="metadata")
    assert metadata_of(later, settings)["value"]["message"]["lineage"]["tableVersion"] == 4
    assert shape_of(later, settings).schema_id == shape_of(ORDERS, settings).schema_id


def test_a_metadata_message_as_a_whole() -> None:
    """Also of a table without a schema, and with the envelope round it."""
    columns = (Column(name="id", type="integer", key=1), Column(name="v", type="numeric(10,2)"))
    settings = MessageSettings(mode="metadata", server="here", task="copy")
    shape = shape_of(Table(name="t", columns=columns), settings)
    found = msgspec.json.decode(structure_of(shape).message(3, "2024-05-06T07:00:00.125"))
    facts = {"length": 0, "precision": 0, "scale": 0, "primaryKeyPosition": 0, "nullable": True}
    assert found == {
        "magic": "atMSG",
        "type": "MD",
        "headers": None,
        "messageSchemaId": shape.schema_id,
        "messageSchema": shape.metadata_text,
        "message": {
            "schemaId": shape.schema_id,
            "lineage": {
                "server": "here",
                "task": "copy",
                "schema": "",
                "table": "t",
                "tableVersion": 3,
                "timestamp": "2024-05-06T07:00:00.125",
            },
            "tableStructure": {
                "tableColumns": {
                    "id": facts
                    | {"ordinal": 1, "type": "INT4", "length": 10, "primaryKeyPosition": 1, "nullable": False},
                    "v": facts | {"ordinal": 2, "type": "NUMERIC", "precision": 10, "scale": 2},
                }
            },
            "dataSchema": shape.data_text,
        },
    }


@pytest.mark.parametrize("mode, schema", [("envelope", False), ("metadata", True)])
def test_an_envelope_round_data_names_their_schema_where_it_was_told(mode: Any, schema: bool) -> None:
    [found] = messages([inserted(1)], mode=mode)
    envelope = msgspec.json.decode(found.value or b"")
    message = envelope.pop("message")
    identity = shape_of(ORDERS, MessageSettings(mode=mode)).schema_id if schema else None
    assert envelope == {
        "magic": "atMSG",
        "type": "DT",
        "headers": None,
        "messageSchemaId": identity,
        "messageSchema": None,
    }
    assert list(message) == ["data", "beforeData", "headers"]


@pytest.mark.parametrize(
    "subject, value, key",
    [
        ("topic", "shop.orders-value", "shop.orders-key"),
        ("record", "{space}.DataRecord", "{space}.KeyRecord"),
        ("topic-record", "shop.orders-{space}.DataRecord", "shop.orders-{space}.KeyRecord"),
    ],
)
def test_a_registry_has_a_schema_for_values_and_one_for_keys(subject: Any, value: str, key: str) -> None:
    facts: dict[str, Any] = {"encoding": "avro", "mode": "registry", "subject": subject, "task": "copy"}
    space = "com.attunity.queue.msg.copy.shop.orders"
    [plain] = messages([inserted(1)], **facts)
    [keyed] = messages([inserted(1)], **facts, avro_key=True)
    assert plain.key_schema is None
    assert keyed.value_schema is not None
    assert keyed.key_schema is not None
    assert (keyed.value_schema.subject, keyed.key_schema.subject) == (
        value.format(space=space),
        key.format(space=space),
    )
    schema = msgspec.json.decode(keyed.key_schema.text)
    assert (schema["name"], schema["namespace"], keyed.value_schema) == ("KeyRecord", space, plain.value_schema)


def test_a_message_names_its_schema_where_a_registry_elsewhere_has_it() -> None:
    [without] = messages([change(1, Op.ADD)])
    [found] = messages([change(1, Op.ADD)], external_schema_id=True)
    named = msgspec.json.decode(found.value or b"")["headers"].pop("externalSchemaId")
    assert named == shape_of(ORDERS, MessageSettings(external_schema_id=True)).schema_id
    assert b"externalSchemaId" not in (without.value or b"")


def test_a_change_without_a_transaction_has_no_id_of_the_one_before() -> None:
    moments, time = Moments(), dt.datetime(2026, 1, 2, 3, 4, 5)
    first = inserted(1, customer="Ada")
    with_transaction = replace(first, transaction=Transaction(id=7, time=time), time=None)
    when, transaction = moments.of(with_transaction)
    assert transaction
    assert moments.of(replace(first, transaction=None, time=time)) == (when, "")


def test_messages_are_counted_and_know_no_former_names_behind_steps(tmp_path: Path) -> None:
    output = {"format": "messages", "sink": "files", "path": str(tmp_path), "messages": {"topic": "all"}}
    (made,) = outputs_of(from_settings({"output": [output]}, {}, origin="the test"))
    assert isinstance(made.format, MessageFormat)
    behind = PolicyFormat(made.format, (Rename(class_name="person"),))
    assert behind.counts
    assert behind.former_names is FormerNames.ONLY_NEW


def test_a_message_of_no_known_transaction_is_closed_as_it_is_written() -> None:
    [written] = MessageFormat().writer(Catalog([ORDERS]))([change(7, Op.DELETE, transaction=None)])
    assert isinstance(written, WrittenMessage)
    assert written.close() == (written.head, written.tail)
    assert b'"transactionEventCounter":null,"transactionLastEvent":null' in (written.tail or b"")
