"""Messages read back: ours in every mode, other producers' with their habits, and what is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.cli.main import exit_code
from eventlog.core.errors import DataError
from eventlog.core.model import Op
from eventlog.qlik.messages.document import lines
from eventlog.qlik.messages.metadata import structure_of
from eventlog.qlik.messages.reader import MessageReader, bytes_of, decode, lenient, masks
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.qlik.messages.write import container_block, container_head, container_schema, with_metadata
from tests.support.messages import ORDERS, change, inserted, messages, updated

CHANGES = [inserted(1, customer="Ada"), updated(1, customer=("Ada", "Ada L.")), change(1, Op.DELETE)]


@pytest.mark.parametrize("encoding", ["json", "avro"])
@pytest.mark.parametrize("mode", ["bare", "envelope", "metadata", "registry"])
def test_what_was_written_is_read(encoding: Any, mode: Any) -> None:
    if (encoding, mode) == ("json", "registry"):
        encoding = "avro"
    shape = shape_of(ORDERS, MessageSettings(encoding=encoding, mode=mode))
    reader = MessageReader(lambda _: shape.data_text, shape.data_text)
    if mode == "metadata":
        told = reader.read(structure_of(shape).message(1, "2024-05-06T07:00:00.125"))
        assert (told.kind, told.table, told.schema_id) == ("metadata", "shop.orders", shape.schema_id)
    frame = b"\0\0\0\0\1" if mode == "registry" else b""
    found = [reader.read(frame + (one.value or b"")) for one in messages(CHANGES, encoding=encoding, mode=mode)]
    assert [(one.kind, one.operation) for one in found] == [("data", "INSERT"), ("data", "UPDATE"), ("data", "DELETE")]
    assert [one.changed for one in found] == [("order_id", "customer"), ("customer",), ("order_id",)]
    assert [(one.row or {})["customer"] for one in found] == ["Ada", "Ada L.", None]
    assert (found[1].before or {})["customer"] == "Ada"
    assert found[1].present == ("order_id", "customer")
    assert [int((one.sequence or "")[16:]) for one in found] == [1, 2, 3]
    assert found[0].table == ("shop.orders" if mode in ("metadata", "registry") else None)


def test_data_before_their_metadata_wait() -> None:
    [one] = messages([inserted(1)], encoding="avro", mode="metadata")
    found = MessageReader().read(one.value)
    assert (found.kind, found.note) == ("unread", "its metadata message was not met yet")
    [one] = messages([inserted(1)], encoding="avro", mode="envelope")
    assert MessageReader().read(one.value).note == "nothing says its schema; name it"
    assert "name the registry" in (MessageReader().read(b"\0\0\0\0\7abc").note or "")


def test_other_producers_have_habits() -> None:
    reader = MessageReader()
    old = b'{"data":null,"beforeData":{"a":1},"headers":{"operation":"DELETE"}}'
    found = reader.read(old)
    assert (found.row, found.before, found.changed, found.sequence) == ({"a": 1}, None, None, None)
    assert reader.read(None).kind == "tombstone"
    custom = reader.read(b'{"schema":"s","table":"t","data":{"a":1},"headers":{"changeMask":"0x03"}}')
    assert (custom.kind, custom.table, custom.changed) == ("data", "s.t", ("a",))
    external = reader.read(b'{"data":{"a":1},"headers":{"externalSchemaId":"AB"}}')
    assert (external.schema_id, custom.schema_id) == ("AB", None)


def test_the_json_of_old_versions() -> None:
    text = (
        b'{"task_name":"x","table":"t","schema":"s","op":"U","stream_position":"p","change_seq":"7","ts":"y",'
        b'"data":[{"A":"1"},{"B":"NULL"}],"bu_data":[{"A":"0"}]}'
    )
    found = MessageReader().read(text)
    assert (found.kind, found.operation, found.table, found.sequence) == ("data", "UPDATE", "s.t", "7")
    assert (found.row, found.before) == ({"A": "1", "B": None}, {"A": "0"})
    assert found.headers == {"task_name": "x", "stream_position": "p", "ts": "y"}
    assert MessageReader().read(b'{"op":"D","data":[]}').row is None


@given(st.integers(1, 40), st.integers(0, 2**40), st.sampled_from(["little", "big"]))
def test_masks_in_either_order(columns: int, bits: int, order: Any) -> None:
    width = columns // 8 + 1
    changed, present = bits & ((1 << columns) - 1), (1 << columns) - 1
    headers = {"changeMask": changed.to_bytes(width, order), "columnMask": present.to_bytes(width, order)}
    assert masks(headers, columns) == (changed, present)


def test_a_namespace_that_avro_forbids_is_read() -> None:
    text = shape_of(ORDERS, MessageSettings(encoding="avro", mode="registry")).data_text
    odd = text.replace("com.attunity.queue.msg.eventlog", "com.attunity.queue.msg.my-task.1st")
    [one] = messages([inserted(1, customer="Ada")], encoding="avro", mode="registry")
    found = MessageReader(lambda _: odd).read(b"\0\0\0\0\1" + (one.value or b""))
    assert (found.row or {})["customer"] == "Ada"
    assert lenient('{"type":"record","name":"a-b","fields":[{"name":"x","type":{"type":"array","items":"c-d"}}]}') == {
        "type": "record",
        "name": "a_b",
        "fields": [{"name": "x", "type": {"type": "array", "items": "c_d"}}],
    }
    named = '{"type":"record","name":"a","namespace":"my-task.1st","fields":[]}'
    assert lenient(named) == {"type": "record", "name": "a", "namespace": "my_task._1st", "fields": []}


@pytest.mark.parametrize(
    "schema",
    ["{", "[]", '{"type":"string"}', '{"type":"record","name":"a","fields":[{"name":"x","type":5}]}', "[" * 100_000],
    ids=["cut", "list", "text", "field", "deep"],
)
def test_what_is_no_schema_is_said(schema: str) -> None:
    with pytest.raises(DataError):
        decode(lenient(schema), b"\x00")


def test_bytes_that_are_left_over_are_seen() -> None:
    shape = shape_of(ORDERS, MessageSettings(encoding="avro"))
    [one] = messages([inserted(1)], encoding="avro")
    with pytest.raises(DataError, match="1 are left over"):
        MessageReader(schema=shape.data_text).read((one.value or b"") + b"\0")


def test_text_in_lines_is_json_or_base64() -> None:
    assert [bytes_of('{"a":1}'), bytes_of("AAE="), bytes_of("plain text")] == [b'{"a":1}', b"\0\1", b"plain text"]
    assert bytes_of("\N{SNOWMAN}") == "\N{SNOWMAN}".encode()


def test_the_command_shows_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "messages.jsonl"
    told = with_metadata(messages(CHANGES, mode="metadata", encoding="avro"), "2024050607080912" + "0" * 19)
    kcat = msgspec.json.encode({"topic": "t", "payload": '{"data":{"a":1},"headers":{"operation":"INSERT"}}'}) + b"\n"
    file.write_bytes(lines(told) + kcat + b'\n{"topic":"t","value":null}\n')
    assert exit_code(["decode", "messages", str(file)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("line 1: METADATA shop.orders version 1, schema ")
    assert "line 3: UPDATE shop.orders" in shown[2]
    assert "changed customer" in shown[2]
    assert shown[4:] == ['line 5: INSERT {"a":1}', "line 7: TOMBSTONE"]


def test_the_command_shows_containers_and_single_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = MessageSettings(encoding="avro")
    shape, schema = shape_of(ORDERS, settings), container_schema(shape_of(ORDERS, settings))
    values = [one.value or b"" for one in messages(CHANGES, encoding="avro")]
    file, described = tmp_path / "part.avro", tmp_path / "schema.avsc"
    file.write_bytes(container_head(schema) + container_block(values, schema))
    described.write_text(shape.data_text)
    assert exit_code(["decode", "messages", str(file)]) == 0
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()] == ["INSERT", "UPDATE", "DELETE"]
    file.write_bytes(container_head(schema) + container_block(values, schema)[:-20])
    assert exit_code(["decode", "messages", str(file)]) == 65
    assert "damaged" in capsys.readouterr().out
    file.write_bytes(values[0])
    assert exit_code(["decode", "messages", str(file), "--avro-schema", str(described), "--json"]) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["operation"] == "INSERT"
    assert exit_code(["decode", "messages", str(tmp_path / "none")]) == 65


def test_metadata_without_a_schema_name_their_table_all_the_same() -> None:
    reader = MessageReader()
    told = reader.read(b'{"magic":"atMSG","type":"MD","message":{"schemaId":"A","lineage":{"schema":"s","table":"t"}}}')
    assert told.table == "s.t"
    data = b'{"magic":"atMSG","type":"DT","messageSchemaId":"A","message":{"data":{"a":1},"headers":{}}}'
    assert reader.read(data).table == "s.t"


@pytest.mark.parametrize(
    "value, words",
    [
        (
            b'{"data":{"a":1},"headers":true}',
            r"^The message is none of ours: its headers, or its beforeData, are no object\.$",
        ),
        (b'{"data":{"a":1},"beforeData":[1],"headers":{}}', "are no object"),
        (b'{"op":"U","data":[{"a":"1"}],"bu_data":true}', "no list of columns"),
        (b'{"op":"U","data":[null]}', "no list of columns"),
        (b'{"magic":"atMSG","messageSchemaId":[],"message":{}}', "messageSchemaId is no text"),
        (b'{"magic":"atMSG","type":"MD","message":{"lineage":"s.t"}}', "lineage is no object"),
        (b'{"magic":"atMSG","type":"MD","message":{"dataSchema":{"type":"record"}}}', "dataSchema is no text"),
        (b'{"a":' + b"[" * 100_000, "no JSON"),
        (b'{"data":{"a":1},"headers":{"changeMask":"-1"}}', "is no mask"),
        (b"{", "no JSON: Input data was truncated"),
        (b'{"a":1}', "is no message: it has the fields a"),
        (b"\x07\x07", "has no envelope; if it is bare Avro, name its schema"),
        (b"\0\1", "has no envelope"),
        (b'{"magic":"atMSG","type":"DT"}', "The envelope holds no message"),
        (b'{"data":null,"headers":{}}', "neither in data nor in beforeData"),
        (b"atMSG\x04", "do not fit the schema"),
    ],
)
def test_what_is_built_otherwise_is_refused_in_words(value: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        MessageReader().read(value)


def test_a_registered_schema_without_a_namespace_names_no_table() -> None:
    shape = shape_of(ORDERS, MessageSettings(encoding="avro", mode="registry"))
    [one] = messages([inserted(1)], encoding="avro", mode="registry")
    for space, table in ((shape.space, "shop.orders"), ("only", "only"), (None, None)):
        schema = msgspec.json.decode(shape.data_text) | {"namespace": space}
        if space is None:
            del schema["namespace"]
        text = msgspec.json.encode(schema).decode()
        assert MessageReader({1: text}.__getitem__).read(b"\0\0\0\0\1" + (one.value or b"")).table == table


def test_a_mask_is_not_read_further_than_there_are_columns() -> None:
    headers = b'{"changeMask":"' + b"F" * 1_000_000 + b'"}'
    assert MessageReader().read(b'{"data":{"a":1,"b":2},"headers":' + headers + b"}").changed == ("a", "b")
