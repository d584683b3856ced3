"""The definitions of a stream's tables, as the history of the log has them that it is captured into.

Who captures a stream owns its log, and enters each look of a table that images were written under.
An image says by its number which of them that was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from msgspec.structs import replace
from sqlalchemy import Connection

from eventlog.core.rules.definitions import Definition, Definitions
from eventlog.core.schema import Catalog, Table
from eventlog.sql.definitions import ShapeVersion
from eventlog.sql.history import enter_image, read_history
from eventlog.sql.log import Log


class ImageNumbers:
    """The numbers by which images of tables begin."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: dict[tuple[str, tuple[str, ...]], tuple[int, Table]] = {}

    def number(
        self, connection: Connection, table: Table, columns: tuple[str, ...], first: int, *, case_sensitive: bool
    ) -> int:
        """Find the number of images with these columns, from row `first` on; a new one is entered in
        the caller's transaction.
        """
        number, known = self._known.get((table.whole, columns), (0, None))
        if known is None or (known is not table and known != table):
            # Another look of the table: numbers of its former ones are over.
            self._known = {
                key: entry for key, entry in self._known.items() if entry[1] == table or key[0] != table.whole
            }
            number = enter_image(connection, self._log.names, table, columns, first, case_sensitive=case_sensitive)
            self._known[table.whole, columns] = number, table
        return number

    def forget(self) -> None:
        """Forget them: what was entered last may not be durable, or another publisher has entered more."""
        self._known.clear()


def read_catalog(log: Log) -> Catalog:
    """Read the tables as they were described last, with all former definitions."""
    with log.transaction(lone=True) as connection:
        versions = read_history(connection, log.names)
    by_name: dict[str, list[tuple[Table, ShapeVersion]]] = {}
    for version in versions:
        if version.details.table is not None and version.details.image is not None:
            by_name.setdefault(version.table, []).append((version.details.table, version))
    case_sensitive = any(version.details.case_sensitive for version in versions)
    catalog = Catalog([looks[-1][0] for looks in by_name.values()], case_sensitive=case_sensitive)
    known = [definition for looks in by_name.values() for definition in _definitions(looks)]
    return Catalog(catalog.tables, case_sensitive=case_sensitive, former=Definitions(known, catalog))


def _definitions(looks: Iterable[tuple[Table, ShapeVersion]]) -> Iterator[Definition]:
    """Make the definitions of one table, oldest first: one for all numbers under which it looked the same."""
    looks = list(looks)
    today = looks[-1][0]
    alike = [(table, [version for _, version in some]) for table, some in groupby(looks, key=lambda look: look[0])]
    for table, versions in alike:
        then = today
        if versions[-1] is not looks[-1][1]:
            there = {*today.attributes, *today.key}
            then = replace(table, gone=tuple([name for name in table.attributes if name not in there]))
        images = {version.version: version.details.image or () for version in versions}
        yield Definition(table=then, first=versions[0].first_row, today=today, images=images)
