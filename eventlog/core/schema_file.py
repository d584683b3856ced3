"""The schema file: a source's tables as JSON, with former definitions where a log knows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.file_forms import find_form
from eventlog.core.plural import count_words
from eventlog.core.rules.definitions import BEFORE_ALL_NUMBERS, Definition, Definitions
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.core.suggest import nearest
from eventlog.core.table_names import write_name

SCHEMA_KEY: Final = b"eventlog.schema"
"""What the metadata of an archive call the schema file by which its images are read."""


class _DefinitionInFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One definition of a class, from row `first` of the log on. `today` names the table of the
    file that it is now, none if it is gone. `table` is what it looked like, none if as `today`.
    `images` are the columns of image rows, by the number that they begin with.
    """

    first: int = BEFORE_ALL_NUMBERS
    today: str | None = None
    table: Table | None = None
    renamed: Mapping[str, str] = {}
    images: Mapping[int, tuple[str, ...]] = {}


class _SchemaFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    tables: tuple[Table, ...]
    case_sensitive: bool = False
    definitions: tuple[_DefinitionInFile, ...] = ()


def _refuse_misspelt_keys(text: bytes | str, origin: str) -> None:
    """Refuse a key that is nearly one of ours, which would be ignored; others are left alone."""
    for number, table in enumerate(msgspec.json.decode(text)["tables"]):
        places: list[tuple[str, dict[str, Any], type[Struct]]] = [(f"tables[{number}]", table, Table)]
        for at, child in enumerate(table.get("children", ())):
            places.append((f"tables[{number}].children[{at}]", child, Child))
        for where, owner, _ in [*places]:
            places += [(f"{where}.columns[{at}]", one, Column) for at, one in enumerate(owner.get("columns", ()))]
        for where, entry, kind in places:
            known = kind.__struct_encode_fields__
            for key in entry.keys() - {*known}:
                if (near := nearest(key, known)) is not None:
                    raise DataError(f"{origin}: {where}.{key} is not a key.", hint=f"Did you mean {near}?")


def catalog_from_json(text: bytes | str, *, origin: str = "schema.json") -> Catalog:
    """Read a schema file; raise DataError naming the wrong place."""
    if isinstance(text, bytes) and (form := find_form(text)):
        raise DataError(f"{origin} {form}.")
    try:
        file = msgspec.json.decode(text, type=_SchemaFile)
    # ValidationError is a DecodeError, and names the path.
    except (msgspec.DecodeError, UnicodeError) as error:
        hint = "`eventlog catalog` writes such a file."
        raise DataError(f"{origin} is not a schema file: {str(error).rstrip('.')}.", hint=hint) from error
    _refuse_misspelt_keys(text, origin)
    for table in file.tables:
        _check(table, origin)
    named = Counter((table.schema, table.name) for table in file.tables)
    if doubled := [write_name(*name) for name, times in named.items() if times > 1]:
        hint = "Take one of the descriptions out, or give each table its `schema`."
        raise DataError(f"{origin} describes the table {min(doubled)} twice; describe each once.", hint=hint)
    catalog = Catalog(file.tables, case_sensitive=file.case_sensitive)
    if not file.definitions:
        return catalog
    tables = {table.whole: table for table in file.tables}
    definitions: list[Definition] = []
    for number, entry in enumerate(file.definitions, 1):
        where = f"{origin}: definition {number}"
        today = None if entry.today is None else tables.get(entry.today)
        if entry.today is not None and today is None:
            hint = "Write the file again with `eventlog catalog`, or take the definition out."
            raise DataError(f"{where} is one of {entry.today}, which is none of the tables.", hint=hint)
        # Today's own definition has no table of its own in the file.
        looked = entry.table or today
        if looked is None:
            hint = "Give it `table`, what it looked like, or `today`, which of the tables it is."
            raise DataError(f"{where} has neither `table` nor `today`.", hint=hint)
        _check(looked, origin)
        definitions.append(
            Definition(table=looked, first=entry.first, today=today, renamed=entry.renamed, images=entry.images)
        )
    former = Definitions(definitions, catalog)
    return Catalog(file.tables, case_sensitive=file.case_sensitive, former=former)


def catalog_to_json(catalog: Catalog) -> bytes:
    """Write a schema file for `catalog_from_json`, indented for people."""
    former = catalog.former
    known = former.known if former is not None and (former or former.images) else ()
    definitions = [
        _DefinitionInFile(
            first=definition.first,
            today=None if definition.today is None else definition.today.whole,
            table=None if definition.current else definition.table,
            renamed=definition.renamed,
            images=definition.images,
        )
        for definition in known
    ]
    file = _SchemaFile(
        tables=tuple(catalog.tables),
        case_sensitive=catalog.case_sensitive,
        definitions=tuple(definitions),
    )
    return msgspec.json.format(msgspec.json.encode(file), indent=2)


def _check(table: Table, origin: str) -> None:
    names = [column.name for column in table.columns]
    doubled = [name for name, times in Counter(names).items() if times > 1]
    if doubled:
        twice = f"{origin}: table {table.name} has the column {min(doubled)} twice"
        raise DataError(f"{twice}; name each once.")
    for child in table.children:
        if table.key and len(child.parent_key) != len(table.key):
            raise DataError(
                f"{origin}: the child table {child.name} holds"
                f" {count_words(len(child.parent_key), 'key column')} of its parent {table.name},"
                f" whose key has {len(table.key)}; parent_key lists one for each."
            )
