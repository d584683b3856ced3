"""What a SCIM server has of our objects, read page by page. Accounts that are nobody's of ours are not looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared, ComparedSide, Key
from eventlog.compare.texts import write_several
from eventlog.core.errors import DataError, KeySyntaxError
from eventlog.core.schema import Attribute, Table
from eventlog.core.sql_types import Category
from eventlog.core.table_names import read_name, write_name
from eventlog.core.tablekey import parse
from eventlog.sinks.scim.client import ScimClient
from eventlog.sinks.scim.paths import Path, get_value, list_values
from eventlog.sinks.scim.plugin import ScimOutput
from eventlog.sinks.scim.server import RefusedError, read_pages, resource_path
from eventlog.sinks.scim.settings import list_columns
from eventlog.sinks.scim.write import find_mapping

TRUTHS: Final = (Category.STATE, Category.INT)


class ComparedValue(NamedTuple):
    """An attribute of ours, and where a server has it; `refers_to` begins the names of the objects that it names."""

    attribute: Attribute
    path: Path
    refers_to: tuple[str, ...]


class NamedObjects:
    """The objects that ids name; those that `find` is asked for are remembered."""

    def __init__(self, known: Mapping[str, str], find: Callable[[str], str | None]) -> None:
        self._known, self._find = dict(known), find

    def name(self, id: str) -> str:  # noqa: A002  # as SCIM calls it
        """Name an object by its id; return the id where it is nobody's of ours."""
        if id not in self._known:
            self._known[id] = self._find(id) or id
        return self._known[id]


class ScimTarget:
    """The resources of a server; `associations` says what it calls our objects, `find` whose an id was that is none's
    of them: of a deleted row whose resource is disabled.
    """

    selects = True
    names_objects = True

    def __init__(
        self,
        output: ScimOutput,
        associations: Callable[[], Mapping[str, str]],
        find: Callable[[str], str | None] = lambda _id: None,
    ) -> None:
        self._output = output
        self._associations = associations
        self._find = find

    def columns(self, table: Table) -> frozenset[str] | None:
        """Name the columns with readable values, key included."""
        if self._mapping(table) is None:
            return None
        mapped = (name for name, value in self._list_values(table).items() if not value.attribute.multiple)
        return frozenset({*mapped, *(key.casefold() for key in table.key)})

    def several(self, table: Table) -> frozenset[str]:
        """Name the mapped columns of child tables."""
        values = self._list_values(table)
        return frozenset(name for name, value in values.items() if value.attribute.child is not None)

    def filled(self, table: Table) -> frozenset[str]:
        """Name the column of `active`: without a value of ours each server decides by itself."""
        return frozenset(
            name for name, value in self._list_values(table).items() if str(value.path).lower() == "active"
        )

    def padded(self, table: Table) -> frozenset[str]:
        return frozenset()

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

    def _list_values(self, table: Table) -> dict[str, ComparedValue]:
        """List what is mapped of the table, by names in small letters, except what cannot be compared."""
        name = self._mapping(table)
        # `columns` was asked before.
        assert name is not None
        assert self._output.scim is not None
        known = {attribute.name.casefold(): attribute for attribute in table.loggable.values()}
        values: dict[str, ComparedValue] = {}
        for mapped in list_columns(self._output.scim.tables[name], f"output.scim.tables.{name}"):
            attribute = known.get(mapped.name.casefold())
            if attribute is None or (mapped.type == "boolean" and attribute.column.category not in TRUTHS):
                continue
            refers_to = attribute.column.references if mapped.references is None else mapped.references
            begins = _begin_names(table, refers_to) if refers_to else ()
            values[mapped.name.casefold()] = ComparedValue(attribute, mapped.path, begins)
        return values

    def _rows(self, table: Table, compared: Compared) -> Iterator[tuple[Any, ...]]:
        begin = f"{write_name(table.schema, table.name)} "
        objects = {known: called for called, known in self._associations().items()}
        if not any(called.startswith(begin) for called in objects.values()):
            return  # it has nothing of ours, however much it has
        values, named = self._list_values(table), NamedObjects(objects, self._find)
        wanted = [values[column.casefold()] for column in compared.names]
        paths = [value.path for value in values.values()]
        with closing(ScimClient(self._output)) as client:
            try:
                for resource in self._resources(client, table, wanted):
                    called = objects.get(str(resource.get("id")), "")
                    key = _key(called.removeprefix(begin), compared) if called.startswith(begin) else None
                    if key is not None:
                        yield (*key, *(_cell(value, resource, named, paths) for value in wanted))
            except RefusedError as error:
                raise DataError(f"{client.address} does not list its resources: {error.note}.") from error

    def _resources(
        self, client: ScimClient, table: Table, wanted: Sequence[ComparedValue]
    ) -> Iterator[Mapping[str, Any]]:
        """Read all resources of a table's type; of groups, whose pages have no members, each by itself."""
        name = self._mapping(table)
        assert name is not None
        assert self._output.scim is not None
        place = self._output.scim.tables[name].place
        tops = dict.fromkeys(value.path.top for value in wanted)
        for resource in read_pages(client, place):
            if "members" not in tops or "members" in resource:
                yield resource
                continue
            # Some servers show members only to who asks for them.
            path = resource_path(place, str(resource.get("id")))
            answer = client.ask("GET", path, query={"attributes": ",".join(tops)})
            if answer.is_taken:
                yield {"id": resource.get("id")} | answer.content
            elif answer.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
                raise RefusedError(answer)


def _begin_names(table: Table, other: str) -> tuple[str, ...]:
    """List what the names of another table's objects begin with."""
    schema, name = read_name(other)
    return tuple(f"{write_name(owner, name)} " for owner in dict.fromkeys([schema or table.schema, None]))


def _cell(value: ComparedValue, resource: Mapping[str, Any], objects: NamedObjects, paths: Sequence[Path]) -> Any:
    """Read what a server has of one of our attributes."""
    if value.attribute.multiple:
        cells = [_one(value, cell, objects) for cell in list_values(resource, value.path, paths)]
        return write_several(value.attribute.column.type, cells)
    return _one(value, get_value(resource, value.path), objects)


def _one(value: ComparedValue, cell: Any, objects: NamedObjects) -> Any:
    if isinstance(cell, bool) and value.attribute.column.category is Category.INT:
        return int(cell)
    if value.refers_to and isinstance(cell, str):
        called = objects.name(cell)
        begin = next((begin for begin in value.refers_to if called.startswith(begin)), None)
        return called if begin is None else _only_part(called.removeprefix(begin))
    return cell


def _key(text: str, compared: Compared) -> list[str] | None:
    """Read an object's key in order of comparison; None if it is that of a former key."""
    try:
        parts = {name.casefold(): value for name, value in parse(text).parts}
    except KeySyntaxError:
        return None
    if sorted(parts) != sorted(name.casefold() for name in compared.key):
        return None
    return [parts[name.casefold()] for name in compared.key]


def _only_part(key: str) -> str:
    """Read the value of a key of one column; give another key as it is."""
    try:
        [(_, value)] = parse(key).parts
    except (KeySyntaxError, ValueError):
        return key
    return value
