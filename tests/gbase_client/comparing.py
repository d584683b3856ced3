"""A record in one form, whether eventlog read it or IBM's change stream client for Informix."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from decimal import Decimal
from itertools import chain
from typing import Any

from eventlog.core.model import Value
from eventlog.sources.gbase.layout import CapturedLayout, ColumnType, ValueForm, read_layout
from eventlog.sources.gbase.records import COMMON, FIELDS, ROWS, CdcRecord, RecordFrame, frames
from eventlog.sources.gbase.rows import GBaseRowReader
from eventlog.sources.gbase.values import TextRules
from tests.gbase_client import OtherReader, Told

NAMES = {
    CdcRecord.BEGINTX: "BEGIN",
    CdcRecord.COMMTX: "COMMIT",
    CdcRecord.RBTX: "ROLLBACK",
    CdcRecord.UPDBEF: "BEFORE_UPDATE",
    CdcRecord.UPDAFT: "AFTER_UPDATE",
    CdcRecord.TABSCHEM: "METADATA",
}
"""What the client calls records; the others it calls as everybody does."""
NULLS: dict[ValueForm, Value] = {ValueForm.BOOLEAN: False, ValueForm.LOCATOR: bytes(76)}
"""As what the client takes a NULL of those types; of every other one it knows that it is NULL."""


def split(stream: Iterable[bytes]) -> list[RecordFrame]:
    return list(chain.from_iterable(frames(stream)))


def read_by_us(frame: RecordFrame, layouts: dict[int, CapturedLayout], texts: TextRules | None = None) -> Told:
    """What eventlog reads in a record, in the client's words."""
    fields = (*COMMON, *FIELDS[frame.number])
    numbers = struct.unpack_from(">" + "".join(field.form for field in fields), frame.data)
    said: Told = dict(zip((field.name for field in fields), numbers, strict=True))
    label = said.pop("userdata", None)
    kind = CdcRecord(frame.number)
    told = {"type": NAMES.get(kind, kind.name), "seq": said.get("seq", -1), "txid": said.get("txid", -1)}
    told["label"] = None if label is None else str(label)
    told |= {name: said[name] for name in ("time", "user", "code") if name in said}
    match kind:
        case CdcRecord.ERROR:
            told["flags"] = said["flags"]
        case CdcRecord.TRUNCATE:
            told |= {"label": None, "user": label}  # it is the label by the documentation, and the client's user
        case CdcRecord.TABSCHEM:
            layout = layouts[label] = read_layout(frame.data, frame.header_size)
            told["columns"] = [column.name for column in layout.columns]
    if kind in ROWS:
        read = GBaseRowReader(layouts[label], texts or TextRules(), "auto")
        told["values"] = plain(layouts[label], read(frame.data, frame.header_size))
    return told


def read_by_both(
    client: OtherReader, stream: list[RecordFrame], texts: TextRules | None = None
) -> list[tuple[Told, Told]]:
    """Each record as eventlog reads it, and as the client does."""
    layouts: dict[int, CapturedLayout] = {}
    found = []
    for frame, other in zip(stream, client.read(frame.data for frame in stream), strict=True):
        own = read_by_us(frame, layouts, texts)
        if "values" in other:
            other["values"] = plain(layouts[int(other["label"])], other["values"])
        found.append((own, other))
    return found


def plain(layout: CapturedLayout, values: dict[str, Any]) -> dict[str, Any]:
    """A row in one form, whoever read it."""
    types = {column.name: column.type for column in layout.columns}
    return {name: _plain(types[name], value) for name, value in values.items()}


def _plain(kind: ColumnType, value: Any) -> Any:
    value = NULLS.get(kind.form) if value is None else value
    text = str(value)
    match kind.form:
        case _ if value is None:
            return None
        case ValueForm.SMALLINT | ValueForm.INTEGER | ValueForm.BIGINT | ValueForm.INT8:
            return int(text)
        case ValueForm.FLOAT | ValueForm.SMALLFLOAT:
            return struct.pack(">d" if kind.form is ValueForm.FLOAT else ">f", float(text))
        case ValueForm.DECIMAL:
            return Decimal(text)
        case ValueForm.BOOLEAN:
            return text.lower()
        case ValueForm.DATETIME:
            return _fields(kind, text)
        case ValueForm.LOCATOR:
            return value[4:].hex() if isinstance(value, bytes) else text
    return text


def _fields(kind: ColumnType, text: str) -> list[int]:
    """The fields of a moment that its type has, and its fraction."""
    whole, _, fraction = text.partition(".")
    count = len(kind.fields) - (kind.last == "fraction")
    return [*map(int, re.findall(r"\d+", whole)[:count]), int(fraction.ljust(9, "0"))]
