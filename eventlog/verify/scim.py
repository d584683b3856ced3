"""What a SCIM server has of our objects, read page by page. Accounts that are nobody's of ours are not looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared, ComparedSide, Key
from eventlog.core.errors import DataError, KeySyntaxError
from eventlog.core.schema import Table
from eventlog.core.sql_types import Category
from eventlog.core.table_names import write_name
from eventlog.core.tablekey import parse
from eventlog.sinks.scim.client import ScimClient
from eventlog.sinks.scim.paths import get_value
from eventlog.sinks.scim.plugin import ScimOutput
from eventlog.sinks.scim.server import RefusedError, read_pages
from eventlog.sinks.scim.settings import MappedColumn, list_columns
from eventlog.sinks.scim.write import find_mapping

TRUTHS = (Category.STATE, Category.INT)


class ScimTarget:
    """The resources of a server; `associations` says what it calls our objects."""

    def __init__(self, output: ScimOutput, associations: Callable[[], Mapping[str, str]]) -> None:
        self._output = output
        self._associations = associations

    def columns(self, table: Table) -> frozenset[str] | None:
        """Name the columns with readable values, key included."""
        name = self._mapping(table)
        if name is None:
            return None
        mapped = (column.name.casefold() for column in self._map_columns(name, table).values())
        return frozenset({*mapped, *(key.casefold() for key in table.key)})

    def side(self, table: Table, compared: Compared) -> ComparedSide:
        """Read the server's rows of a table."""
        scratch = ScratchSide(compared)
        scratch.write(self._rows(table, compared))
        return scratch

    def behind(self, table: Table, compared: Compared, keys: Sequence[Key]) -> frozenset[Key]:
        """Return none: waiting rows are in the log."""
        return frozenset()

    def _mapping(self, table: Table) -> str | None:
        settings = self._output.scim
        return None if settings is None else find_mapping(settings, table.schema, table.name)

    def _map_columns(self, name: str, table: Table) -> dict[str, MappedColumn]:
        """Map the table's own columns by name, except those that cannot be compared."""
        assert self._output.scim is not None  # it has a mapping
        own = {column.name.casefold(): column for column in table.columns}
        compared: dict[str, MappedColumn] = {}
        for mapped in list_columns(self._output.scim.tables[name], f"output.scim.tables.{name}"):
            column = own.get(mapped.name.casefold())
            if column is None or (mapped.type == "boolean" and column.category not in TRUTHS):
                continue
            compared[mapped.name.casefold()] = mapped
        return compared

    def _rows(self, table: Table, compared: Compared) -> Iterator[tuple[Any, ...]]:
        name = self._mapping(table)
        assert name is not None
        assert self._output.scim is not None
        begin = f"{write_name(table.schema, table.name)} "
        associations = self._associations()
        objects = {known: called for called, known in associations.items()}
        columns = self._map_columns(name, table)
        wanted = [columns.get(column.casefold()) for column in compared.names]
        with closing(ScimClient(self._output)) as client:
            try:
                for resource in read_pages(client, self._output.scim.tables[name].place):
                    called = objects.get(str(resource.get("id")), "")
                    if called.startswith(begin):
                        key = _key(called.removeprefix(begin), compared)
                        if key is not None:
                            cells = [self._cell(column, table, resource, objects) for column in wanted]
                            yield (*key, *cells)
            except RefusedError as error:
                raise DataError(f"{client.address} does not list its resources: {error.note}.") from error

    def _cell(
        self, mapped: MappedColumn | None, table: Table, resource: Mapping[str, Any], objects: Mapping[str, str]
    ) -> Any:
        if mapped is None:
            return None
        value = get_value(resource, mapped.path)
        column = next(column for column in table.columns if column.name.casefold() == mapped.name.casefold())
        if isinstance(value, bool) and column.category is Category.INT:
            return int(value)
        is_reference = mapped.references or (mapped.references is None and column.references is not None)
        if is_reference and isinstance(value, str) and value in objects:
            return _only_part(objects[value])
        return value


def _key(text: str, compared: Compared) -> list[str] | None:
    """Read an object's key in order of comparison; None if its name was shortened."""
    try:
        parts = {name.casefold(): value for name, value in parse(text).parts}
    except KeySyntaxError:
        return None
    if sorted(parts) != sorted(name.casefold() for name in compared.key):
        return None
    return [parts[name.casefold()] for name in compared.key]


def _only_part(called: str) -> str | None:
    """Read the value of a key of one column from the name of an object."""
    try:
        [(_, value)] = parse(called[called.index(" ") + 1 :]).parts
    except (KeySyntaxError, ValueError):
        return None
    return value
