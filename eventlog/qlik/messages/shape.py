"""A table as its messages see it: what it and its columns are called, their types, its schemas and
its topic.

Law: the schema id follows from the structure alone, so whoever writes messages of a table, and
whenever, gives the same structure the same id, and another one another id.
"""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from eventlog.core.schema import Table
from eventlog.qlik.messages.names import field_names, namespace, topic_of
from eventlog.qlik.messages.schemas import Schema, data_schema, key_schema, metadata_schema, text_of
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.typemap import QlikType, qlik_type
from eventlog.qlik.values import TableValues


class SchemaRef(Struct, frozen=True, kw_only=True, gc=False):
    """A schema for a registry: the subject that it stands under, and its text."""

    subject: str
    text: str


class MessageShape(Struct, frozen=True, kw_only=True, dict=True):
    """What messages of one table have in common; made once a table."""

    table: Table
    settings: MessageSettings
    topic: str
    names: tuple[str, ...]
    types: tuple[QlikType, ...]
    values: TableValues

    @cached_property
    def title(self) -> str:
        """Return schema and table."""
        return self.table.whole

    @cached_property
    def lobs(self) -> int:
        """Return the bits of the columns that changeMask leaves out."""
        return sum(1 << index for index, kind in enumerate(self.types) if kind.lob)

    @cached_property
    def space(self) -> str | None:
        """Return the namespace of its schemas, in a registry."""
        if self.settings.mode != "registry":
            return None
        return namespace(self.table, self.settings)

    @cached_property
    def data_schema(self) -> Schema:
        settings = self.settings
        return data_schema(
            list(zip(self.names, self.types, strict=True)),
            logical=settings.logical_types,
            space=self.space,
            external_id=settings.external_schema_id,
            table_names=settings.table_names,
        )

    @cached_property
    def data_text(self) -> str:
        return text_of(self.data_schema)

    @cached_property
    def key_schema(self) -> Schema:
        columns = [(self.names[index], self.types[index]) for index in self.values.key]
        return key_schema(columns, logical=self.settings.logical_types, space=self.space)

    @cached_property
    def metadata_text(self) -> str:
        return text_of(metadata_schema(self.names))

    @cached_property
    def columns(self) -> dict[str, dict[str, Any]]:
        """Describe the columns for metadata messages, by name."""
        key_positions = {index: number for number, index in enumerate(self.values.key, 1)}
        described = zip(self.names, self.types, self.values.columns, strict=True)
        return {
            name: {
                "ordinal": index + 1,
                "type": kind.name,
                "length": kind.length,
                "precision": kind.precision,
                "scale": kind.scale,
                "primaryKeyPosition": key_positions.get(index, 0),
                # A key column is never NULL, whatever the database says: SQLite allows it.
                "nullable": column.nullable and index not in key_positions,
            }
            for index, (name, kind, column) in enumerate(described)
        }

    @cached_property
    def schema_id(self) -> str:
        """32 upper-case hex digits that tell this structure from every other."""
        # The table's version is not among them, for the same structure could have two of them.
        facts = [self.table.schema, self.table.name, self.columns, self.data_text]
        return sha256(msgspec.json.encode(facts)).hexdigest()[:32].upper()

    @cached_property
    def value_ref(self) -> SchemaRef | None:
        """Return the registry's schema of its data messages; None where there is none."""
        if self.space is None:
            return None
        return self._ref("value", "DataRecord", self.data_text)

    @cached_property
    def key_ref(self) -> SchemaRef | None:
        """Return the registry's schema of its keys; None where there is none."""
        if self.space is None or not self.settings.avro_key:
            return None
        return self._ref("key", "KeyRecord", text_of(self.key_schema))

    def _ref(self, side: str, record: str, text: str) -> SchemaRef:
        subjects = {
            "topic": f"{self.topic}-{side}",
            "record": f"{self.space}.{record}",
            "topic-record": f"{self.topic}-{self.space}.{record}",
        }
        return SchemaRef(subject=subjects[self.settings.subject], text=text)


def shape_of(table: Table, settings: MessageSettings, *, free: bool = False) -> MessageShape:
    """Describe the table for its messages; raise ExpressionError where they cannot carry a name of it."""
    values = TableValues(table)
    return MessageShape(
        table=table,
        settings=settings,
        topic=topic_of(table, settings, free=free),
        names=field_names(values.names, settings),
        types=tuple([qlik_type(column.type) for column in values.columns]),
        values=values,
    )
