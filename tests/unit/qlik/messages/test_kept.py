"""Messages as people keep them: every form of file, metadata behind the data, and whatever stands in a metadata message."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.cli.main import exit_code
from eventlog.core.errors import DataError
from eventlog.core.model import Op
from eventlog.qlik.messages.kept import read_kept, read_messages, read_record
from eventlog.qlik.messages.metadata import structure_of
from eventlog.qlik.messages.reader import MessageReader
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.shape import shape_of
from eventlog.qlik.messages.write import container_block, container_head, container_schema
from eventlog.sinks.kafka.command import _as_json, _as_text
from tests.support.messages import ORDERS, change, inserted, messages, updated
from tests.support.shares import met, shares

CHANGES = [
    inserted(1, customer="Ada", note='Żółć\0\n"\\'),
    updated(1, customer=("Ada", "Ada L.")),
    change(1, Op.DELETE),
]
OPERATIONS = ["INSERT", "UPDATE", "DELETE"]
META = MessageSettings(mode="metadata", encoding="avro")
TOLD = structure_of(shape_of(ORDERS, META)).message(1, "2024-05-06T07:00:00.125")
JSON = [one.value or b"" for one in messages(CHANGES)]


def values(**settings: Any) -> list[bytes]:
    return [one.value or b"" for one in messages(CHANGES, **settings)]


def operations(content: bytes, reader: MessageReader | None = None) -> list[str]:
    reader = reader or MessageReader()
    found = [read_kept(reader, message) for _, message in read_messages(content)]
    return [str(one) if isinstance(one, DataError) else one.operation or one.kind for one in found]


def kcat(value: bytes) -> bytes:
    """A line as kcat -J writes it: bytes beyond ASCII stand in the string as they are."""
    escaped = b"".join(
        b"\\u%04X" % byte if byte < 32 else b"\\" + bytes([byte]) if byte in b'"\\' else bytes([byte]) for byte in value
    )
    return b'{"topic":"t","partition":0,"offset":1,"key":"1","payload":"' + escaped + b'"}\n'


def test_pretty_printed_json_in_any_number() -> None:
    pretty = b"\n\n".join(json.dumps(json.loads(one), indent=2).encode() for one in JSON)
    assert operations(b"\xef\xbb\xbf" + pretty) == OPERATIONS
    lines = len(pretty.split(b"\n\n")[0].splitlines())
    assert [place for place, _ in read_messages(pretty)][:2] == ["line 1", f"line {lines + 2}"]


def test_arrays_on_one_line_and_on_many() -> None:
    array = [json.loads(one) for one in JSON]
    assert operations(json.dumps(array).encode()) == OPERATIONS
    assert operations(json.dumps(array, indent=1).encode()) == OPERATIONS
    assert [place for place, _ in read_messages(json.dumps(array).encode())] == [f"line 1, item {n}" for n in (1, 2, 3)]
    assert operations(b"[]") == []


@pytest.mark.parametrize("quoted", [False, True])
def test_lines_in_base64(quoted: bool) -> None:
    lines = [base64.b64encode(one).decode() for one in [TOLD, *values(mode="metadata", encoding="avro")]]
    text = "\n".join(json.dumps(line) if quoted else line for line in lines)
    assert operations(text.encode()) == ["metadata", *OPERATIONS]
    assert operations(text.replace("\n", "\r\n").encode()) == ["metadata", *OPERATIONS]


def test_what_kcat_makes_of_avro() -> None:
    for value in (bytes(range(256)), *values(encoding="avro")):
        [(_, message)] = read_messages(kcat(value))
        assert message == value
    envelopes = b"".join(map(kcat, [TOLD, *values(mode="metadata", encoding="avro")]))
    assert operations(envelopes) == ["metadata", *OPERATIONS]
    schema = shape_of(ORDERS, MessageSettings(mode="registry", encoding="avro")).data_text
    numbered = [b"\0\0\0\0\7" + one for one in values(mode="registry", encoding="avro")]
    assert operations(b"".join(map(kcat, numbered)), MessageReader(lambda _: schema)) == OPERATIONS


def test_damaged_lines_do_not_stop_the_others() -> None:
    content = b"\n".join([b'{"a":', JSON[0], b"what is this", b"5", b"[" * 100_000, JSON[2], b'{"topic":"t"}'])
    found = operations(content)
    assert [found[1], found[5]] == ["INSERT", "DELETE"]
    assert [one.partition(":")[0] for one in found if one not in OPERATIONS] == [
        "This is no JSON",
        "This is no JSON",
        "This is no message",
        "This is no JSON",
        "This object is no message",
    ]


def test_single_values_and_nothing() -> None:
    assert operations(TOLD) == ["metadata"]
    assert operations(b"\0\0\0\0\1abc") == ["unread"]
    said = read_record(MessageReader(), 7)
    assert str(said) == "This is no message: messages are records."
    assert operations(b"\x02\x05") == ["This is no JSON and has no envelope; if it is bare Avro, name its schema."]
    assert operations(b" \n ") == []
    assert operations(b"null") == ["This is no JSON and has no envelope; if it is bare Avro, name its schema."]
    assert operations(b"QUJD") == ["This is no JSON and has no envelope; if it is bare Avro, name its schema."]


def test_records_of_a_container_that_are_no_messages() -> None:
    for record in (7, {"magic": b"atMSG"}, {"magic": b"", "messageSchemaId": 5, "messageSchema": None, "message": b""}):
        assert isinstance(read_record(MessageReader(), record), DataError)


@pytest.mark.parametrize("form", ["lines", "containers"])
def test_metadata_in_another_file_behind_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    data, about = tmp_path / "data", tmp_path / "about"
    found = values(mode="metadata", encoding="avro")
    if form == "lines":
        data.write_bytes(b"".join(map(kcat, found)))
        about.write_bytes(base64.b64encode(TOLD))
    else:
        schema = container_schema(shape_of(ORDERS, META))
        data.write_bytes(container_head(schema) + container_block(found, schema))
        about.write_bytes(container_head(schema) + container_block([TOLD], schema))
    assert exit_code(["decode", "messages", str(data), str(about)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert f"{about}, " in shown[0]
    assert [line.partition(": ")[2].split()[0] for line in shown] == ["METADATA", *OPERATIONS]
    assert exit_code(["decode", "messages", str(data)]) == 0
    assert "its metadata message was not met yet" in capsys.readouterr().out


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
PLACES = [
    ("message",),
    *(("message", name) for name in ("schemaId", "lineage", "tableStructure", "dataSchema")),
    *(("message", "lineage", name) for name in ("schema", "table", "tableVersion")),
    ("message", "tableStructure", "tableColumns"),
    ("message", "tableStructure", "tableColumns", "customer"),
    *(("message", "tableStructure", "tableColumns", "customer", name) for name in ("ordinal", "type", "nullable")),
    *((name,) for name in ("magic", "type", "messageSchemaId", "messageSchema")),
]


@shares(read=0.1, refused=0.1)
@given(st.sampled_from(PLACES), anything)
def test_whatever_stands_in_a_metadata_message_is_told_or_a_sentence(place: tuple[str, ...], value: Any) -> None:
    content = json.loads(structure_of(shape_of(ORDERS, MessageSettings(mode="metadata"))).message(1, ""))
    inner = content
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    for _, message in read_messages(msgspec.json.encode(content)):
        found = read_kept(MessageReader(), message)
        met(read=not isinstance(found, DataError), refused=isinstance(found, DataError))
        assert _as_text(found)
        assert _as_json("here", found)


@pytest.mark.parametrize(
    "place, value, said",
    [
        (("lineage",), ["x"], "lineage is no object"),
        (("tableStructure",), ["x"], "tableStructure is no object"),
        (("schemaId",), 7, "schemaId is no text"),
        (("dataSchema",), {}, "dataSchema is no text"),
        (("lineage", "table"), 1.5, "lineage.table is no text"),
        (("lineage", "tableVersion"), "1", "lineage.tableVersion is no whole number"),
        (("lineage", "tableVersion"), True, "lineage.tableVersion is no whole number"),
        (("tableStructure", "tableColumns", "customer", "ordinal"), "x", "customer.ordinal is no whole number"),
        (("tableStructure", "tableColumns", "customer", "type"), -1, "customer.type is no text"),
        (("tableStructure", "tableColumns", "customer", "nullable"), "yes", "customer.nullable is no truth value"),
    ],
)
def test_a_value_of_another_type_in_metadata_is_a_sentence(place: tuple[str, ...], value: Any, said: str) -> None:
    content = json.loads(structure_of(shape_of(ORDERS, MessageSettings(mode="metadata"))).message(1, ""))
    inner = content["message"]
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    [(_, message)] = read_messages(msgspec.json.encode(content))
    found = read_kept(MessageReader(), message)
    assert str(found) == f"The metadata message's {said}."
    inner[place[-1]] = None
    [(_, message)] = read_messages(msgspec.json.encode(content))
    assert not isinstance(read_kept(MessageReader(), message), DataError)
