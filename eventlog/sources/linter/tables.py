"""The source's tables by TABNUM_SRC: their names in the catalog, their codecs, their BLOB columns.

Does no I/O itself.

The bytes of LINTER's row images are not documented. A site that knows them offers a codec under the
entry point `eventlog.linter_codecs`: a callable that takes a RecordLayout and gives a RecordCodec.
Without one records are read as `packed-v1` has them, or `raw`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from eventlog.core.errors import ConfigError, DataError
from eventlog.core.model import Row
from eventlog.core.packages import missing_tools
from eventlog.core.registry import load_offer, offers
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.suggest import did_you_mean
from eventlog.sources.linter.layouts import RecordLayout, Type, describe_published, record_fields
from eventlog.sources.linter.settings import ReadingSettings

RAW: Final = "raw"
PACKED: Final = "packed-v1"
"""The codec of the tools for streams, which guesses."""
ROWID: Final = "ROWID_SRC"
DATA: Final = "DATA"


class RecordCodec(Protocol):
    """Reads and writes the records of one table."""

    def decode(self, data: bytes, /) -> Row:
        """Decode a record to values by column.

        Any exception is reported with the operation and its raw bytes.
        """

    def encode(self, row: Row) -> bytes:
        """Encode a record."""


CodecFactory = Callable[[RecordLayout], RecordCodec]


class RawCodec:
    """Gives the bytes as they are, in hexadecimal: always right."""

    def __init__(self, layout: RecordLayout | None = None) -> None:
        self.layout = layout

    def decode(self, data: bytes) -> Row:
        return {DATA: data.hex()}

    def encode(self, row: Row) -> bytes:
        return bytes.fromhex(str(row[DATA]))


def codec(name: str) -> CodecFactory:
    """Return the codec of that name; raise ConfigError if unknown."""
    offered = {offer.name: offer for offer in offers("linter_codecs")}
    if name == PACKED and name not in offered:
        raise missing_tools(f"The LINTER codec {name}")
    if name not in offered:
        raise ConfigError(f"There is no LINTER codec {name}.", hint=did_you_mean(name, offered))
    factory: CodecFactory = load_offer(offered[name])
    return factory


def raw_table(number: int, known: Table | None = None) -> Table:
    """Return a table with only row id and bytes; without a schema its number is its name."""
    columns = (
        Column(name=ROWID, type="bigint", key=1, nullable=False),
        Column(name=DATA, type="varchar"),
    )
    if known is None:
        return Table(name=f"TABLE_{number}", number=number, columns=columns)
    return Table(
        name=known.name,
        schema=known.schema,
        class_name=known.class_name,
        number=number,
        columns=columns,
    )


class SourceTable(Struct, frozen=True, kw_only=True):
    """One table: what consumers see of it, how its records are read, which of its columns are
    BLOBs, all in their order.
    """

    table: Table
    name: str
    codec: RecordCodec
    layout: RecordLayout | None = None
    blobs: frozenset[str] = frozenset()

    plain: bool = False
    """Its records say all there is to say."""

    def row(self, record: bytes, rowid: int) -> Row:
        """Decode a record; of BLOBs only NULL is given, for a reference has no use elsewhere."""
        values = self.codec.decode(record)
        if self.layout is None:
            return {ROWID: rowid, **values}  # the bytes alone would be no row: they have no key
        blobs = self.blobs
        return {name: value for name, value in values.items() if value is None or name not in blobs}

    def blob(self, number: int) -> str | None:
        """Return the name of the BLOB column with that number, from 1."""
        if self.layout is None or not 0 < number <= len(self.layout.fields):
            return None
        name = self.layout.fields[number - 1].name
        # The number may be that of a column which is no BLOB, in a schema that is out of date.
        if name not in self.blobs:
            return None
        return name


class SourceTables(dict[int, SourceTable]):
    """The tables of a schema by their numbers.

    One that it does not have is read raw, by its row ids.
    """

    def __init__(self, schema: Catalog | None, settings: ReadingSettings) -> None:
        super().__init__()
        self._known = tuple(schema.tables) if schema is not None else ()
        self._case_sensitive = schema is not None and schema.case_sensitive
        _check_names(self._known, settings)
        for table in self._known:
            if table.number is not None:
                self._enter(table.number, table, settings)
        self.catalog = self._make_catalog()

    def __missing__(self, number: int) -> SourceTable:
        made = self[number] = _raw(raw_table(number))
        # A catalog never changes, so one with this table too is made.
        self.catalog = self._make_catalog()
        return made

    def _enter(self, number: int, table: Table, settings: ReadingSettings) -> None:
        if number in self:
            names = f"{self[number].name} and {table.name}"
            problem = f"{names} have the same number {number} in the schema file"
            raise DataError(f"{problem}; each needs its own.")
        chosen = _by_table(settings.codecs).get(table.name.casefold(), settings.codec)
        if chosen == RAW:
            self[number] = _raw(raw_table(number, table))
        else:
            self[number] = _describe_table(table, chosen, settings)

    def _make_catalog(self) -> Catalog:
        # Tables without a number have no rows in the queue, but references to them may stand in the
        # schema.
        unnumbered = [table for table in self._known if table.number is None]
        shown = [source_table.table for source_table in self.values()]
        return Catalog([*shown, *unnumbered], case_sensitive=self._case_sensitive)


def record_layout(table: Table, settings: ReadingSettings) -> RecordLayout:
    """Return the settings for a table's records."""
    return RecordLayout(
        table=table,
        fields=record_fields(table, settings.code_page, settings.code_pages),
        byte_order=settings.byte_order,
        null_mask=settings.null_mask,
        strict=settings.strict,
    )


def _describe_table(table: Table, chosen: str, settings: ReadingSettings) -> SourceTable:
    layout = record_layout(table, settings)
    made = codec(chosen)(layout)
    blobs = frozenset(field.name for field in layout.fields if field.type is Type.BLOB)
    return SourceTable(
        table=describe_published(table),
        name=table.whole,
        codec=made,
        layout=layout,
        blobs=blobs,
        plain=not blobs,
    )


def _raw(table: Table) -> SourceTable:
    made = codec(RAW)(RecordLayout(table=table, fields=()))
    return SourceTable(table=table, name=table.whole, codec=made)


def _by_table(named: Mapping[str, str]) -> dict[str, str]:
    return {name.casefold(): value for name, value in named.items()}


def _check_names(tables: tuple[Table, ...], settings: ReadingSettings) -> None:
    """Raise ConfigError if a setting names a table missing from the schema file: it would have no
    effect.
    """
    known = {table.name.casefold(): table.name for table in tables}
    for name in settings.codecs:
        if name.casefold() not in known:
            raise ConfigError(
                f"source.linter.codecs names {name}.",
                hint=did_you_mean(name, known.values()),
            )
    columns = [f"{table.name}.{column.name}" for table in tables for column in table.columns]
    for name in settings.code_pages:
        if name.casefold() not in {*known, *[column.casefold() for column in columns]}:
            hint = did_you_mean(name, [*known.values(), *columns])
            raise ConfigError(f"source.linter.code_pages names {name}.", hint=hint)
