"""Committed transactions become images, and the descriptions in the stream become a catalog. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from eventlog.core.errors import DataError
from eventlog.core.schema import Catalog
from eventlog.sources.gbase.compiled import compiled
from eventlog.sources.gbase.making import Described, Making
from eventlog.sources.gbase.reader import Committed, RecordReader
from eventlog.sources.gbase.rows import Reader, Values
from eventlog.sources.gbase.settings import GbaseSettings
from eventlog.sources.gbase.tables import spelled_as, table_of
from eventlog.sources.stream.source import StreamPiece


class ImageMaker:
    """Makes images of what the transactions of a stream did. `known` are tables that a schema file describes."""

    def __init__(self, settings: GbaseSettings, records: RecordReader, known: Catalog | None = None) -> None:
        self._settings = settings
        self._records = records
        self._known = known
        self._described: dict[tuple[int, int], Described] = {}
        self._current: dict[int, Described] = {}
        self._catalog = Catalog(known or ())

    def pieces(self, committed: Committed) -> Iterator[StreamPiece]:
        """The transaction's images, at least one piece, which may be empty."""
        making = Making(committed, fail=self._settings.unknown_rows == "fail")
        items = committed.items
        item = next(items, None)
        while item is not None:
            generation, _, label, _ = item
            found = self._described.get((generation, label))
            if found is None or self._current.get(label) is not found:
                making.flush()
                if making.found:
                    yield making.piece(self._catalog)
                found = self._turn(generation, label)
            if making.place >= making.full:
                yield making.piece(self._catalog)
            item = making.take(chain((item,), items), found, generation, label)
        yield making.piece(self._catalog, complete=True)

    def _turn(self, generation: int, label: int) -> Described:
        """The label's table as it is at that point of the stream, which the catalog shows from now on."""
        found = self._described.get((generation, label))
        if found is None:
            found = self._described[generation, label] = self._describe(generation, label)
        self._current[label] = found
        shown = {table.whole: table for table in self._known or ()}
        shown |= {one.name: one.table for one in self._current.values()}
        self._catalog = Catalog(shown.values(), case_sensitive=bool(self._known and self._known.case_sensitive))
        return found

    def _describe(self, generation: int, label: int) -> Described:
        labels, layouts = self._records.labels, self._records.layouts
        for at in range(generation - 1, -1, -1):
            if labels[at] == label:
                break
        else:
            table = table_of(label, None, self._settings, self._known)
            return Described(table, table.whole, _refusing(f"nothing has described the columns of label {label}."))
        layout = layouts[at]
        same = self._described.get((at + 1, label))
        if same is not None:
            return same  # another table was described meanwhile
        table = table_of(label, None if isinstance(layout, str) else layout, self._settings, self._known)
        if isinstance(layout, str):
            made = Described(table, table.whole, _refusing(layout))
        else:
            read = compiled(spelled_as(layout, table), self._settings.texts, self._settings.sizes)
            made = Described(table, table.whole, read)
        self._described[at + 1, label] = made
        return made


def _refusing(reason: str) -> Reader:
    def read(_data: bytes, _header_size: int) -> Values:
        raise DataError(reason)

    return read
