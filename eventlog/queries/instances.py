"""Changes as `<instance>` elements: the format of answers, behind the steps of an output. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from msgspec import Struct

from eventlog.core.errors import ExpressionError
from eventlog.core.model import ABSENT, Change, Document, Refusal
from eventlog.core.schema import Catalog, Table
from eventlog.core.seams import FormerNames, Writer
from eventlog.version import VERSION
from eventlog.xds.values import Fields, Settings, association_end, attribute, escape, values
from eventlog.xds.write import DECLARATION

XDS_TYPES = {"int": "int", "state": "state", "octet": "octet"}
"""The type of an attribute by the category of its column; all others are texts."""


IDENTITY_CLASS: Final = "__driver_identification_class__"
"""The class whose one object is the driver."""


class Instance(Struct, frozen=True, kw_only=True):
    """One object as it is told: its `<value>` elements by the names of their attributes."""

    position: tuple[int, ...]
    class_name: str
    association: str
    values: dict[str, list[str]]
    fields: Fields

    def has(self, name: str, searched: str) -> bool:
        """Return True if an attribute is published with this value."""
        try:
            return values(self.fields[name], searched, name)[0] in self.values.get(name, ())
        except ExpressionError:
            return False

    def element(self, event_id: str, wanted: frozenset[str] | None) -> str:
        """Write the element with the attributes that are wanted."""
        lines = [
            f'    <instance class-name="{attribute(self.class_name)}"{_event(event_id)}>',
            f"      <association>{escape(self.association)}</association>",
        ]
        for name, told in self.values.items():
            if told and (wanted is None or name in wanted):
                lines.append(f'      <attr attr-name="{attribute(name)}">{"".join(told)}</attr>')
        return "\n".join([*lines, "    </instance>\n"])


class InstanceFormat(Struct, frozen=True, kw_only=True):
    """Tells whole rows as instances; `settings` are those of the output's documents."""

    settings: Settings

    suffix: ClassVar[str] = ".xml"
    counts: ClassVar[bool] = False
    former_names: ClassVar[FormerNames] = FormerNames.ONLY_NEW

    def writer(self, catalog: Catalog | None) -> Writer:
        """Write the instances of changes that tell whole rows, or say why one cannot be."""

        def write(changes: Iterable[Change]) -> Iterator[Instance | Refusal]:
            for change in changes:
                try:
                    yield self._instance(change, catalog)
                except ExpressionError as error:
                    yield Refusal(positions=change.positions, note=f"{error}.")

        return write

    def bind(self, written: Iterable[Instance], after: str, whole: bool = False) -> Iterator[Document]:
        """Bind nothing: answers are put together elsewhere."""
        return iter(())

    def heartbeat(self) -> None:
        """Send nothing: queries need no heartbeat."""

    def _instance(self, change: Change, catalog: Catalog | None) -> Instance:
        table = None if catalog is None else catalog.class_named(change.row.schema, change.row.table)
        if table is None:
            raise ExpressionError(f"{change.row.table} is not described")
        fields = Fields(table, catalog, self.settings, change.called)
        end = association_end(table.name, table.schema or self.settings.schema_name)
        told = {
            edit.column: values(fields[edit.column], edit.new, edit.column)
            for edit in change.edits
            if edit.new is not ABSENT
        }
        return Instance(
            position=change.positions[0],
            class_name=table.class_name or table.name,
            association=f"{change.row.key}{end}",
            values=told,
            fields=fields,
        )


def write_schema(tables: Iterable[Table]) -> str:
    """Write `<schema-def>` of the classes that an output tells of."""
    lines = ['    <schema-def hierarchical="false">']
    for table in tables:
        lines.append(f'      <class-def class-name="{attribute(table.class_name or table.name)}">')
        keys = set(table.key)
        for name, found in table.loggable.items():
            if name not in table.attributes and found.column.name not in keys:
                continue  # what is left out of capture
            kind = XDS_TYPES.get(found.column.category.value, "string")
            several = "true" if found.multiple else "false"
            required = "true" if found.column.name in keys and found.child is None else "false"
            lines.append(
                f'        <attr-def attr-name="{attribute(name)}" case-sensitive="true" multi-valued="{several}"'
                f' naming="false" read-only="true" required="{required}" type="{kind}"/>'
            )
        lines.append("      </class-def>")
    return "\n".join([*lines, "    </schema-def>\n"])


def write_identity() -> str:
    """Write what an engine asks of a driver before anything else: who it is, and that it answers `<query-ex>`."""
    told = {"driver-id": "eventlog", "driver-version": VERSION, "query-ex-supported": "true"}
    lines = [f'    <instance class-name="{IDENTITY_CLASS}">']
    for name, value in told.items():
        kind = "state" if value == "true" else "string"
        lines.append(f'      <attr attr-name="{name}"><value type="{kind}">{escape(value)}</value></attr>')
    return "\n".join([*lines, "    </instance>\n"])


def write_rest(token: str, event_id: str) -> str:
    """Write by what the rest of an answer is asked for."""
    return f"    <query-token{_event(event_id)}>{escape(token)}</query-token>\n"


def write_status(level: str, event_id: str, text: str = "") -> str:
    """Write what became of one question."""
    head = f'    <status level="{level}"{_event(event_id)} type="driver-general"'
    return f"{head}>{escape(text)}</status>\n" if text else f"{head}/>\n"


def write_answer(elements: Iterable[str]) -> bytes:
    """Write the document of an answer."""
    head = f'{DECLARATION}<nds dtdversion="2.0" ndsversion="8.x">\n  <output>\n'
    return "".join([head, *elements, "  </output>\n</nds>\n"]).encode()


def _event(event_id: str) -> str:
    return f' event-id="{attribute(event_id)}"' if event_id else ""
