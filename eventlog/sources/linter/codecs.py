"""How a record's bytes become values: `raw`, `packed-v1`, or a codec that a site has installed. Does no I/O itself.

The bytes of LINTER's row images are not documented. A site that knows them offers a codec under the entry point
`eventlog.linter_codecs`: a callable that takes a RecordLayout and gives a RecordCodec.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from eventlog.core.errors import ConfigError
from eventlog.core.model import Row
from eventlog.core.schema import Column, Table
from eventlog.core.suggest import did_you_mean
from eventlog.sources.linter.layouts import RecordLayout
from eventlog.sources.linter.packed import PackedCodec

ENTRY_POINTS: Final = "eventlog.linter_codecs"
RAW: Final = "raw"
ROWID: Final = "ROWID_SRC"
DATA: Final = "DATA"


class RecordCodec(Protocol):
    """Reads and writes the records of one table."""

    def decode(self, data: bytes, /) -> Row:
        """The values of a record by column; whatever it raises is told with the operation, which keeps its raw bytes."""

    def encode(self, row: Row) -> bytes:
        """The record of these values."""


CodecFactory = Callable[[RecordLayout], RecordCodec]


class RawCodec:
    """Gives the bytes as they are, in hexadecimal: always right."""

    def __init__(self, layout: RecordLayout | None = None) -> None:
        self.layout = layout

    def decode(self, data: bytes) -> Row:
        return {DATA: data.hex()}

    def encode(self, row: Row) -> bytes:
        return bytes.fromhex(str(row[DATA]))


BUILT_IN: Final[dict[str, CodecFactory]] = {RAW: RawCodec, "packed-v1": PackedCodec}


def codec(name: str) -> CodecFactory:
    """The codec of that name; ConfigError when nobody offers it."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    from importlib.metadata import entry_points

    offered = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if name not in offered:
        raise ConfigError(f"There is no LINTER codec {name}.", hint=did_you_mean(name, [*BUILT_IN, *offered]))
    factory: CodecFactory = offered[name].load()
    return factory


def raw_table(number: int, known: Table | None = None) -> Table:
    """A table whose rows are told by their row id and their bytes; without a schema its number is its only name."""
    columns = (Column(name=ROWID, type="bigint", key=1, nullable=False), Column(name=DATA, type="varchar"))
    if known is None:
        return Table(name=f"TABLE_{number}", number=number, columns=columns)
    return Table(name=known.name, schema=known.schema, class_name=known.class_name, number=number, columns=columns)
