"""Avro messages in all modes: fastavro and Avro's own library read every one, and schemas follow the documented forms."""

from __future__ import annotations

import io
from typing import Any

import avro.io
import avro.schema
import fastavro
import msgspec
import pytest
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType

from eventlog.core.model import Edit, Op, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.qlik.messages.metadata import structure_of
from eventlog.qlik.messages.schemas import ENVELOPE, text_of
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.qlik.messages.write import (
    container_block,
    container_head,
    container_schema,
)
from tests.support.messages import ORDERS, change, inserted, messages, orders, refusals, updated
from tests.support.messages import read_by_both as read

CHANGES = [inserted(1, customer="Ada"), updated(1, customer=("Ada", "Ada L.")), change(1, Op.DELETE)]


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("mode", ["bare", "envelope", "metadata", "registry"])
def test_every_mode_is_read_by_both_libraries(mode: Any, external: bool) -> None:
    settings = MessageSettings(encoding="avro", mode=mode, external_schema_id=external)
    shape = shape_of(ORDERS, settings)
    rows = []
    for one in messages(CHANGES, encoding="avro", mode=mode, external_schema_id=external):
        content = one.value or b""
        if mode in ("envelope", "metadata"):
            assert content.startswith(bytes.fromhex("61744D5347044454"))
            envelope = read(text_of(ENVELOPE), content)
            assert (envelope["magic"], envelope["type"], envelope["headers"]) == (b"atMSG", "DT", None)
            assert envelope["messageSchemaId"] == (shape.schema_id if mode == "metadata" else None)
            content = envelope["message"]
        rows.append(read(shape.data_text, content))
    assert [row["headers"]["operation"] for row in rows] == ["INSERT", "UPDATE", "DELETE"]
    assert rows[1]["beforeData"]["customer"] == "Ada"
    assert rows[1]["headers"]["changeMask"] == b"\x02"
    assert rows[0]["headers"].get("externalSchemaId") == (shape.schema_id if external else None)


@pytest.mark.parametrize("mode", ["bare", "registry"])
def test_the_table_is_named_in_every_mode(mode: Any) -> None:
    shape = shape_of(ORDERS, MessageSettings(encoding="avro", mode=mode, table_names=True))
    for one in messages(CHANGES, encoding="avro", mode=mode, table_names=True):
        found = read(shape.data_text, one.value or b"")
        assert (found["schema"], found["table"], found["data"]["order_id"]) == ("shop", "orders", 1)


def test_metadata_in_avro_and_in_json_say_the_same() -> None:
    found = []
    for encoding in ("avro", "json"):
        shape = shape_of(ORDERS, MessageSettings(encoding=encoding, mode="metadata", server="s", task="t"))
        told = structure_of(shape).message(300, "2024-05-06T07:00:00.125")
        envelope = read(text_of(ENVELOPE), told) if encoding == "avro" else msgspec.json.decode(told)
        assert (envelope["type"], envelope["messageSchemaId"]) == ("MD", shape.schema_id)
        message = envelope["message"]
        found.append(read(envelope["messageSchema"], message) if encoding == "avro" else message)
    assert found[0] == found[1]
    assert found[0]["lineage"]["tableVersion"] == 300
    columns = found[0]["tableStructure"]["tableColumns"]
    assert columns["order_id"] == {
        "ordinal": 1,
        "type": "INT8",
        "length": 19,
        "precision": 0,
        "scale": 0,
        "primaryKeyPosition": 1,
        "nullable": False,
    }
    assert (columns["amount"]["precision"], columns["amount"]["scale"], columns["amount"]["nullable"]) == (10, 2, True)
    assert found[0]["schemaId"] == shape_of(ORDERS, MessageSettings(mode="metadata")).schema_id


def test_the_schema_id_follows_the_structure_alone() -> None:
    plain = shape_of(ORDERS, MessageSettings()).schema_id
    assert len(plain) == 32
    assert plain == plain.upper() == shape_of(ORDERS, MessageSettings(server="elsewhere")).schema_id
    assert plain != shape_of(orders(Column(name="rank")).tables[0], MessageSettings()).schema_id


def test_the_schemas_of_a_registry_are_the_documented_ones() -> None:
    settings = MessageSettings(encoding="avro", mode="registry", task="my-task", avro_key=True)
    shape = shape_of(ORDERS, settings)
    assert shape.data_schema["namespace"] == "com.attunity.queue.msg.my_task.shop.orders"
    assert shape.data_schema["fields"][1] == {"name": "beforeData", "type": ["null", "Data"], "default": None}
    headers = shape.data_schema["fields"][2]["type"]
    assert (headers["namespace"], headers["fields"][0]["type"]["name"]) == ("com.attunity.queue.msg", "operation")
    assert headers["fields"][0]["type"]["symbols"] == ["INSERT", "UPDATE", "DELETE", "REFRESH"]
    assert shape.key_schema["name"] == "KeyRecord"
    [found] = messages([inserted(5)], encoding="avro", mode="registry", task="my-task", avro_key=True)
    assert read(text_of(shape.key_schema), found.key or b"") == {"order_id": 5}


