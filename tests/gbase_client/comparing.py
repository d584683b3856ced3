"""A record in one form, whether eventlog read it or IBM's change stream client for Informix."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from decimal import Decimal
from itertools import chain
from typing import Any

from eventlog.core.model import Value
from eventlog.sources.gbase.layout import ColumnType, Form, Layout, read_layout
from eventlog.sources.gbase.records import COMMON, FIELDS, ROWS, Frame, Record, frames
from eventlog.sources.gbase.rows import RowReader
from eventlog.sources.gbase.values import TextRules
from tests.gbase_client import OtherReader, Told

NAMES = {
    Record.BEGINTX: "BEGIN",
    Record.COMMTX: "COMMIT",
    Record.RBTX: "ROLLBACK",
    Record.UPDBEF: "BEFORE_UPDATE",
    Record.UPDAFT: "AFTER_UPDATE",
    Record.TABSCHEM: "METADATA",
}
"""What the client calls records; the others it calls as everybody does."""
NULLS: dict[Form, Value] = {Form.BOOLEAN: False, Form.LOCATOR: bytes(76)}
"""As what the client takes a NULL of those types; of every other one it knows that it is NULL."""


def split(stream: Iterable[bytes]) -> list[Frame]:
    return list(chain.from_iterable(frames(stream)))


def read_by_us(frame: Frame, layouts: dict[int, Layout], texts: TextRules | None = None) -> Told:
    """What eventlog reads in a record, in the client's words."""
    fields = (*COMMON, *FIELDS[frame.number])
    numbers = struct.unpack_from(">" + "".join(field.form for field in fields), frame.data)
    said: Told = dict(zip((field.name for field in fields), numbers, strict=True))
    label = said.pop("userdata", None)
    kind = Record(frame.number)
    told = {"type": NAMES.get(kind, kind.name), "seq": said.get("seq", -1), "txid": said.get("txid", -1)}
    told["label"] = None if label is None else str(label)
    told |= {name: said[name] for name in ("time", "user", "code") if name in said}
    match kind:
        case Record.ERROR:
            told["flags"] = said["flags"]
        case Record.TRUNCATE:
            told |= {"label": None, "user": label}  # it is the label by the documentation, and the client's user
        case Record.TABSCHEM:
            layout = layouts[label] = read_layout(frame.data, frame.header_size)
            told["columns"] = [column.name for column in layout.columns]
    if kind in ROWS:
        read = RowReader(layouts[label], texts or TextRules(), "auto")
        told["values"] = plain(layouts[label], read(frame.data, frame.header_size))
    return told


def read_by_both(client: OtherReader, stream: list[Frame], texts: TextRules | None = None) -> list[tuple[Told, Told]]:
    """Each record as eventlog reads it, and as the client does."""
    layouts: dict[int, Layout] = {}
    found = []
    for frame, other in zip(stream, client.read(frame.data for frame in stream), strict=True):
        own = read_by_us(frame, layouts, texts)
        if "values" in other:
            other["values"] = plain(layouts[int(other["label"])], other["values"])
        found.append((own, other))
    return found


def plain(layout: Layout, values: dict[str, Any]) -> dict[str, Any]:
    """A row in one form, whoever read it."""
    types = {column.name: column.type for column in layout.columns}
    return {name: _plain(types[name], value) for name, value in values.items()}


def _plain(kind: ColumnType, value: Any) -> Any:
    value = NULLS.get(kind.form) if value is None else value
    text = str(value)
    match kind.form:
        case _ if value is None:
            return None
        case Form.SMALLINT | Form.INTEGER | Form.BIGINT | Form.INT8:
            return int(text)
        case Form.FLOAT | Form.SMALLFLOAT:
            return struct.pack(">d" if kind.form is Form.FLOAT else ">f", float(text))
        case Form.DECIMAL:
            return Decimal(text)
        case Form.BOOLEAN:
            return text.lower()
        case Form.DATETIME:
            return _fields(kind, text)
        case Form.LOCATOR:
            return value[4:].hex() if isinstance(value, bytes) else text
    return text


def _fields(kind: ColumnType, text: str) -> list[int]:
    """The fields of a moment that its type has, and its fraction."""
    whole, _, fraction = text.partition(".")
    count = len(kind.fields) - (kind.last == "fraction")
    return [*map(int, re.findall(r"\d+", whole)[:count]), int(fraction.ljust(9, "0"))]
