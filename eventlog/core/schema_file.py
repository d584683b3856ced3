"""The schema file: the tables of a source as JSON, with the definitions that they had before where a log knows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.plural import counted
from eventlog.core.rules.definitions import BEFORE_ALL_NUMBERS, Definition, Definitions
from eventlog.core.schema import Catalog, Table


class _DefinitionInFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One definition of a class, from row `first` of the log on. `today` names the table of the file that it is now, and is
    missing where the class is gone; `table` is what it looked like, and is missing where that is today's table.
    """

    first: int = BEFORE_ALL_NUMBERS
    today: str | None = None
    table: Table | None = None
    renamed: Mapping[str, str] = {}


class _SchemaFile(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=False):
    tables: tuple[Table, ...]
    case_sensitive: bool = False
    definitions: tuple[_DefinitionInFile, ...] = ()


def catalog_from_json(text: bytes | str, *, origin: str = "schema.json") -> Catalog:
    """Reads a schema file; DataError names the place that is wrong."""
    try:
        file = msgspec.json.decode(text, type=_SchemaFile)
    except (msgspec.DecodeError, UnicodeError) as error:  # ValidationError is a DecodeError, and names the path
        raise DataError(f"{origin} is not a schema file: {error}.") from error
    for table in file.tables:
        _check(table, origin)
    catalog = Catalog(file.tables, case_sensitive=file.case_sensitive)
    if not file.definitions:
        return catalog
    former = Definitions(_definitions(file, origin), catalog)
    return Catalog(file.tables, case_sensitive=file.case_sensitive, former=former)


def catalog_to_json(catalog: Catalog) -> bytes:
    """Writes the schema file that `catalog_from_json` reads, indented for people."""
    definitions = [
        _DefinitionInFile(
            first=one.first,
            today=None if one.today is None else one.today.whole,
            table=None if one.current else one.table,
            renamed=one.renamed,
        )
        for one in (catalog.former.known if catalog.former else ())
    ]
    file = _SchemaFile(
        tables=tuple(catalog.tables), case_sensitive=catalog.case_sensitive, definitions=tuple(definitions)
    )
    return msgspec.json.format(msgspec.json.encode(file), indent=2)


def _definitions(file: _SchemaFile, origin: str) -> Iterator[Definition]:
    tables = {table.whole: table for table in file.tables}
    for number, one in enumerate(file.definitions, 1):
        today = None if one.today is None else tables.get(one.today)
        if one.today is not None and today is None:
            hint = "Write the file again with `eventlog catalog`, or take the definition out."
            raise DataError(
                f"{origin}: definition {number} is one of {one.today}, which is none of the tables.", hint=hint
            )
        table = one.table or today
        if table is None:
            hint = "Give it `table`, what it looked like, or `today`, which of the tables it is."
            raise DataError(f"{origin}: definition {number} has neither `table` nor `today`.", hint=hint)
        _check(table, origin)
        yield Definition(table=table, first=one.first, today=today, renamed=one.renamed)


def _check(table: Table, origin: str) -> None:
    names = [column.name for column in table.columns]
    doubled = [name for name, times in Counter(names).items() if times > 1]
    if doubled:
        raise DataError(f"{origin}: table {table.name} has the column {min(doubled)} twice; name each once.")
    for child in table.children:
        if table.key and len(child.parent_key) != len(table.key):
            raise DataError(
                f"{origin}: the child table {child.name} holds {counted(len(child.parent_key), 'key column')} of its"
                f" parent {table.name}, whose key has {len(table.key)}; parent_key lists one for each."
            )
