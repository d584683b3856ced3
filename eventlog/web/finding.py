"""What somebody pastes into the search box, read: a row's number, a table, a key, or words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec import Struct

from eventlog.care.listing import Filters
from eventlog.core.errors import KeySyntaxError
from eventlog.core.table_names import read_name, write_name
from eventlog.core.tablekey import parse
from eventlog.web.actions import read_number
from eventlog.web.reading import TablePlace

FOUND_CHARACTERS: Final = 4000
"""Of what is pasted."""


class Sought(Struct, frozen=True, kw_only=True):
    """What a text may mean: the number of a row, a table, or rows of the list."""

    number: int | None = None
    place: TablePlace | None = None
    filters: Filters = Filters()


def read_sought(text: str, tables: Collection[TablePlace]) -> Sought:
    """Read a text: `1742`, `row 1742`, `usr`, `idu=5`, `usr idu=5`, `hr.usr.idu=5`, or words."""
    text = " ".join(text.replace("\0", "").split())[:FOUND_CHARACTERS]
    number = read_number(text.lower().removeprefix("row").lstrip(" #"))
    if number is not None:
        return Sought(number=number, filters=Filters(text=text[:200]))
    place = _read_table(text, tables)
    if place is not None:
        return Sought(place=place)
    keyed = next(_read_keys(text), None)
    if keyed is not None:
        return Sought(filters=keyed)
    return Sought(filters=Filters(text=text[:200]))


def _read_table(text: str, tables: Collection[TablePlace]) -> TablePlace | None:
    """Find the table that a text names, with its schema or as the only one of that name."""
    folded = text.casefold()
    for place in tables:
        if folded == write_name(*place).casefold():
            return place
    named = [place for place in tables if place[1].casefold() == folded]
    return named[0] if len(named) == 1 else None


def _read_keys(text: str) -> Iterator[Filters]:
    """Read a key, alone or behind the name of a table; the most likely reading first."""
    before, is_key, _ = text.partition("=")
    if not is_key:
        return
    for mark in (" ", ":", "."):
        table, found, _ = before.rstrip().rpartition(mark)
        key = text[len(table) + 1 :]
        if found and table and _is_key(key):
            yield Filters(table=_as_logged(table.strip(" :.")), key=_canonical(key))
    if _is_key(text):
        yield Filters(key=_canonical(text))


def _is_key(text: str) -> bool:
    try:
        parse(text)
    except KeySyntaxError:
        return False
    return True


def _canonical(key: str) -> str:
    return parse(key).canonical


def _as_logged(table: str) -> str:
    return write_name(*read_name(table)) if table[:1] == '"' else table
