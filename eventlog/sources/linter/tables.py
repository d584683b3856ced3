"""The source's tables by TABNUM_SRC: their names in the catalog, their codecs, their BLOB columns. Does no I/O."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from eventlog.core.errors import ConfigError, DataError
from eventlog.core.model import Row
from eventlog.core.schema import Catalog, Table
from eventlog.core.suggest import did_you_mean
from eventlog.sources.linter.codecs import RAW, ROWID, RecordCodec, codec, raw_table
from eventlog.sources.linter.layouts import RecordLayout, Type, published, record_fields
from eventlog.sources.linter.settings import ReadingSettings


class SourceTable(Struct, frozen=True, kw_only=True):
    """One table: what consumers see of it, how its records are read, which of its columns are BLOBs, all in their order."""

    table: Table
    name: str
    codec: RecordCodec
    layout: RecordLayout | None = None
    blobs: frozenset[str] = frozenset()

    plain: bool = False
    """Its records say all there is to say."""

    def row(self, record: bytes, rowid: int) -> Row:
        """The values of a record. A BLOB's reference says nothing to anybody, so only its being NULL is told."""
        found = self.codec.decode(record)
        if self.layout is None:
            return {ROWID: rowid, **found}
        return {name: value for name, value in found.items() if value is None or name not in self.blobs}

    def blob(self, number: int) -> str | None:
        """The name of the BLOB column of that number, from 1."""
        columns = self.layout.fields if self.layout is not None else ()
        name = columns[number - 1].name if 0 < number <= len(columns) else None
        return name if name in self.blobs else None


class SourceTables(dict[int, SourceTable]):
    """The tables of a schema by their numbers; one that it does not have is told raw, by its row ids."""

    def __init__(self, schema: Catalog | None, settings: ReadingSettings) -> None:
        super().__init__()
        self._known = tuple(schema.tables) if schema is not None else ()
        self._case_sensitive = schema is not None and schema.case_sensitive
        _check_names(self._known, settings)
        for table in self._known:
            if table.number is not None:
                self._enter(table.number, table, settings)
        self.catalog = self._made()

    def __missing__(self, number: int) -> SourceTable:
        made = self[number] = _raw(raw_table(number))
        self.catalog = self._made()
        return made

    def _enter(self, number: int, table: Table, settings: ReadingSettings) -> None:
        if number in self:
            raise DataError(
                f"{self[number].name} and {table.name} have the same number {number} in the schema file; each needs its own."
            )
        chosen = _by_table(settings.codecs).get(table.name.casefold(), settings.codec)
        self[number] = _raw(raw_table(number, table)) if chosen == RAW else _described(table, chosen, settings)

    def _made(self) -> Catalog:
        unnumbered = [table for table in self._known if table.number is None]
        return Catalog([*[one.table for one in self.values()], *unnumbered], case_sensitive=self._case_sensitive)


def record_layout(table: Table, settings: ReadingSettings) -> RecordLayout:
    """What the settings say about the records of a table."""
    return RecordLayout(
        table=table,
        fields=record_fields(table, settings.code_page, settings.code_pages),
        byte_order=settings.byte_order,
        null_mask=settings.null_mask,
        strict=settings.strict,
    )


def _described(table: Table, chosen: str, settings: ReadingSettings) -> SourceTable:
    layout = record_layout(table, settings)
    made = codec(chosen)(layout)
    blobs = frozenset(field.name for field in layout.fields if field.type is Type.BLOB)
    return SourceTable(
        table=published(table),
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
    """ConfigError where a setting names a table that the schema file does not have: it would have no effect."""
    known = {table.name.casefold(): table.name for table in tables}
    for name in settings.codecs:
        if name.casefold() not in known:
            raise ConfigError(f"source.linter.codecs names {name}.", hint=did_you_mean(name, known.values()))
    columns = [f"{table.name}.{column.name}" for table in tables for column in table.columns]
    for name in settings.code_pages:
        if name.casefold() not in {*known, *[column.casefold() for column in columns]}:
            hint = did_you_mean(name, [*known.values(), *columns])
            raise ConfigError(f"source.linter.code_pages names {name}.", hint=hint)
