"""Every decoder that reads what others wrote, as a function of bytes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from eventlog.config.settings import load
from eventlog.core.errors import DataError
from eventlog.core.model import Document
from eventlog.core.tablekey import TableKey
from eventlog.qlik.messages.reader import MessageReader, bytes_of
from eventlog.sinks.http.sink import read_reply
from eventlog.sources.gbase.images import images as gbase_images
from eventlog.sources.gbase.layout import layout_of
from eventlog.sources.gbase.records import CdcRecord
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.linter.exports import file_rows
from eventlog.sources.linter.images import CommittedRows
from eventlog.xds.read import read_statuses
from eventlog.xds.validate import validate
from eventlog_streams_tools.gbase.emulator import record, table_record
from tests.support.gbase_streams import OWN, begin, commit
from tests.support.linter import READING, SCHEMA
from tests.support.xds_events import read_events

TYPED = layout_of(
    6,
    "a smallint, b integer, c bigint, d int8, e decimal(16,2), f money(8,2), g date, h datetime year to fraction(5),"
    " k char(5), l smallfloat, m float, n boolean, o interval day(3) to second, i varchar(20,0), j lvarchar(200)",
)
VARYING = 4 * len(TYPED.varying)
"""Bytes of the sizes of its variable columns."""
DOCUMENT = Document(id="1", body=b"", covers={"1": ((1,),), "2-3": ((2,), (3,))})
AVRO = '{"type":"record","name":"data","fields":[{"name":"data","type":["null",{"type":"map","values":"string"}]}]}'


def table_key(data: bytes) -> None:
    """Reads a key; what it says reads the same again."""
    key = TableKey.parse(data.decode("utf-8", "surrogateescape"))
    assert TableKey.parse(key.canonical).canonical == key.canonical


def statuses(data: bytes) -> None:
    """Reads a reply by itself and for a document."""
    read_statuses(data)
    for outcome in read_reply(DOCUMENT, data).outcomes:
        assert outcome.position in {(1,), (2,), (3,)}


def documents(data: bytes) -> None:
    """Reads and judges a document."""
    assert all(len(str(finding)) < 4000 for finding in validate(data))
    read_events(data)


def configuration(data: bytes) -> None:
    """Reads a configuration file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "eventlog.toml"
        path.write_bytes(data)
        load(path, {})


def gbase(data: bytes) -> None:
    """Reads a stream in two chunks; the columns of its labels are told by the stream, or known."""
    for own in (OWN, GBaseSettings(invalid_text="replace", sizes="little", dirty=True)):
        half = len(data) // 2
        for batch in gbase_images([data[:half], data[half:]], own):
            assert batch.images


def gbase_values(data: bytes) -> None:
    """Reads one row of a table with a column of every type."""
    row = record(CdcRecord.INSERT, 2, 7, 6, 0, sizes=data[:VARYING], payload=data[VARYING:])
    gbase(table_record(TYPED) + begin(1) + row + commit(3))


def linter(data: bytes) -> None:
    """Reads an export of queue rows in JSON lines."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "queue.jsonl"
        path.write_bytes(data)
        for image in CommittedRows(SCHEMA, READING).images(file_rows(path, READING)):
            assert image.position


def messages(data: bytes) -> None:
    """Reads a message that nothing is known about."""
    MessageReader().read(data)


def message_records(data: bytes) -> None:
    """Reads a message where a registry and a schema are named, after one that told its structure."""
    reader = MessageReader(lambda _: AVRO, AVRO)
    for piece in (data, b"\0\0\0\0\1" + data):
        with suppress(DataError):
            reader.read(piece)
    reader.read(data)


def message_lines(data: bytes) -> None:
    """Reads a message out of a line of text."""
    MessageReader().read(bytes_of(data.decode("latin-1")))


def message_schemas(data: bytes) -> None:
    """Reads messages by a schema that somebody else wrote."""
    MessageReader(schema=data.decode("utf-8", "replace")).read(b"\2\2\2a\2b\0")


DECODERS: dict[str, Callable[[bytes], None]] = {
    "table_key": table_key,
    "statuses": statuses,
    "documents": documents,
    "configuration": configuration,
    "gbase": gbase,
    "gbase_values": gbase_values,
    "linter": linter,
    "messages": messages,
    "message_records": message_records,
    "message_lines": message_lines,
    "message_schemas": message_schemas,
}
