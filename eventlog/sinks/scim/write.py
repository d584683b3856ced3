"""The format `scim`: each change is one request, in the order of its object.

Law: a new object is told whole, by POST; a change tells what changed, by PATCH; what is gone is deleted or disabled.
What no mapping names is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple

from msgspec.structs import replace

from eventlog.core.errors import DataError, ExpressionError, value_shown
from eventlog.core.model import ABSENT, Change, Document, Edit, Op, Refusal, RowId
from eventlog.core.references import find_referenced, make_reference
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import FormerNames, OnValue, Writer, Written
from eventlog.core.sql_types import Category, truth_of
from eventlog.core.tablekey import parse
from eventlog.on_value import refuse, write_otherwise
from eventlog.qlik.nearest import ColumnSayer
from eventlog.qlik.readings import reading
from eventlog.qlik.typemap import qlik_type
from eventlog.sinks.events.rows import json_field
from eventlog.sinks.scim.paths import ENTERPRISE_USER, Path, add_elements, read_path, set_value
from eventlog.sinks.scim.requests import PATCH_OP, ScimRequest, Unique, encode, refer_to
from eventlog.sinks.scim.settings import MappedColumn, ResourceSettings, ScimSettings, ValueType, list_columns
from eventlog.xds.write import document_id

ACTIVE: Final = Path("active")
UPLOAD_ROWS: Final = 50
"""Operations that Microsoft Entra's bulkUpload takes in a request."""


class ScimField(NamedTuple):
    """How a column's values are told."""

    path: Path
    is_multiple: bool
    is_key: bool
    write: Any

    def element(self, value: Any) -> dict[str, Any]:
        """Make one of several values."""
        return {**dict(self.path.filter), self.path.sub or "value": value}


class ScimFormat:
    """Writes requests of SCIM."""

    suffix: ClassVar[str] = ".json"
    counts: ClassVar[bool] = False
    former_names: ClassVar[FormerNames] = FormerNames.ONLY_NEW

    def __init__(self, settings: ScimSettings) -> None:
        self._settings = settings
        self._at_once = UPLOAD_ROWS if settings.mode == "entra" else 1

    def writer(self, catalog: Catalog | None) -> Writer:
        """Write each change that a mapping names, or say why it cannot be told."""
        tables: dict[tuple[str | None, str], ScimTable | None] = {}

        def table_of(row: RowId) -> ScimTable | None:
            place = row.schema, row.table
            if place not in tables:
                tables[place] = self._table(row, catalog)
            return tables[place]

        def write(changes: Iterable[Change]) -> Iterator[Written | Refusal]:
            for change in changes:
                table = None
                try:
                    table = table_of(change.row)
                    if table is None:
                        note = f"{change.row.table} has no mapping in output.scim.tables."
                        yield Refusal(positions=change.positions, note=note, filtered=True)
                        continue
                    written = table.write(change)
                except DataError as error:
                    if table is None:
                        yield refuse(change, error)
                        continue
                    refusal, written = write_otherwise(change, error, table.sayer, self.on_value, table.write)
                    yield refusal
                if written is not None:
                    yield written

        return write

    def bind(self, written: Iterable[Written], after: str = "", whole: bool = False) -> Iterator[Document]:
        """Make a document of each change, for the receiver answers each; one of several has a line for each."""
        several: Iterable[list[Written]] = [list(written)] if whole else _cut(written, self._at_once)
        for changes in filter(None, several):
            body = "\n".join(change.text for change in changes).encode()
            covers = {change.event_id: change.positions for change in changes}
            yield Document(id=document_id(changes[-1].place), body=body, covers=covers)

    def heartbeat(self) -> None:
        """Send nothing: SCIM needs no heartbeat."""

    @property
    def on_value(self) -> OnValue:
        """Return what becomes of a value that cannot be written."""
        return self._settings.on_value

    def _table(self, row: RowId, catalog: Catalog | None) -> ScimTable | None:
        if find_mapping(self._settings, row.schema, row.table) is None:
            return None
        table = None if catalog is None else catalog.class_named(row.schema, row.table)
        if table is None or catalog is None:
            raise ExpressionError(f"the columns of {row.table} are not known; SCIM needs a schema that describes it")
        return self.make_table(table, catalog)

    def make_table(self, table: Table, catalog: Catalog) -> ScimTable | None:
        """Make the writer of a table's changes; None for one that is not mapped."""
        name = find_mapping(self._settings, table.schema, table.name)
        if name is None:
            return None
        make = EntraTable if self._settings.mode == "entra" else ScimTable
        return make(name, self._settings.tables[name], table, catalog, self._settings)