def test_a_column_that_is_added_reads_what_was_written_before() -> None:
    settings = MessageSettings(encoding="avro", mode="registry")
    old, new = shape_of(ORDERS, settings), shape_of(orders(Column(name="rank", type="integer")).tables[0], settings)
    checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]  # the library forgot to type it
    for reader, writer in ((new, old), (old, new)):
        verdict = checker.get_compatibility(avro.schema.parse(reader.data_text), avro.schema.parse(writer.data_text))
        assert verdict.compatibility is SchemaCompatibilityType.compatible
    [message] = messages([inserted(1, customer="Ada")], encoding="avro", mode="registry")
    parsed = [fastavro.parse_schema(shape.data_schema) for shape in (old, new)]
    found: Any = fastavro.schemaless_reader(io.BytesIO(message.value or b""), parsed[0], parsed[1])
    assert found["data"]["rank"] is None


def test_names_that_avro_cannot_hold_are_refused_with_the_remedy_or_mapped() -> None:
    table = Table(
        name="t", columns=(Column(name="id", key=1), Column(name="a b"), Column(name="a_b"), Column(name="1st"))
    )
    one = change(1, Op.ADD, row=RowId(None, "t", "id=1"))
    assert 'set output.messages.names = "map"' in refusals([one], Catalog([table]), encoding="avro")[0]
    assert len(messages([one], Catalog([table]))) == 1
    settings = MessageSettings(encoding="avro", names="map")
    assert shape_of(table, settings).names == ("id", "a_b_2", "a_b", "_1st")
    many = Table(name="t", columns=tuple(Column(name=name) for name in ("a b", "a-b", "a.b", "x", "a=b")))
    assert shape_of(many, settings).names == ("a_b", "a_b_2", "a_b_3", "x", "a_b_4")
    clashing = Table(name="t", columns=(Column(name="id", key=1), Column(name="Lineage")))
    assert "a column called 'Lineage'" in refusals([one], Catalog([clashing]), mode="metadata")[0]
    mapped = shape_of(clashing, MessageSettings(mode="metadata", names="map"))
    assert mapped.names == ("id", "Lineage_2")
    assert avro.schema.parse(mapped.metadata_text).get_prop("name") == "MetadataMessage"


def test_a_key_in_avro_is_never_null() -> None:
    table = Table(name="t", columns=(Column(name="a", key=1), Column(name="b", key=2)))
    one = change(1, Op.ADD, row=RowId(None, "t", "a=1"))
    assert "the key column b is NULL" in refusals([one], Catalog([table]), encoding="avro", avro_key=True)[0]


@pytest.mark.parametrize("mode", ["bare", "envelope", "metadata"])
def test_containers_are_read_by_both_libraries(mode: Any) -> None:
    shape = shape_of(ORDERS, MessageSettings(encoding="avro", mode=mode))
    values = [one.value or b"" for one in messages(CHANGES, encoding="avro", mode=mode)]
    schema = container_schema(shape)
    blocks = container_block(values[:2], schema) + container_block([], schema) + container_block(values[2:], schema)
    content = container_head(schema) + blocks
    assert b"avro.codec" in content
    from avro.datafile import DataFileReader

    first = list(fastavro.reader(io.BytesIO(content)))
    second = list(DataFileReader(io.BytesIO(content), avro.io.DatumReader()))
    assert first == second
    assert len(first) == 3


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_a_row_of_the_full_load_has_neither_number_nor_time(encoding: Any) -> None:
    settings = MessageSettings(encoding=encoding)
    row = (Edit(column="customer", new="Ada"), Edit(column="amount", new=None))
    [found] = messages([change(1, Op.ADD, row, refresh=True)], encoding=encoding)
    shape, value = shape_of(ORDERS, settings), found.value or b""
    content = read(shape.data_text, value) if encoding == "avro" else msgspec.json.decode(value)
    assert found.key == b"1"
    assert (content["data"]["customer"], content["beforeData"]) == ("Ada", None)
    assert content["headers"] == {
        "operation": "REFRESH",
        "changeSequence": "",
        "timestamp": "",
        "streamPosition": "",
        "transactionId": "",
        "changeMask": None,
        "columnMask": None,
        "transactionEventCounter": None,
        "transactionLastEvent": None,
    }
    misfit = change(1, Op.ADD, row=RowId("shop", "orders", "order_id=x"), refresh=True)
    assert [
        "column 'order_id': 'x' is not a whole number" in note for note in refusals([misfit], encoding=encoding)
    ] == [True]


def test_the_keys_of_a_full_load_are_those_of_the_changes() -> None:
    table = Table(schema="s", name="t", columns=(Column(name="a", type="integer", key=1), Column(name="b", key=2)))
    several: tuple[dict[str, Any], ...] = (
        {},
        {"key_separator": "|"},
        {"key": "table"},
        {"key": "none"},
        {"encoding": "avro", "avro_key": True},
    )
    for settings in several:
        row = RowId("s", "t", 'a=1+b="x+y"')
        both = [change(1, Op.ADD, row=row), change(2, Op.ADD, row=row, refresh=True)]
        told, loaded = messages(both, Catalog([table]), **settings)
        assert loaded.key == told.key
