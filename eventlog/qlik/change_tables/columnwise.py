"""The quick way for many changes of one table: their rows are put together column by column.

The values of whole rows are mostly of their columns' types already and need no reading one by one.
Law: what comes of it is what the rows of the changes one by one are; whatever is unusual is left to
that.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from itertools import chain, compress
from operator import itemgetter, ne
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from eventlog.core.errors import DataError, ExpressionError
from eventlog.core.model import Change, Op, Transaction, Value
from eventlog.core.schema import Column
from eventlog.core.sql_types import Category, is_zoned
from eventlog.qlik.change_seq import utc
from eventlog.qlik.change_tables.rows import BEFORE, OPERATIONS, stream_position, transaction_id, who_cells
from eventlog.qlik.limits import Limit
from eventlog.qlik.readings import is_float, read_column
from eventlog.qlik.values import RowBuilder, TableValues

Cells = Sequence[Any]
Codec = Callable[[int], bytes | str]
Pick = Callable[[tuple[Any, ...]], tuple[Any, ...]]
Masks = Callable[..., tuple[bytes | str, ...]]
_KNOWN: Final = {Op.ADD: (False, True), Op.MODIFY: (True, True), Op.DELETE: (True, False)}
"""Whether an operation has an image before, and one after."""


class LaidRows(Struct, frozen=True, kw_only=True):
    """The rows of changes, column by column, without change_seq and partition_name.

    `indexes` are those of the changes that have rows; `shown` says of the images before and after
    each whether it is one.
    """

    indexes: Sequence[int]
    shown: Sequence[bool]
    cells: tuple[Cells, ...]

    def spread(self, values: Sequence[Any]) -> list[Any]:
        """Repeat each change's value for each of its rows."""
        return _woven(values, values, self.shown)