def _cut(written: Iterable[Written], size: int) -> Iterator[list[Written]]:
    changes = iter(written)
    while some := list(islice(changes, size)):
        yield some


def find_mapping(settings: ScimSettings, schema: str | None, table: str) -> str | None:
    """Find the name under which a table is mapped, with its schema or without."""
    wanted = (f"{schema}.{table}".lower(), table.lower()) if schema else (table.lower(),)
    by_name = {name.lower(): name for name in settings.tables}
    return next((by_name[name] for name in wanted if name in by_name), None)


class ScimTable:
    """Writes the changes of one table."""

    def __init__(
        self, name: str, settings: ResourceSettings, table: Table, catalog: Catalog, mappings: ScimSettings
    ) -> None:
        self._name = name
        self._settings = settings
        self._enables = settings.enables
        self._unique = read_path(mappings.unique_path(settings), "unique")
        self.fields: dict[str, ScimField] = {}
        known = {attribute.lower(): attribute for attribute in table.loggable}
        columns: list[Column] = []
        for mapped in list_columns(settings, f"output.scim.tables.{name}"):
            found = known.get(mapped.name.lower())
            if found is None:
                problem = f"output.scim.tables.{name}.columns names {mapped.name}"
                raise ExpressionError(f"{problem}, and {table.name} has no such column behind the policies")
            self.fields[found] = self._field(mapped, found, table, catalog, mappings)
            columns.append(Column(name=found, type=table.loggable[found].column.type))
        self._multiple = table.multiple
        self._called: Mapping[RowId, str] = {}
        self._keys = {column.lower(): column for column in table.key if column in self.fields}
        self.sayer = ScimSayer(columns, self.fields)
        self._unique_column = next(
            column for column, field in self.fields.items() if str(field.path).lower() == str(self._unique).lower()
        )
        if self.fields[self._unique_column].is_multiple:
            raise ExpressionError(f"{self._unique_column} has several values, and {self._unique} tells resources apart")

    def _field(
        self, mapped: MappedColumn, found: str, table: Table, catalog: Catalog, mappings: ScimSettings
    ) -> ScimField:
        attribute = table.loggable[found]
        other = _find_referred_table(mapped, table, attribute.column, catalog, mappings)
        if other is not None:
            write = self._refer(other, attribute.column, mappings)
        else:
            write = _writer(attribute.column, mapped.type)
        return ScimField(mapped.path, attribute.multiple, found in table.key, write)

    def _refer(self, other: Table, column: Column, mappings: ScimSettings) -> Any:
        """Make what names an object of another table."""
        name = self._namer(other, column)
        return lambda cell: refer_to(name(cell))

    def _namer(self, other: Table, column: Column) -> Callable[[Any], RowId]:
        """Make a function that names an object of another table by a cell, as the change that is written calls it."""
        reference, text_of = make_reference(other, column), _writer(other.key_columns[0], "string")

        def name(cell: Any) -> RowId:
            row = reference.row(text_of(cell))
            return replace(row, key=self._called.get(row, row.key))

        return name

    def write(self, change: Change) -> Written | None:
        """Write a change; None where it says nothing that is mapped."""
        self._called = change.called or {}
        request = self._request(change)
        if request is None:
            return None
        try:
            text = encode(request).decode()
        except UnicodeEncodeError:
            raise ExpressionError("a value, or the key, holds half a character, which UTF-8 cannot carry") from None
        return Written(change.event_id, change.positions, text)

    def _request(self, change: Change) -> ScimRequest | None:
        if change.op is Op.TRUNCATE:
            raise ExpressionError(
                "SCIM has no request that empties a table; `eventlog verify --repair` tells what is gone"
            )
        if change.op is Op.DELETE:
            return self._write_delete(change)
        if self._is_whole(change):
            return self._whole(change)
        operations = [operation for edit in change.edits for operation in self._operations(edit)]
        if not operations:
            return None
        body = {"schemas": [PATCH_OP], "Operations": operations}
        sent = {edit.column for edit in change.edits if edit.reset or change.whole}
        is_whole = sent >= {column for column, field in self.fields.items() if not field.is_key}
        return self._make("PATCH", change, body, is_whole=is_whole)

    def _is_whole(self, change: Change) -> bool:
        """Tell whether a change is of a new object, or tells all of it."""
        # A new row of a child table is an add, too: of a value, to an object that may be there since long.
        is_new = change.op is Op.ADD and not (
            change.edits and self._multiple.issuperset(e.column for e in change.edits)
        )
        return is_new or change.refresh or change.created

    def _make(
        self,
        method: Any,
        change: Change,
        body: dict[str, Any] | None,
        *,
        ends: bool = False,
        is_whole: bool = False,
    ) -> ScimRequest:
        path = self._settings.place + ("" if method == "POST" else "/{id}")
        return ScimRequest(
            method=method,
            path=path,
            object=_object_of(change.row),
            unique=Unique(str(self._unique), self._unique_values(change)),
            mapping=self._name,
            ends=ends,
            is_whole=is_whole,
            key=self._key_of(change) if is_whole else {},
            body=body,
        )

    def _write_delete(self, change: Change) -> ScimRequest:
        if self._settings.delete == "delete":
            return self._make("DELETE", change, None, ends=True)
        operations = [{"op": "replace", "path": "active", "value": False}]
        return self._make("PATCH", change, {"schemas": [PATCH_OP], "Operations": operations}, ends=True)

    def _whole(self, change: Change) -> ScimRequest:
        """Write the whole row as a resource."""
        body: dict[str, Any] = {"schemas": [self._settings.core]}
        resource: dict[str, Any] = {}
        if self._enables:
            set_value(resource, ACTIVE, True)
        for column, cell in self._cells(change):
            field = self.fields[column]
            if field.is_multiple:
                elements = [field.element(field.write(value)) for value in _several(cell)]
                if elements:
                    add_elements(resource, field.path, elements)
            elif cell is not None:
                set_value(resource, field.path, field.write(cell))
        body["schemas"] += sorted(key for key in resource if key.lower().startswith("urn:"))
        return self._make("POST", change, body | resource)

    def _cells(self, change: Change) -> Iterator[tuple[str, Any]]:
        """Yield the mapped columns of a row, key included, with their values."""
        sent = set()
        for edit in change.edits:
            if edit.column in self.fields and edit.new is not ABSENT:
                sent.add(edit.column)
                yield edit.column, edit.new
        for column, text in self._key_cells(change).items():
            if column not in sent:
                yield column, text

    def _key_of(self, change: Change) -> dict[str, Any]:
        """Return the key's values by path."""
        fields = [(self.fields[column], text) for column, text in self._key_cells(change).items()]
        return {str(field.path): field.write(text) for field, text in fields}

    def _key_cells(self, change: Change) -> Mapping[str, str]:
        if not self._keys:
            return {}
        parts = parse(change.row.key).parts
        return {self._keys[name.lower()]: text for name, text in parts if name.lower() in self._keys}

    def _unique_values(self, change: Change) -> tuple[str, ...]:
        """Return values of the unique path the receiver may have: the new and the old one."""
        column, values = self._unique_column, list[Any]()
        if column in (keys := self._key_cells(change)):
            values.append(keys[column])
        if change.beside and change.beside.get(column) is not None:
            values.append(change.beside[column])
        for edit in change.edits:
            if edit.column == column:
                values += [cell for cell in (edit.new, edit.old) if cell is not ABSENT and cell is not None]
        written = [self.fields[column].write(value) for value in values]
        return tuple(dict.fromkeys(value for value in written if isinstance(value, str) and value))

    def _operations(self, edit: Edit) -> Iterator[dict[str, Any]]:
        """Yield PATCH operations for an edit."""
        field = self.fields.get(edit.column)
        if field is None:
            return
        if field.is_multiple:
            yield from _of_several(field, edit)
        elif edit.new is not ABSENT and (edit.reset or edit.new != edit.old):
            yield _of_one(field, edit)


