"""Writes records as a server does, in either of its dialects: what the emulator sends and tests read back."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from eventlog.core.model import Value
from eventlog.sources.gbase.layout import Layout
from eventlog.sources.gbase.records import COMMON_SIZE, FIELDS, SCHEME, Record
from eventlog.sources.gbase.values import TextRules, codec


class Dialect(Struct, frozen=True, kw_only=True):
    """How a server writes: the byte order of the sizes, how wide a varchar's length is, its code set."""

    sizes: Literal["little", "big"] = "little"
    wide: bool = True
    texts: TextRules = TextRules()


GBASE: Final = Dialect()
"""Newer GBase 8s, opened with minor version 0."""
INFORMIX: Final = Dialect(sizes="big", wide=False)
"""Informix, opened with version (1, 1)."""


def record(number: Record, *fields: int, sizes: bytes = b"", payload: bytes = b"") -> bytes:
    """One record with the fields of its header in their order."""
    forms = "".join(field.form for field in FIELDS[number])
    header = struct.pack(f">{forms}", *fields) + sizes
    return struct.pack(">4I", COMMON_SIZE + len(header), len(payload), SCHEME, number) + header + payload


def table_record(layout: Layout) -> bytes:
    """The TABSCHEM record of a layout."""
    text = ", ".join(f"{_quoted(column.name)} {column.written}" for column in layout.columns)
    numbers = (layout.label, 0, layout.fixed_bytes, len(layout.fixed), len(layout.varying))
    return record(Record.TABSCHEM, *numbers, payload=text.encode() + b"\0")


def row_record(
    number: Record, seq: int, tx: int, layout: Layout, values: Mapping[str, Value], dialect: Dialect = GBASE
) -> bytes:
    """A record with a row; OverflowError where a value has no place in its column."""
    parts = [
        codec(column.type, dialect.texts, wide=dialect.wide).encode(values[column.name])
        for column in (*layout.fixed, *layout.varying)
    ]
    order = "<" if dialect.sizes == "little" else ">"
    sizes = [len(part) for part in parts[len(layout.fixed) :]]
    return record(
        number,
        seq,
        tx,
        layout.label,
        0,
        sizes=struct.pack(f"{order}{len(sizes)}I", *sizes),
        payload=b"".join(parts),
    )


def _quoted(name: str) -> str:
    plain = name.replace("_", "a").isalnum()
    return name if plain else '"' + name.replace('"', '""') + '"'