class Layout:
    """How whole changes of one table become columns, with what they have in common worked out once."""

    def __init__(
        self,
        values: TableValues,
        builder: RowBuilder,
        codec: Codec,
        pick: Pick | None,
        *,
        before_image: bool,
        bounds: Sequence[Limit | None] = (),
        who: bool = False,
    ) -> None:
        self._who = who
        self._bounds = dict(zip(values.names, bounds, strict=False))
        self._values = values
        self._builder = builder
        self._codec = codec
        self._pick = pick
        self._shown = dict(_KNOWN)
        if not before_image:
            # Without before images a modification has one row, as the others have.
            self._shown[Op.MODIFY] = (False, True)
        self._letters, self._words = self._name_operations(0), self._name_operations(1)
        self._shapes: dict[tuple[str, ...], tuple[RowShape, Masks] | None] = {}
        self._numbered = None
        if len(values.key) == 1:
            key = values.columns[values.key[0]]
            # Keys of one whole number are by far the most frequent, and are read all at once below.
            if key.category is Category.INT:
                self._numbered = f"{key.name}="

    def lay_out(self, changes: Sequence[Change]) -> LaidRows | None:
        """Lay out the rows of the changes; None where one of them takes the long way."""
        shape_and_masks = self._shape_of(changes)
        # A truncation has no key and no edits, and so no columns that could be woven.
        ops = [Op.ADD if change.refresh or change.created else change.op for change in changes]
        if shape_and_masks is None or Op.TRUNCATE in ops:
            return None
        shape, written_masks = shape_and_masks
        edits = list(chain.from_iterable([change.edits for change in changes]))
        width = len(shape.indexes)
        # All changes have the same columns in the same order, so every width-th edit is of the same
        # column.
        olds, news = [edit.old for edit in edits], [edit.new for edit in edits]
        try:
            befores = [read_column(column, olds[place::width]) for place, column in enumerate(shape.columns)]
            afters = [read_column(column, news[place::width]) for place, column in enumerate(shape.columns)]
        except ExpressionError:
            return None
        masks = list(map(written_masks, ops, *map(_differing, befores, afters)))
        has_rows = list(map(bool, masks))
        if not any(has_rows):
            return _NONE
        if not all(has_rows):
            # Those in which nothing changed have no row; the others are laid anew, without them.
            laid = self.lay_out(list(compress(changes, has_rows)))
            if laid is None:
                return None
            indexes = list(compress(range(len(changes)), has_rows))
            return LaidRows(indexes=indexes, shown=laid.shown, cells=laid.cells)
        shown = list(chain.from_iterable(map(self._shown.__getitem__, ops)))
        own = self._own(shape, changes, befores, afters, ops, shown)
        if own is None:
            return None
        headers = self._headers(changes, ops, list(chain.from_iterable(masks)), shown)
        return LaidRows(indexes=range(len(changes)), shown=shown, cells=(*headers, *own))

    def _shape_of(self, changes: Sequence[Change]) -> tuple[RowShape, Masks] | None:
        """Find the common shape of all changes, and their masks.

        Return None where one is not whole, or has other columns.
        """
        first = changes[0].edits
        if not first or False in [change.whole for change in changes]:
            return None
        names = [edit.column for edit in first]
        edits = [tuple(change.edits) for change in changes]
        given = [edit.column for edit in chain.from_iterable(edits)]
        if set(map(len, edits)) != {len(names)} or given != names * len(changes):
            return None
        return self._shape(tuple(names))

    def _own(
        self,
        shape: RowShape,
        changes: Sequence[Change],
        befores: Sequence[Cells],
        afters: Sequence[Cells],
        ops: Sequence[Op],
        shown: Sequence[bool],
    ) -> tuple[Cells, ...] | None:
        """Lay out the table's own columns; None where a value or a key has to be read."""
        # Looked at are the values of all images that are known, also of those that are not shown: a
        # mask compares both.
        known = list(chain.from_iterable(map(_KNOWN.__getitem__, ops)))
        cells = [_woven(old, new, known) for old, new in zip(befores, afters, strict=True)]
        if not shape.fit_each(cells):
            return None
        if known != shown:
            cells = [_woven(old, new, shown) for old, new in zip(befores, afters, strict=True)]
        try:
            # A key can be text that is no key, which only the long way can refuse by its change.
            keys = self.keys([change.row.key for change in changes])
        except DataError:
            return None
        key = tuple([_woven(column, column, shown) for column in keys])
        nothing = [None] * sum(shown)
        columns: Sequence[Any] = shape.row(key, tuple(cells))
        return tuple([nothing if column is None else column for column in columns])

    def _headers(
        self, changes: Sequence[Change], ops: Sequence[Op], masks: Cells, shown: Sequence[bool]
    ) -> tuple[Cells, ...]:
        streams = [change.stream or stream_position(change) for change in changes]
        identities, times = _identities([change.transaction for change in changes]), _times(changes)
        cells: tuple[Cells, ...] = (
            list(chain.from_iterable(map(self._letters.__getitem__, ops))),
            masks,
            _woven(streams, streams, shown),
            list(chain.from_iterable(map(self._words.__getitem__, ops))),
            _woven(identities, identities, shown),
            _woven(times, times, shown),
        )
        if self._pick is not None:
            cells = self._pick(cells)
        if self._who:
            interleaved = [_woven(own, own, shown) for own in zip(*map(who_cells, changes), strict=True)]
            cells = (*cells, *interleaved)
        return cells

    def keys(self, keys: Sequence[str]) -> list[Sequence[Value]]:
        """Lay out the columns of the key, from the keys of many rows.

        Raise DataError where one of them is malformed.
        """
        numbered = self._numbered
        if numbered is not None:
            # All keys in one text, cut at what each of them begins with: no step of Python for each
            # key.
            head, *texts = "\n".join(["", *keys]).split(f"\n{numbered}")
            # A number of more digits may not fit into 64 bits; the long way decides.
            if not head and len(texts) == len(keys) and set(map(len, texts)) <= _LENGTHS:
                digits = "".join(texts)
                # `isdigit` takes digits of all scripts, and ².
                if digits.isdigit() and digits.isascii():
                    return [list(map(int, texts))]
        return list(zip(*map(self._key, keys), strict=True))

    def _key(self, key: str) -> tuple[Value, ...]:
        row, *_ = self._builder.read_key_pieces(key)
        return tuple([row[index] for index in self._values.key])

    def _shape(self, names: tuple[str, ...]) -> tuple[RowShape, Masks] | None:
        """Find the shape of rows with edits of these columns, and their masks.

        Return None where those take the long way.
        """
        if names not in self._shapes:
            shape = row_shape(self._values, names, self._bounds)
            self._shapes[names] = None if shape is None else (shape, self._write_masks(shape))
        return self._shapes[names]

    def _name_operations(self, which: int) -> dict[Op, tuple[str, ...]]:
        """Name the rows of each operation, by letter or by word."""
        return {op: self._images(op, BEFORE[which], OPERATIONS[op][which]) for op in _KNOWN}

    def _images(self, op: Op, before: Any, own: Any) -> tuple[Any, ...]:
        """Return one value for each row of the operation.

        Only a modification begins with a before image.
        """
        return tuple(compress((before if op is Op.MODIFY else own, own), self._shown[op]))

    def _write_masks(self, shape: RowShape) -> Masks:
        """Write the masks of a change's rows by operation and columns that differ.

        Return None where nothing changed.
        """

        def masks(op: Op, *differs: bool) -> tuple[bytes | str, ...]:
            changed = shape.bits
            if op is Op.MODIFY:
                changed = shape.find_changed(differs)
            elif op is Op.DELETE:
                # Of a table without a key, a deletion has its whole row.
                changed = self._values.key_bits or shape.bits
            if not changed:
                return ()
            return self._images(op, self._codec(0), self._codec(changed))

        # A table's changes differ in few ways, and this is asked for each of them.
        return cache(masks)