class EntraTable(ScimTable):
    """Writes what Microsoft Entra's bulkUpload takes: of each change a user's attributes, to be matched by externalId.

    An attribute that is not there stays there as it is; null empties it.
    """

    def __init__(
        self, name: str, settings: ResourceSettings, table: Table, catalog: Catalog, mappings: ScimSettings
    ) -> None:
        super().__init__(name, settings, table, catalog, mappings)
        if self._unique_column not in table.key:
            raise ExpressionError(
                f"{self._unique_column} goes to externalId and is not in the key of {table.name}, so that nobody knows it"
                " of a deleted row; map a column of the key to externalId"
            )

    def _refer(self, other: Table, column: Column, mappings: ScimSettings) -> Any:
        """Make the externalId of a user of another table."""
        name = find_mapping(mappings, other.schema, other.name)
        columns = {} if name is None else mappings.tables[name].columns
        external = [
            column for column, to in columns.items() if (to if isinstance(to, str) else to.path) == "externalId"
        ]
        if [column.lower() for column in external] != [other.key[0].lower()]:
            raise ExpressionError(f"a column references {other.name}, whose key is not what goes to externalId")
        call, write = self._namer(other, column), _writer(other.key_columns[0], "string")
        return lambda cell: write(parse(call(cell).key).parts[0][1])

    def _request(self, change: Change) -> ScimRequest | None:
        if change.op is Op.TRUNCATE:
            return super()._request(change)
        if change.op is Op.DELETE:
            return self._upload(change, {"active": False}, ends=True)
        is_whole = self._is_whole(change)
        data: dict[str, Any] = {"active": True} if is_whole and self._enables else {}
        for edit in change.edits:
            field = self.fields.get(edit.column)
            is_sent = is_whole or edit.reset or change.whole or edit.new != edit.old
            if field is None or edit.new is ABSENT or not is_sent:
                continue
            if field.is_multiple:
                if not (is_whole or edit.reset):
                    raise ExpressionError(
                        f"bulkUpload takes all values of {edit.column} together; capture rows with the style row-back"
                    )
                add_elements(data, field.path, [field.element(field.write(value)) for value in _several(edit.new)])
            elif edit.new is not None:
                set_value(data, field.path, field.write(edit.new))
            else:  # of a new row too: its user may have been there before
                set_value(data, field.path, _EMPTIED)
        return self._upload(change, _with_nulls(data)) if data else None

    def _upload(self, change: Change, data: dict[str, Any], *, ends: bool = False) -> ScimRequest:
        for path, value in self._key_of(change).items():
            set_value(data, read_path(path, "key"), value)
        urns = (key for key in data if key.lower().startswith("urn:"))
        schemas = [*dict.fromkeys([self._settings.core, ENTERPRISE_USER, *sorted(urns)])]
        return self._make("POST", change, {"schemas": schemas} | data, ends=ends)


