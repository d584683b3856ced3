"""The layout of a captured table: the columns that the text of a TABSCHEM record describes, checked against its header."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from struct import Struct as Binary
from typing import Final

from msgspec import Struct

from eventlog.core.errors import DataError, shortened
from eventlog.sources.gbase.types import ColumnType, read_type

_header = Binary(">iIIII").unpack_from
_pieces = re.compile(r'"(?:[^"]|"")*"|[^,"()]+|.', re.DOTALL).finditer
_column = re.compile(r'(?:"((?:[^"]|"")+)"|(\S+))\s+(\S.*)', re.DOTALL).fullmatch
MOST_COLUMNS: Final = 32_767


class CapturedColumn(Struct, frozen=True, kw_only=True):
    """A column by its name and type."""

    name: str
    type: ColumnType
    written: str
    """The type as the stream writes it."""


class Layout(Struct, frozen=True, kw_only=True, dict=True):
    """What the rows with a label look like: first the columns of fixed length, then those of varying length."""

    label: int
    columns: tuple[CapturedColumn, ...]

    @cached_property
    def fixed(self) -> tuple[CapturedColumn, ...]:
        return tuple(column for column in self.columns if column.type.size is not None)

    @cached_property
    def varying(self) -> tuple[CapturedColumn, ...]:
        return tuple(column for column in self.columns if column.type.size is None)

    @cached_property
    def fixed_bytes(self) -> int:
        return sum(column.type.size or 0 for column in self.fixed)


def read_layout(data: bytes, header_size: int) -> Layout:
    """The layout that a TABSCHEM record holds; DataError when its text and the numbers in its header contradict."""
    label, _, fixed_bytes, nfixed, nvar = _header(data, 16)
    try:
        text = data[header_size:].partition(b"\0")[0].decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"The columns of label {label} are no UTF-8: {error.reason} at byte {error.start}.") from None
    layout = layout_of(label, text)
    for what, said, found in (
        ("columns of fixed length", nfixed, len(layout.fixed)),
        ("columns of varying length", nvar, len(layout.varying)),
        ("bytes in columns of fixed length", fixed_bytes, layout.fixed_bytes),
    ):
        if said != found:
            raise DataError(f"The columns of label {label} have {found} {what}, and the header says {said}.")
    return layout


def layout_of(label: int, text: str) -> Layout:
    """The layout that a text such as `c1 integer, c2 varchar(20,0)` describes."""
    columns = tuple(_read_column(label, part) for part in islice(split_columns(text), MOST_COLUMNS))
    names = [column.name for column in columns]
    if len(set(names)) != len(names):
        raise DataError(f"The columns of label {label} have the same name twice.")
    varying = False
    for column in columns:
        if varying and column.type.size is not None:
            raise DataError(f"The column {column.name} of label {label} has a fixed length and comes behind others.")
        varying = varying or column.type.size is None
    return Layout(label=label, columns=columns)


def split_columns(text: str) -> Iterator[str]:
    """The parts between commas that stand neither in parentheses nor in quotes."""
    gathered: list[str] = []
    depth = 0
    for match in _pieces(text):
        piece = match[0]
        depth += (piece == "(") - (piece == ")")
        if piece == "," and depth <= 0:
            yield "".join(gathered)
            gathered = []
        else:
            gathered.append(piece)
    if gathered:
        yield "".join(gathered)


def _read_column(label: int, text: str) -> CapturedColumn:
    match = _column(text.strip())
    if match is None:
        raise DataError(f"The columns of label {label} hold {shortened(text)!r}, which is no name with a type.")
    name = match[2] if match[1] is None else match[1].replace('""', '"')
    return CapturedColumn(name=name, type=read_type(match[3]), written=match[3])
