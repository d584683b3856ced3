"""The short way for whole rows: their values are mostly of their columns' types already and need no reading one by one.

Law: what comes of it is what TableValues tells of the same change; whatever is unusual is left to that.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import attrgetter, itemgetter, ne
from typing import Any

from msgspec import Struct

from eventlog.core.model import Change, Op, Value
from eventlog.core.schema import Column
from eventlog.core.sql_types import Category, is_zoned
from eventlog.qlik.readings import is_float
from eventlog.qlik.values import TableValues

Row = Sequence[Value]
Quick = tuple[Row | None, Row | None, int, int, int]
"""What TableValues.told says, as a bare tuple: before, after, changed, had, has."""

_column, _old, _new = attrgetter("column"), attrgetter("old"), attrgetter("new")
_KINDS: dict[Category, type] = {
    Category.STRING: str,
    Category.OCTET: bytes,
    Category.INT: int,
    Category.STATE: bool,
    Category.NUMBER: Decimal,
    Category.DATE: dt.date,
    Category.TIME: dt.time,
    Category.TIMESTAMP: dt.datetime,
}
_LENGTHS = frozenset(range(1, 19))
"""How many digits a number has that 64 bits hold for sure."""


class RowShape(Struct, frozen=True, kw_only=True):
    """How rows of the same captured columns are put together. `admitted` are the types of values that fit,
    `paired` those of the values before and after.
    """

    order: Callable[[tuple[Value, ...]], tuple[Value, ...]] | None
    bits: int
    places: tuple[int, ...]
    kinds: tuple[type, ...]
    clocks: tuple[tuple[int, dt.tzinfo | None], ...]
    """Where times stand, and the zone that makes one canonical."""
    admitted: set[tuple[type, ...]]
    paired: set[tuple[type, ...]]
    masks: dict[tuple[bool, ...], int]

    def fits(self, cells: tuple[Any, ...]) -> bool:
        """Whether every value is the one that reading it would give."""
        kinds = tuple(map(type, cells))
        if kinds not in self.admitted:
            none = type(None)
            if not all(kind is none or kind is wanted for kind, wanted in zip(kinds, self.kinds, strict=True)):
                return False
            self.admitted.add(kinds)
        for place, zone in self.clocks:
            cell = cells[place]
            if cell is not None and cell.tzinfo is not zone:
                return False
        return True

    def fit_together(self, olds: tuple[Any, ...], news: tuple[Any, ...]) -> bool:
        """Whether the values before and after do, with one look at their types."""
        kinds = tuple(map(type, olds + news))
        if kinds not in self.paired:
            if not (self.fits(olds) and self.fits(news)):
                return False
            self.paired.add(kinds)
        for place, zone in self.clocks:
            old, new = olds[place], news[place]
            if (old is not None and old.tzinfo is not zone) or (new is not None and new.tzinfo is not zone):
                return False
        return True

    def fit_each(self, columns: Sequence[Sequence[Any]]) -> bool:
        """Whether the values of many rows do, column by column."""
        found = [set(map(type, cells)) - {type(None)} for cells in columns]
        if not all(kinds <= {wanted} for kinds, wanted in zip(found, self.kinds, strict=True)):
            return False
        return all(
            {cell.tzinfo for cell in columns[place] if cell is not None} <= {zone} for place, zone in self.clocks
        )

    def row(self, key: tuple[Any, ...], cells: tuple[Any, ...]) -> Row:
        """The whole row, or all rows by their columns; NULL where a column was not captured."""
        order = self.order
        return (*key, *cells) if order is None else order((*key, *cells, None))

    def changed(self, flags: tuple[bool, ...]) -> int:
        """The bits of the columns that differ, for the next time too."""
        places = [place for place, differs in zip(self.places, flags, strict=True) if differs]
        found = self.masks[flags] = sum(1 << place for place in places)
        return found


class WholeRows:
    """The short way for the changes of one table."""

    def __init__(self, values: TableValues) -> None:
        self._values = values
        self.key_bits = values.key_bits
        self._shapes: dict[tuple[str, ...], RowShape | None] = {}
        first = values.columns[values.key[0]] if len(values.key) == 1 else None
        self._numbered = f"{first.name}=" if first is not None and first.category is Category.INT else None

    def told(self, change: Change) -> Quick | None:
        """What the change says; None where that takes the long way."""
        edits = change.edits
        names = tuple(map(_column, edits))
        shape = self._shapes.get(names) or self.shape(names)
        if shape is None:
            return None
        op = change.op
        if op is Op.MODIFY:
            olds, news = tuple(map(_old, edits)), tuple(map(_new, edits))
            if not shape.fit_together(olds, news):
                return None
            flags, bits = tuple(map(ne, olds, news)), shape.bits
            changed = shape.masks.get(flags)
            if changed is None:
                changed = shape.changed(flags)
            key, order = self._key(change.row.key), shape.order
            if order is None:
                return (*key, *olds), (*key, *news), changed, bits, bits
            return order((*key, *olds, None)), order((*key, *news, None)), changed, bits, bits
        cells = tuple(map(_new if op is Op.ADD else _old, edits))
        if op is Op.TRUNCATE or not shape.fits(cells):
            return None
        row, bits = shape.row(self._key(change.row.key), cells), shape.bits
        return (None, row, bits, 0, bits) if op is Op.ADD else (row, None, self._values.key_bits or bits, bits, 0)

    def shape(self, names: tuple[str, ...]) -> RowShape | None:
        """What rows with edits of these columns look like; None where those take the long way."""
        if names not in self._shapes:
            self._shapes[names] = self._shape(names)
        return self._shapes[names]

    def keys(self, keys: Sequence[str]) -> list[Sequence[Value]]:
        """The columns of the key, from the keys of many rows; DataError where one of them is none."""
        numbered = self._numbered
        if numbered is not None:
            head, *texts = "\n".join(["", *keys]).split(f"\n{numbered}")
            digits, lengths = "".join(texts), set(map(len, texts))
            if not head and len(texts) == len(keys) and digits.isdigit() and digits.isascii() and lengths <= _LENGTHS:
                return [list(map(int, texts))]
        return list(zip(*map(self._key, keys), strict=True))

    def _key(self, key: str) -> tuple[Value, ...]:
        numbered = self._numbered
        if numbered is not None and key.startswith(numbered):
            text = key[len(numbered) :]
            if text.isdigit() and text.isascii() and len(text) < 19:
                return (int(text),)
        row, _ = self._values.keyed(key)
        return tuple([row[place] for place in self._values.key])

    def _shape(self, names: tuple[str, ...]) -> RowShape | None:
        values = self._values
        own = {name: place for place, name in enumerate(values.names)}
        if len(set(names)) < len(names) or not all(name in own and own[name] not in values.key for name in names):
            return None
        places = tuple([own[name] for name in names])
        given = [*values.key, *places]
        order = [given.index(place) if place in given else len(given) for place in range(len(own))]
        columns = [values.columns[place] for place in places]
        clocks = [number for number, column in enumerate(columns) if column.category is Category.TIMESTAMP]
        return RowShape(
            order=None if given == list(range(len(own))) else _taking(order),
            bits=sum(1 << place for place in given),
            places=places,
            kinds=tuple([_kind(column) for column in columns]),
            clocks=tuple([(number, dt.UTC if is_zoned(columns[number].type) else None) for number in clocks]),
            admitted=set(),
            paired=set(),
            masks={},
        )


def _kind(column: Column) -> type:
    """The one type that values of the column have."""
    return float if column.category is Category.NUMBER and is_float(column.type) else _KINDS[column.category]


def _taking(order: list[int]) -> Callable[[tuple[Value, ...]], tuple[Value, ...]]:
    if len(order) == 1:
        only = order[0]
        return lambda cells: (cells[only],)
    return itemgetter(*order)