_EMPTIED: Final = object()
"""What stands for null where None means nothing."""


def _with_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_nulls(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_with_nulls(part) for part in value]
    return None if value is _EMPTIED else value


def _of_one(field: ScimField, edit: Edit) -> dict[str, Any]:
    path = field.path
    if edit.new is None:
        # Of a value among several all goes; the whole of it has no value any more.
        return {"op": "remove", "path": path.whole if path.sub == "value" and path.filter else str(path)}
    value = field.write(edit.new)
    if path.filter and path.sub == "value" and edit.old is None:
        return {"op": "add", "path": path.top, "value": [field.element(value)]}
    return {"op": "replace", "path": str(path), "value": value}


def _of_several(field: ScimField, edit: Edit) -> Iterator[dict[str, Any]]:
    new = [field.element(field.write(value)) for value in _several(edit.new)]
    if edit.reset:
        if not field.path.filter:
            yield {"op": "replace", "path": field.path.top, "value": new}
            return
        yield {"op": "remove", "path": field.path.whole}
    old = [] if edit.reset else [field.element(field.write(value)) for value in _several(edit.old)]
    if gone := [element for element in old if element not in new]:
        yield {"op": "remove", "path": field.path.top, "value": gone}
    if come := [element for element in new if element not in old]:
        yield {"op": "add", "path": field.path.top, "value": come}


