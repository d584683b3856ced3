"""The slow writer: the same documents as a tree that lxml builds and serialises, to prove the text writer by."""

from __future__ import annotations

from lxml import etree

from eventlog.core.errors import ExpressionError
from eventlog.core.model import ABSENT, Change, Edit, Op
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.sql_types import Category
from eventlog.core.tablekey import quote_value
from eventlog.xds.values import reading
from eventlog.xds.write import XdsFormat


class TreeWriter:
    """Builds the element of a change; ValueError or ExpressionError where XDS cannot express it."""

    def __init__(self, settings: XdsFormat, catalog: Catalog | None) -> None:
        self._settings = settings
        self._tables = {table.name: table for table in catalog or ()}

    def element(self, change: Change) -> etree._Element:
        """Build the element without white space between its parts."""
        name, schema = change.row.table, change.row.schema
        if name not in self._tables and schema is None and "." in name:
            schema, _, name = name.rpartition(".")
        table = self._tables.get(name)
        event = etree.Element(change.op.value)
        event.set("class-name", (table.class_name or table.name) if table else name)
        event.set("event-id", change.event_id)
        association = etree.SubElement(event, "association")
        association.text = self._association(change.row.key, name, (table.schema if table else None) or schema)
        if change.op is not Op.DELETE:
            self._attributes(event, change, table)
        if change.op is Op.MODIFY and len(event) == 1:
            raise ExpressionError
        return event

    def _association(self, key: str, table: str, schema: str | None) -> str:
        schema = schema or self._settings.schema_name
        return f"{key},table={quote_value(table)}" + (f",schema={quote_value(schema)}" if schema else "")

    def _attributes(self, event: etree._Element, change: Change, table: Table | None) -> None:
        for name in dict.fromkeys(edit.column for edit in change.edits):
            attribute = etree.SubElement(event, "add-attr" if change.op is Op.ADD else "modify-attr")
            attribute.set("attr-name", name)
            column = table.attributes[name].column if table and name in table.attributes else None
            several = [edit for edit in change.edits if edit.column == name]
            if change.op is Op.ADD:
                self._added(attribute, several, column)
            else:
                self._modified(attribute, several, column)
            if len(attribute) == 0:
                event.remove(attribute)

    def _added(self, attribute: etree._Element, edits: list[Edit], column: Column | None) -> None:
        listed: list[etree._Element] = []
        for edit in edits:
            if edit.reset:
                listed.clear()
            for gone in self._values(edit.old, column, strict=False):
                equal = [value for value in listed if etree.tostring(value) == etree.tostring(gone)]
                if equal:
                    listed.remove(equal[0])
            listed.extend(self._values(edit.new, column))
        attribute.extend(listed)

    def _modified(self, attribute: etree._Element, edits: list[Edit], column: Column | None) -> None:
        for edit in edits:
            if edit.reset:
                etree.SubElement(attribute, "remove-all-values")
            elif old := self._values(edit.old, column):
                etree.SubElement(attribute, "remove-value").extend(old)
            if new := self._values(edit.new, column):
                etree.SubElement(attribute, "add-value").extend(new)

    def _values(self, cell: object, column: Column | None, *, strict: bool = True) -> list[etree._Element]:
        written = []
        for value in cell if isinstance(cell, tuple) else (cell,):
            try:
                written += [] if value is None or value is ABSENT else [self._value(value, column)]
            except (ValueError, ExpressionError):
                if strict:
                    raise
        return written

    def _value(self, value: object, column: Column | None) -> etree._Element:
        category: Category | None = column.category if column else None
        element = etree.Element("value")
        referenced = self._tables.get(column.references or "") if column and self._settings.enable_refs else None
        if referenced is not None and len(referenced.key) == 1:
            _, text = reading(category, 3)(value)
            element.set("type", "dn")
            key = f"{referenced.key[0]}={quote_value(text)}"
            element.set("association-ref", self._association(key, referenced.name, referenced.schema))
        else:
            kind, text = reading(category, self._settings.time_syntax)(value)
            element.set("type", kind)
        element.text = text
        return element