_NONE: Final = LaidRows(indexes=(), shown=(), cells=())


def _woven(befores: Sequence[Any], afters: Sequence[Any], shown: Iterable[bool]) -> list[Any]:
    """Weave values before and after by turns, as far as they are shown."""
    both: list[Any] = [None] * (2 * len(befores))
    both[::2], both[1::2] = befores, afters
    return list(compress(both, shown))


def _differing(befores: Cells, afters: Cells) -> list[bool]:
    return list(map(ne, befores, afters))


def _identities(transactions: Sequence[Transaction | None]) -> list[str]:
    # By the object, which the changes of a transaction share: its 32 digits are written once.
    numbers = list(map(id, transactions))
    by_number = dict(zip(numbers, transactions, strict=True))
    known = {number: transaction_id(transaction) for number, transaction in by_number.items()}
    return list(map(known.__getitem__, numbers))


def _times(changes: Sequence[Change]) -> list[dt.datetime | None]:
    # Most times are in UTC without a zone already, and need no call.
    return [
        time if type(time) is dt.datetime and time.tzinfo is None else utc(time)
        for time in [change.time for change in changes]
    ]


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
    """How rows of the same captured columns are put together."""

    order: Callable[[tuple[Value, ...]], tuple[Value, ...]] | None
    bits: int
    columns: tuple[Column, ...]
    indexes: tuple[int, ...]
    kinds: tuple[type, ...]
    clocks: tuple[tuple[int, dt.tzinfo | None], ...]
    """Where times stand, and the zone that makes one canonical."""
    bounds: tuple[tuple[int, Limit], ...] = ()
    """Where columns stand that do not hold every value of their type."""

    def fit_each(self, columns: Sequence[Sequence[Any]]) -> bool:
        """Return True if the values of many rows fit, column by column."""
        for cells, wanted in zip(columns, self.kinds, strict=True):
            # By exact types, for a bool is an int and would be written as one.
            if not set(map(type, cells)) - {type(None)} <= {wanted}:
                return False
        for index, zone in self.clocks:
            # Another zone than the column's would be written as it is, and then not be canonical.
            if not {cell.tzinfo for cell in columns[index] if cell is not None} <= {zone}:
                return False
        return all(bound.holds(columns[index]) for index, bound in self.bounds)

    def row(self, key: tuple[Any, ...], cells: tuple[Any, ...]) -> tuple[Any, ...]:
        """Put the values in the order of all columns; None for those not captured."""
        if self.order is None:
            return (*key, *cells)
        return self.order((*key, *cells, None))

    def find_changed(self, flags: tuple[bool, ...]) -> int:
        """Return the bits of the columns that differ."""
        return sum(1 << index for index in compress(self.indexes, flags))


def row_shape(
    values: TableValues, names: tuple[str, ...], bounds: Mapping[str, Limit | None] = MappingProxyType({})
) -> RowShape | None:
    """Make the shape of rows with edits of these columns; None where those take the long way."""
    own = {name: index for index, name in enumerate(values.names)}
    captured = all(name in own and own[name] not in values.key for name in names)
    # A second edit of a column, or one of a key's column, contradicts the row; the long way decides.
    if len(set(names)) < len(names) or not captured:
        return None
    indexes = tuple([own[name] for name in names])
    given = [*values.key, *indexes]
    order = None
    if given != list(range(len(own))):
        # What was not captured is taken from behind the last cell, where a row has a None.
        missing = len(given)
        whence = [given.index(index) if index in given else missing for index in range(len(own))]
        order = itemgetter(*whence)
    columns = [values.columns[index] for index in indexes]
    clocks: list[tuple[int, dt.tzinfo | None]] = []
    for number, column in enumerate(columns):
        if column.category is Category.TIMESTAMP:
            clocks.append((number, dt.UTC if is_zoned(column.type) else None))
    return RowShape(
        order=order,
        bits=sum(1 << index for index in given),
        columns=tuple(columns),
        indexes=indexes,
        kinds=tuple([_kind(column) for column in columns]),
        clocks=tuple(clocks),
        bounds=tuple([(index, bound) for index, name in enumerate(names) if (bound := bounds.get(name)) is not None]),
    )


def _kind(column: Column) -> type:
    """Return the one type of the column's values."""
    if column.category is Category.NUMBER and is_float(column.type):
        return float
    return _KINDS[column.category]