def _several(cell: Any) -> tuple[Any, ...]:
    if cell is ABSENT or cell is None:
        return ()
    values = cell if isinstance(cell, tuple) else (cell,)
    return tuple(value for value in values if value is not None)


def _object_of(row: RowId) -> str:
    return next(iter(refer_to(row).values()))


def _find_referred_table(
    mapped: MappedColumn, table: Table, column: Column, catalog: Catalog, mappings: ScimSettings
) -> Table | None:
    """Return the table a column references; only a mapped one, unless the settings name it."""
    if mapped.references == "":
        return None
    if mapped.references is not None:
        other = catalog.class_named(table.schema, mapped.references)
        if other is None:
            raise ExpressionError(f"{mapped.name} references {mapped.references}, and there is no such table")
    else:
        other = find_referenced(catalog, table, column)
        if other is None or find_mapping(mappings, other.schema, other.name) is None:
            return None
    if len(other.key) != 1:
        raise ExpressionError(f"{mapped.name} references {other.name}, whose key has several columns")
    return other


def _writer(column: Column, wanted: ValueType) -> Any:
    """Return a function converting a column's values to JSON of SCIM's type."""
    read, plain = reading(column), json_field(column, qlik_type(column.type)).write
    if wanted == "boolean":
        return _truth
    if wanted in ("integer", "decimal"):
        convert: Any = int if wanted == "integer" else float
        return lambda cell: _number(cell, convert)
    is_text = wanted in ("string", "dateTime")

    def write(cell: Any) -> Any:
        value = plain(read(cell))
        if is_text and isinstance(value, bool):
            return "true" if value else "false"
        if is_text and not isinstance(value, str):
            return str(value)
        return value

    # A time says its zone there, and one without is in UTC.
    if wanted == "dateTime" or column.category is Category.TIMESTAMP:
        return lambda cell: _in_zone(write(cell))
    return write


def _in_zone(text: Any) -> Any:
    return text if not isinstance(text, str) or text.endswith("Z") or "T" not in text else f"{text}Z"


def _truth(cell: Any) -> bool:
    state = truth_of(cell)
    if state is None:
        raise ExpressionError(f"{value_shown(cell)} is not a truth value (1, t, true, y, yes or 0, f, false, n, no)")
    return state


def _number(cell: Any, convert: Any) -> Any:
    try:
        return convert(str(cell).strip())
    except ValueError:
        raise ExpressionError(f"{value_shown(cell)} is not a number") from None


class ScimSayer(ColumnSayer):
    """What is known of the values of one table."""

    def __init__(self, columns: list[Column], fields: Mapping[str, ScimField]) -> None:
        super().__init__(columns, [fields[column.name].write for column in columns])
        self._fields = fields

    def holds_several(self, column: str) -> bool:
        """Tell whether each value of a column comes and goes by itself."""
        return column in self._fields and self._fields[column].is_multiple
